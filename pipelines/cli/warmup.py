"""``annealed warmup``: compile everything once, for images and servers."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console import print_answer, progress


def warmup(
    parts: Annotated[list[str] | None, typer.Argument(metavar="PART", help="faces, motion, pets, learners; or all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Compile everything once. No later call waits for it: for container images and servers.

    \b
    Examples:
      annealed warmup
      annealed warmup faces learners --quiet
    """
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
    columns = {"part": "part", "seconds": "seconds", "compiling": "of which compiling"}
    print_answer({"name": "warmup", "rows": rows}, as_json, "compiled", columns)
