"""Statistical guarantees for a selection: false discovery rate control, p-values, and intervals
after selection."""
