"""Location of the real data sets, and skipping tests without them; for the conftest of each
distribution."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"  # beside the checkout
DATA = Path(os.environ.get("ANNEALED_DATA", BESIDE))


def mark_real_data(items):
    """Skip the tests of real data where these are absent."""
    if not DATA.is_dir():
        skip = pytest.mark.skip(reason=f"real data not found in {DATA} (set ANNEALED_DATA)")
        for item in items:
            if "data" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def data_dir():
    return DATA


@pytest.fixture(scope="session", autouse=True)
def no_line_on_compiling():
    """Commands run in this process: their output does not depend on which test compiled first."""
    from annealed.learners import compilation

    compilation._watch.told = True
