"""Activities recognised from binary sensors: features per minute, and the trained model."""
