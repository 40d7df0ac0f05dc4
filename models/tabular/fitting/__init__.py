"""Selection of the columns of a table: decisions, options, validation, and the fit."""
