"""Exactly k columns for many classes: own error and seconds, compared with other selectors in one
run.

python benchmarks/many_classes.py choose|measure [-k 20 50] [--folds 3] [--data DATA] [--only NAME]

The data sets are simulated here; nothing is downloaded. Those of ``choose`` may be used to develop
a rule; those of ``measure`` come from other generators, or from the same generator with other
classes, noise and seeds, and are run once, at the end. DATA adds ``usps`` to ``measure``.

Each selector names k columns on the training rows of a fold. "own" is the error of the fitted
estimator itself; the columns of every other selector are fitted by multinomial logistic regression
with a ridge penalty chosen by cross-validation. Error: 1 - balanced accuracy, in percent, mean over
the folds, by k; the column of seconds has those of the smallest k. Rows are stored in the file
--out, from which an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier, FSARegressor
from common import print_head, print_line
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import LinearSVC

Table = tuple[np.ndarray, np.ndarray]


def moved(picture: np.ndarray, rng: np.random.Generator, spread: float = 1.0) -> np.ndarray:
    """Rotate, shear, scale and shift one image at random."""
    angle = rng.normal(0, 0.15 * spread)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, rng.normal(0, 0.1 * spread)], [0, 1]])
    matrix /= np.exp(rng.normal(0, 0.1 * spread))
    centre = (np.array(picture.shape) - 1) / 2
    offset = centre - matrix @ centre + rng.normal(0, 0.7 * spread, 2)
    return ndimage.affine_transform(picture, matrix, offset, order=1)


def shapes(n_classes: int = 30, n: int = 1500, side: int = 16, seed: int = 0) -> Table:
    """Star-shaped outlines with random Fourier radii, under changes of view and light."""
    rng = np.random.default_rng(seed)
    grid = np.mgrid[:side, :side] - (side - 1) / 2
    radius, angle = np.hypot(*grid), np.arctan2(*grid)
    order = np.arange(1, 6)
    outlines = []
    for _ in range(n_classes):
        turned = np.cos(order[:, None, None] * angle + rng.uniform(0, 6.3, 5)[:, None, None])
        waves = np.tensordot(rng.normal(0, 1.2, 5) / order, turned, axes=1)
        outlines.append(1 / (1 + np.exp(-2 * (side / 3.2 + waves - radius))))
    y = rng.integers(n_classes, size=n)
    light = grid[0] / side
    X = np.array(
        [
            moved(outlines[label], rng, 0.6) * rng.uniform(0.5, 1.5) + light * rng.normal(0, 0.5)
            for label in y
        ]
    )
    return (X + rng.normal(0, 0.15, X.shape)).reshape(n, -1), y


def spectra(
    n_classes: int = 30,
    n: int = 1200,
    n_bands: int = 400,
    shift: float = 2.0,
    noise: float = 0.05,
    seed: int = 0,
) -> Table:
    """Sums of peaks at class-specific positions, each spectrum shifted, with a baseline and
    noise."""
    rng = np.random.default_rng(seed)
    bands = np.arange(n_bands)
    shared = rng.uniform(0, n_bands, 12)
    places = [
        np.concatenate([rng.choice(shared, 6, replace=False), rng.uniform(0, n_bands, 3)])
        for _ in range(n_classes)
    ]
    heights = rng.uniform(0.3, 1.0, (n_classes, 9))
    y = rng.integers(n_classes, size=n)
    moves = rng.normal(0, shift, n)
    X = np.array(
        [
            (heights[label] * rng.lognormal(0, 0.15, 9))
            @ np.exp(-0.5 * ((bands - places[label][:, None] - move) / 6.0) ** 2)
            for label, move in zip(y, moves)
        ]
    )
    slope = rng.normal(0, 0.2, (n, 1)) * (bands / n_bands) + rng.normal(0, 0.1, (n, 1))
    return X + slope + rng.normal(0, noise, X.shape), y


def letters(n: int = 2600, side: int = 16, seed: int = 0) -> Table:
    """The 26 capitals of matplotlib's fonts, rendered at 16 x 16 and slightly shifted."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    fonts = [
        path
        for path in sorted(folder.glob("*.ttf"))
        if path.name.startswith(("DejaVuS", "STIXGeneral", "cmr", "cmss", "cmtt", "cmb"))
    ]
    rng = np.random.default_rng(seed)
    drawn = {}
    for font_path in fonts:
        font = ImageFont.truetype(str(font_path), 3 * side)
        for letter in range(26):
            canvas = Image.new("L", (4 * side, 4 * side))
            ImageDraw.Draw(canvas).text(
                (2 * side, 2 * side), chr(65 + letter), 255, font, anchor="mm"
            )
            drawn[font_path, letter] = (
                np.asarray(canvas.resize((side, side), Image.Resampling.BOX), float) / 255
            )
    y = rng.integers(26, size=n)
    X = np.array([moved(drawn[fonts[rng.integers(len(fonts))], label], rng, 0.7) for label in y])
    return (X + rng.normal(0, 0.05, X.shape)).reshape(n, -1), y


def topics(
    n_classes: int = 20, n: int = 2000, n_words: int = 1500, length: int = 60, seed: int = 0
) -> Table:
    """Counts of words, logarithms of 1 + count: a topic raises the frequency of some words above a
    common law."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, n_words + 1) ** 0.9
    law = np.repeat(common[None, :], n_classes, axis=0)
    for topic in law:
        topic[rng.choice(n_words, 25, replace=False)] *= rng.uniform(3, 20, 25)
    law /= law.sum(axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n)
    blend = rng.beta(3, 2, n)[:, None]
    mixed = blend * law[y] + (1 - blend) * common / common.sum()
    return np.log1p(np.array([rng.multinomial(length, p) for p in mixed], float)), y


def factors(
    n_classes: int = 25,
    n: int = 1500,
    n_columns: int = 400,
    n_factors: int = 20,
    noise: float = 1.0,
    seed: int = 0,
) -> Table:
    """Classes are centres in a space of latent factors; the columns are correlated views of it."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1.3, (n_classes, n_factors))
    loadings = rng.normal(0, 1, (n_factors, n_columns)) * (rng.random((n_factors, n_columns)) < 0.2)
    y = rng.integers(n_classes, size=n)
    latent = centres[y] + rng.normal(0, 0.6, (n, n_factors))
    return latent @ loadings + rng.normal(0, noise, (n, n_columns)), y


def usps(data: Path) -> Table:
    """1,500 of the training rows of ten handwritten digits, 16 x 16."""
    with np.load(data / "usps" / "usps_zip.npz") as table:
        X, y = table["X_train"].astype(float), table["digit_train"].astype(int)
    rows = np.random.default_rng(17).choice(len(y), 1500, replace=False)
    return X[rows], y[rows]


SETS: dict[str, dict[str, Callable[[], Table]]] = {
    "choose": {
        "digits": lambda: load_digits(return_X_y=True),
        "shapes 30": lambda: shapes(30, seed=1),
        "spectra 30": lambda: spectra(30, seed=2),
        "topics 20": lambda: topics(20, seed=3),
        "factors 25": lambda: factors(25, seed=4),
    },
    "measure": {
        "letters 26": lambda: letters(seed=11),
        "shapes 60": lambda: shapes(60, n=2400, side=20, seed=12),
        "spectra 20, shifted": lambda: spectra(20, n=800, shift=4.0, noise=0.08, seed=13),
        "topics 40": lambda: topics(40, n=2400, length=90, seed=14),
        "factors 50": lambda: factors(50, n=2000, n_factors=30, seed=15),
        "factors 100": lambda: factors(
            100, n=3000, n_columns=600, n_factors=40, noise=1.5, seed=16
        ),
    },
}


def of_fsa(k: int, X: np.ndarray, y: np.ndarray) -> FSAClassifier:
    return FSAClassifier(k).fit(X, y)


def of_indicators(k: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return least squares on one-hot classes, with one selection for all outputs."""
    indicators = LabelBinarizer().fit_transform(y).astype(float)
    return FSARegressor(k).fit(X, indicators).get_support(indices=True)


def of_fastcan(k: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from fastcan import FastCan

    return FastCan(k, verbose=0).fit(X, LabelBinarizer().fit_transform(y).astype(float)).indices_


def of_rfe(k: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.flatnonzero(
        RFE(LinearSVC(C=0.01), n_features_to_select=k, step=0.1).fit(X, y).support_
    )


def of_l1(k: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the k columns with the largest coefficients at the first penalty, from strong to weak,
    with k columns."""
    model = LogisticRegression(
        C=1e-3, l1_ratio=1, solver="saga", warm_start=True, max_iter=60, tol=1e-3
    )
    for C in np.geomspace(1e-3, 10, 25):
        strength = np.abs(model.set_params(C=C).fit(X, y).coef_).max(axis=0)
        if np.count_nonzero(strength) >= k:
            break
    return np.argsort(-strength, kind="stable")[:k]


SELECTORS = {
    "FSA": of_fsa,
    "indicators": of_indicators,
    "fastcan": of_fastcan,
    "RFE": of_rfe,
    "L1": of_l1,
}


def error(y: np.ndarray, predicted: np.ndarray) -> float:
    return 100 * (1 - balanced_accuracy_score(y, predicted))


def rows_of(name: str, table: Table, jobs: list[tuple[int, str]], n_folds: int) -> Iterator[dict]:
    """Yield one row for each size and selector: errors of the folds, seconds of a selection."""
    X, y = table
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
    for k, selector in jobs:
        errors, seconds = [], []
        for train, test in folds:
            scaler = StandardScaler().fit(X[train])
            Z, T = scaler.transform(X[train]), scaler.transform(X[test])
            start = time.process_time()
            chosen = SELECTORS[selector](k, Z, y[train])
            seconds.append(time.process_time() - start)
            if not isinstance(chosen, FSAClassifier):
                refit = LogisticRegressionCV(
                    Cs=[0.01, 0.1, 1, 10],
                    cv=3,
                    max_iter=200,
                    tol=1e-3,
                    l1_ratios=(0,),
                    use_legacy_attributes=False,
                )
                predicted = refit.fit(Z[:, chosen], y[train]).predict(T[:, chosen])
            else:
                predicted = chosen.predict(T)
            errors.append(error(y[test], predicted))
        yield {
            "set": name,
            "k": k,
            "selector": selector,
            "error": errors,
            "seconds": float(np.median(seconds)),
        }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=list(SETS))
    parser.add_argument("-k", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", help="run only data sets with this prefix")
    parser.add_argument("--selectors", nargs="+", choices=list(SELECTORS), default=list(SELECTORS))
    parser.add_argument("--out", type=Path, help="file of JSON lines to which each row is appended")
    arguments = parser.parse_args(argv)
    tables = dict(SETS[arguments.part])
    if arguments.part == "measure" and arguments.data is not None:
        tables["usps 10"] = lambda: usps(arguments.data)
    lines = (
        arguments.out.read_text().splitlines()
        if arguments.out is not None and arguments.out.exists()
        else []
    )
    finished = {(row["set"], row["k"], row["selector"]) for row in map(json.loads, lines)}
    rows = [json.loads(line) for line in lines]
    print_head("set", *arguments.selectors, "seconds")
    for name, make in tables.items():
        left = [
            (k, s) for s in arguments.selectors for k in arguments.k if (name, k, s) not in finished
        ]
        if arguments.only is not None and not name.startswith(arguments.only):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in rows_of(name, make(), left, arguments.folds):
                rows.append(row)
                if arguments.out is not None:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
        of_set = {(row["selector"], row["k"]): row for row in rows if row["set"] == name}
        cells = [
            " / ".join(f"{np.mean(of_set[s, k]['error']):.1f}" for k in arguments.k)
            for s in arguments.selectors
        ]
        seconds = (f"{of_set[s, min(arguments.k)]['seconds']:.2g}" for s in arguments.selectors)
        print_line(name, *cells, ", ".join(seconds))


if __name__ == "__main__":
    main()
