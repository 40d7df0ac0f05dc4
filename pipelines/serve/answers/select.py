"""Responses for the Select tab: the columns of a table that predict its target, and the report."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from ....models.tabular.fitting.options import Response, Task
from ....models.tabular.report import page
from ...tabular.request import Request
from ...tabular.selection import select_file
from .fields import Fields, accepts


def prepare() -> None:
    """Do nothing, since selection requires no model."""


@accepts(
    "target",
    "k",
    "task",
    "response",
    "include",
    "exclude",
    "row_groups",
    "sep",
    "encoding",
    "report",
)
def select(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the JSON object that ``annealed select --json`` prints.

    If ``report`` is set, it also contains the HTML page of ``--report``.
    """
    tell("reading the table")

    def bar(iterable: Iterable, what: str) -> Iterator:
        items = list(iterable)
        for i, item in enumerate(items):
            tell(what, i, len(items))
            yield item

    request = Request(
        target=fields.text("target"),
        k=fields.text("k") or "auto",
        task=fields.choice("task", get_args(Task)),
        response=fields.choice("response", get_args(Response)),
        include=fields.listed("include"),
        exclude=fields.listed("exclude"),
        row_groups=fields.text("row_groups"),
        sep=fields.text("sep"),
        encoding=fields.text("encoding"),
    )
    result = select_file(path, request, bar)
    answer = result.record() | {"seconds": result.seconds}
    return answer | ({"report": page(result)} if fields.flag("report") else {})
