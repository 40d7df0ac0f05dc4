"""Image windows: the pool of HOG and Haar features, dense and sparse scans, and training
designs."""
