"""The real data sets, as in the tests of the package."""

from real_data import data_dir, mark_real_data, no_line_on_compiling  # noqa: F401


def pytest_collection_modifyitems(items):
    mark_real_data(items)
