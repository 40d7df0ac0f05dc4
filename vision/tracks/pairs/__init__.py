"""Two-frame geometric models: fits, hypotheses, kernels of shared hypotheses, and measures of
segmentations."""
