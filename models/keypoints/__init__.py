"""Keypoint detectors for any kind of object: schema, options, results, detector and file format."""
