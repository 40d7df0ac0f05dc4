"""Schedules: the formulas, and what every schedule owes the loop."""

import numpy as np
import pytest
from annealed.learners import Schedule
from annealed.learners.solvers.schedules import (
    SCHEDULES,
    as_schedule,
    inverse,
    inverse_arxiv,
    linear,
    step_counts,
)
from hypothesis import given
from hypothesis import strategies as st


@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    m=st.integers(1, 5000),
    share=st.floats(0, 1),
    n_steps=st.integers(1, 300),
    mu=st.floats(0, 1e4),
)
def test_every_schedule_falls_to_exactly_k(name, m, share, n_steps, mu):
    k = max(1, int(share * m))
    counts = as_schedule(name, mu)(m, k, n_steps)
    assert counts.shape == (n_steps,) and counts.dtype.kind == "i"
    assert counts[-1] == k and counts.min() >= k and counts.max() <= m
    assert (np.diff(counts) <= 0).all()
    assert np.array_equal(counts, step_counts(Schedule(name, mu), m, k, n_steps))


def test_formulas():
    m, k, n_steps, mu = 1000, 10, 100, 30.0
    for e in (1, 7, 31, 49, 50, 80):
        assert inverse(m, k, n_steps, mu)[e - 1] == int(
            k + (m - k) * max(0, (n_steps - 2 * e) / (2 * e * mu + n_steps))
        )
        assert inverse_arxiv(m, k, n_steps, mu)[e - 1] == int(
            max(k, m / (1 + e * mu) - 1 / n_steps)
        )
    for speed in (1.0, 30.0):  # k is reached at half of the steps, whatever mu
        counts = inverse(m, k, n_steps, speed)
        assert counts[49] == k and counts[45] > k
    assert np.array_equal(linear(100, 0, 10, 1.0), [80, 60, 40, 20, 0, 0, 0, 0, 0, 0])


def test_greater_mu_is_faster():
    for name in ("inverse", "inverse_arxiv", "exponential", "linear"):
        slow, fast = (as_schedule(name, mu)(1000, 5, 100) for mu in (1.0, 10.0))
        assert (fast <= slow).all() and (fast < slow).any()


def test_custom_functions_are_checked():
    good = step_counts(lambda m, k, n: np.linspace(m, k, n).astype(int), 50, 5, 20)
    assert good[0] == 50 and good[-1] == 5
    for bad in (
        lambda m, k, n: np.full(n, m),  # does not end at k
        lambda m, k, n: np.array([k, m, k]),  # rises
        lambda m, k, n: np.array([2 * m, k]),  # more than there are
        lambda m, k, n: np.linspace(m, k, n),  # not whole
        lambda m, k, n: k,
    ):
        with pytest.raises(
            ValueError, match=r"expected integers that decrease from at most 50 to 5"
        ):
            step_counts(bad, 50, 5, 20)
    with pytest.raises(ValueError, match="schedule='cosine' is unknown"):
        as_schedule("cosine")
    with pytest.raises(
        ValueError, match=r"^mu=-1\.0 is not valid; expected 'auto' or a number >= 0$"
    ):
        as_schedule(Schedule(mu=-1.0))


def test_the_speed_of_the_object_wins():
    assert as_schedule(Schedule(mu=3.0), 100.0).mu == 3.0
    assert as_schedule(Schedule("linear"), 7.0).get_params() == {
        "kind": "linear",
        "mu": 7.0,
        "n_steps": 100,
    }
