"""Readers of annotated photographs: three formats, one meaning, one line for each kind of
damage."""

import json

import cv2
import numpy as np
import pytest
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import FACES, KEYPOINTS
from annealed.pipelines.keypoints.training.windows.classifier import content_of

FACE = {name: (10.0 + 3 * i, 20.0 + i) for i, name in enumerate(KEYPOINTS)}


def write_csv(folder, rows, header="image,face,keypoint,x,y,visible"):
    cv2.imwrite(str(folder / "a_1.png"), np.zeros((60, 80, 3), np.uint8))
    (folder / "keypoints.csv").write_text("\n".join([header, *rows]) + "\n")


def rows(image="a_1.png", face=0, **changes):
    return [
        f"{image},{face},{name},{x},{y},{changes.get(name, 1)}" for name, (x, y) in FACE.items()
    ]


def test_csv(tmp_path):
    write_csv(tmp_path, rows(chin=0) + rows(face=1)[:-1])
    (tmp_path / "ignore.csv").write_text("image,x0,y0,x1,y1,why\na_1.png,1,2,3,4,somebody else\n")
    (image,) = read_annotations(tmp_path)
    assert image.name == "a_1.png" and image.source == "a"
    assert image.instances.shape == (2, 9, 2) and image.visible.shape == (2, 9)
    np.testing.assert_array_equal(image.instances[0], list(FACE.values()))
    assert not image.visible[0, 8] and image.visible[0, :8].all()
    assert np.isnan(image.instances[1, 8]).all() and not image.visible[1, 8]
    np.testing.assert_array_equal(image.ignore, [[1, 2, 3, 4]])
    np.testing.assert_allclose(image.reference_length, np.hypot(3, 1))


@pytest.mark.parametrize(
    "row, message",
    [
        ("b.png,1,2,3,4", r"ignore\.csv, line 2: image='b\.png' is not in this folder"),
        (",1,2,3,4", "line 2: image='' is not in this folder"),
        ("a_1.png,1,2,3,two", "line 2: y1='two' is not valid; expected a number"),
        (
            "a_1.png,3,2,1,4",
            r"line 2: the box \(3, 2, 1, 4\) is not valid; expected x0 < x1 and y0 < y1",
        ),
    ],
)
def test_boxes_that_would_hide_nothing_are_refused(tmp_path, row, message):
    write_csv(tmp_path, rows())
    (tmp_path / "ignore.csv").write_text(f"image,x0,y0,x1,y1\n{row}\n")
    with pytest.raises(ValueError, match=message):
        read_annotations(tmp_path)


def test_boxes_of_a_photograph_without_annotated_faces(tmp_path):
    """They belong to it, although it is not read: what a converter writes for a photograph of one
    profile."""
    write_csv(tmp_path, rows())
    cv2.imwrite(str(tmp_path / "profile.png"), np.zeros((60, 80, 3), np.uint8))
    (tmp_path / "ignore.csv").write_text("image,x0,y0,x1,y1\nprofile.png,1,2,3,4\n")
    (image,) = read_annotations(tmp_path)
    assert image.name == "a_1.png" and len(image.ignore) == 0


def test_mirror_names():
    opposite = FACES.opposite
    assert (
        opposite["left_eye"] == "right_eye"
        and opposite["right_ear"] == "left_ear"
        and opposite["chin"] == "chin"
    )


@pytest.mark.parametrize(
    "lines, message",
    [
        (["a_1.png,0,nose,1,2,1"], "line 2: keypoint='nose' is unknown; expected one of left_eye"),
        (["a_1.png,0,left_eye,x,2,1"], "line 2: x='x' is not valid; expected a number"),
        (["a_1.png,0,left_eye,nan,2,1"], "line 2: x='nan' is not valid; expected a number"),
        (["a_1.png,0,left_eye,1,2,yes"], "visible='yes' is not valid; expected 0 or 1"),
        (
            ["a_1.png,0,left_eye,1,2,1"] * 2,
            "line 3: left_eye of face 0 in a_1.png is annotated twice",
        ),
        (
            ["a_1.png,0,left_eye,99999,2,1"],
            "line 2: left_eye at .99999, 2. lies outside the image of 80 x 60 pixels",
        ),
        (
            ["a_1.png,0,left_eye,1,2,1", "a_1.png,0,chin,-500,2,0"],
            "line 3: chin at .-500, 2. lies outside",
        ),
        (
            ["a_1.png,0,left_eye,1,2,1"],
            "face 0 has no reference length; expected left_eye and right_eye",
        ),
        ([], "contains no annotated images"),
    ],
)
def test_csv_damage(tmp_path, lines, message):
    write_csv(tmp_path, lines)
    with pytest.raises(ValueError, match=message) as error:
        read_annotations(tmp_path)
    assert "\n" not in str(error.value)


def test_missing_things(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        read_annotations(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"expected keypoints\.csv"):
        read_annotations(tmp_path)
    with pytest.raises(ValueError, match="no image"):
        list_images(tmp_path)
    write_csv(tmp_path, rows(image="gone.png"))
    with pytest.raises(ValueError, match=r"gone\.png: the annotated image does not exist"):
        read_annotations(tmp_path)
    write_csv(tmp_path, rows(), header="image,face,keypoint,x,why,visible")
    with pytest.raises(ValueError, match="missing columns y"):
        read_annotations(tmp_path)
    assert [p.name for p in list_images(tmp_path)] == ["a_1.png"]


def landmarks():
    """68 points, counted from 0, of a frontal face in a frame of 200 x 200."""
    xy = np.random.default_rng(0).uniform(20, 180, (68, 2))
    xy[0], xy[16], xy[8], xy[27], xy[36], xy[45] = (
        (40, 80),
        (160, 80),
        (100, 180),
        (100, 80),
        (70, 80),
        (130, 80),
    )
    return xy


def write_pts(path, xy):
    path.write_text(
        "version: 1\nn_points: 68\n{\n" + "\n".join(f"{x + 1} {y + 1}" for x, y in xy) + "\n}\n"
    )


def test_pts(tmp_path):
    cv2.imwrite(str(tmp_path / "f.jpg"), np.zeros((200, 200, 3), np.uint8))
    xy = landmarks()
    # 3 px from the eye corner, 3 % of nasion to chin: the ear of a head turned away
    xy[16] = 133, 80
    xy[8] = 100, 210  # below the frame
    write_pts(tmp_path / "f.pts", xy)
    (image,) = read_annotations(tmp_path)
    expected = [
        xy[42:48].mean(0),
        xy[36:42].mean(0),
        xy[35],
        xy[31],
        xy[54],
        xy[48],
        xy[16],
        xy[0],
        xy[8],
    ]
    np.testing.assert_allclose(image.instances[0], expected, atol=1e-9)
    assert dict(zip(KEYPOINTS, image.visible[0])) == {
        n: n not in ("left_ear", "chin") for n in KEYPOINTS
    }


def test_pts_damage(tmp_path):
    write_pts(tmp_path / "f.pts", landmarks())
    with pytest.raises(ValueError, match="no image with the same name"):
        read_annotations(tmp_path)
    cv2.imwrite(str(tmp_path / "f.png"), np.zeros((200, 200, 3), np.uint8))
    write_pts(tmp_path / "f.pts", landmarks()[:20])
    with pytest.raises(ValueError, match="the file has 20 points; expected the 68"):
        read_annotations(tmp_path)
    (tmp_path / "f.pts").write_text("hello")
    with pytest.raises(ValueError, match="not an iBUG"):
        read_annotations(tmp_path)


def photograph(path, seed=0, size=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(
        str(path), np.random.default_rng(seed).integers(0, 255, (size, size, 3)).astype(np.uint8)
    )


def test_nested_300w(tmp_path):
    """Folders as in the archives of 300-W: collections, one photograph with files of several faces,
    boxes to leave out."""
    photograph(tmp_path / "helen" / "trainset" / "1_1.jpg", 1)
    photograph(tmp_path / "helen" / "trainset" / "1_2.jpg", 2)  # another crop, no copy
    photograph(tmp_path / "afw" / "7_1.jpg", 3)
    photograph(tmp_path / "afw" / "7_2.jpg", 3)  # the same photograph again
    photograph(tmp_path / "300W" / "01_Indoor" / "indoor_001.png", 4)
    for place in ("helen/trainset/1_1", "helen/trainset/1_2", "afw/7_1", "afw/7_2"):
        write_pts(tmp_path / f"{place}.pts", landmarks())
    write_pts(tmp_path / "afw" / "7_2.pts", landmarks() + 5)
    # faces of one file, numbered
    write_pts(tmp_path / "300W" / "01_Indoor" / "indoor_001_1.pts", landmarks())
    write_pts(tmp_path / "300W" / "01_Indoor" / "indoor_001_2.pts", landmarks() - 5)
    (tmp_path / "300W" / "01_Indoor" / "._indoor_001.pts").write_bytes(b"left by an archive")
    (tmp_path / "afw" / "ignore.csv").write_text("image,x0,y0,x1,y1\n7_2.jpg,1,2,3,4\n")
    # of the outermost folder: both count
    (tmp_path / "ignore.csv").write_text("image,x0,y0,x1,y1\nafw/7_2.jpg,5,6,7,8\n")
    images = read_annotations(tmp_path)
    assert [(i.path.name, len(i.instances), i.source) for i in images] == [
        ("indoor_001.png", 2, "300W"),
        ("7_1.jpg", 2, "afw"),
        ("1_1.jpg", 1, "helen"),
        ("1_2.jpg", 1, "helen"),
    ]
    np.testing.assert_allclose(images[1].instances[1], images[1].instances[0] + 5)
    np.testing.assert_array_equal(images[1].ignore, [[5, 6, 7, 8], [1, 2, 3, 4]])
    assert (
        images[1].mirrored(200).source == "afw"
        and [i.source for i in read_annotations(tmp_path / "helen")] == ["trainset"] * 2
    )


def test_coco(tmp_path):
    cv2.imwrite(str(tmp_path / "c.png"), np.zeros((60, 80, 3), np.uint8))
    cv2.imwrite(str(tmp_path / "empty.png"), np.zeros((60, 80, 3), np.uint8))
    names = ["nose", "left_eye", "right_eye", "left_ear", "right_ear"]
    coco = {
        "images": [{"id": 7, "file_name": "c.png"}, {"id": 8, "file_name": "empty.png"}],
        "categories": [{"id": 1, "keypoints": names}],
        "annotations": [
            {
                "image_id": 7,
                "category_id": 1,
                "keypoints": [1, 2, 2, 30, 10, 2, 20, 11, 1, 40, 12, 2, 0, 0, 0],
            },
            {"image_id": 7, "category_id": 1, "keypoints": [0] * 15, "bbox": [5, 6, 7, 8]},
        ],
    }
    (tmp_path / "k.json").write_text(json.dumps(coco))
    image, empty = read_annotations(tmp_path)
    assert empty.instances.shape == (0, 9, 2)
    face = dict(zip(KEYPOINTS, image.instances[0].tolist()))
    assert (
        face["left_eye"] == [30, 10]
        and face["right_eye"] == [20, 11]
        and face["left_ear"] == [40, 12]
    )
    assert np.isnan(face["right_ear"]).all() and np.isnan(face["chin"]).all()
    assert dict(zip(KEYPOINTS, image.visible[0])) == {
        n: n in ("left_eye", "left_ear") for n in KEYPOINTS
    }
    np.testing.assert_array_equal(image.ignore, [[5, 6, 12, 14]])
    (tmp_path / "k.json").write_text('{"images": []}')
    with pytest.raises(ValueError, match=r"k\.json: the file is not a valid annotation file"):
        read_annotations(tmp_path)


@pytest.mark.data
def test_real_data(data_dir):
    train, test = (
        read_annotations(data_dir / "faces/train"),
        read_annotations(data_dir / "faces/test"),
    )
    assert len(train) == 908 and len(test) == 291 and sum(len(i.instances) for i in test) == 320
    assert sum(len(i.ignore) for i in test) == 57
    assert min(i.reference_length.min() for i in train + test) > 20
    assert {i.source for i in test} == {"helen", "lfpw", "afw"}


def test_a_deep_json_is_one_line(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="not a valid annotation file"):
        read_annotations(tmp_path)


def test_checkpoints_know_the_content(tmp_path):
    write_csv(tmp_path, rows())
    before = content_of(read_annotations(tmp_path), [])
    assert content_of(read_annotations(tmp_path), []) == before
    write_csv(tmp_path, [row.replace(",20.0,", ",25.0,") for row in rows()])
    moved = content_of(read_annotations(tmp_path), [])
    cv2.imwrite(str(tmp_path / "a_1.png"), np.ones((60, 80, 3), np.uint8))
    assert len({before, moved, content_of(read_annotations(tmp_path), [])}) == 3
