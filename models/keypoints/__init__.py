"""Keypoint detectors: window models, scanning, non-maximum suppression, shape regression."""
