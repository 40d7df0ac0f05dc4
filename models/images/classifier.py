"""Classification of photographs based on a few selected columns, with maps of the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from ... import vision
from ...vision.words.pet_features import PetColumns, Photograph
from ...vision.words.visual_words import WordCounts
from ..files import ModelFile, check_array, check_settings
from .evidence import Explanation, occurrences, paint
from .learning import ClassifierSettings, temperature
from .scorers import SCORERS, AdditiveScorer, Scorer, mean_probabilities

N_FOLDS = 5
WHOLE, HEADS = "whole", "heads"


@dataclass
class ImageClassifier(ModelFile):
    """Classifier that labels photographs by their visual words and colours.

    The features follow section 4.1.2 of Ma (2017) [1]_, and columns are selected by FSA. If a
    photograph has a head box, visual words of the head are also used.

    Parameters
    ----------
    features : PetFeatures, default PetFeatures(random_state=0)
        Transformer that computes the columns. In a loaded model, it is an
        `annealed.vision.words.pet_features.PetColumns`, which cannot be fitted.
    settings : ClassifierSettings, default ClassifierSettings()
        Settings of the learner.
    classes : list of str
        Names of the classes, in the order of the predicted probabilities. Set by :meth:`fit`.
    scorers : dict of str to list of scorers
        Scorers for photographs without a head box (key "whole") and with a head box (key "heads").
        The key "heads" is missing if the training data had too few head boxes. Set by :meth:`fit`.
    info : dict
        JSON values that are stored in the model file: descriptions of the training, the scores and
        the terms of use.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017).

    Examples
    --------
    >>> from annealed.models import load_model
    >>> load_model("pets").predict([Photograph(image)])  # doctest: +SKIP
    ['cat']
    """

    KIND: ClassVar[str] = "image classifier"
    features: PetColumns = field(default_factory=lambda: vision.PetFeatures(random_state=0))
    settings: ClassifierSettings = field(default_factory=ClassifierSettings)
    classes: list[str] = field(default_factory=list)
    scorers: dict[str, list[Scorer]] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    def fit(
        self,
        photographs: Sequence[Photograph],
        labels: Sequence[str],
        X: sp.csr_matrix | None = None,
    ) -> Self:
        """Learn the vocabularies, select columns and fit their responses.

        Parameters
        ----------
        photographs : sequence of Photograph
            Training photographs. Each is accessed twice, one at a time, so the sequence may read a
            photograph from its file on access.
        labels : sequence of str
            Class of each photograph.
        X : CSR matrix of shape (n_photographs, n_features) or None, default None
            Feature matrix of the photographs, as returned by ``self.features.transform``. If None,
            the features are first fitted to the photographs.

        Returns
        -------
        ImageClassifier
            Fitted classifier (this object).

        Raises
        ------
        ValueError
            If there are fewer than two classes, fewer than two photographs of a class, or too few
            descriptors for the vocabulary, or if a setting is out of range.
        """
        self.classes, y = _codes(labels)
        if X is None:
            if not hasattr(self.features, "fit"):
                raise ValueError(
                    "a loaded model cannot be fitted; create an ImageClassifier with PetFeatures"
                )
            X = self.features.fit(photographs).transform(photographs)
        X = X.tocsc()  # the learner's format; avoids copies of the matrix and its folds
        self.scorers, self.info = {}, dict(self.info)
        self._learn(WHOLE, X, y)
        if self.features.head_words_ is not None:
            head = X[:, self.features.n_whole : self.features.n_whole + self.features.n_words]
            boxed = np.bincount(head.indices, minlength=len(y)) > 0
            if min(np.bincount(y[boxed], minlength=len(self.classes))) >= 2:
                self._learn(HEADS, X[boxed], y[boxed])
        return self

    def columns(self, part: str) -> np.ndarray:
        """Return the indices of the columns from which one part of the classifier may select.

        The part "whole", for photographs without a head box, uses all columns except those of the
        head. The part "heads" uses all columns except the words in quarters of the image, which did
        not improve the accuracy in cross-validation.

        Parameters
        ----------
        part : {"whole", "heads"}
            Part of the classifier: "whole" for photographs without a head box, "heads" for
            photographs with one.

        Returns
        -------
        ndarray of int
        """
        every = np.arange(len(self.features.get_feature_names_out()))
        n_words, n_whole = self.features.n_words, self.features.n_whole
        if part == HEADS:
            return np.delete(every, slice(n_words, n_whole))
        return (
            every
            if self.features.head_words_ is None
            else np.delete(every, slice(n_whole, n_whole + n_words))
        )

    def _learn(self, part: str, X: sp.csc_matrix, y: np.ndarray) -> None:
        """Fit one part of the classifier. Cross-validated scores determine the temperature and the
        error in ``info``."""
        from sklearn.model_selection import StratifiedKFold

        columns = self.columns(part)
        part_X = X if len(columns) == X.shape[1] else X[:, columns]
        n_folds = min(N_FOLDS, int(np.bincount(y).min()))
        probabilities = np.zeros((len(y), len(self.classes)))
        scores = np.zeros_like(probabilities)
        # it would retain a copy of part_X
        for train, held in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(y, y):
            fold = self.settings.learn(part_X[train], y[train])
            probabilities[held] = mean_probabilities(fold, part_X[held])
            if isinstance(fold[0], AdditiveScorer):
                scores[held] = fold[0].scores(part_X[held])
        learnt = self.settings.learn(part_X, y)
        if isinstance(learnt[0], AdditiveScorer):
            learnt[0] = replace(learnt[0], temperature=temperature(scores, y))
        self.scorers[part] = [s.renumbered(columns) for s in learnt]
        self.info[part] = {
            "photographs": len(y),
            "columns": len(columns),
            "chosen": len(self.selected(part)),
            "cross_validated_error": float((probabilities.argmax(axis=1) != y).mean()),
        }

    def selected(self, part: str = WHOLE) -> np.ndarray:
        """Return the columns that one part uses, as indices in order of decreasing strength.

        The columns selected by FSA are followed by those selected by sDist.

        Parameters
        ----------
        part : {"whole", "heads"}, default "whole"
            Part of the classifier, as in :meth:`columns`.

        Returns
        -------
        ndarray of int64
        """
        return np.array(
            list(dict.fromkeys(int(c) for s in self.scorers[part] for c in s.selected)),
            dtype=np.int64,
        )

    def selected_names(self, part: str = WHOLE) -> list[str]:
        """Return the names of the columns that one part uses, in the order of :meth:`selected`.

        Parameters
        ----------
        part : str, default WHOLE
            Part of the classifier, as in :meth:`selected`.

        Returns
        -------
        list of str
            One name per column.
        """
        return [str(name) for name in self.features.get_feature_names_out()[self.selected(part)]]

    def probabilities(self, X: sp.csr_matrix, part: str = WHOLE) -> np.ndarray:
        """Compute class probabilities from a precomputed feature matrix.

        Parameters
        ----------
        X : CSR matrix of shape (n, n_features)
            Feature matrix of the photographs, as returned by ``self.features.transform``.
        part : {"whole", "heads"}, default "whole"
            Part of the classifier: "whole" for photographs without a head box, "heads" for
            photographs with one.

        Returns
        -------
        ndarray of shape (n, n_classes)

        Raises
        ------
        ValueError
            If the classifier is not trained.
        """
        self._check_trained()
        return mean_probabilities(self.scorers[part], X)

    def _check_trained(self) -> None:
        if not self.scorers:
            raise ValueError("this classifier is not fitted yet; call fit, or load a fitted model")

    def predict_proba(self, photographs: Sequence[Photograph]) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        photographs : sequence of Photograph
            Photographs. If a photograph has a head box and the model was trained on heads, the head
            is also classified.

        Returns
        -------
        ndarray of shape (n, n_classes)

        Raises
        ------
        ValueError
            If the classifier is not trained, or a head box lies outside its image.
        """
        self._check_trained()
        out = np.empty((len(photographs), len(self.classes)))
        for i in range(len(photographs)):
            out[i] = self.probabilities(
                self.features.transform([photographs[i]]), self._part(photographs[i])
            )
        return out

    def predict(self, photographs: Sequence[Photograph]) -> list[str]:
        """Predict the most probable class of each photograph.

        See :meth:`predict_proba` for the parameters and errors.

        Parameters
        ----------
        photographs : sequence of Photograph
            Photographs, with or without head boxes.

        Returns
        -------
        list of str
            One class per photograph.
        """
        return [self.classes[c] for c in self.predict_proba(photographs).argmax(axis=1)]

    def _part(self, photograph: Photograph) -> str:
        return HEADS if photograph.head is not None and HEADS in self.scorers else WHOLE

    def explain(self, photograph: Photograph) -> Explanation:
        """Locate the evidence for the label of a photograph.

        The contribution of a selected word is divided among its occurrences and distributed over
        the windows of their descriptors. The contribution of a colour is distributed over its
        pixels.

        Parameters
        ----------
        photograph : Photograph
            Photograph, with or without a head box.

        Returns
        -------
        Explanation

        Raises
        ------
        ValueError
            If the model consists only of a metric: its vote fractions are not sums over columns.
        """
        part = self._part(photograph)
        probabilities = self.predict_proba([photograph])[0]
        additive = self.scorers[part][0]
        if not isinstance(additive, AdditiveScorer):
            raise ValueError(
                "a model with method='sdist' provides no evidence per column; use method='fsa', "
                "'piecewise' or 'both'"
            )
        resized = photograph.resized(self.features.side)
        X = self.features.transform([photograph])
        best = int(probabilities.argmax())
        by_class = additive.model.contributions(X, reference=0.0)[0]
        evidence = by_class[:, best] - np.delete(by_class, best, axis=1).mean(axis=1)
        values = np.zeros(X.shape[1])
        values[additive.selected] = evidence
        names = self.features.get_feature_names_out()
        present = [j for j in np.argsort(-np.abs(evidence), kind="stable") if evidence[j] != 0]
        contributions = [(str(names[additive.selected[j]]), float(evidence[j])) for j in present]
        image, heat = np.asarray(resized.image), paint(self.features, resized, values)
        return Explanation(
            self.classes[best], float(probabilities[best]), image, heat, contributions
        )

    def occurrences(self, photograph: Photograph) -> tuple[np.ndarray, np.ndarray]:
        """Return the column index and the window of each visual word in a resized photograph.

        See :func:`.evidence.occurrences`.

        Parameters
        ----------
        photograph : Photograph
            Photograph, with or without a head box.

        Returns
        -------
        tuple of two ndarrays
            Column indices, of shape (m,), and windows, of shape (m, 4), of the m occurrences. A
            window is given by the x and y coordinates of its centre, its width and its height, in
            pixels.
        """
        return occurrences(self.features, photograph.resized(self.features.side))

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        self._check_trained()
        arrays: dict[str, np.ndarray] = {}
        for part, words in ((WHOLE, self.features.words_), (HEADS, self.features.head_words_)):
            if words is not None:
                arrays |= {f"{part}.words": words.words_, f"{part}.cell_starts": words.cell_starts_}
        kinds = {cls: kind for kind, cls in SCORERS.items()}
        arrays |= {
            f"{part}.{kinds[type(scorer)]}.{name}": array
            for part, scorers in self.scorers.items()
            for scorer in scorers
            for name, array in scorer.arrays().items()
        }
        return arrays, {
            "summary": f"distinguishes {', '.join(self.classes[:-1])} and {self.classes[-1]} in "
            "photographs",
            **self.info,
            "classes": self.classes,
            "features": self.features.settings(),
            "settings": vars(self.settings),
            "scorers": {
                part: [kinds[type(s)] for s in scorers] for part, scorers in self.scorers.items()
            },
            "chosen": {part: self.selected_names(part) for part in self.scorers},
        }

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        seed = None if header["features"]["random_state"] is None else 0
        example = PetColumns(random_state=seed).settings()
        limits = {
            "n_words": (1, 1e6),
            "side": (32, 4096),
            "head_side": (32, 4096),
            "random_state": (0, 2**32),
        }
        features = PetColumns(**check_settings(header["features"], example, limits))
        settings = ClassifierSettings(
            **check_settings(header["settings"], vars(ClassifierSettings()))
        )
        classes = list(
            check_settings({"classes": header["classes"]}, {"classes": ("cat",)})["classes"]
        )
        kinds = {str(part): [str(k) for k in listed] for part, listed in header["scorers"].items()}
        fits = WHOLE in kinds and all(
            kind in SCORERS for listed in kinds.values() for kind in listed
        )
        if (
            len(classes) < 2
            or not fits
            or not set(kinds) <= {WHOLE, HEADS}
            or not all(kinds.values())
        ):
            raise ValueError("the classes or scorers of the model are not valid")
        n = features.n_words
        features.words_ = _vocabulary(path, arrays, WHOLE, WordCounts(n))
        features.head_words_ = (
            _vocabulary(path, arrays, HEADS, WordCounts(n, spatial=False))
            if features.heads
            else None
        )
        n_features = len(features.get_feature_names_out())
        kept = ("classes", "features", "settings", "scorers", "chosen", "format", "version", "kind")
        info = {name: value for name, value in header.items() if name not in kept}
        scorers = {
            part: [
                SCORERS[k].read(path, arrays, f"{part}.{k}", len(classes), n_features)
                for k in listed
            ]
            for part, listed in kinds.items()
        }
        return cls(features, settings, classes, scorers, info)


def _codes(labels: Sequence[str]) -> tuple[list[str], np.ndarray]:
    names, y = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    if len(names) < 2:
        raise ValueError(f"there is only one class ({', '.join(names)}); expected at least two")
    if (counts := np.bincount(y)).min() < 2:
        raise ValueError(
            f"class {names[counts.argmin()]!r} has only one photograph; "
            "expected at least two per class"
        )
    return [str(name) for name in names], y


def _vocabulary(
    path: Path, arrays: dict[str, np.ndarray], part: str, words: WordCounts
) -> WordCounts:
    centres = check_array(path, arrays, f"{part}.words", np.uint8, (words.n_words, 128))
    starts = check_array(path, arrays, f"{part}.cell_starts", np.int64, (None,))
    if (
        len(starts) < 2
        or starts[0] != 0
        or starts[-1] != len(centres)
        or (np.diff(starts) < 1).any()
    ):
        raise ValueError(
            f"{path}: the file is damaged (array '{part}.cell_starts' does not divide "
            f"{len(centres)} words "
            "into cells)"
        )
    return words.set_vocabulary(centres, starts)
