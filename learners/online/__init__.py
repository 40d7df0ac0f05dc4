"""Sparse learners of streams: truncated gradient, FOBOS, RDA, stabilised truncated SGD."""
