"""Programs for users: the command line, training, evaluation protocols, data set readers."""
