"""Converters of downloaded public data sets into the folders that the commands read."""
