"""Training of keypoint detectors: mining, fitting, calibration, fast modes, shape regression."""
