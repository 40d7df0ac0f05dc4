"""Converters of downloaded public data sets to the folders that the commands read."""
