"""Keypoint detectors of any object: schema, options, results, the detector and its file."""
