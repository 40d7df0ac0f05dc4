"""Draw the pictures of README.md and the documentation by the commands that they show.

    python .ci/pictures.py                  those that take seconds or a few minutes
    python .ci/pictures.py PICTURE ...      these, as in: stability.png images/motion_wrong.png

Run it in the root of the checkout, with both packages installed. Screenshots need Chromium
(``chromium``, or ANNEALED_BROWSER) and playwright; pictures of real data need ANNEALED_DATA.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path("docs").resolve()
FRAME = 20  # of the video of motions
README = "the commands of README.md"
TABS = "pytest -q tests/pipelines/serve/test_serve_page.py -k no_width_needs"
LABEL = "pytest -q tests/pipelines/serve/test_serve_label.py -k in_a_browser"
DIGITS = "examples/digits.py OUT"
# Picture below docs -> the command, and the file that it writes in the folder OUT. Commands without
# a program are run by Python.
QUICK = {
    "astronaut.png": (README, "keypoints.png"),
    "images/motion.jpg": (README, "motion.jpg"),
    "images/select_report.png": (README, "select.png"),
    "images/serve_faces_1440_light.jpg": (TABS, "serve_faces_1440_light.jpg"),
    "images/serve_faces_390_dark.jpg": (TABS, "serve_faces_390_dark.jpg"),
    "images/serve_motion_1440_dark.jpg": (TABS, "serve_motion_1440_dark.jpg"),
    "images/serve_pets_1440_light.jpg": (TABS, "serve_pets_1440_light.jpg"),
    "images/serve_select_1440_light.jpg": (TABS, "serve_select_1440_light.jpg"),
    "images/serve_label_1280_light.jpg": (LABEL, "serve_label_1280_light.jpg"),
    "digits_component.png": (DIGITS, "digits_component.png"),
    "digits_pixels.png": (DIGITS, "digits_pixels.png"),
    "images/sdist_surfaces.png": (
        "annealed reproduce sdist-surfaces --figures OUT",
        "sdist-surfaces.png",
    ),
}
SLOW = {
    "stability.png": ("annealed reproduce fsa-stability --figures OUT", "fsa-stability.png"),
    "images/faces_time.png": ("benchmarks/faces_memory.py --plot OUT/time.png", "time.png"),
    "images/motion_real.jpg": (  # the three videos are in packages that docs/moving_camera.md names
        "benchmarks/motion_clips.py vtest.avi:100 carphone_pristine.mp4:120 tree.avi:100 "
        "--picture OUT/clips.jpg",
        "clips.jpg",
    ),
    "images/motion_wrong.png": (
        "annealed motion evaluate --data DATA/hopkins155 --partitions 10 --choose --auto "
        "--report OUT",
        "worst_two_cranes.png",
    ),
    "images/online_nonzeros.png": (
        "annealed reproduce online-nonzeros --figures OUT",
        "online-nonzeros.png",
    ),
    "images/online_sparsity.png": (
        "annealed reproduce online-sparsity --figures OUT",
        "online-sparsity.png",
    ),
    "images/paper_faces_curves.png": (
        "annealed reproduce faces-curves --figures OUT",
        "faces-curves.png",
    ),
    "images/score_cards.png": (
        "benchmarks/score_cards.py --data DATA/tables --figure OUT/cards.png",
        "cards.png",
    ),
    "images/sdist_scaling.png": (
        "benchmarks/sdist_speed.py scaling --out OUT",
        "sdist_scaling.png",
    ),
}
PICTURES = QUICK | SLOW


def main(names: list[str]) -> None:
    """Draw the pictures with these names, each command once."""
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        raise SystemExit(f"{unknown[0]}: unknown picture; expected one of {', '.join(PICTURES)}")
    for command in dict.fromkeys(PICTURES[name][0] for name in names):
        with tempfile.TemporaryDirectory() as folder:
            (run_readme if command == README else run)(command, Path(folder))
            for name in names:
                if PICTURES[name][0] == command:
                    shutil.copyfile(Path(folder) / PICTURES[name][1], DOCS / name)
                    print(name, flush=True)


def run(command: str, out: Path) -> None:
    """Run a command, with OUT and DATA replaced by folders."""
    folders = {"OUT": str(out), "DATA": os.environ.get("ANNEALED_DATA", "DATA")}
    text = re.sub("OUT|DATA", lambda match: folders[match[0]], command)
    words = shlex.split(text)
    if words[0] in ("annealed", "pytest"):
        words[0] = {"annealed": "annealed.pipelines.cli", "pytest": "pytest"}[words[0]]
        words.insert(0, "-m")
    environment = os.environ | {"ANNEALED_SCREENSHOTS": str(out)}
    subprocess.run([sys.executable, *words], check=True, env=environment)


def run_readme(_: str, out: Path) -> None:
    """Run the commands of the README, and take a frame of the video and the top of the report."""
    import cv2

    commands = re.findall(r"^ {4}annealed (.+)$", Path("README.md").read_text(), re.MULTILINE)
    for command in commands:
        line = [sys.executable, "-m", "annealed.pipelines.cli", *shlex.split(command)]
        subprocess.run(line, cwd=out, check=True, stdout=subprocess.DEVNULL)
    video = cv2.VideoCapture(str(out / "motions.avi"))
    video.set(cv2.CAP_PROP_POS_FRAMES, FRAME)
    cv2.imwrite(str(out / "motion.jpg"), video.read()[1])
    screenshot(out / "report" / "select.html", out / "select.png")


def screenshot(page: Path, picture: Path) -> None:
    """Write the top of an HTML page as PNG."""
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("ANNEALED_BROWSER") or shutil.which("chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = chromium.new_page(viewport={"width": 1000, "height": 805})
        view.goto(page.as_uri())
        view.screenshot(path=picture)
        chromium.close()


if __name__ == "__main__":
    main(sys.argv[1:] or list(QUICK))
