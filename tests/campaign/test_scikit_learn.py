"""The checks of scikit-learn over all public estimators, with the newest release that is
installed."""

import pytest
from annealed import learners
from sklearn.utils.estimator_checks import check_estimator

pytestmark = pytest.mark.slow
# Named checks that an estimator fails on purpose, with the reason.
DRAWN = "rows are drawn at random, one by one"
CONTEXT, WEIGHT = (
    "the answer for a row depends on its sequence",
    "a weight belongs to a whole sequence",
)
EXPECTED_ONLINE = {
    f"check_sample_weight_equivalence_on_{kind}_data": DRAWN for kind in ("dense", "sparse")
}
EXPECTED_OF_SEQUENCES = {
    **{f"check_sample_weight_equivalence_on_{kind}_data": WEIGHT for kind in ("dense", "sparse")},
    "check_sample_weights_not_overwritten": WEIGHT,
    "check_classifiers_one_label_sample_weights": WEIGHT,
    "check_methods_sample_order_invariance": CONTEXT,
    "check_methods_subset_invariance": CONTEXT,
}
PUBLIC = sorted(name for name in learners.__all__ if hasattr(getattr(learners, name, None), "fit"))


@pytest.mark.parametrize("name", PUBLIC)
def test_checks_of_scikit_learn(tally, name):
    try:
        estimator = getattr(learners, name)()
    except TypeError:
        pytest.skip("takes an estimator")
    failing = (
        EXPECTED_OF_SEQUENCES
        if name.endswith("CRF")
        else EXPECTED_ONLINE
        if hasattr(estimator, "partial_fit")
        else {}
    )
    for result in check_estimator(
        estimator, expected_failed_checks=failing, on_fail=None, on_skip=None
    ):
        failure = f"{result['exception']!r}"[:300] if result["status"] == "failed" else None
        if result["status"] != "skipped":
            tally.note("scikit-learn's checks", f"{name}, {result['check_name']}", failure)
    tally.check("scikit-learn's checks")
