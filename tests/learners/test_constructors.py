"""Constructors and class docstrings of all public estimators: what they share is the same
everywhere."""

import inspect
import re
from collections import defaultdict

import annealed.learners as learners
import pytest

ESTIMATORS = [
    cls for cls in (getattr(learners, name) for name in learners.__all__) if hasattr(cls, "fit")
]
MAX_WORDS = 700  # of a class docstring, without its references and examples

# Parameters whose default depends on the method, with the reason.
OWN_DEFAULTS = {
    "cv": "FSA chooses the number of folds by the rows",
    "criterion": "forward-backward selection adds units, annealing of a random field drops them",
    "estimator": "only one meta-estimator has an estimator to start from",
    "learning_rate": "gradient steps, fractions of a boosting step, steps over a row length",
    "loss": "the online learners minimise the hinge",
    "max_iter": "passes over the rows, or iterations of L-BFGS",
    "max_order": "products of columns, or columns of a frequency",
    "n_features_to_select": "without a default if the method stops alone; a fraction on streams",
    "n_rounds": "weak learners, or rounds of a bank",
    "n_steps": "steps of different algorithms",
    "n_thresholds": "of a ranker of all columns, or of rules that people read",
    "polish": "on where a search needs it",
    "ridge": "the penalty of a mean, of a sum, or of a normal prior",
    "schedule": "a random field drops one unit at a time",
    "solver": "of different problems",
    "tol": "of different solvers",
}


def parameters(cls):
    return list(inspect.signature(cls).parameters.values())


def test_constructors_are_written_out():
    hidden = []
    for cls in ESTIMATORS:
        for parameter in inspect.signature(cls.__init__).parameters.values():
            variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if variable or (parameter.name != "self" and parameter.annotation is parameter.empty):
                hidden.append(f"{cls.__name__}: {parameter}")
        if "<locals>" in cls.__init__.__qualname__:
            hidden.append(f"{cls.__name__}: a generated constructor")
    assert not hidden


def test_shared_parameters_have_one_default():
    defaults = defaultdict(lambda: defaultdict(list))
    for cls in ESTIMATORS:
        for parameter in parameters(cls):
            defaults[parameter.name][repr(parameter.default)].append(cls.__name__)
    several = {name: dict(values) for name, values in defaults.items() if len(values) > 1}
    assert {name: values for name, values in several.items() if name not in OWN_DEFAULTS} == {}
    assert set(OWN_DEFAULTS) <= set(defaults), "a reason for a parameter that is not there"


def test_shared_parameters_stand_in_one_order():
    """Of those given by name alone: what stands before what in one estimator does so in all."""
    before = {}
    wrong = []
    for cls in ESTIMATORS:
        # Two things have the name "criterion".
        names = [
            p.name for p in parameters(cls) if p.kind is p.KEYWORD_ONLY and p.name != "criterion"
        ]
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                before.setdefault((first, second), cls.__name__)
                if (second, first) in before:
                    wrong.append(
                        f"{first} before {second} in {cls.__name__}, after it in "
                        f"{before[second, first]}"
                    )
    assert not wrong


@pytest.mark.parametrize(
    "cls, name",
    [
        (learners.FSARegressor, "class_weight"),
        (learners.FSARanker, "fit_intercept"),
        (learners.FSAClassifierCV, "n_features_to_select"),
    ],
)
def test_parameters_of_the_family_that_a_class_has_not(cls, name):
    with pytest.raises(
        TypeError,
        match=rf"{cls.__name__}\.__init__\(\) got an unexpected keyword argument '{name}'",
    ):
        cls(**{name: None})
    assert name not in cls().get_params()
    with pytest.raises(ValueError, match="Invalid parameter"):
        cls().set_params(**{name: None})


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_docstrings_of_classes(cls):
    text = re.split(r"\n(?:References|Examples)\n-+\n", inspect.cleandoc(cls.__doc__))[0]
    assert len(text.split()) <= MAX_WORDS
    entries = re.findall(r"^([\w, ]+) : ", text.split("\nAttributes\n")[0], re.MULTILINE)
    described = [name for entry in entries for name in entry.split(", ")]
    assert described == [parameter.name for parameter in parameters(cls)]
    assert re.search(
        r"\b([Mm]inimise|sample|goes\s+downhill|keeps\s+those\s+of\s+the\s+least|objective)",
        text.split("Parameters\n---")[0],
    )
