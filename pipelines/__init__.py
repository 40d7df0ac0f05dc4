"""Programs for users: the command line, training, evaluation protocols, and data set readers."""
