"""The real data sets, as in the tests of the package."""

from real_data import data_dir, no_line_on_compiling, pytest_collection_modifyitems  # noqa: F401
