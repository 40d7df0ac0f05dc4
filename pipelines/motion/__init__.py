"""Motion segmentation: the benchmark's protocol, compared methods, reports, segmenting files."""
