"""Comparison of losses and learners on windows of faces."""
