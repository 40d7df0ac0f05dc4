"""Feature Selection with Annealing (FSA): classifier, regressor, ranker, and paths over sizes."""
