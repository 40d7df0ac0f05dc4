"""Cells of tables: watched as they are computed, and passed from table to table."""

from annealed_experiments.cells import Cells, cells_of


def test_cells_that_are_made_are_watched(tmp_path):
    seen = []
    cells = cells_of(Cells(tmp_path / "cells", {"table": "a"}, seen.append), {"table": "b"})
    for n in (1, 2, 1):
        cells({"N": n}, lambda: 0)
    assert seen == [{"N": 1}, {"N": 2}]
    again = cells_of(tmp_path / "cells", {"table": "a"})
    assert {"N": 2} in again and {"N": 3} not in again
