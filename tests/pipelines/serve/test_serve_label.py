"""The tab Label of ``annealed serve``: over HTTP, and in a real browser."""

import json
import os
import shutil
import sys
import time

import numpy as np
import pytest
from annealed.models.keypoints.schema import Schema
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import schema_of
from annealed.pipelines.keypoints.labelling import LabelFolder
from annealed.pipelines.keypoints.objects import read_objects
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
        ([fish(), fish(150.0)], "000.png, object 2: expected at least two points, all inside"),
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
    assert labelling.training() == {"state": "none", "line": ""} and labelling.model is None
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
    run("echo made >&2")
    assert ended(labelling.training) == {"state": "done", "line": "made"}
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


@pytest.mark.slow
@pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: Chromium, as `chromium` or by ANNEALED_BROWSER"
)
def test_in_a_browser(model, tmp_path):
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs a browser: pip install playwright"
    )
    expect, folder = playwright.expect, unlabelled(tmp_path / "fish")
    labels = lambda: LabelFolder(folder).labels  # noqa: E731
    with (
        serving("--workers", "1", "--label", str(folder), "--model", str(model)) as (url, _),
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page, complaints = browser.new_page(viewport={"width": 1280, "height": 900}), []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        panel = page.locator("#panel-label")
        expect(panel.locator(".facts")).to_have_text(
            "000.png (1 of 4): proposed. 0 labelled.", timeout=SECONDS
        )
        box = panel.locator("canvas").bounding_box()

        def at(x, y):
            return (
                box["x"] + (x + 0.5) * box["width"] / 160,
                box["y"] + (y + 0.5) * box["height"] / 140,
            )

        head, tail, _ = paint(300)[1]
        page.mouse.move(*at(*head))
        page.mouse.down()
        page.mouse.move(*at(30, 40), steps=4)
        page.mouse.up()
        page.mouse.dblclick(*at(*tail))
        if "ANNEALED_SCREENSHOTS" in os.environ:
            page.screenshot(
                path=os.path.join(os.environ["ANNEALED_SCREENSHOTS"], "serve_label_1280_light.png")
            )
        panel.get_by_role("button", name="Save and next").click()
        expect(panel.locator(".facts")).to_have_text(
            "001.png (2 of 4): proposed. 1 labelled.", timeout=SECONDS
        )
        (kept,) = labels()["000.png"]
        np.testing.assert_allclose(kept["keypoints"]["head"], [30, 40, 2], atol=1)
        assert kept["keypoints"]["tail"][2] == 1 and kept["keypoints"]["fin"][2] == 2
        panel.get_by_role("button", name="Remove it").click()
        panel.locator("canvas").focus()
        page.keyboard.press("Enter")
        expect(panel.locator(".facts")).to_have_text(
            "002.png (3 of 4): proposed. 2 labelled.", timeout=SECONDS
        )
        assert labels()["001.png"] == []
        panel.get_by_role("button", name="Add an object").click()
        panel.get_by_role("button", name="Save and next").click()
        expect(panel.locator(".facts")).to_contain_text("3 labelled", timeout=SECONDS)
        assert len(labels()["002.png"]) == 2
        panel.get_by_role("button", name="Back").click()
        expect(panel.locator(".facts")).to_have_text(
            "002.png (3 of 4): labelled. 3 labelled.", timeout=SECONDS
        )
        panel.get_by_role("button", name="Train").click()
        expect(panel.locator(".training")).to_contain_text(
            "Failed: annealed:", timeout=SECONDS
        )  # of so few pictures
        assert "expected" in panel.locator(".training").inner_text() and not complaints
        browser.close()
