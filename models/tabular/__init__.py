"""Models for tabular data: fitted linear or piecewise-linear estimators, stored in files."""
