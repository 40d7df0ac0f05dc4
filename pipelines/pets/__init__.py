"""Cats and dogs: data, evaluation, reports."""
