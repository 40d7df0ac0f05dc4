"""Point tracks: reading and tracking, candidate segmentations and their features."""
