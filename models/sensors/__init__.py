"""Activity recognition from binary sensors: features of each minute, and the trained model."""
