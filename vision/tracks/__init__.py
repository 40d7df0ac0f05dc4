"""Feature tracks: reading, tracking, candidate segmentations and their features."""
