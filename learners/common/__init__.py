"""What all estimators share: checks of parameters, encoding of targets, docstrings."""
