"""What a person runs: the command line, training, evaluation protocols, data set readers."""
