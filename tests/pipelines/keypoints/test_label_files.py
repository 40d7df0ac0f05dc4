"""Annotation files of other tools: every point equals the source, and wrong files get one line."""

import csv
import json
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
import yaml
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import read_annotations, schema_of
from typer.testing import CliRunner

NAMES = ["left_end", "right_end", "middle"]
N, WIDTH, HEIGHT = 40, 64, 48
EMPTY = 7  # the image without an object


def truth():
    """The points (N, 3, 2) and whether each is annotated, visible: 120 points, some missing."""
    rng = np.random.default_rng(0)
    points = np.round(rng.uniform(2, 40, (N, 3, 2)), 2)
    seen = np.full((N, 3), 2)
    seen[3, 1], seen[5, 2], seen[EMPTY] = 0, 1, 0
    return points, seen


def boxes_of(points):
    low, high = points.min(axis=1), points.max(axis=1)
    return np.concatenate([low - 1, high - low + 2], axis=1)


def images(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(N):
        cv2.imwrite(str(folder / f"{i:02}.png"), np.full((HEIGHT, WIDTH, 3), i, np.uint8))


def write_cvat_coco(folder):
    points, seen = truth()
    images(folder / "images" / "default")
    (folder / "annotations").mkdir()
    annotations = [
        {
            "id": i + 1,
            "image_id": i + 1,
            "category_id": 1,
            "keypoints": np.column_stack([points[i], seen[i]]).ravel().tolist(),
            "num_keypoints": 3,
            "bbox": boxes_of(points)[i].tolist(),
            "area": 100.0,
            "iscrowd": 0,
        }
        for i in range(N)
        if i != EMPTY
    ]
    files = [
        {"id": i + 1, "file_name": f"{i:02}.png", "width": WIDTH, "height": HEIGHT}
        for i in range(N)
    ]
    category = {"id": 1, "name": "bar", "supercategory": "", "keypoints": NAMES, "skeleton": []}
    content = {"images": files, "annotations": annotations, "categories": [category]}
    text = json.dumps({"licenses": [], "info": {}, **content})
    (folder / "annotations" / "person_keypoints_default.json").write_text(text)


def write_cvat_xml(folder):
    points, seen = truth()
    images(folder / "images")
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    for i in range(N):
        sizes = {"width": str(WIDTH), "height": str(HEIGHT)}
        image = ElementTree.SubElement(root, "image", {"id": str(i), "name": f"{i:02}.png"} | sizes)
        if i == EMPTY:
            continue
        skeleton = ElementTree.SubElement(image, "skeleton", {"label": "bar", "z_order": "0"})
        for name, (x, y), v in zip(NAMES, points[i], seen[i], strict=True):
            flags = {"outside": str(int(v == 0)), "occluded": str(int(v == 1))}
            place = {"label": name, "points": f"{x:.2f},{y:.2f}"}
            ElementTree.SubElement(skeleton, "points", place | flags)
    ElementTree.ElementTree(root).write(folder / "annotations.xml")


def write_cvat_video(folder, skeleton=True):
    """One track of skeletons, or one of each point, whose frames are at their numbers."""
    points, seen = truth()
    images(folder / "images")
    for path in (folder / "images").iterdir():
        path.rename(path.with_name(f"frame_{int(path.stem):06}.PNG"))
    root = ElementTree.Element("annotations")
    labels = ["bar"] if skeleton else NAMES
    tracks = [
        ElementTree.SubElement(root, "track", {"id": str(j), "label": label, "group_id": "4"})
        for j, label in enumerate(labels)
    ]
    ElementTree.SubElement(tracks[0], "box", {"frame": str(EMPTY), "xtl": "1", "ytl": "1"})
    for i, j in np.ndindex(N, 3):
        if i != EMPTY:
            frame = {"frame": str(i), "keyframe": str(int(i % 5 == 0))}
            if skeleton and j == 0:
                whole = ElementTree.SubElement(tracks[0], "skeleton", frame)
            (x, y), v = points[i, j], seen[i, j]
            flags = {"outside": str(int(v == 0)), "occluded": str(int(v == 1))}
            own = {"label": NAMES[j]} if skeleton else frame
            place = {"points": f"{x:.2f},{y:.2f}", **flags, **own}
            ElementTree.SubElement(whole if skeleton else tracks[j], "points", place)
    ElementTree.ElementTree(root).write(folder / "annotations.xml")


def write_labelme(folder):
    points, seen = truth()
    images(folder)
    for i in range(N):
        shapes = [
            {
                "label": name,
                "points": [xy.tolist()],
                "group_id": 0,
                "shape_type": "point",
                "flags": {"occluded": True} if v == 1 else {},
            }
            for name, xy, v in zip(NAMES, points[i], seen[i], strict=True)
            if v
        ]
        if i != EMPTY:
            x, y, w, h = boxes_of(points)[i].tolist()
            corners = [[x + w, y], [x, y + h]]  # drawn from the right to the left
            box = {"label": "bar", "points": corners, "group_id": 0, "shape_type": "rectangle"}
            shapes.append({**box, "flags": {}})
        sizes = {"imageHeight": HEIGHT, "imageWidth": WIDTH}
        content = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": f"{i:02}.png"}
        (folder / f"{i:02}.json").write_text(json.dumps({**content, "imageData": None, **sizes}))


def write_yolo(folder, **changes):
    points, seen = truth()
    images(folder / "images" / "train")
    (folder / "labels" / "train").mkdir(parents=True)
    config = {"path": "bars", "train": "images/train", "val": "images/val", "kpt_shape": [3, 3]}
    config |= {"names": {0: "bar"}, "kpt_names": {0: NAMES}, "flip_idx": [1, 0, 2], **changes}
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "data.yaml").write_text(yaml.safe_dump(config))
    sizes = np.array([WIDTH, HEIGHT])
    for i in range(N):
        if i != EMPTY:
            x, y, w, h = boxes_of(points)[i].tolist()
            box = [(x + w / 2) / WIDTH, (y + h / 2) / HEIGHT, w / WIDTH, h / HEIGHT]
            row = np.column_stack([points[i] / sizes, seen[i]]).ravel()
            text = " ".join(map(repr, [0, *box, *row.tolist()]))
            (folder / "labels" / "train" / f"{i:02}.txt").write_text(text + "\n")


def write_deeplabcut(folder):
    points, seen = truth()
    place = folder / "labeled-data" / "video"
    images(place)
    with (place / "CollectedData_me.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["scorer", "", "", *["me"] * 6])
        writer.writerow(["bodyparts", "", "", *(name for name in NAMES for _ in "xy")])
        writer.writerow(["coords", "", "", *"xyxyxy"])
        for i in range(N):
            values = np.where((seen[i] > 0)[:, None], points[i].astype(object), "").ravel()
            writer.writerow(["labeled-data", "video", f"{i:02}.png", *values])


def write_label_studio(folder):
    points, seen = truth()
    images(folder / "images")
    tasks = []
    for i in range(N):
        sizes = {"original_width": WIDTH, "original_height": HEIGHT}
        results = [
            {
                "id": f"p{j}",
                "parentID": "box",
                "type": "keypointlabels",
                **sizes,
                "value": {
                    "x": points[i, j, 0] * 100 / WIDTH,
                    "y": points[i, j, 1] * 100 / HEIGHT,
                    "width": 0.5,
                    "keypointlabels": [name],
                },
            }
            for j, name in enumerate(NAMES)
            if seen[i, j]
        ]
        if i != EMPTY:
            x, y, w, h = (boxes_of(points)[i] * 100 / np.tile([WIDTH, HEIGHT], 2)).tolist()
            value = {"x": x, "y": y, "width": w, "height": h, "rectanglelabels": ["bar"]}
            kind = {"id": "box", "type": "rectanglelabels"}
            results.append({**kind, **sizes, "value": value})
        results.append({"id": "c", "type": "choices", "value": {"choices": ["sharp"]}})
        uploaded = f"/data/upload/1/0a1b2c3d-{i:02}.png"
        url = f"/data/local-files/?d=images/{i:02}.png" if i % 2 else uploaded
        cancelled = {"was_cancelled": True, "result": []}
        labelled = {"was_cancelled": False, "result": results}
        tasks.append({"id": i, "data": {"img": url}, "annotations": [cancelled, labelled]})
    (folder / "project-1-at-2026-01-01.json").write_text(json.dumps(tasks))


KINDS = {
    "cvat_coco": (write_cvat_coco, "bar", True, True),
    "cvat_xml": (write_cvat_xml, "bar", True, False),
    "cvat_video": (write_cvat_video, "bar", True, False),
    "cvat_video_points": (lambda folder: write_cvat_video(folder, False), "object", True, False),
    "labelme": (write_labelme, "bar", True, True),
    "yolo": (write_yolo, "bar", True, True),
    "deeplabcut": (write_deeplabcut, "object", False, False),
    "label_studio": (write_label_studio, "bar", False, True),
}


@pytest.mark.parametrize("write, category, hidden, boxed", KINDS.values(), ids=KINDS)
def test_every_point_equals_the_source(tmp_path, write, category, hidden, boxed):
    write(tmp_path)
    schema = schema_of(tmp_path)
    assert schema.category == category and schema.keypoints == tuple(NAMES)
    assert schema.mirror == (("left_end", "right_end"),)
    points, seen = truth()
    read = read_annotations(tmp_path, schema)
    frames = [f"frame_{i:06}.PNG" for i in range(N)]
    assert [image.name for image in read] in ([f"{i:02}.png" for i in range(N)], frames)
    for i, image in enumerate(read):
        if i == EMPTY:
            assert not len(image.instances) and not len(image.ignore)
            continue
        expected = np.where((seen[i] > 0)[:, None], points[i], np.nan)
        np.testing.assert_allclose(image.instances[0], expected, atol=1e-9)
        assert image.visible[0].tolist() == (seen[i] >= (2 if hidden else 1)).tolist()
        if boxed:
            x, y, w, h = boxes_of(points)[i]
            np.testing.assert_allclose(image.boxes[0], [x, y, x + w, y + h], atol=1e-9)
        else:
            assert image.boxes is None


def run(*words):
    return CliRunner().invoke(app, ["keypoints", *map(str, words)])


def json_of(folder, change):
    """Changes the first annotation file of labelme."""
    path = folder / "00.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def text_of(name, old, new):
    def change(folder):
        path = folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def first_shape(**changes):
    return lambda folder: json_of(folder, lambda c: c["shapes"][0].update(changes))


BAD = {
    "labelme without the key imagePath": (
        write_labelme,
        lambda folder: json_of(folder, lambda c: c.pop("imagePath")),
        "00.json: the file is not a valid annotation file (KeyError: 'imagePath')",
    ),
    "labelme with two points of a name": (
        write_labelme,
        first_shape(label="right_end"),
        "'right_end' occurs twice in one object; group the points of each object",
    ),
    "labelme with a name in one file alone": (
        write_labelme,
        first_shape(label="lefft_end"),
        "keypoint 'lefft_end' is visible in 1 objects (first: 00.png); expected at least 10",
    ),
    "a missing image": (
        write_labelme,
        lambda folder: json_of(folder, lambda c: c.update(imagePath="gone.png")),
        "gone.png: the annotated image does not exist",
    ),
    "a point beyond the border": (
        write_labelme,
        first_shape(points=[[-20.0, 10.0]]),
        "left_end at (-20, 10) lies outside the image of 64 x 48",
    ),
    "CVAT that is no XML": (
        write_cvat_xml,
        text_of("annotations.xml", 'outside="0" occluded="0"', 'outside="0" points="1"'),
        "annotations.xml: the file is not a valid annotation file (ParseError",
    ),
    "CVAT for video without its frames": (
        write_cvat_video,
        lambda folder: (folder / "images" / "frame_000003.PNG").unlink(),
        "frame_000003.png: the annotated image does not exist",
    ),
    "CVAT without names": (
        write_cvat_xml,
        text_of("annotations.xml", 'label="left_end"', 'title="left_end"'),
        "annotations.xml: the file is not a valid annotation file (KeyError: 'label')",
    ),
    "YOLO with a number too few": (
        write_yolo,
        lambda folder: (folder / "labels/train/03.txt").write_text("0 0.5 0.5 1 1 0.5 0.5 2\n"),
        "03.txt, line 1: the line has 8 numbers; expected 14",
    ),
    "YOLO without kpt_shape": (
        write_yolo,
        text_of("data.yaml", "kpt_shape", "shape"),
        "data.yaml: the file is not a valid annotation file (KeyError: 'kpt_shape')",
    ),
    "YOLO that is no YAML": (
        write_yolo,
        text_of("data.yaml", "kpt_shape:", "kpt_shape: [: "),
        "data.yaml: the file is not a valid annotation file (ValueError: ",
    ),
    "DeepLabCut without the row coords": (
        write_deeplabcut,
        text_of("labeled-data/video/CollectedData_me.csv", "coords", "axes"),
        "CollectedData_me.csv: the file is not a valid annotation file (KeyError: 'coords')",
    ),
    "Label Studio without sizes": (
        write_label_studio,
        text_of("project-1-at-2026-01-01.json", "original_width", "width"),
        "not a valid annotation file (KeyError: 'original_width')",
    ),
    "no annotations": (
        lambda folder: images(folder),
        lambda folder: None,
        "the folder contains no annotations; expected keypoints.csv, a COCO keypoint file, or",
    ),
    "images without objects alone": (
        write_labelme,
        lambda folder: [
            path.write_text(json.dumps({"shapes": [], "imagePath": f"{path.stem}.png"}))
            for path in folder.glob("*.json")
        ],
        "none of the categories has keypoints",
    ),
}


@pytest.mark.parametrize("write, change, message", BAD.values(), ids=BAD)
def test_wrong_files_get_one_line(tmp_path, write, change, message):
    write(tmp_path)
    change(tmp_path)
    made = run("train", "--data", tmp_path, "--out", tmp_path / "bar.safetensors", "--quiet")
    assert made.exit_code == 2 and message in made.stderr, made.stderr
    assert made.stderr.count("\n") == 1


def test_objects_of_one_image_are_apart(tmp_path):
    """Two objects in every image, in the formats that group points."""
    points = np.stack([truth()[0][:2], truth()[0][2:4]])  # images, objects, points, x and y
    shapes, rows, xml = [], [], ["<annotations>"]
    for number, of_image in enumerate(points):
        xml.append(f'<image name="0{number}.png">')
        for i, of_object in enumerate(of_image):
            for name, (x, y) in zip(NAMES, of_object, strict=True):
                xml.append(f'<points label="{name}" points="{x},{y}" group_id="{i}"/>')
        xml.append("</image>")
        shapes.append(
            [
                {"label": n, "points": [xy.tolist()], "group_id": i, "shape_type": "point"}
                for i, of_object in enumerate(of_image)
                for n, xy in zip(NAMES, of_object, strict=True)
            ]
        )
        rows.append(",".join([f"labeled-data\\v\\0{number}.png", *map(str, of_image.ravel())]))
    for kind in ("labelme", "deeplabcut", "cvat"):
        images(tmp_path / kind / ("labeled-data/v" if kind == "deeplabcut" else ""))
    for number, some in enumerate(shapes):
        content = {"imagePath": f"..\\labelme\\0{number}.png", "shapes": some}
        (tmp_path / "labelme" / f"0{number}.json").write_text(json.dumps(content))
    heads = [["scorer", *["me"] * 12], ["individuals", *["a"] * 6, *["b"] * 6]]
    heads += [["bodyparts", *[n for n in NAMES for _ in "xy"] * 2], ["coords", *"xyxyxy" * 2]]
    table = "\n".join([*map(",".join, heads), *rows])
    (tmp_path / "deeplabcut/labeled-data/v/CollectedData_me.csv").write_text(table)
    (tmp_path / "cvat" / "annotations.xml").write_text("".join([*xml, "</annotations>"]))
    for kind in ("labelme", "deeplabcut", "cvat"):
        read = read_annotations(tmp_path / kind, schema_of(tmp_path / kind))
        for image, expected in zip(read, points, strict=True):
            np.testing.assert_allclose(image.instances, expected)


def test_points_of_yolo_without_names_are_numbered(tmp_path):
    write_yolo(tmp_path, kpt_names=None)
    with pytest.warns(
        UserWarning, match=r"data.yaml: kpt_names is missing, so the points are named 1 to 3"
    ):
        schema = schema_of(tmp_path)
    assert schema.keypoints == ("1", "2", "3")


def test_a_part_of_yolo_is_evaluated_by_its_folder(tmp_path):
    write_yolo(tmp_path)
    for kind in ("images", "labels"):
        (tmp_path / kind / "train").rename(tmp_path / kind / "val")
    assert (
        len(read_annotations(tmp_path / "images" / "val", schema_of(tmp_path / "images/val"))) == N
    )


def test_an_object_that_the_border_cuts_has_missing_points(tmp_path):
    write_labelme(tmp_path)

    def cut(content):
        content["shapes"][0]["points"] = [[0.0, 10.0]]
        del content["shapes"][1]
        content["shapes"][-1]["points"] = [[-8.0, 5.0], [30.0, 45.0]]

    json_of(tmp_path, cut)
    image = read_annotations(tmp_path, schema_of(tmp_path))[0]
    assert image.visible[0].tolist() == [True, False, True]
    np.testing.assert_allclose(image.boxes[0], [-8, 5, 30, 45])
