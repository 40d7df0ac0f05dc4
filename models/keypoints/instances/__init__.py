"""Whole objects: shape models, assembly from candidates, refinement, probabilities, tracking."""
