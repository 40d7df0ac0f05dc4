"""Tables of columns, for the command ``annealed select``."""
