"""Selection of the columns of a table, called from Python."""

import numpy as np
import pytest
from annealed.pipelines.tabular.selection import select_columns

X = np.random.default_rng(0).standard_normal((200, 12))
NAMES = [f"c{j}" for j in range(12)]


def test_columns_are_ordered_by_their_effect():
    y = X[:, 3] + 3.0 * X[:, 7]
    assert [column["name"] for column in select_columns(X * np.geomspace(1, 100, 12), y, NAMES, 2, "regression")] == ["c7", "c3"]


def test_several_classes_have_the_norm_of_their_coefficients():
    y = np.digitize(X[:, 5], [-0.5, 0.5])
    (column,) = select_columns(X, y, NAMES, 1, "classification")
    assert column["name"] == "c5" and column["coefficient"] > 0


@pytest.mark.parametrize(
    "y, task, message",
    [
        (np.repeat(["a", "b"], 100), "regression", "labels such as 'a': expected numbers"),
        (np.ones(200), "classification", "one value only"),
        (np.linspace(0, 1, 200), "classification", "numbers such as 0.005"),
    ],
)
def test_targets_that_do_not_fit_the_task(y, task, message):
    with pytest.raises(ValueError, match=message):
        select_columns(X, y, NAMES, 1, task)
