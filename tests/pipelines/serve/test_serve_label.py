"""The tab Label of ``annealed serve``: over HTTP, and in a real browser."""

import contextlib
import json
import os
import re
import shutil
import sys
import time

import numpy as np
import pytest
from annealed.models.keypoints.schema import Schema
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import read_annotations, schema_of
from annealed.pipelines.keypoints.drawing import write_image
from annealed.pipelines.keypoints.labelling import LabelFolder
from annealed.pipelines.keypoints.objects import read_objects
from annealed.pipelines.keypoints.report import REPORT_FILES
from annealed.pipelines.keypoints.training.train import train_keypoints
from annealed.pipelines.serve.answers.limits import RequestError
from annealed.pipelines.serve.label import Labelling
from painted import GIVEN, NAMES, POOL, folder_of, paint
from serving import serving
from typer.testing import CliRunner

httpx = pytest.importorskip("httpx")
CHROMIUM = (
    os.environ.get("ANNEALED_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
)
SECONDS = 300_000


def unlabelled(path, number=4):
    """Pictures of fish that no label is known of, and a schema beside them."""
    folder_of(path, number, first=300)
    (path / "annotations.json").unlink()
    (path / "schema.toml").write_text(
        'category = "fish"\nkeypoints = ["head", "tail", "fin"]\nskeleton = [["head", "tail"]]\n'
    )
    return path


def fish(x=60.0, y=50.0, **more):
    return {
        "keypoints": {"head": [x, y, 2], "tail": [x + 40, y + 4, 2], "fin": [x + 20, y - 20, 1]},
        **more,
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("fish")
    data = folder_of(place / "train", 14)
    train_keypoints(
        read_objects(data, schema_of(data)),
        [],
        place / "fish.safetensors",
        say=lambda line: None,
        pool=POOL,
        **GIVEN,
    )
    return place / "fish.safetensors"


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    folder = unlabelled(tmp_path_factory.mktemp("served") / "fish")
    with serving("--workers", "1", "--label", str(folder), "--model", str(model)) as (url, _):
        yield folder, url


@pytest.fixture
def client(served):
    with httpx.Client(base_url=served[1], timeout=300) as made:
        yield made


def test_labels_become_coco_keypoints(tmp_path):
    folder = unlabelled(tmp_path / "fish")
    labels = LabelFolder(folder)
    assert labels.record()["pictures"][0] == {"name": "000.png", "labelled": False}
    labels.save(labels.images[1], [fish(), fish(20, 60, bbox=[10, 30, 60, 60])])
    labels.save(labels.images[0], [])
    labels.save(labels.images[1], [fish(62.0), fish(20, 60, bbox=[10, 30, 60, 60])])
    coco = json.loads((folder / "annotations.json").read_text())
    assert [(image["id"], image["file_name"]) for image in coco["images"]] == [
        (1, "001.png"),
        (2, "000.png"),
    ]
    assert [a["image_id"] for a in coco["annotations"]] == [1, 1]
    assert coco["annotations"][0]["keypoints"] == [62, 50, 2, 102, 54, 2, 82, 30, 1]
    assert coco["annotations"][0]["bbox"] == [58, 26, 48, 32]  # a tenth around the points
    assert coco["annotations"][1]["bbox"] == [10, 30, 60, 60]
    assert coco["categories"] == [
        {"id": 1, "name": "fish", "keypoints": NAMES, "skeleton": [[1, 2]]}
    ]
    again = LabelFolder(folder)
    assert again.labels == labels.labels and [
        p["labelled"] for p in again.record()["pictures"]
    ] == [True, True, False, False]
    assert schema_of(folder).keypoints == tuple(NAMES)
    mean = np.array(list(again.record()["mean"].values()))
    np.testing.assert_allclose(mean.mean(axis=0), 0, atol=1e-9)
    assert np.ptp(mean, axis=0).max() == pytest.approx(1, abs=0.2)
    assert not [
        path for path in folder.iterdir() if path.suffix not in (".png", ".toml", ".json")
    ]  # nothing half-written


def test_points_that_are_not_in_the_image(tmp_path):
    folder = unlabelled(tmp_path / "fish")
    labels = LabelFolder(folder)
    labels.save(labels.images[0], [fish()])
    labels.save(labels.images[1], [{"keypoints": {**fish()["keypoints"], "head": [3, 4, 0]}}])
    (entry,) = json.loads((folder / "annotations.json").read_text())["annotations"][1:]
    assert entry["keypoints"] == [0, 0, 0, 100, 54, 2, 80, 30, 1]
    assert set(LabelFolder(folder).labels["001.png"][0]["keypoints"]) == {"tail", "fin"}
    whole, part = read_annotations(folder, schema_of(folder))
    assert whole.visible.tolist() == [[True, True, False]] and np.isfinite(whole.instances).all()
    assert part.visible.tolist() == [[False, True, False]]  # visible, hidden, and unknown
    np.testing.assert_equal(part.instances, [[[np.nan, np.nan], [100, 54], [80, 30]]])


def test_mean_position_of_the_objects(tmp_path):
    labels = LabelFolder(unlabelled(tmp_path / "fish"))
    assert labels.record()["place"] is None
    labels.save(labels.images[0], [fish(60, 50)])
    labels.save(labels.images[1], [fish(40, 60)])
    assert labels.record()["place"] == pytest.approx([50 + 60 / 3, 55 - 16 / 3, 40])


def test_boxes_end_at_the_border_of_the_image(tmp_path):
    labels = LabelFolder(unlabelled(tmp_path / "fish"))
    labels.save(labels.images[0], [fish(bbox=[0, 0, 1e9, 1e9])])
    (entry,) = json.loads((tmp_path / "fish" / "annotations.json").read_text())["annotations"]
    assert entry["bbox"] == [0, 0, 159.5, 139.5]


def test_what_is_of_others_stays(tmp_path):
    folder = folder_of(tmp_path / "fish", 3)
    coco = json.loads((folder / "annotations.json").read_text())
    coco["categories"].append({"id": 9, "name": "crab", "keypoints": ["claw", "eye"]})
    coco["annotations"].append(
        {
            "id": 40,
            "image_id": 0,
            "category_id": 9,
            "keypoints": [1, 1, 2, 9, 9, 2],
            "bbox": [0, 0, 9, 9],
        }
    )
    (folder / "annotations.json").write_text(json.dumps({**coco, "info": {"by": "me"}}))
    (folder / "schema.toml").write_text('category = "fish"\nkeypoints = ["head", "tail", "fin"]\n')
    labels = LabelFolder(folder)
    labels.save(labels.images[0], [])
    kept = json.loads((folder / "annotations.json").read_text())
    assert kept["info"] == {"by": "me"} and [a["id"] for a in kept["annotations"]] == [1, 2, 40]


def test_what_another_program_writes_stays(tmp_path):
    one, two = (
        LabelFolder(unlabelled(tmp_path / "fish") if i == 0 else tmp_path / "fish")
        for i in range(2)
    )
    one.save(one.images[0], [fish()])
    one.save(one.images[1], [fish()])
    two.save(two.images[2], [fish(), fish(30)])
    one.save(one.images[1], [fish(62.0)])
    for labels in (one, LabelFolder(tmp_path / "fish")):
        assert {name: len(objects) for name, objects in labels.labels.items()} == {
            "000.png": 1,
            "001.png": 1,
            "002.png": 2,
        }
    assert one.labels["001.png"][0]["keypoints"]["head"][0] == 62
    two.refresh()
    assert two.labels == one.labels
    (tmp_path / "fish" / "annotations.json").unlink()  # as by a checkout
    one.save(one.images[3], [fish()])
    assert list(LabelFolder(tmp_path / "fish").labels) == ["003.png"]


@pytest.mark.parametrize(
    "objects, message",
    [
        (
            [{"keypoints": {"eye": [1, 1, 2], "head": [3, 3, 2]}}],
            "expected x, y and visibility of head, tail, fin",
        ),
        ([{"keypoints": {"head": [1, 1], "tail": [3, 3, 2]}}], "expected x, y and visibility"),
        (
            [{"keypoints": {"head": [1, 1, 2]}}],
            "expected at least two points, all inside the image of 160 x 140 pixels",
        ),
        ([fish(), fish(150.0)], "000.png, object 2: the points are not valid; expected at least"),
        ([fish(float("nan"))], "expected at least two points, all inside"),
        (
            [fish(bbox=[0, 0, float("nan"), 9])],
            "the bbox is not valid; expected four finite numbers",
        ),
        ([fish(bbox=[0, 0, 9])], "the bbox is not valid; expected four finite numbers"),
    ],
)
def test_bad_labels_are_refused(tmp_path, objects, message):
    labels = LabelFolder(unlabelled(tmp_path / "fish"))
    with pytest.raises(ValueError, match=message):
        labels.save(labels.images[0], objects)
    assert not (tmp_path / "fish" / "annotations.json").exists() and not labels.labels


def test_proposals_of_a_file_and_a_schema_of_a_model(tmp_path):
    folder = unlabelled(tmp_path / "fish")
    (folder / "schema.toml").unlink()
    with pytest.raises(
        ValueError, match=r"add schema\.toml or annotations\.json to it, or use --model"
    ):
        LabelFolder(folder)
    assert LabelFolder(folder, Schema("fish", tuple(NAMES))).schema.keypoints == tuple(NAMES)
    source = folder_of(tmp_path / "found", 2)
    found = (source / "annotations.json").read_text().replace('"00', f'"{folder}/00')
    (folder / "proposals.json").write_text(found)
    labels = LabelFolder(folder)
    assert sorted(labels.proposals) == ["000.png", "001.png"] and not labels.labels
    np.testing.assert_allclose(
        labels.proposals["001.png"][0]["keypoints"]["head"][:2], paint(1)[1][0]
    )
    (folder / "proposals.json").write_text("[3]")
    with pytest.raises(ValueError, match="not a valid annotation file"):
        LabelFolder(folder)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--model", "faces"], "--model faces requires --label"),
        (["--label", "gone"], "gone: no such folder"),
        (["--label", "."], "add schema.toml or annotations.json to it"),
        (["--label", ".", "--model", "pets"], "not a keypoint detector"),
    ],
)
def test_bad_options(tmp_path, monkeypatch, options, message):
    unlabelled(tmp_path / "fish")
    (tmp_path / "fish" / "schema.toml").unlink()
    monkeypatch.chdir(tmp_path / "fish")
    made = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert made.exit_code == 2 and message in made.stderr and made.stderr.count("\n") == 1, (
        made.stderr
    )


def ended(training):
    for _ in range(600):
        if (state := training())["state"] != "running":
            return state
        time.sleep(0.1)
    raise AssertionError(state)


def test_a_training_in_the_background(tmp_path, monkeypatch):
    labelling = Labelling(LabelFolder(unlabelled(tmp_path / "fish")))
    untrained = {"state": "none", "line": "", "report": False}
    assert labelling.training() == untrained and labelling.model is None
    command = tmp_path / "command"
    monkeypatch.setattr(sys, "executable", str(command))

    def run(script):
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o700)
        labelling.train()

    run(
        'echo "first" >&2; echo "$@" > "$(dirname "$0")/asked"; echo "half done" >&2; exec sleep 60'
    )
    while labelling.training()["line"] != "half done":
        time.sleep(0.05)
    assert labelling.training()["state"] == "running"
    with pytest.raises(RequestError, match="a training run is already in progress"):
        labelling.train()
    labelling.stop()
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:4] == ["-m", "annealed.pipelines.cli", "keypoints", "train"]
    assert (
        asked[asked.index("--out") + 1] == str(tmp_path / "fish" / "fish.safetensors")
        and "fish" in asked
    )
    assert labelling.training()["state"] == "failed" and labelling.model is None
    assert "--jobs" not in asked and labelling.report.name in REPORT_FILES  # by default all cores
    assert asked[asked.index("--report") + 1] == str(labelling.report.parent)
    run(f"mkdir {labelling.report.parent}; touch {labelling.report}; echo made >&2")
    assert ended(labelling.training) == {"state": "done", "line": "made", "report": True}
    assert labelling.model == tmp_path / "fish" / "fish.safetensors"


def test_the_endpoints(served, client):
    folder, _ = served
    assert client.get("/api/status").json()["label"] is True
    overview = client.get("/api/label").json()
    assert (
        overview["keypoints"] == NAMES
        and overview["skeleton"] == [["head", "tail"]]
        and len(overview["pictures"]) == 4
    )
    shown = client.get("/api/label/3").json()
    assert (shown["width"], shown["height"], shown["labelled"]) == (160, 140, False)
    assert shown["picture"].startswith("data:image/jpeg;base64,")
    (proposed,) = shown["objects"]
    for name, truth in zip(NAMES, paint(303)[1]):
        assert np.hypot(*(np.array(proposed["keypoints"][name][:2]) - truth)) < 4
    saved = client.put("/api/label/3", json={"objects": [fish()]})
    assert saved.json() == {"saved": "003.png"}
    shown = client.get("/api/label/3").json()
    assert shown["labelled"] and shown["objects"][0]["keypoints"] == fish()["keypoints"]
    assert (
        json.loads((folder / "annotations.json").read_text())["images"][0]["file_name"] == "003.png"
    )


def test_the_least_certain_images(served, client):
    certainty = {}
    while len(certainty) < 3:  # by the search in the background; 003.png may have labels
        pictures = client.get("/api/label").json()["pictures"]
        certainty = {p["name"]: p["certainty"] for p in pictures if p["certainty"] is not None}
        time.sleep(0.05)
    for i in range(3):
        shown = client.get(f"/api/label/{i}").json()
        assert certainty[f"00{i}.png"] == min(found["probability"] for found in shown["objects"])


def test_the_report_of_a_training(served, client):
    folder, _ = served
    assert client.get("/api/label/report").status_code == 404
    (folder / "fish_report").mkdir()
    (folder / "fish_report" / "keypoints.html").write_text("<h1>fish</h1>")
    answer = client.get("/api/label/report")
    assert answer.text == "<h1>fish</h1>" and answer.headers["content-type"].startswith("text/html")


def test_labels_of_another_program_are_not_replaced(served, client):
    folder, _ = served
    client.put("/api/label/0", json={"objects": [fish()]}).raise_for_status()
    LabelFolder(folder).save(folder / "000.png", [fish(50.0)])
    refused = client.put("/api/label/0", json={"objects": [fish(55.0)]})
    assert refused.status_code == 409 and "another program or window" in refused.text
    assert client.get("/api/label/0").json()["objects"][0]["keypoints"]["head"][0] == 50
    client.put("/api/label/0", json={"objects": [fish(55.0)]}).raise_for_status()
    assert LabelFolder(folder).labels["000.png"][0]["keypoints"]["head"][0] == 55
    whole = (folder / "annotations.json").read_text()
    (folder / "annotations.json").write_text(whole[:-5])
    refused = client.put("/api/label/0", json={"objects": [fish(57.0)]})
    assert refused.status_code == 409 and "not a valid annotation file" in refused.text
    assert (folder / "annotations.json").read_text() == whole[:-5]
    (folder / "annotations.json").write_text(whole)


def test_labels_of_another_window_are_not_replaced(served, client):
    folder, _ = served
    versions = [client.get("/api/label/2").json()["version"] for _ in range(2)]
    first = {"version": versions[0], "objects": [fish(50.0)]}
    client.put("/api/label/2", json=first).raise_for_status()
    refused = client.put("/api/label/2", json={"version": versions[1], "objects": [fish(55.0)]})
    assert refused.status_code == 409 and "another program or window" in refused.text
    assert LabelFolder(folder).labels["002.png"][0]["keypoints"]["head"][0] == 50
    again = {"version": client.get("/api/label/2").json()["version"], "objects": [fish(55.0)]}
    client.put("/api/label/2", json=again).raise_for_status()
    assert LabelFolder(folder).labels["002.png"][0]["keypoints"]["head"][0] == 55


def test_refusals(client):
    assert client.get("/api/label/4").status_code == 404 and client.get(
        "/api/label/x"
    ).status_code in (404, 405)
    infinite = json.dumps({"objects": [fish(bbox=[0, 0, float("inf"), 9])]}).encode()
    digits = b'{"objects": [{"keypoints": {"head": [%s, 1, 2]}}]}' % (b"9" * 400)
    hostile = b"[" * 100_000, infinite, digits, digits.replace(b"9" * 400, b"1" * 5000)
    for body in (b"{", b"[]", b'{"objects": 3}', b'{"objects": [{}]}', b"\xff", *hostile):
        refused = client.put("/api/label/0", content=body)
        assert refused.status_code == 400 and "\n" not in refused.json()["error"], body
    assert (
        "inside the image of 160 x 140"
        in client.put("/api/label/0", json={"objects": [fish(900.0)]}).json()["error"]
    )
    assert client.put("/api/label/0", content=b" " * (5 << 20)).status_code == 413
    foreign = {"Origin": "http://elsewhere.example"}
    assert client.put("/api/label/0", json={"objects": []}, headers=foreign).status_code == 403
    assert client.post("/api/label/train", headers=foreign).status_code == 403


def test_without_a_folder_there_is_no_tab():
    with serving("--workers", "1") as (url, _), httpx.Client(base_url=url, timeout=300) as client:
        assert client.get("/api/status").json()["label"] is False
        assert client.get("/api/label").status_code in (404, 405) and client.put(
            "/api/label/0"
        ).status_code in (404, 405)


needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: Chromium, as `chromium` or by ANNEALED_BROWSER"
)


class Tab:
    """The tab Label of a page, with positions in pixels of its image."""

    def __init__(self, page, expect, size):
        self.page, self.expect, self.size = page, expect, size
        self.panel = page.locator("#panel-label")
        self.facts, self.tip = self.panel.locator(".facts"), self.panel.locator(".tip")

    def at(self, x, y):
        """Return the position on the page of a pixel, if the whole image is shown unrotated."""
        box, (width, height) = self.panel.locator("canvas").bounding_box(), self.size
        return (
            box["x"] + (x + 0.5) * box["width"] / width,
            box["y"] + (y + 0.5) * box["height"] / height,
        )

    def drag(self, start, end, button="left"):
        self.page.mouse.move(*start)
        self.page.mouse.down(button=button)
        self.page.mouse.move(*end, steps=4)
        self.page.mouse.up(button=button)

    def click(self, name):
        self.panel.get_by_role("button", name=name).click()

    def shows(self, text):
        self.expect(self.facts).to_have_text(text, timeout=SECONDS)

    def screenshot(self, name):
        if "ANNEALED_SCREENSHOTS" in os.environ:
            path = os.path.join(os.environ["ANNEALED_SCREENSHOTS"], name)
            self.page.screenshot(path=path, type="jpeg", quality=80)


@contextlib.contextmanager
def tab_of(folder, *options, size=(160, 140)):
    """Open the tab Label of a folder in a browser; no error may occur on the page."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs a browser: pip install playwright"
    )
    with (
        serving("--workers", "1", "--label", str(folder), *options) as (url, _),
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page, complaints = browser.new_page(viewport={"width": 1280, "height": 900}), []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        yield Tab(page, playwright.expect, size)
        assert not complaints
        browser.close()


@pytest.fixture
def proposed(tmp_path):
    """Pictures of fish with the true points as proposals."""
    folder = folder_of(tmp_path / "fish", 4, first=300)
    (folder / "annotations.json").rename(folder / "proposals.json")
    (folder / "schema.toml").write_text('category = "fish"\nkeypoints = ["head", "tail", "fin"]\n')
    return folder


def points_of(folder, image="000.png", number=0):
    return LabelFolder(folder).labels[image][number]["keypoints"]


@pytest.mark.slow
@needs_browser
def test_in_a_browser(model, tmp_path):
    folder = unlabelled(tmp_path / "fish")
    write_image(folder / "002.png", np.full((140, 160, 3), 120, np.uint8))  # without an object
    with tab_of(folder, "--model", str(model)) as tab:
        tab.shows("000.png (1 of 4): proposed. 0 labelled.")
        head, tail, _ = paint(300)[1]
        tab.drag(tab.at(*head), tab.at(30, 40))
        tab.page.mouse.dblclick(*tab.at(*tail))
        tab.expect(tab.tip).to_have_text("tail (hidden)")
        tab.screenshot("serve_label_1280_light.jpg")
        certainty = {}
        while len(certainty) < 4:  # until the search in the background is complete
            overview = tab.page.evaluate("fetch('api/label').then((answer) => answer.json())")
            found = [(p["name"], p["certainty"]) for p in overview["pictures"]]
            certainty = {name: value for name, value in found if value is not None}
            time.sleep(0.05)
        assert certainty["002.png"] == 0 < min(certainty["001.png"], certainty["003.png"])
        tab.click("Save and next")
        tab.shows("002.png (3 of 4): nothing proposed. 1 labelled.")
        kept = points_of(folder)
        np.testing.assert_allclose(kept["head"], [30, 40, 2], atol=1)
        assert kept["tail"][2] == 1 and kept["fin"][2] == 2
        tab.panel.locator("canvas").focus()
        tab.page.keyboard.press("Enter")
        tab.expect(tab.facts).to_contain_text("proposed. 2 labelled.", timeout=SECONDS)
        assert LabelFolder(folder).labels["002.png"] == []
        for state in ("proposed. 3 labelled.", "labelled. 4 labelled."):
            tab.click("Save and next")
            tab.expect(tab.facts).to_contain_text(state, timeout=SECONDS)
        tab.click("Back")
        tab.expect(tab.facts).to_contain_text("labelled. 4 labelled.", timeout=SECONDS)
        assert all(len(LabelFolder(folder).labels[f"00{i}.png"]) == 1 for i in (0, 1, 3))
        tab.click("Train")
        tab.expect(tab.panel.locator(".training")).to_contain_text(
            "Failed: annealed:", timeout=SECONDS
        )  # of so few pictures
        assert "expected" in tab.panel.locator(".training").inner_text()


@pytest.mark.slow
@needs_browser
def test_names_states_and_undo(proposed):
    with tab_of(proposed) as tab:
        tab.shows("000.png (1 of 4): proposed. 0 labelled.")
        head, tail, _ = (tab.at(*point) for point in paint(300)[1])
        undo = tab.panel.get_by_role("button", name="Undo")
        tab.expect(undo).to_be_disabled()
        tab.page.mouse.move(*head)
        tab.expect(tab.tip).to_have_text("head")
        tab.page.mouse.move(*tab.at(150, 130))
        tab.expect(tab.tip).to_be_hidden()
        for state in (" (hidden)", " (not in the image)", "", " (hidden)", " (not in the image)"):
            tab.page.mouse.dblclick(*tail)
            tab.expect(tab.tip).to_have_text("tail" + state)
        legend = tab.panel.locator(".legend button")
        tab.expect(legend.nth(1)).to_have_text("tailnot in the image")
        legend.nth(2).click()
        tab.expect(legend.nth(2)).to_have_text("finhidden")
        tab.drag(head, tab.at(30, 40))
        tab.drag(tab.at(30, 40), tab.at(20, 20))
        tab.screenshot("serve_label_states.jpg")
        undo.click()
        tab.page.keyboard.press("Control+z")
        tab.page.keyboard.press("Control+z")
        tab.expect(legend.nth(2)).to_have_text("fin")
        tab.click("Remove it")
        tab.expect(legend.first).to_be_disabled()
        tab.page.keyboard.press("Control+z")
        tab.click("Save and next")
        tab.shows("001.png (2 of 4): proposed. 1 labelled.")
        assert set(points_of(proposed)) == {"head", "fin"}
        np.testing.assert_allclose(points_of(proposed)["head"][:2], paint(300)[1][0], atol=0.01)
        tab.click("Back")  # the missing point is where the mean shape expects it
        tab.shows("000.png (1 of 4): labelled. 1 labelled.")
        tab.expect(legend.nth(1)).to_have_text("tailnot in the image")
        for x in range(0, 160, 4):
            for y in range(0, 140, 4):
                tab.page.mouse.move(*tab.at(x, y))
                if tab.tip.is_visible() and tab.tip.inner_text().startswith("tail"):
                    break
            else:
                continue
            break
        tab.drag(tab.at(x, y), tail)
        tab.expect(legend.nth(1)).to_have_text("tail")
        tab.click("Save and next")
        tab.shows("001.png (2 of 4): proposed. 1 labelled.")
        np.testing.assert_allclose(points_of(proposed)["tail"], [*paint(300)[1][1], 2], atol=1)


@pytest.mark.slow
@needs_browser
def test_zoom_pan_and_rotation(proposed):
    with tab_of(proposed) as tab:
        tab.shows("000.png (1 of 4): proposed. 0 labelled.")
        mouse, keyboard = tab.page.mouse, tab.page.keyboard
        head = tuple(np.round(tab.at(*paint(300)[1][0])))  # as wheel events are
        corner = np.array(tab.at(-0.5, -0.5))
        mouse.move(*head)
        for _ in range(5):
            mouse.wheel(0, -100)
        tab.expect(tab.tip).to_have_text("head")  # the position of the pointer is the fixed point
        zoom, scale = 1.002**500, 3
        tab.drag(head, (head[0] + 30, head[1] - 12))
        moved = [head[0] + 30, head[1] - 12]
        tab.screenshot("serve_label_zoom.jpg")
        for hold in ("space", "middle"):
            start = (moved[0] - 60, moved[1] + 60)
            if hold == "space":
                keyboard.down(" ")
            tab.drag(start, (start[0] - 20, start[1] + 8), "left" if hold == "space" else "middle")
            if hold == "space":
                keyboard.up(" ")
            moved = [moved[0] - 20, moved[1] + 8]
            mouse.move(*moved)
            tab.expect(tab.tip).to_have_text("head")
        keyboard.press("0")
        tab.click("Rotate")
        box = tab.panel.locator("canvas").bounding_box()
        assert box["height"] / box["width"] == pytest.approx(160 / 140, abs=0.01)
        tail = paint(300)[1][1]
        turned = (  # clockwise: the left border is above
            box["x"] + box["width"] * (1 - (tail[1] + 0.5) / 140),
            box["y"] + box["height"] * (tail[0] + 0.5) / 160,
        )
        mouse.move(*turned)
        tab.expect(tab.tip).to_have_text("tail")
        tab.drag(turned, (turned[0] - 30, turned[1]))
        tab.screenshot("serve_label_turned.jpg")
        down = 30 * 140 / box["width"]
        tab.click("Save and next")
        tab.shows("001.png (2 of 4): proposed. 1 labelled.")
        kept = points_of(proposed)
        expected = (head - corner) / scale - 0.5 + np.array([30, -12]) / scale / zoom
        np.testing.assert_allclose(kept["head"][:2], expected, atol=0.05)
        np.testing.assert_allclose(kept["tail"][:2], tail + [0, down], atol=0.05)


@pytest.mark.slow
@needs_browser
def test_a_new_object_has_the_mean_shape(proposed):
    (proposed / "proposals.json").unlink()
    with tab_of(proposed) as tab:
        tab.shows("000.png (1 of 4): nothing proposed. 0 labelled.")
        tab.click("Add an object")  # on a circle
        for name, point in fish()["keypoints"].items():
            angle = 2 * np.pi * NAMES.index(name) / 3
            start = tab.at(80 + 28 * np.cos(angle), 70 + 28 * np.sin(angle))
            tab.page.mouse.move(*start)
            tab.expect(tab.tip).to_have_text(name)
            tab.drag(start, tab.at(*point[:2]))
        tab.click("Save and next")
        tab.shows("001.png (2 of 4): nothing proposed. 1 labelled.")
        tab.click("Add an object")  # at the position and size of the labels
        tab.drag(tab.at(20, 80), tab.at(60, 116))
        tab.screenshot("serve_label_added.jpg")
        tab.click("Save and next")
        tab.shows("002.png (3 of 4): nothing proposed. 2 labelled.")
        first, second = LabelFolder(proposed).labels["001.png"]
        for name, point in fish()["keypoints"].items():
            np.testing.assert_allclose(first["keypoints"][name][:2], point[:2], atol=0.6)
        np.testing.assert_allclose(second["keypoints"]["head"], [20, 80 + 36 * 20 / 24, 2], atol=1)
        np.testing.assert_allclose(second["keypoints"]["tail"], [60, 116, 2], atol=1)
        np.testing.assert_allclose(second["keypoints"]["fin"], [40, 80, 2], atol=1)


@pytest.mark.slow
@needs_browser
def test_colours_of_many_points_and_the_report(proposed):
    (proposed / "proposals.json").unlink()
    names = ", ".join(f'"point_{k}"' for k in range(30))
    (proposed / "schema.toml").write_text(f'category = "fish"\nkeypoints = [{names}]\n')
    (proposed / "fish_report").mkdir()
    (proposed / "fish_report" / "keypoints.html").write_text("<h1>Report</h1>")
    with tab_of(proposed) as tab:
        tab.shows("000.png (1 of 4): nothing proposed. 0 labelled.")
        tab.click("Add an object")
        tab.screenshot("serve_label_colours.jpg")
        shown = tab.panel.locator(".legend .dot").evaluate_all(
            "all => all.map((dot) => getComputedStyle(dot).backgroundColor)"
        )
        colours = np.array([re.findall(r"[\d.]+", colour)[:3] for colour in shown], float)
        distances = np.linalg.norm(colours[:, None] - colours, axis=2)
        assert len(colours) == 30 and distances[~np.eye(30, dtype=bool)].min() > 25
        with tab.page.expect_popup() as report:
            tab.panel.get_by_role("link", name="Open the training report").click()
        tab.expect(report.value.locator("h1")).to_have_text("Report")
