"""The annealing loop, its schedules, and what refines its result: Newton steps, exchanges of
features, criteria of size."""
