"""The commands ``annealed reproduce`` and ``annealed data``, added by entry points."""
