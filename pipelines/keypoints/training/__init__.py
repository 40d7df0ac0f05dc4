"""Training of keypoint detectors: automatic settings, stages, and synthetic views."""
