"""Whole faces: shape models, assembly from candidates, refinement of all points, probabilities."""
