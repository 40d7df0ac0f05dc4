"""Feature Selection with Annealing: a classifier, a regressor, a ranker, and paths over the number
of features."""
