"""Windows that show one keypoint: their models, their search in a pyramid, non-maximum suppression."""
