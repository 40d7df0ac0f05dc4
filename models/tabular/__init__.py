"""Models of tables: any fitted linear or piecewise-linear estimator, stored in a file."""
