"""What all tests share: where the real data lie."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ANNEALED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def pytest_collection_modifyitems(items):
    if not DATA.is_dir():
        skip = pytest.mark.skip(reason=f"real data not found in {DATA} (set ANNEALED_DATA)")
        for item in items:
            if "data" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def data_dir():
    return DATA
