"""AFLW, LFPW and HELEN in their original layouts: one face annotated three ways, nine keypoints."""

import sqlite3

import cv2
import numpy as np
import pytest
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed_experiments.conversion.registry import convert
from helpers import run

# An upright face in a frame of 200 x 200: the subject's left is on the right-hand side.
FACE = {
    "left_eye": (120, 80),
    "right_eye": (80, 80),
    "left_nose": (110, 110),
    "right_nose": (90, 110),
    "left_mouth": (115, 130),
    "right_mouth": (85, 130),
    "left_ear": (150, 90),
    "right_ear": (50, 90),
    "chin": (100, 160),
}
EXPECTED = np.array([FACE[name] for name in KEYPOINTS], float)


def photograph(path, size=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((size, size, 3), 90, np.uint8))


def write_aflw(folder, faces):
    """Faces: (path, {point: (x, y)}, box). "Left" in the names is the viewer's."""
    names = sorted({name for _, points, _ in faces for name in points})
    (folder / "data").mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(folder / "data" / "aflw.sqlite")
    database.executescript(
        """CREATE TABLE Faces (face_id INTEGER, file_id TEXT, db_id TEXT);
        CREATE TABLE FaceImages (image_id INTEGER, db_id TEXT, file_id TEXT, filepath TEXT,
            bw INTEGER,
  width INTEGER);
        CREATE TABLE FaceRect (face_id INTEGER, x REAL, y REAL, w REAL, h REAL,
  annot_type_id INTEGER);
        CREATE TABLE FeatureCoords (face_id INTEGER, feature_id INTEGER, x REAL, y REAL);
        CREATE TABLE FeatureCoordTypes (feature_id INTEGER, descr TEXT, code TEXT, x REAL, y REAL,
  z REAL);"""
    )
    database.executemany(
        "INSERT INTO FeatureCoordTypes VALUES (?, ?, '', 0, 0, 0)", list(enumerate(names))
    )
    for number, path in enumerate(dict.fromkeys(path for path, _, _ in faces)):
        database.execute(
            "INSERT INTO FaceImages VALUES (?, 'flickr', ?, ?, 0, 200)", (number, path, path)
        )
    for number, (path, points, box) in enumerate(faces):
        database.execute("INSERT INTO Faces VALUES (?, ?, 'flickr')", (number, path))
        database.execute("INSERT INTO FaceRect VALUES (?, ?, ?, ?, ?, 0)", (number, *box))
        rows = [(number, names.index(name), x, y) for name, (x, y) in points.items()]
        database.executemany("INSERT INTO FeatureCoords VALUES (?, ?, ?, ?)", rows)
    database.commit()
    database.close()


def of_aflw():
    points = {
        "LeftEar": "right_ear",
        "RightEar": "left_ear",
        "NoseLeft": "right_nose",
        "NoseRight": "left_nose",
        "MouthLeftCorner": "right_mouth",
        "MouthRightCorner": "left_mouth",
        "ChinCenter": "chin",
    }
    found = {name: FACE[keypoint] for name, keypoint in points.items()}
    for side, keypoint in (("Left", "right_eye"), ("Right", "left_eye")):
        x, y = FACE[keypoint]
        found |= {
            f"{side}EyeLeftCorner": (x - 8, y),
            f"{side}EyeRightCorner": (x + 8, y),
            f"{side}EyeCenter": (x + 1, y),
        }
    return found | {"NoseCenter": (100, 105), "LeftBrowCenter": (80, 60)}


def test_aflw(tmp_path):
    folder = tmp_path / "aflw"
    for name in ("0/a.jpg", "2/b.jpg"):
        photograph(folder / "data" / "flickr" / name)
    profile = {name: xy for name, xy in of_aflw().items() if not name.startswith("Right")}
    hidden = {
        name: xy for name, xy in of_aflw().items() if name not in ("LeftEar", "RightEyeLeftCorner")
    }
    write_aflw(
        folder,
        [
            ("0/a.jpg", of_aflw(), (40, 40, 120, 130)),
            ("0/a.jpg", profile, (5, 6, 30, 40)),
            ("2/b.jpg", hidden, (40, 40, 120, 130)),
            ("3/gone.jpg", of_aflw(), (0, 0, 9, 9)),
        ],
    )
    out, notes = convert("aflw", folder, tmp_path / "out")
    one, two = read_annotations(out)
    assert one.path.resolve() == (
        folder / "data/flickr/0/a.jpg"
    ).resolve() and one.instances.shape == (1, 9, 2)
    np.testing.assert_allclose(one.instances[0], EXPECTED)
    assert one.visible.all()
    np.testing.assert_allclose(one.ignore, [[5, 6, 35, 46]])  # the profile has one eye only
    np.testing.assert_allclose(
        two.instances[0, 0], (121, 80)
    )  # the centre stands for corners that are not both there
    assert np.isnan(two.instances[0, KEYPOINTS.index("right_ear")]).all()
    assert "1 annotated faces were skipped" in notes[-1] and "1 faces without both eyes" in notes[1]


def write_lfpw(folder, rows):
    names = [
        "left_eye_out",
        "left_eye_in",
        "right_eye_in",
        "right_eye_out",
        "left_eye_pupil",
        "left_nose_out",
        "right_nose_out",
        "left_mouth_out",
        "right_mouth_out",
        "left_ear_top",
        "left_ear_canal",
        "right_ear_canal",
        "chin",
    ]
    header = ["imgurl", "worker", *(f"{name}_{c}" for name in names for c in "xyt")]
    lines = ["\t".join(header)]
    for address, worker, points in rows:
        cells = [str(v) for name in names for v in points.get(name, ("", "", ""))]
        lines.append("\t".join([address, worker, *cells]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kbvt_lfpw_v1_train.csv").write_text("\n".join(lines) + "\n")


def of_lfpw(ear_type=0):
    points = {
        "left_nose_out": "right_nose",
        "right_nose_out": "left_nose",
        "left_mouth_out": "right_mouth",
        "right_mouth_out": "left_mouth",
        "left_ear_canal": "right_ear",
        "right_ear_canal": "left_ear",
        "chin": "chin",
    }
    found = {
        name: (*FACE[keypoint], ear_type if "ear" in name else 1)
        for name, keypoint in points.items()
    }
    for side, keypoint, sign in (("left", "right_eye", -1), ("right", "left_eye", 1)):
        x, y = FACE[keypoint]
        found |= {f"{side}_eye_out": (x + 8 * sign, y, 0), f"{side}_eye_in": (x - 8 * sign, y, 0)}
    return found


def test_lfpw(tmp_path):
    folder = tmp_path / "lfpw"
    photograph(folder / "images" / "some_one.jpg")
    rows = [
        ("http://a.org/x/some_one.jpg", "worker_1", of_lfpw()),
        ("http://a.org/x/some_one.jpg", "average", of_lfpw(ear_type=2)),
        ("http://a.org/x/gone.jpg", "average", of_lfpw()),
    ]
    write_lfpw(folder, rows)
    out, notes = convert("lfpw", folder, tmp_path / "out")
    (image,) = read_annotations(out)
    np.testing.assert_allclose(image.instances[0], EXPECTED)
    assert dict(zip(KEYPOINTS, image.visible[0])) == {name: "ear" not in name for name in KEYPOINTS}
    assert "1 annotated faces were skipped" in notes[-1]
    (folder / "kbvt_lfpw_v1_train.csv").write_text("imgurl,worker\n")
    with pytest.raises(ValueError, match="expected the tab-separated LFPW table"):
        convert("lfpw", folder, tmp_path / "other")


def curve(first, last, n, bend=(0, 0)):
    t = np.linspace(0, 1, n)[:, None]
    return np.array(first) * (1 - t) + np.array(last) * t + 4 * t * (1 - t) * np.array(bend)


def circle(centre, radius, n, squash=1.0):
    t = 2 * np.pi * np.arange(n) / n
    return np.stack(
        [centre[0] + radius * np.cos(t), centre[1] + squash * radius * np.sin(t)], axis=1
    )


def of_helen():
    """Outline, nose, outer and inner lips, eyes, brows: 41, 17, 28, 28, 20, 20, 20, 20 points."""
    middle = np.add(FACE["left_ear"], FACE["right_ear"]) / 2
    jaw = curve(FACE["right_ear"], FACE["left_ear"], 41, np.array(FACE["chin"]) - middle)
    nose = np.concatenate(
        [
            curve((98, 85), FACE["right_nose"], 8),
            curve((94, 114), (106, 114), 1),
            curve(FACE["left_nose"], (102, 85), 8),
        ]
    )
    lips = np.concatenate(
        [
            curve(FACE["right_mouth"], FACE["left_mouth"], 15, (0, -6)),
            curve((113, 131), (87, 131), 13, (0, 8)),
        ]
    )
    parts = [
        jaw,
        nose,
        lips,
        lips,
        circle(FACE["right_eye"], 8, 20, 0.5),
        circle(FACE["left_eye"], 8, 20, 0.5),
    ]
    return np.concatenate([*parts, circle((80, 60), 9, 20, 0.2), circle((120, 60), 9, 20, 0.2)])


@pytest.mark.parametrize("angle", [0, 40, 180])
def test_helen(tmp_path, angle):
    turn = np.deg2rad(angle)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])

    def turned(xy):
        return (np.asarray(xy, float) - 100) @ rotation.T + 100

    photograph(tmp_path / "helen" / "train_1" / "100_1.jpg")
    text = "100_1\r\n" + "".join(f"{x:.5f} , {y:.5f}\r\n" for x, y in turned(of_helen()))
    for number, lines in enumerate([text, text.replace("100_1", "gone")], 1):
        path = tmp_path / "helen" / "annotation" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines, newline="")
    out, notes = convert("helen", tmp_path / "helen", tmp_path / "out")
    (image,) = read_annotations(out)
    np.testing.assert_allclose(image.instances[0], turned(EXPECTED), atol=1.0)
    assert image.visible.all() and "1 annotated faces were skipped" in notes[-1]
    (tmp_path / "helen" / "annotation" / "1.txt").write_text("100_1\n1 , 2\n")
    result = run("data", "convert", "helen", tmp_path / "helen", tmp_path / "other")
    assert result.exit_code == 2 and "expected 194 lines" in result.stderr


def test_no_face_at_all(tmp_path):
    write_lfpw(tmp_path / "lfpw", [("http://a.org/x/gone.jpg", "average", of_lfpw())])
    with pytest.raises(
        ValueError, match=r"no face has both a photograph .*\(1 photographs are missing\)"
    ):
        convert("lfpw", tmp_path / "lfpw", tmp_path / "out")
    (tmp_path / "db" / "data").mkdir(parents=True)
    (tmp_path / "db" / "data" / "aflw.sqlite").write_text("no database" * 100)
    with pytest.raises(ValueError, match="not the AFLW database"):
        convert("aflw", tmp_path / "db", tmp_path / "out")
