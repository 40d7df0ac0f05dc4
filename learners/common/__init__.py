"""Code shared by all estimators: validation of parameters and encoding of targets."""
