"""Inference for selections: false discovery rate control, p-values and confidence intervals."""
