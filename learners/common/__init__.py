"""Code shared by all estimators: parameter validation, target encoding, fitted sums of responses,
and progress bars."""
