"""Code that all estimators share: validation of parameters and encoding of targets."""
