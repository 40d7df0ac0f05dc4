"""Responses of the worker processes, with one module for each tab of the page."""
