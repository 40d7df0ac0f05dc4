"""Windows that show one keypoint: models, search in a pyramid, and non-maximum suppression."""
