"""Rankers of motion segmentations."""
