"""Models of tables: any fitted linear or piecewise-linear estimator, kept in a file."""
