"""Objectives: losses of scores and priors of coefficients."""
