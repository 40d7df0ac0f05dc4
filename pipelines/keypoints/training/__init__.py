"""Training of keypoint detectors: automatic settings, stages, views of faces."""
