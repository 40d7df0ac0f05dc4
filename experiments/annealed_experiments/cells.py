"""Checkpoints of tables, with a callback before each cell is computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from annealed.pipelines.common.checkpoints import Checkpoint


class Cells(Checkpoint):
    """Finished cells of a table.

    Parameters
    ----------
    path, made_from
        As in :class:`~annealed.pipelines.common.checkpoints.Checkpoint`.
    watch : function or None, default None
        Function that is called with the key of each cell before the cell is computed.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        made_from: dict[str, Any] | None = None,
        watch: Callable[[dict[str, Any]], object] | None = None,
    ):
        super().__init__(path, made_from)
        self.watch = watch

    def __call__(self, key: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Return the value of a cell; see the base class."""
        if self.watch is not None and key not in self:
            self.watch(key)
        return super().__call__(key, make)


def cells_of(checkpoint: str | Path | Checkpoint | None, made_from: dict[str, Any]) -> Checkpoint:
    """Return the given cells, or the cells in a file."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else Cells(checkpoint, made_from)
