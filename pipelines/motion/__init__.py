"""Motion segmentation: the benchmark protocol, compared methods, reports, segmentation of files."""
