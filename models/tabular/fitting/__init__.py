"""Column selection in tables: encoding decisions, options, validation and the fit."""
