"""Other feature selectors: forward-backward greedy, TISP, LogitBoost, RankBoost, and minimax sparse
logistic regression.
"""
