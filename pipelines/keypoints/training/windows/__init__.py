"""Training of window classifiers: sampling, mining, fitting and calibration."""
