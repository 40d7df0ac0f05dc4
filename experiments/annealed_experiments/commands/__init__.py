"""Commands ``annealed reproduce`` and ``annealed data``, which entry points add to the package."""
