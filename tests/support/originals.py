"""Writes data sets as they are distributed: the layouts that ``annealed data convert`` and the
readers accept."""

import bz2
import gzip
import zipfile

import numpy as np
import scipy.sparse as sp
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file


def _parent(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_nips2003(folder, name, train, valid):
    """Dense rows of integers, or CSR rows: "column:value", of ones alone (dorothea) columns; the
    archive nests folders."""
    for part, (X, y) in {"train": train, "valid": valid}.items():
        below = folder / name.upper() / name.upper()
        path = _parent(below / f"{name}_{part}.data")
        if sp.issparse(X):
            rows = [(X.indices[a:b] + 1, X.data[a:b]) for a, b in zip(X.indptr, X.indptr[1:])]
            ones = name == "dorothea"
            lines = [
                " ".join(str(c) if ones else f"{c}:{v:g}" for c, v in zip(*row)) + " "
                for row in rows
            ]
        else:
            lines = [" ".join(map(str, row)) + " " for row in np.asarray(X).tolist()]
        path.write_text("\n".join(lines) + "\n")
        labels = (
            folder / name.upper() / f"{name}_{part}.labels"
            if part == "valid"
            else below / f"{name}_{part}.labels"
        )
        labels.write_text("".join(f"{label}\n" for label in np.asarray(y).tolist()))


def write_ionosphere(folder, X, y):
    rows = [
        ",".join(f"{v:g}" for v in row) + ("," + ("g" if label > 0 else "b"))
        for row, label in zip(X, y)
    ]
    _parent(folder / "ionosphere.data").write_text("\n".join(rows) + "\n")


def write_secom(folder, X, y):
    """Missing numbers are NaN; labels are followed by times."""
    rows = [" ".join("NaN" if np.isnan(v) else f"{v:.4f}" for v in row) for row in X]
    _parent(folder / "secom.data").write_text("\n".join(rows) + "\n")
    labels = [
        f'{label} "19/07/2008 {i // 60 % 24:02d}:{i % 60:02d}:00"' for i, label in enumerate(y)
    ]
    (folder / "secom_labels.data").write_text("\n".join(labels) + "\n")


def write_farm_ads(folder, X, y):
    """Columns from 0, all values 1."""
    dump_svmlight_file(X, y, str(_parent(folder / "farm-ads-vect")), zero_based=True)


def write_newsgroups(folder, parts):
    """Texts by part ("train", "test") and newsgroup."""
    for part, groups in parts.items():
        for group, texts in groups.items():
            for number, text in enumerate(texts):
                _parent(
                    folder / f"20news-bydate-{part}" / group / f"{60_000 + number}"
                ).write_bytes(text.encode("latin-1"))


def write_usps(folder, train, test):
    for part, (X, digits) in {"train": train, "test": test}.items():
        lines = [
            f"{d:.4f} " + " ".join(f"{v:.4f}" for v in row) + " \n" for row, d in zip(X, digits)
        ]
        with gzip.open(_parent(folder / f"zip.{part}.gz"), "wt") as file:
            file.writelines(lines)


def write_allaml(folder, X, y):
    """scikit-feature's file: 1 for ALL, 2 for AML."""
    savemat(
        _parent(folder / "ALLAML.mat"),
        {"X": np.asarray(X, float), "Y": np.where(y > 0, 2, 1)[:, None]},
    )


def write_libsvm(folder, name, train, test, compress=False):
    for ending, (X, y) in {"": train, ".t": test}.items():
        if X is None:
            continue
        if compress:
            with bz2.open(_parent(folder / f"{name}{ending}.bz2"), "wb") as file:
                dump_svmlight_file(X, y, file, zero_based=False)
        else:
            dump_svmlight_file(X, y, str(_parent(folder / f"{name}{ending}")), zero_based=False)


def write_letor(folder, parts):
    """Folds of LETOR 4.0 from five lists of lines ``grade qid:Q i:value ...``."""
    for fold in range(5):
        below = folder / "MQ2008" / f"Fold{fold + 1}"
        train = [line for i in range(3) for line in parts[(fold + i) % 5]]
        for name, lines in {
            "train": train,
            "vali": parts[(fold + 3) % 5],
            "test": parts[(fold + 4) % 5],
        }.items():
            rows = [
                f"{line.strip()} #docid = GX000-00-{i} inc = 1 prob = 0.5"
                for i, line in enumerate(lines)
            ]
            _parent(below / f"{name}.txt").write_text("\n".join(rows) + "\n")


def write_lightgbm(folder, halves):
    """``rank.train`` and its queries, from lists of lines ``grade qid:Q i:value ...``."""
    for half, lines in halves.items():
        fields = [line.split() for line in lines]
        _parent(folder / f"rank.{half}").write_text(
            "".join(" ".join([f[0], *f[2:]]) + "\n" for f in fields)
        )
        _, sizes = np.unique([int(f[1][4:]) for f in fields], return_counts=True)
        (folder / f"rank.{half}.query").write_text("".join(f"{n}\n" for n in sizes))


def write_truth(folder, name, tracks, labels):
    """A sequence of Hopkins155: homogeneous pixels ``y`` (3, P, F), labels ``s`` (P, 1) from 1."""
    y = np.concatenate([tracks.transpose(2, 1, 0), np.ones((1, tracks.shape[1], tracks.shape[0]))])
    content = {
        "y": y,
        "s": np.asarray(labels)[:, None] + 1.0,
        "points": tracks.shape[1],
        "frames": tracks.shape[0],
    }
    savemat(_parent(folder / name / f"{name}_truth.mat"), content)


def zip_tree(folder, archive):
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, f"Hopkins155/{path.relative_to(folder)}")


def write_ordonez(folder, home, events, activities):
    """Tabs between the fields, two now and then; two lines of header."""
    titles = {
        "Sensors": "Start time\tEnd time\tLocation\tType\tPlace",
        "ADLs": "Start time\tEnd time\tActivity",
    }
    for kind, rows in {"Sensors": events, "ADLs": activities}.items():
        title = titles[kind]
        lines = [
            title,
            "-" * len(title),
            *("\t\t".join(row[:2]) + "\t\t" + "\t".join(row[2:]) + "\t" for row in rows),
        ]
        name = f"{home[0].upper()}{home[1:]}_{kind}.txt"
        _parent(folder / "UCI ADL Binary Dataset" / name).write_text("\n".join(lines) + "\n")


def points68(nine):
    """68 points of the 300-W scheme from which the nine keypoints (9, 2) follow."""
    eyes, mouth = nine[:2], nine[4:6]
    xy = np.tile(nine.mean(axis=0), (68, 1))
    xy[42:48], xy[36:42], xy[35], xy[31], xy[54], xy[48] = nine[:6]
    xy[16], xy[0], xy[8] = nine[6:]
    xy[27] = eyes.mean(axis=0) + 0.05 * (mouth.mean(axis=0) - eyes.mean(axis=0))
    return xy


def write_pts(path, xy):
    """An iBUG file: pixels are counted from 1."""
    rows = "".join(f"{x + 1:.6f} {y + 1:.6f}\n" for x, y in xy)
    _parent(path).write_text(f"version: 1\nn_points:  {len(xy)}\n{{\n{rows}}}\n")
