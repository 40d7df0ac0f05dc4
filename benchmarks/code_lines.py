"""Lines of code by package and folder: lines that hold a token, without docstrings, comments and
blanks.

    python benchmarks/code_lines.py [ROOT] [--json]

Files that git ignores are left out. Expressions of a string alone count as docstrings where they
document a module, class or function.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

from common import new_parser

PACKAGES = ("learners", "models", "pipelines", "vision")
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING
}  # fmt: skip


def docstring_lines(source: str) -> set[int]:
    """Numbers of the lines of all docstrings, from one on."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def code_lines(source: str) -> int:
    """Number of lines that hold code.

    Examples
    --------
    >>> code_lines('"What it is."\\n\\nx = 1  # one\\n# two\\ny = (\\n    2\\n)\\n')
    4
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(source))


def count(root: Path) -> Counter[str]:
    """Code lines of "all", of each package, and of each folder below (without the folders in
    it)."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z", *PACKAGES]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    lines: Counter[str] = Counter()
    for name in files:
        path = Path(name)
        if path.suffix == ".py" and (root / path).is_file():
            n = code_lines((root / path).read_text(encoding="utf-8"))
            lines.update(dict.fromkeys({"all", path.parts[0], str(path.parent)}, n))
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1], help="of a checkout")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    lines = dict(sorted(count(arguments.root).items()))
    print(json.dumps(lines) if arguments.json else "\n".join(f"{n:7d} {name}" for name, n in lines.items()))


if __name__ == "__main__":
    main()
