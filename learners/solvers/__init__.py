"""The annealing loop, its schedules, and refinements of its result: Newton steps, feature exchanges
and size criteria."""
