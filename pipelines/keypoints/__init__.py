"""Keypoints of any object: annotations and their schema, automatic settings, training,
evaluation."""
