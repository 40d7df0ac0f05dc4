"""Other feature selectors: forward-backward greedy, TISP, LogitBoost, RankBoost, minimax
sparse logistic regression.
"""
