"""Two-frame geometric models: fits, hypotheses, kernels, and measures of segmentations."""
