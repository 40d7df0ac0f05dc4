"""The page of ``annealed serve`` in a real browser: Chromium, driven by Playwright."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from serving import serving

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs a browser: pip install playwright"
)
expect = playwright.expect

CHROMIUM = (
    os.environ.get("ANNEALED_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: Chromium, as `chromium` or by ANNEALED_BROWSER"
)
# milliseconds; a first answer waits for compiled code, and on a busy computer for its turn
SECONDS = 600_000
expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="module")
def url():
    with serving() as (address, _):
        yield address


@pytest.fixture(scope="module")
def driver():
    with playwright.sync_playwright() as made:
        yield made


@pytest.fixture(scope="module")
def browser(driver):
    chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield chromium
    chromium.close()


@pytest.fixture
def page(browser, url):
    """A page that asks nobody but the server, and reports no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(SECONDS)
    made = context.new_page()
    asked, complaints = [], []
    made.on("request", lambda request: asked.append(request.url))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    opened(made, url)
    yield made
    context.close()
    strangers = [one for one in asked if not one.startswith((url, "blob:", "data:"))]
    assert asked and not strangers
    assert not [text for text in complaints if "status of 4" not in text]


def opened(page, url):
    """Open the page. A browser that has just started may give up requests because "the network
    changed" (seen in containers): the page is asked for until its scripts run."""
    for milliseconds in (60_000, 60_000, SECONDS):
        page.goto(url)
        with contextlib.suppress(playwright.TimeoutError):
            return page.locator(".version", has_text="annealed").wait_for(timeout=milliseconds)
    raise AssertionError("the scripts of the page do not run")


def panel(page, name):
    page.click(f"#tab-{name}")
    return page.locator(f"#panel-{name}")


def colours(page, selector):
    """Number of different colours of a canvas: 1 where nothing is drawn."""
    return page.evaluate(
        """(selector) => { const c = document.querySelector(selector);
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 400) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
        return seen.size; }""",
        selector,
    )


def test_a_sample_shows_keypoints_and_the_slider_asks_nothing(page):
    faces = panel(page, "faces")
    faces.get_by_role("button", name="Use a sample").click()
    expect(faces.locator(".facts")).to_contain_text("in 512 × 512 pixels")
    assert colours(page, "#panel-faces .picture") > 100
    before = int(re.search(r"(\d+) keypoint", faces.locator(".facts").inner_text())[1])
    assert before >= 7
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    slider = faces.locator("#confidence")
    slider.press("End")
    after = int(re.search(r"(\d+) keypoint", faces.locator(".facts").inner_text())[1])
    assert after < before and not asked
    slider.press("Home")  # all candidates
    assert int(re.search(r"(\d+) keypoint", faces.locator(".facts").inner_text())[1]) >= before
    slider.fill("0.5")
    faces.get_by_role("button", name="left eye").click()
    expect(faces.locator(".patches figure")).to_have_count(12)
    assert colours(page, "#panel-faces .patches canvas") > 10
    expect(faces.locator(".facts")).to_contain_text("1 face, 9 keypoints")
    expect(faces.locator(".poses")).to_contain_text("yaw")
    faces.get_by_role("button", name="chin").click()
    expect(faces.locator(".alone")).to_be_visible()


def test_an_uploaded_photograph(page, tmp_path):
    import cv2
    from annealed.pipelines.keypoints.detect import sample_photograph

    cv2.imwrite(str(tmp_path / "face.jpg"), sample_photograph()[:256, 100:356, ::-1])
    faces = panel(page, "faces")
    faces.locator("input[type=file]").set_input_files(tmp_path / "face.jpg")
    expect(faces.locator(".chosen")).to_contain_text("face.jpg")
    expect(faces.locator(".facts")).to_contain_text("in 256 × 256 pixels")


def test_a_photograph_that_the_browser_cannot_read(page, tmp_path):
    import cv2
    from annealed.pipelines.keypoints.detect import sample_photograph

    cv2.imwrite(str(tmp_path / "face.tif"), sample_photograph()[:256, 100:356, ::-1])
    faces = panel(page, "faces")
    faces.locator("input[type=file]").set_input_files(tmp_path / "face.tif")
    expect(faces.locator(".facts")).to_contain_text("in 256 × 256 pixels")
    assert colours(page, "#panel-faces .picture") > 100


@pytest.mark.parametrize("name", ["faces", "motion", "pets"])
def test_an_error_is_said_in_place(page, tmp_path, name):
    (tmp_path / "notes.jpg").write_text("not a photograph")
    part = panel(page, name)
    part.locator("input[type=file]").set_input_files(tmp_path / "notes.jpg")
    expect(part.locator(".error")).to_contain_text("notes.jpg")
    expect(part.locator(".working")).to_be_hidden()


def saved(page, part):
    """The archive that the button of a panel saves."""
    with page.expect_download() as download:
        part.locator(".save").click()
    expect(part.locator(".working")).to_be_hidden()
    return zipfile.ZipFile(download.value.path())


def test_the_table_and_crops_are_saved(page, tmp_path):
    from annealed.models import align_face, load_model
    from annealed.pipelines.keypoints.detect import sample_photograph
    from annealed.vision.images import read_image

    faces = panel(page, "faces")
    faces.get_by_role("button", name="Use a sample").click()
    expect(faces.locator(".facts")).to_contain_text("1 face")
    archive = saved(page, faces)
    assert archive.namelist() == ["astronaut_face1.png", "faces.csv", "faces.json"]
    (row,) = csv.DictReader(io.StringIO(archive.read("faces.csv").decode()))
    coco = json.loads(archive.read("faces.json"))
    (face,) = load_model("faces").find(sample_photograph()).instances
    assert row["source"] == coco["images"][0]["file_name"] == "astronaut.png"
    assert (
        float(row["left_eye_x"])
        == coco["annotations"][0]["keypoints"][0]
        == face.record()["keypoints"]["left_eye"][0]
    )
    assert (
        read_image(Path(archive.extract("astronaut_face1.png", tmp_path)))
        == align_face(sample_photograph(), face)
    ).all()


@pytest.mark.slow
def test_the_masks_are_saved(page):
    motion = panel(page, "motion")
    motion.get_by_role("button", name="Use a sample").click()
    expect(motion.locator(".facts")).to_contain_text("motions of")
    archive = saved(page, motion)
    assert archive.namelist() == [
        "masks/",
        *(f"masks/{i:06d}.png.png" for i in range(1, 41)),
        "tracks.csv",
    ]
    assert archive.read("tracks.csv").startswith(b"point,frame,x,y,visible,label,probability\n")


@contextlib.contextmanager
def camera_page(driver, url, *flags, permissions=("camera",)):
    """The page in a browser with these flags; its stream is kept for us to see."""
    chromium = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
    context = chromium.new_context(permissions=list(permissions))
    context.set_default_timeout(SECONDS)
    made = context.new_page()
    made.add_init_script(
        """const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        const media = navigator.mediaDevices;
        media.getUserMedia = async (wanted) => (window.given = await ask(wanted));"""
    )
    opened(made, url)
    panel(made, "camera").get_by_role("button", name="Start the camera").click()
    yield made, made.locator("#panel-camera")
    chromium.close()


@pytest.mark.parametrize("leave", ["tab", "stop"])
def test_the_camera_shows_persons_and_is_released(driver, url, tmp_path, leave):
    import cv2
    import numpy as np
    from annealed.pipelines.keypoints.detect import sample_photograph

    seen = np.hstack([sample_photograph()[:240, 90:330, ::-1]] * 2)
    (tmp_path / "two.mjpeg").write_bytes(cv2.imencode(".jpg", seen)[1].tobytes() * 3)
    flags = (
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={tmp_path / 'two.mjpeg'}",
    )
    with camera_page(driver, url, *flags) as (page, part):
        expect(part.locator(".facts")).to_contain_text(re.compile("2 persons, frame [4-9]"))
        shown = part.locator(".legend .dot").evaluate_all(
            "all => all.map((dot) => dot.style.getPropertyValue('--c'))"
        )
        assert len(shown) == len(set(shown)) == 2
        assert colours(page, "#panel-camera .picture") > 100
        states = "() => given.getTracks().map((track) => track.readyState)"
        assert page.evaluate(states) == ["live"]
        if leave == "tab":
            panel(page, "pets")
        else:
            part.get_by_role("button", name="Stop the camera").click()
        assert page.evaluate(states) == ["ended"]
        panel(page, "camera")
        expect(part.get_by_role("button", name="Start the camera")).to_be_visible()
        expect(part.locator(".error")).to_be_hidden()


@pytest.mark.parametrize(
    "flags, permissions, message",
    [
        (
            ("--use-fake-device-for-media-stream", "--deny-permission-prompts"),
            (),
            "No permission to use the camera: it was denied",
        ),
        ((), ("camera",), "No camera was found."),
    ],
)
def test_a_camera_that_is_not_given_is_one_line(driver, url, flags, permissions, message):
    with camera_page(driver, url, *flags, permissions=permissions) as (_, part):
        expect(part.locator(".error")).to_contain_text(message)
        expect(part.get_by_role("button", name="Start the camera")).to_be_visible()


def test_motion_plays_a_sample(page):
    motion = panel(page, "motion")
    motion.get_by_role("button", name="Use a sample").click()
    expect(motion.locator(".facts")).to_contain_text("motions of")
    assert motion.locator(".legend .item").count() >= 2
    assert motion.locator(".candidates tbody tr").count() > 1
    assert colours(page, "#panel-motion .picture") > 100
    motion.locator(".frame").press("ArrowRight")
    expect(motion.locator(".player output")).to_have_text("frame 2")


def test_tracks_without_a_video(page, tmp_path):
    import numpy as np
    from helpers import rigid_motions

    np.savez(tmp_path / "two.npz", tracks=rigid_motions()[0])
    motion = panel(page, "motion")
    motion.locator("input[type=file]").set_input_files(tmp_path / "two.npz")
    expect(motion.locator(".facts")).to_contain_text("2 motions of 50 points")


def test_work_can_be_cancelled(page):
    """The request is held back, so that the server is never faster than the click;
    test_serve_jobs.py ends work that runs."""
    held = []
    page.route("**/api/motion", lambda route: held.append(route))
    motion = panel(page, "motion")
    with page.expect_request("**/api/motion"):
        motion.get_by_role("button", name="Use a sample").click()
    motion.get_by_role("button", name="Cancel").click()
    expect(motion.locator(".note")).to_contain_text("Cancelled")
    expect(motion.locator(".working")).to_be_hidden()
    assert len(held) == 1
    page.unroute("**/api/motion")
    motion.get_by_role("button", name="Use a sample").click()
    expect(motion.locator(".facts")).to_contain_text("motions of")


def test_pets_shows_the_evidence(page):
    pets = panel(page, "pets")
    pets.get_by_role("button", name="Use a sample").click()
    expect(pets.locator(".label")).to_have_text("cat")
    expect(pets.locator(".bars .track")).to_have_count(12)
    assert colours(page, "#panel-pets .picture") > 100


def test_select_shows_the_report(page, tmp_path):
    import numpy as np

    x = np.random.default_rng(0).normal(size=(120, 6))
    rows = "".join(",".join(f"{v:.3f}" for v in (*row, 2 * row[1] - row[4])) + "\n" for row in x)
    (tmp_path / "table.csv").write_text("a,b,c,d,e,f,price\n" + rows)
    select = panel(page, "select")
    select.locator("input[type=file]").set_input_files(tmp_path / "table.csv")
    assert select.locator("#columns option").evaluate_all("all => all.map(o => o.value)") == [
        *"abcdef",
        "price",
    ]
    select.locator("input[name=target]").fill("price")
    select.locator("input[name=k]").fill("2")
    select.get_by_role("button", name="Select columns").click()
    expect(select.locator(".facts")).to_contain_text("2 columns selected from 120 rows")
    report = page.frame_locator("#panel-select .report")
    expect(report.locator("h1")).to_have_text("table.csv: the columns that predict price")
    with page.expect_download() as saved:
        select.get_by_role("link", name="Save the report").click()
    assert "<svg" in Path(saved.value.path()).read_text()


def test_everything_by_the_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "tab-faces"
    for key, tab in (
        ("Right", "camera"),
        ("End", "select"),
        ("Right", "faces"),
        ("Left", "select"),
        ("Home", "faces"),
    ):
        key = key if key in ("Home", "End") else f"Arrow{key}"
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{tab}"
        expect(page.locator(f"#panel-{tab}")).to_be_visible()
        expect(page.locator('[role="tabpanel"]:visible')).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Choose a file"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#panel-faces .facts")).to_contain_text("keypoints")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "confidence"


def test_no_width_needs_scrolling_sideways(page):
    ready = {
        "faces": ".legend button",
        "motion": ".candidates td",
        "pets": ".bars .n",
        "select": ".downloads a",
    }
    for name, sign in ready.items():
        part = panel(page, name)
        part.get_by_role("button", name="Use a sample").click()
        expect(part.locator(sign).first).to_be_visible(timeout=SECONDS)
        if name == "faces":
            part.locator(".legend button").first.click()
            expect(part.locator(".patches figure")).to_have_count(12)
        if name == "motion":
            part.locator(".frame").evaluate(
                "s => { s.value = 20; s.dispatchEvent(new Event('input')); }"
            )
        for width, height in ((390, 844), (768, 1024), (1440, 900), (1920, 1080)):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if "ANNEALED_SCREENSHOTS" in os.environ and width in (390, 1440):
                photograph(page, f"serve_{name}_{width}")


def photograph(page, name):
    """Keep pictures, light and dark: for docs/images, and for people to see."""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("scrollY === 0")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        path = Path(os.environ["ANNEALED_SCREENSHOTS"]) / f"{name}_{scheme}.jpg"
        page.screenshot(path=path, full_page="select" not in name, type="jpeg", quality=80)
    page.emulate_media(color_scheme="light")
