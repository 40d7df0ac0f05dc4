"""Command line, training, evaluation protocols, and readers of data sets."""
