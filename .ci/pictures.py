"""Write the pictures of the README by its commands. Requires Chromium (``chromium``, or
ANNEALED_BROWSER) and playwright.

python .ci/pictures.py        from the root of the checkout, with the package installed
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
from playwright.sync_api import sync_playwright

DOCS = Path("docs").resolve()
FRAME = 20  # of the video


def main() -> None:
    """Run the commands of the README in an empty folder, and write what they draw into docs."""
    commands = re.findall(r"^ {4}annealed (.+)$", Path("README.md").read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command in commands:
            line = [sys.executable, "-m", "annealed.pipelines.cli", *shlex.split(command)]
            subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shutil.copyfile(folder / "keypoints.png", DOCS / "astronaut.png")
        video = cv2.VideoCapture(str(folder / "motions.avi"))
        video.set(cv2.CAP_PROP_POS_FRAMES, FRAME)
        cv2.imwrite(str(DOCS / "images" / "motion.jpg"), video.read()[1])
        screenshot(folder / "report" / "select.html", DOCS / "images" / "select_report.png")


def screenshot(page: Path, picture: Path) -> None:
    """Write the top of an HTML page as PNG."""
    browser = os.environ.get("ANNEALED_BROWSER") or shutil.which("chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = chromium.new_page(viewport={"width": 1000, "height": 805})
        view.goto(page.as_uri())
        view.screenshot(path=picture)
        chromium.close()


if __name__ == "__main__":
    main()
