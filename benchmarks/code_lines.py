"""Number of logical lines of code by package and folder: statements, however many text lines they
span, without docstrings, comments and blank lines.

    python benchmarks/code_lines.py [ROOT] [--json] [--ceiling N]

Files that git ignores are skipped. With ``--ceiling``, the exit code is 1 if there are more than N
lines.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

from common import new_parser

PACKAGES = ("learners", "models", "pipelines", "vision")


def code_lines(source: str) -> int:
    """Count logical lines: the NEWLINE tokens of :mod:`tokenize`, minus the docstrings.

    Examples
    --------
    >>> code_lines('"What it is."\\n\\nx = 1  # one\\n# two\\ny = (\\n    2\\n)\\n')
    2
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    n_docstrings = sum(ast.get_docstring(node) is not None for node in nodes)
    return sum(token.type == tokenize.NEWLINE for token in tokens) - n_docstrings


def count(root: Path) -> Counter[str]:
    """Count the logical lines of "all", of each package, and of each folder below it (without its
    subfolders)."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z", *PACKAGES]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    lines: Counter[str] = Counter()
    for name in files:
        path = Path(name)
        if path.suffix == ".py" and (root / path).is_file():
            n = code_lines((root / path).read_text(encoding="utf-8"))
            lines.update(dict.fromkeys({"all", path.parts[0], str(path.parent)}, n))
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument(
        "root",
        nargs="?",
        type=Path,
        default=Path(__file__).resolve().parents[1],
        help="root of a checkout",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--ceiling", type=int, metavar="N", help="maximum number of lines")
    arguments = parser.parse_args(argv)
    lines = dict(sorted(count(arguments.root).items()))
    print(
        json.dumps(lines)
        if arguments.json
        else "\n".join(f"{n:7d} {name}" for name, n in lines.items())
    )
    if arguments.ceiling is not None and lines["all"] > arguments.ceiling:
        print(
            f"{lines['all']} logical lines, expected at most {arguments.ceiling}", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
