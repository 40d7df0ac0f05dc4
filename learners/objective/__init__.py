"""Objectives: losses of scores and priors on coefficients."""
