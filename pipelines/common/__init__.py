"""Functions shared by several pipelines."""
