"""How sure a selection is: tests with a bounded share of false columns, p-values, and intervals
after selection."""
