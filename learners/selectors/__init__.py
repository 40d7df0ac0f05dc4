"""Other selectors: forward-backward greedy, TISP, LogitBoost, RankBoost, minimax logistic."""
