"""Activity recognition from binary sensors: features per minute and the trained model."""
