"""Sequences of labels: the linear-chain conditional random field, and selection with it."""
