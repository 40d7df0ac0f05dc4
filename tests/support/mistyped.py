"""Constructor calls that a type checker must report, all but the last: test_types.py."""

from annealed.learners import FSAClassifier, FSAClassifierCV, TISPClassifier

FSAClassifier(3, lss="x")
TISPClassifier(3, nosuch=1)
FSAClassifierCV(n_features_to_select=3)
FSAClassifier(3, fit_intercept="yes")
FSAClassifier(3, loss="logistic", response="piecewise", class_weight="balanced")
