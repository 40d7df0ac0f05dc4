"""Windows that show one keypoint: models, search in a pyramid, non-maximum suppression."""
