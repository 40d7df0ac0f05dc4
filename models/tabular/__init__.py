"""Models of tables: fitted linear or piecewise-linear estimators that are stored in files."""
