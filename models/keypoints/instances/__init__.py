"""Whole objects: shape models, assembly of candidates, refinement, probabilities and tracking."""
