"""Comparison of losses and learners on windows of faces, for the command ``annealed reproduce``."""
