"""Training of the classifiers of windows: sampling, mining, fitting, calibration."""
