"""``annealed warmup``: compile everything once, for images and servers."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console import one_line_errors, print_json, print_table, progress


def register(app: typer.Typer) -> None:
    """Add the command to the top group."""
    app.command("warmup")(warmup)


@one_line_errors
def warmup(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="PART", help="faces, motion, pets, learners; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Compile everything once. No later call waits for it: for container images and servers."""
    import time

    from ...learners.compilation import seconds_compiling
    from ..common.config import check_names
    from ..warmup import PARTS

    check_names("part", parts, PARTS)
    rows = []
    for part in progress(parts or list(PARTS), quiet, "parts", len(parts or PARTS)):
        start, compiled = time.perf_counter(), seconds_compiling()
        PARTS[part]()
        rows.append({"part": part, "seconds": time.perf_counter() - start, "compiling": seconds_compiling() - compiled})
    if as_json:
        print_json({"name": "warmup", "rows": rows})
    else:
        print_table("compiled", ["part", "seconds", "of which compiling"], [list(row.values()) for row in rows])
