"""Sparse online learners: truncated gradient, FOBOS, RDA and stabilised truncated SGD."""
