"""Geometric models between two frames: fits, hypotheses, kernels of shared hypotheses, measures of
segmentations."""
