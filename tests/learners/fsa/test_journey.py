"""The way of a default fit through the modules of the learners: down, and never round in a circle
at run time."""

import sys
import types

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSARanker, FSARegressor
from rules import assert_no_offenders

PREFIX = "annealed.learners."
LOOP = "solvers.annealing"  # calls the functions that it is given after every step
# which it asks of the estimator that is validated
OF_SCIKIT_LEARN = {"__sklearn_tags__", "__sklearn_is_fitted__", "get_params"}
WITH_BASE_CLASSES = {"designs", "objective"}
WRAPPER = (
    "compilation",
    "__call__",
)  # of a decorated function: looked through, as those of other packages


def circles(action):
    """Circles at run time: calls into a module that waits, lower on the stack, for another module
    of the learners.

    A plain function that the annealing loop was given may be called by it, and scikit-learn may ask
    an estimator for its tags: such a call begins a stack of its own. Losses, and designs, may use
    the general formulas of their base classes.
    """
    stack, found = [], set()

    def enter(frame):
        name, code = frame.f_globals.get("__name__") or "", frame.f_code
        if not name.startswith(PREFIX):
            return None  # of another package, which is looked through
        module = name.removeprefix(PREFIX)
        if (module, code.co_name) == WRAPPER:
            return None
        start = max((i for i, call in enumerate(stack) if call and call[2]), default=0)
        way = [call for call in stack[start:] if call]
        is_method = "." in code.co_qualname.rpartition("<locals>.")[2]
        begins_anew = code.co_name in OF_SCIKIT_LEARN or (
            bool(way) and way[-1][0] == LOOP and not is_method
        )
        waiting = [i for i, call in enumerate(way) if call[0] == module]
        if waiting and way[-1][0] != module and not begins_anew:
            circle = [*way[waiting[-1] :], (module, code.co_name)]
            parts = {call[0].partition(".")[0] for call in circle}
            if len(parts) > 1 or not parts <= WITH_BASE_CLASSES:
                found.add(" -> ".join(f"{call[0]}:{call[1]}" for call in circle))
        return module, code.co_name, begins_anew

    def watch(frame, event, _):
        if event == "call":
            stack.append(enter(frame))
        elif event == "return" and stack:
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(before)
    return sorted(found)


def module(name, source):
    made = types.ModuleType(PREFIX + name)
    exec(source, vars(made))
    return made


UPPER = """
def start(call): return middle(call)
def middle(call): return call(back)
def back(): return 1

class Estimator:
    def start(self, call): return call(self.back)
    def back(self): return 1
"""


def test_a_circle_is_found():
    lower, upper = module("lower", "def call(f): return f()"), module("upper", UPPER)
    assert circles(lambda: upper.start(lower.call)) == ["upper:middle -> lower:call -> upper:back"]
    assert circles(lambda: upper.start(lambda f: 1)) == []


def test_the_loop_may_call_functions_and_no_methods():
    loop, upper = (
        module(LOOP, "def call(f): return f()\ndef state(): return 1"),
        module("upper", UPPER),
    )
    assert circles(lambda: upper.start(loop.call)) == []
    assert circles(lambda: upper.Estimator().start(loop.call)) == [
        f"upper:start -> {LOOP}:call -> upper:back"
    ]
    upper.state = loop.state  # a callback may use what the module of the loop offers
    exec("def back(): return state()", vars(upper))
    assert circles(lambda: upper.start(loop.call)) == []


def small_problem(n_rows, n_columns=50):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n_rows)


@pytest.mark.parametrize("n_rows", [100, 200])
@pytest.mark.parametrize("Estimator", [FSAClassifier, FSARegressor, FSARanker])
@pytest.mark.parametrize(
    "parameters", [{}, {"refinement": None}], ids=["default", "the paper's algorithm"]
)
def test_a_fit_goes_down(Estimator, n_rows, parameters):
    X, y = small_problem(n_rows)
    y = y > 0 if Estimator is FSAClassifier else y
    estimator = Estimator(2, **parameters)
    estimator.fit(X, y)  # imports what is imported when it is first used
    assert_no_offenders(circles(lambda: estimator.fit(X, y)))
