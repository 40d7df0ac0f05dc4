"""Command line, training, evaluation protocols, and readers for data sets."""
