"""Automatic choice of the ridge penalty and the number of features."""
