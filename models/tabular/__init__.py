"""Models of tables: fitted linear or piecewise-linear estimators, stored in files."""
