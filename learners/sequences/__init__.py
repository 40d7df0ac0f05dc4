"""Sequence labelling with linear-chain conditional random fields, and their feature selection."""
