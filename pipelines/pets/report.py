"""Figures of an image classifier, as in Figures 4.2, 4.3 and 4.6 of Ma (thesis)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...models.files import write_texts
from ...models.images import HEADS, AdditiveScorer, Explanation, ImageClassifier, metric_on
from ..common.outputs import save_figure
from ..console import markdown_table
from .data import PetFile, Photographs
from .evaluate import COLUMNS, Evaluation, classified

N_WORDS = 12  # number of rows in the figure of words
N_PAIRS = 6
N_PATCHES = 10  # number of patches per word
N_EXPLAINED = 4  # number of photographs of each kind in the figure of evidence
REPORT_FILES = (
    "results.json",
    "table.md",
    "words_*.png",
    "pairs_*.png",
    "component_*.png",
    "evidence_*.png",
)
PATCH = 72  # side of a patch in the figures in pixels
SCALE = 2.0  # width of a patch relative to the keypoint's window in Figure 4.6


class Patches:
    """Patches around visual words in training photographs.

    ``X`` contains the columns of the photographs. Each photograph is read only once.
    """

    def __init__(self, model: ImageClassifier, files: Sequence[PetFile], X: sp.csr_array):
        self.photographs = Photographs(files, model.features.side)
        self.model = model
        self.by_column = X.tocsc()
        self._seen: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def of(self, column: int, n: int) -> list[np.ndarray]:
        """Return patches around a word from the ``n`` photographs in which it is most frequent.

        One patch, of shape (PATCH, PATCH, 3), is cropped from each photograph.
        """
        first, last = self.by_column.indptr[column : column + 2]
        order = np.argsort(-self.by_column.data[first:last], kind="stable")[:n]
        patches = []
        for i in self.by_column.indices[first:last][order]:
            image, columns, windows = self._describe(int(i))
            places = windows[columns == column]
            if len(places):
                x, y, width, height = places[len(places) // 2]
                patches.append(_patch(image, x, y, SCALE * width, SCALE * height))
        return patches

    def _describe(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if i not in self._seen:
            photograph = self.photographs[i]
            self._seen[i] = (np.asarray(photograph.image), *self.model.occurrences(photograph))
        return self._seen[i]


def _patch(image: np.ndarray, x: float, y: float, width: float, height: float) -> np.ndarray:
    """Resize a window to PATCH pixels; outside the image, border pixels are repeated."""
    place = np.array([[width / PATCH, 0, x - width / 2], [0, height / PATCH, y - height / 2]])
    return cv2.warpAffine(
        image,
        place,
        (PATCH, PATCH),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )


def _strip(patches: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Arrange patches side by side, padded with white."""
    white = [np.full((PATCH, PATCH, 3), 255, np.uint8)] * (n - len(patches))
    return np.hstack(
        [np.pad(p, ((2, 2), (2, 2), (0, 0)), constant_values=255) for p in [*patches, *white]]
    )


def _show(axes: Axes, image: np.ndarray, title: str, size: float = 8, **place: Any) -> None:
    axes.imshow(image)
    axes.set_title(title, fontsize=size, **place)
    axes.axis("off")


def draw_words(path: Path, model: ImageClassifier, part: str, patches: Patches) -> None:
    """Draw the strongest words of a part of the classifier, which is "whole" or "heads".

    The figure shows, for each word, patches from training photographs and the class that it
    supports.
    """
    additive = model.scorers[part][0]
    if not (chosen := [int(c) for c in model.selected(part) if c < _n_words(model)][:N_WORDS]):
        return
    names = model.features.get_feature_names_out()
    figure = Figure(figsize=(1.0 * N_PATCHES + 1.5, 1.25 * len(chosen)), layout="constrained")
    for axes, column in zip(np.ravel(figure.subplots(len(chosen), 1)), chosen):
        title = str(names[column])
        if isinstance(additive, AdditiveScorer):
            row = np.flatnonzero(additive.selected == column)
            title += (
                f": {model.classes[int(additive.model.responses[row[0], -1].argmax())]}"
                if len(row)
                else ""
            )
        _show(axes, _strip(patches.of(column, N_PATCHES), N_PATCHES), title, loc="left", pad=2)
    save_figure(path, figure)


def _n_words(model: ImageClassifier) -> int:
    return model.features.n_whole + (
        model.features.n_words if model.features.head_words_ is not None else 0
    )


def draw_pairs(
    path: Path, model: ImageClassifier, part: str, patches: Patches, y: np.ndarray
) -> None:
    """Draw the pairs of words whose products sDist uses, as in Figure 4.6 of Ma (thesis).

    sDist of order 2 is fitted to the selected columns.
    """
    metric = metric_on(patches.by_column.tocsr(), y, model.selected(part), 2)
    if not (pairs := [pair for pair in metric.pairs() if max(pair) < _n_words(model)][:N_PAIRS]):
        return
    names = model.features.get_feature_names_out()
    figure = Figure(figsize=(11, 1.35 * len(pairs)), layout="constrained")
    for row, pair in zip(np.reshape(figure.subplots(len(pairs), 2), (-1, 2)), pairs):
        for axes, column in zip(row, pair):
            _show(
                axes,
                _strip(patches.of(column, N_PATCHES // 2), N_PATCHES // 2),
                str(names[column]),
                loc="left",
                pad=2,
            )
    save_figure(path, figure)


def draw_component(path: Path, values: np.ndarray, labels: Sequence[str], n_bins: int = 30) -> None:
    """Draw the class proportions along a component, as in Figure 4.2 of Ma (thesis).

    The figure shows the difference between the proportions of two classes in each bin of the
    component. ``values`` contains the score of each row on the first principal component of the
    learnt subspace, and ``labels`` contains its class.
    """
    names, codes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    edges = np.histogram_bin_edges(values, n_bins)
    shares = [
        np.histogram(values[codes == c], edges)[0] / max(1, (codes == c).sum()) for c in (0, 1)
    ]
    difference = 100 * (shares[0] - shares[1])
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.bar(
        edges[:-1],
        difference,
        np.diff(edges),
        align="edge",
        color=np.where(difference > 0, "tab:blue", "tab:orange"),
    )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(
        xlabel="first principal component of L x", ylabel=f"% of {names[0]} minus % of {names[1]}"
    )
    save_figure(path, figure)


def draw_evidence(path: Path, explained: Sequence[tuple[str, Explanation]]) -> None:
    """Draw photographs and, below each one, the evidence for (red) and against (blue) its label."""
    figure = Figure(figsize=(3 * len(explained), 5.6), layout="constrained")
    for column, (title, e) in zip(
        np.reshape(figure.subplots(2, len(explained)), (2, -1)).T, explained
    ):
        heat = cv2.GaussianBlur(e.heat, (0, 0), 6.0)
        limit = max(float(np.abs(heat).max()), 1e-12)
        _show(column[0], e.image, title)
        column[1].imshow(e.image.mean(axis=2), cmap="gray", vmin=-60, vmax=320)
        column[1].imshow(heat, cmap="seismic", vmin=-limit, vmax=limit, alpha=0.5)
        column[1].set_title(f"{e.label} {e.probability:.2f}", fontsize=8)
        column[1].axis("off")
    save_figure(path, figure)


def first_component(Z: np.ndarray) -> np.ndarray:
    """Compute the score of each row of a matrix on its first principal component."""
    centred = Z - Z.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[0]


def write_report(
    folder: Path, record: dict[str, Any], model: ImageClassifier, evaluation: Evaluation
) -> None:
    """Write ``table.md``, ``results.json`` and the figures of a report.

    The figures of words require the training photographs.
    """
    rows = ([row[column] for column in COLUMNS] for row in record["rows"])
    text = "# Errors on test photographs\n\n" + markdown_table(COLUMNS.values(), rows)
    if evaluation.breeds:
        breeds = (
            [b["heads"], b["breed"], b["photographs"], b["errors"]] for b in evaluation.breeds
        )
        text += "\n## By breed\n\n" + markdown_table(
            ["head boxes", "breed", "photographs", "errors"], breeds
        )
    write_texts(folder, {"table.md": text, "results.json": record})
    for part in evaluation.probabilities:
        asked, shown = classified(part, evaluation.train), classified(part, evaluation.test)
        files = [f for f, a in zip(evaluation.train, asked) if a]
        y = np.array([model.classes.index(f.label) for f in files if f.label in model.classes])
        if len(files) and len(y) == len(files) and len(np.unique(y)) == len(model.classes):
            X = evaluation.X_train[asked]
            patches = Patches(model, files, X)
            draw_words(folder / f"words_{part}.png", model, part, patches)
            draw_pairs(folder / f"pairs_{part}.png", model, part, patches, y)
            if len(model.classes) == 2:
                metric = metric_on(X, y, model.selected(part), model.settings.max_order)
                component = first_component(metric.transform(evaluation.X_test[shown]))
                labels = [f.label for f, a in zip(evaluation.test, shown) if a]
                draw_component(folder / f"component_{part}.png", component, labels)
        if isinstance(model.scorers[part][0], AdditiveScorer):
            draw_evidence(folder / f"evidence_{part}.png", _explained(model, part, evaluation))


def _explained(
    model: ImageClassifier, part: str, evaluation: Evaluation
) -> list[tuple[str, Explanation]]:
    """Explain the most confident correct predictions for each class, and the most confident
    errors."""
    probabilities = evaluation.probabilities[part]
    y = np.array([model.classes.index(f.label) for f in evaluation.test])
    sure = np.where(
        classified(part, evaluation.test), np.nan_to_num(probabilities).max(axis=1), -1.0
    )
    order = [i for i in np.argsort(-sure, kind="stable") if sure[i] >= 0]
    right = np.nan_to_num(probabilities).argmax(axis=1) == y
    chosen = [
        [i for i in order if right[i] and y[i] == c][: max(1, N_EXPLAINED // 2)]
        for c in range(min(4, len(model.classes)))
    ]
    chosen.append([i for i in order if not right[i]][: N_EXPLAINED // 2])
    shown = []
    for i in (i for group in chosen for i in group):
        file = (
            evaluation.test[i]
            if part == HEADS
            else PetFile(evaluation.test[i].path, evaluation.test[i].label)
        )
        shown.append(
            (f"{file.path.name}: {file.label}", model.explain(file.read(model.features.side)))
        )
    return shown
