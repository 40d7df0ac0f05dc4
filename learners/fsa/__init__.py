"""Feature Selection with Annealing: classifier, regressor, ranker, and paths over the number of
features."""
