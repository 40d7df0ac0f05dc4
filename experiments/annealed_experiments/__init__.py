"""The papers' tables, for the command ``annealed reproduce``."""
