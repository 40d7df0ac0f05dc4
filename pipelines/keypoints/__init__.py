"""Keypoints of any object: annotations with their schema, decisions, training, evaluation."""
