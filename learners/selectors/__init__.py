"""The other selectors of columns: forward-backward greedy, TISP, LogitBoost, RankBoost, minimax
sparse logistic regression.
"""
