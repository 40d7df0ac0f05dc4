"""Annealing loop, its schedules, and refinements such as Newton fits and feature exchanges."""
