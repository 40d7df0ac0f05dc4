"""The tables that ``annealed select`` and ``annealed predict`` write: csv, tsv, parquet, xlsx
and npz files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...models.files import replacing
from .tables import FRAMES, brings_its_target, read_frame, read_matrix


def write_columns(source: Path, out: Path, names: Sequence[str], target: str | None, sep: str | None, encoding: str | None) -> None:
    """Write the columns ``names`` of a table and its target, as the file has them, to a table of
    another file.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    if brings_its_target(source):
        matrix = read_matrix(source)
        chosen = matrix.X[:, [matrix.names.index(name) for name in names]]
        chosen = chosen.toarray() if hasattr(chosen, "toarray") else chosen
        if out.name.lower().endswith(".npz"):
            with replacing(out) as temporary, temporary.open("wb") as file:
                np.savez(file, X=chosen, y=matrix.y, names=np.array(list(names)))
            return
        frame = pd.DataFrame(chosen, columns=list(names)).assign(**{_free("y", names): matrix.y})
    else:
        frame = read_frame(source, sep, encoding)[[*names, target]]
    write_frame(frame, out)


def write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Write a csv, tsv, parquet or xlsx file; an existing one is replaced as a whole or not at
    all."""
    with replacing(out) as temporary:
        if out.suffix.lower() == ".parquet":
            frame.to_parquet(temporary, index=False)
        elif out.suffix.lower() == ".xlsx":
            frame.to_excel(temporary, index=False, engine="openpyxl")
        else:
            frame.to_csv(temporary, index=False, sep="\t" if out.suffix.lower() == ".tsv" else ",")


def check_out(path: Path | None, source: Path) -> None:
    """Complain about a name whose kind of table cannot be written.

    Raises
    ------
    ValueError
        If its ending is none of those.
    """
    endings = (*FRAMES, ".npz") if brings_its_target(source) else FRAMES
    if path is not None and not path.name.lower().endswith(endings):
        raise ValueError(f"--out {path}: expected a name that ends with {', '.join(endings)}")


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name
