"""Tables for the command ``annealed select``."""
