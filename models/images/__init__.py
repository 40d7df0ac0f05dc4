"""Classifiers of whole images."""
