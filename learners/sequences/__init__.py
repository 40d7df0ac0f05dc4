"""Sequences of labels: the linear-chain conditional random field, and feature selection for it."""
