"""Code shared by all estimators: validation, target encoding, additive models, progress bars."""
