"""Every picture of the documentation is drawn by a command that .ci/pictures.py knows."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / ".ci" / "pictures.py"))
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "experiments").rglob("*.md"),
    *(ROOT / "models" / "weights").glob("*.md"),
]


def test_every_picture_is_known_to_the_script():
    kinds = ("*.png", "*.jpg", "*.svg")
    files = {file for kind in kinds for file in (ROOT / "docs").rglob(kind)}
    names = {file.relative_to(ROOT / "docs").as_posix() for file in files}
    assert names == set(SCRIPT["PICTURES"])


def test_every_picture_is_shown_on_a_page():
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in SCRIPT["PICTURES"] if f"{name})" not in shown] == []


def test_the_scripts_and_figures_of_the_commands_exist():
    from annealed_experiments.registry import FIGURES

    for command, _ in SCRIPT["PICTURES"].values():
        scripts = re.findall(r"[\w/]+\.py", command)
        assert all((ROOT / script).is_file() for script in scripts), command
        figure = re.search(r"annealed reproduce (\S+)", command)
        assert figure is None or figure[1] in FIGURES, command
