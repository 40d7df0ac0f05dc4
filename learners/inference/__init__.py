"""Statistical guarantees of a selection: false discovery rate control, p-values, and intervals
after selection."""
