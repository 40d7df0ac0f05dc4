"""Automatic choice of the ridge penalty and of the number of features."""
