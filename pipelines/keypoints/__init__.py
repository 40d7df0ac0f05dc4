"""Keypoints of any kind of object: annotations and their schema, automatic settings, training,
evaluation."""
