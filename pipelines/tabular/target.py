"""The target of a table: which task it asks for, and one clear line for every cell that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 10  # whole numbers with at most so many different values are taken as classes
_MOSTLY = 0.9  # a column of text of which a larger share are numbers is a column of numbers with bad cells


def guess_task(y: np.ndarray) -> str:
    """Return "classification" for text, booleans and few (``MOST_CLASSES``) different whole numbers, else "regression".

    More than two different numbers in more than half as many rows are no classes.

    Examples
    --------
    >>> guess_task(np.array([0.0, 1.0, 1.0])), guess_task(np.array([0.5, 1.0, 1.0]))
    ('classification', 'regression')
    """
    if y.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(y)
    few = len(values) <= min(MOST_CLASSES, max(2, len(y) / 2))
    return "classification" if few and (values == np.round(values)).all() else "regression"


def note_of_guess(y: np.ndarray, task: str) -> str | None:
    """Return a line about a guess (:func:`guess_task`) on whole numbers that an analyst may want otherwise."""
    values = np.unique(y) if y.dtype.kind in "iuf" else np.empty(0)
    if not 2 < len(values) <= MOST_CLASSES or (values != np.round(values)).any():
        return None
    if task == "classification":
        return f"the {len(values)} different numbers of the target are taken as classes; --task regression otherwise"
    return f"the target's {len(values)} different numbers in {len(y)} rows are too many for classes: a regression"


def classes_of_one_row(y: np.ndarray) -> np.ndarray:
    """Return the rows whose class no other row has; none where fewer than two classes would be left."""
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] == 1) if (counts > 1).sum() >= 2 else np.empty(0, int)


def read_target(values: pd.Series) -> np.ndarray:
    """Return a column as labels (text, None where empty) or as numbers (NaN where empty).

    Raises
    ------
    ValueError
        For dates, complex numbers, infinity, and for a column of numbers with a few cells that are
        none.
    """
    import pandas as pd

    from ...models.tabular.encoding import WITH_THOUSANDS, as_words, to_numbers

    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_complex_dtype(values.dtype):
        raise ValueError(f"the target {values.name!r} holds {values.dtype}: expected numbers or labels")
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(f"the target {values.name!r} holds infinity in row {np.flatnonzero(np.isinf(numbers))[0] + 1}")
        return numbers
    words = as_words(values)
    there = np.array([word is not None for word in words], bool)
    if there.any() and any(WITH_THOUSANDS.fullmatch(word) for word in words[there]):
        numbers = to_numbers(values)
        if not np.isnan(numbers[there]).any():
            return numbers
    bad = there & pd.isna(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")).to_numpy()
    if bad.any() and bad.sum() <= (1.0 - _MOSTLY) * there.sum():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{bad.sum()} of {there.sum()} cells of the target {values.name!r} {'is' if bad.sum() == 1 else 'are'} not a number: "
            f"{words[row]!r} in row {row + 1}; correct or empty such cells"
        )
    some = pd.Series(words[there][:100], dtype=object)
    if len(some) and some.str.match(r"\d{4}-\d{2}-\d{2}").all():
        raise ValueError(f"the target {values.name!r} holds dates such as {some.iloc[0]!r}: expected numbers or labels")
    return words


def check_target(y: np.ndarray, task: str) -> None:
    """Complain about a target that does not fit the task.

    Raises
    ------
    ValueError
        For a regression of labels, classes that are broken numbers or nearly as many as rows, and
        one value only.
    """
    if task == "regression":
        if y.dtype.kind not in "iuf":
            raise ValueError(f"the target holds labels such as {str(y[0])!r}: expected numbers for --task regression")
    else:
        broken = y[y != np.round(y)] if y.dtype.kind == "f" else []
        if len(broken):
            raise ValueError(f"the target holds numbers such as {broken[0]:g}: expected labels for --task classification")
        n_classes = len(np.unique(y))
        if n_classes > max(2, len(y) / 2):
            otherwise = ", or --task regression" if y.dtype.kind in "iuf" else ""
            raise ValueError(
                f"the target has {n_classes} different labels in {len(y)} rows: expected classes of several rows{otherwise}"
            )
    if len(np.unique(y)) < 2:
        expected = "at least two classes" if task == "classification" else "different numbers"
        raise ValueError(f"the target has one value only ({str(y[0])!r}), expected {expected}")
