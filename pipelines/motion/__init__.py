"""Motion segmentation: benchmark protocol, compared methods, reports and segmentation of files."""
