"""Training of keypoint detectors: decisions from the data, stages, views of faces."""
