"""Keypoint detectors for any kind of object: schema, options, results, the detector and its
file."""
