"""Annotations that are wrong: each kind is refused in one line, and nothing is written."""

import json

import cv2
import numpy as np
import pytest
from annealed.models.keypoints.schema import Schema, read_schema
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import schema_of
from annealed.pipelines.keypoints.objects import MIN_PICTURES, check_number, read_objects
from typer.testing import CliRunner

NAMES = ["left_end", "right_end", "middle"]
N = 24


def coco():
    """Annotations of pictures of 60 x 40 pixels, one object in each."""
    images = [{"id": i, "file_name": f"{i}.png"} for i in range(N)]
    points = [10, 10, 2, 40, 12, 2, 25, 30, 2]
    annotations = [
        {
            "id": i,
            "image_id": i,
            "category_id": 1,
            "keypoints": list(points),
            "bbox": [8, 8, 34, 24],
        }
        for i in range(N)
    ]
    category = {"id": 1, "name": "bar", "keypoints": list(NAMES), "skeleton": [[1, 3], [2, 3]]}
    return {"images": images, "annotations": annotations, "categories": [category]}


def write(folder, content):
    for i in range(N):
        cv2.imwrite(str(folder / f"{i}.png"), np.full((40, 60, 3), 90 + i, np.uint8))
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "annotations.json").write_text(text, encoding="utf-8")
    return folder


def first(**changes):
    """Changes the first annotation."""
    return lambda c: c["annotations"][0].update(changes)


def category(**changes):
    return lambda c: c["categories"][0].update(changes)


def all_points(value):
    def change(c):
        for a in c["annotations"]:
            a["keypoints"][2::3] = [value] * 3

    return change


def hide(keypoint, left=3):
    def change(c):
        for a in c["annotations"][left:]:
            a["keypoints"][3 * keypoint + 2] = 1

    return change


BAD = {
    "a point outside its picture": (
        first(keypoints=[10, 10, 2, 400, 12, 2, 25, 30, 2]),
        "outside the image of 60 x 40",
    ),
    "a box of zero size": (first(bbox=[8, 8, 0, 24]), "expected a positive width and height"),
    "a box far beyond its picture": (
        first(bbox=[0, 0, 1e9, 1e9]),
        "a corner of a bbox at (1e+09, 1e+09) lies outside the image of 60 x 40",
    ),
    "a box of NaN": (first(bbox=[8, 8, float("nan"), 24]), "expected a positive width and height"),
    "a box that is not numeric": (first(bbox=["a", 8, 3, 24]), "not a valid annotation file"),
    "too few numbers": (first(keypoints=[10, 10, 2]), "expected 9 numbers"),
    "a point that is not a number": (
        first(keypoints=[float("nan"), 10, 2, 40, 12, 2, 25, 30, 2]),
        "expected 9 numbers",
    ),
    "an unknown visibility": (first(keypoints=[10, 10, 7, 40, 12, 2, 25, 30, 2]), "0, 1 or 2"),
    "a picture that nobody named": (first(image_id=999), "not a valid annotation file"),
    "none of the categories has keypoints": (
        lambda c: c["categories"][0].pop("keypoints"),
        "none of the categories has keypoints",
    ),
    "double ids": (first(id=5), "two annotations have the same id"),
    "double ids of pictures": (
        lambda c: c["images"][1].update(id=0),
        "two images have the same id",
    ),
    "a missing picture": (
        lambda c: c["images"][2].update(file_name="gone.png"),
        "gone.png: the annotated image does not exist",
    ),
    "one picture only": (
        lambda c: c.update(images=c["images"][:1], annotations=c["annotations"][:1]),
        "expected",
    ),
    "all points unknown": (all_points(0), "expected at least 10"),
    "all points hidden": (all_points(1), "keypoint 'left_end' is visible in 0 objects"),
    "a point that is hardly ever seen": (hide(2), "keypoint 'middle' is visible in 3 objects"),
    "a name twice": (category(keypoints=["a", "a", "b"]), "expected distinct names"),
    "one point": (category(keypoints=["a"], skeleton=[]), "two or more distinct names"),
    "a skeleton of other points": (category(skeleton=[[1, 9]]), "expected numbers from 1 to 3"),
    "several categories": (
        lambda c: c["categories"].append({"id": 2, "name": "b", "keypoints": NAMES}),
        "annotations.json: the file has several categories; expected --category with one of bar, b",
    ),
    "no annotation": (lambda c: c.update(annotations=[]), "expected at least 10"),
    "no images": (lambda c: c.pop("images"), "not a valid annotation file"),
}


@pytest.mark.parametrize("change, message", BAD.values(), ids=BAD)
def test_one_line_and_nothing_written(tmp_path, change, message):
    content = coco()
    change(content)
    folder = write(tmp_path, content)
    before = sorted(tmp_path.rglob("*"))
    made = CliRunner().invoke(
        app,
        ["keypoints", "train", "--data", str(folder), "--out", str(tmp_path / "bar.safetensors")],
    )
    assert made.exit_code == 2 and message in made.stderr and made.stderr.count("\n") == 1, (
        made.stderr
    )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[3]",
        "null",
        '{"images": [], "annotations": [], "categories": 3}',
        '{"images": [], "images": [], "annotations": [], "categories": []}',
    ],
)
def test_files_that_are_none(tmp_path, text):
    with pytest.raises(ValueError, match="not a valid annotation file"):
        schema_of(write(tmp_path, text))
    with pytest.raises(ValueError, match="none of the categories has keypoints"):
        schema_of(write(tmp_path, "[]"))  # of Label Studio


def test_a_picture_that_is_none(tmp_path):
    write(tmp_path, coco())
    (tmp_path / "3.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"3\.png"):
        read_objects(tmp_path, schema_of(tmp_path))


SCHEMA = 'category = "bar"\nkeypoints = ["left_end", "right_end", "middle"]\n'


@pytest.mark.parametrize(
    "text, message",
    [
        ('mirror = [["left_end", "nose"]]', "'nose' is not among the keypoints"),
        (
            'mirror = [["left_end", "right_end"], ["middle", "left_end"]]',
            "each keypoint in at most one pair",
        ),
        ('mirror = ["left_end", "right_end"]', "expected names of keypoints"),
        ('length = ["left_end"]', "expected two different names"),
        ('length = ["left_end", "left_end"]', "expected two different names"),
        ("upright = 3", "true or false"),
        ('colour = "red"', "expected category and keypoints, and optionally"),
        ("mirror =", "Invalid value"),
    ],
)
def test_bad_schemas(tmp_path, text, message):
    (tmp_path / "schema.toml").write_text(SCHEMA + text)
    with pytest.raises(ValueError, match=message) as error:
        read_schema(tmp_path / "schema.toml")
    assert "schema.toml" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "rows, message",
    [
        (["a.png,0,tip,1,1"], "missing columns object"),
        ([], "two or more distinct names"),
    ],
)
def test_bad_tables(tmp_path, rows, message):
    head = "image,object,keypoint,x,y" if not rows else "image,face,keypoint,x,y"
    (tmp_path / "keypoints.csv").write_text("\n".join([head, *rows]) + "\n")
    with pytest.raises(ValueError, match=message):
        schema_of(tmp_path)


def test_two_points_in_one_place_are_no_length(tmp_path):
    content = coco()
    content["annotations"][4]["keypoints"][3:5] = [10, 10]
    schema = Schema("bar", tuple(NAMES), length=("left_end", "right_end"))
    with pytest.raises(
        ValueError,
        match=r"4\.png: bar 0 has no reference length; "
        r"expected left_end and right_end at different positions",
    ):
        read_objects(write(tmp_path, content), schema)


def test_the_schema_comes_from_the_file_and_missing_points_from_the_shape(tmp_path):
    content = coco()
    content["annotations"][4]["keypoints"][6:] = [0, 0, 0]
    schema = schema_of(write(tmp_path, content))
    assert schema == Schema(
        "bar",
        tuple(NAMES),
        (("left_end", "right_end"),),
        (("left_end", "middle"), ("right_end", "middle")),
        mirrored=True,
    )
    image = read_objects(tmp_path, schema)[
        [f"{i}.png" for i in sorted(map(str, range(N)))].index("4.png")
    ]
    np.testing.assert_allclose(image.instances[0], [[10, 10], [40, 12], [25, 30]], atol=0.1)
    assert image.visible[0].tolist() == [True, True, False]
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_few_pictures(tmp_path):
    images = read_objects(write(tmp_path, coco()), schema_of(tmp_path))
    assert "the detector will work only on very similar images" in check_number(images)
    assert check_number(images * 5) is None
    with pytest.raises(ValueError, match=f"expected at least {MIN_PICTURES}"):
        check_number(images[:19])


@pytest.mark.parametrize(
    "options, message",
    [
        (["--rotation", "sideways"], "sideways"),
        (["--anchor", "nose"], "nose"),
        (["--anchor", "left_end"], "expected at least two keypoints, or no --anchor"),
        (["--window", "0"], "--window 0.0 is not valid; expected a number in [0.1, 100000]"),
        (["--features", "0"], "--features 0 is not valid; expected a number in [1, 100000]"),
        (["--rounds", "-1"], "--rounds -1 is not valid; expected a number in [0, 100000]"),
        (["--category", "screw"], "category 'screw' is not in the file; expected one of bar"),
        (["--schema", "gone.toml"], "gone.toml"),
        (["--background", "gone"], "gone: no such folder"),
        (["--dask", "tcp://127.0.0.1:9"], "--dask tcp://127.0.0.1:9: no scheduler responds"),
        (["--dask", "tcp://x:1", "--jobs", "2"], "--jobs 2 is not available with --dask"),
    ],
)
def test_bad_options(tmp_path, options, message):
    folder, out = write(tmp_path, coco()), tmp_path / "bar.safetensors"
    before = sorted(tmp_path.rglob("*"))
    made = CliRunner().invoke(
        app, ["keypoints", "train", "--data", str(folder), "--out", str(out), *options]
    )
    assert made.exit_code == 2 and message in made.stderr and made.stderr.count("\n") == 1, (
        made.stderr
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_says_the_same_as_the_coco_file(tmp_path):
    (tmp_path / "coco").mkdir()
    expected = read_objects(
        write(tmp_path / "coco", coco()), schema_of(tmp_path / "coco", category="bar")
    )
    (tmp_path / "table").mkdir()
    folder = write(tmp_path / "table", "")
    (folder / "annotations.json").unlink()
    rows = [
        f"{i}.png,a,{name},{x},{y}"
        for i in range(N)
        for name, x, y in zip(NAMES, (10, 40, 25), (10, 12, 30))
    ]
    (folder / "keypoints.csv").write_text("\n".join(["image,object,keypoint,x,y", *rows]) + "\n")
    found = read_objects(folder, schema_of(folder, category="bar"))
    assert found[0].schema.category == "bar" and found[0].schema.mirror == expected[0].schema.mirror
    assert [image.name for image in found] == [image.name for image in expected]
    np.testing.assert_array_equal(
        [image.instances for image in found], [image.instances for image in expected]
    )
    assert all(image.visible.all() for image in found)


def test_objects_without_keypoints_are_boxes_alone(tmp_path):
    """As other tools write them: null in an annotation, and in another category."""
    content = coco()
    content["annotations"][0]["keypoints"] = None
    content["categories"].append({"id": 2, "name": "dot", "keypoints": None})
    folder = write(tmp_path, content)
    images = read_objects(folder, schema_of(folder))
    assert sum(len(image.instances) for image in images) == N - 1


def test_the_same_annotation_and_picture_twice_count_once(tmp_path):
    content = coco()
    content["annotations"].append(content["annotations"][0] | {"id": 900})
    content["images"].append(content["images"][0] | {"id": 901})
    content["annotations"][1].update(image_id=901, keypoints=[9, 9, 2, 41, 12, 2, 25, 30, 2])
    folder = write(tmp_path, content)
    images = read_objects(folder, schema_of(folder))
    assert sum(len(image.instances) for image in images) == N
    assert [len(image.instances) for image in images][:2] == [2, 0]
