"""Sparse learners for streams: truncated gradient, FOBOS, RDA, stabilised truncated SGD."""
