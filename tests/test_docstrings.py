"""Docstrings of everything public: every parameter with its type, in order, and what comes back."""

import importlib
import inspect
import re

import annealed.learners
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate
from rules import assert_no_offenders

# numpydoc's codes. Not among them: PR08 and SS02, since a description may begin with a symbol;
# RT03, where the type says all.
CHECKED = {
    *("GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS03", "SS04", "SS06"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR09", "PR10"),
    *("RT01", "RT02", "RT04", "RT05", "YD01"),
}


def public_names():
    """Names in ``__all__`` of the packages, and the public methods of their classes that are
    written here."""
    for package in ("annealed.learners", "annealed.models", "annealed.vision"):
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            yield f"{package}.{name}"
            if inspect.isclass(thing):
                for method in dir(thing):
                    value = getattr(thing, method, None)
                    written_here = (getattr(value, "__module__", None) or "").startswith(
                        "annealed."
                    )
                    if not method.startswith("_") and inspect.isroutine(value) and written_here:
                        yield f"{package}.{name}.{method}"


def described_by_its_base(name):
    """Whether a method without a docstring overrides one that has it: a method is described
    once."""
    path, _, method = name.rpartition(".")
    package, _, kind = path.rpartition(".")
    classes = (
        getattr(getattr(importlib.import_module(package), kind, None), "__mro__", ())
        if package != "annealed"
        else ()
    )
    return any(getattr(vars(base).get(method), "__doc__", None) for base in classes[1:])


def described_by_its_class(name):
    """Whether a method says "See :class:`X`.", a class of its own that states once what all methods
    take and return."""
    path, _, method = name.rpartition(".")
    package, _, kind = path.rpartition(".")
    owner = getattr(importlib.import_module(package), kind, None) if package != "annealed" else None
    said = re.search(
        r"See :class:`(\w+)`\.", getattr(getattr(owner, method, None), "__doc__", None) or ""
    )
    return bool(said) and said[1] in {base.__name__ for base in owner.__mro__}


def problems(name):
    docs = Validator(get_doc_object(Validator._load_obj(name)))
    found = []
    for code, text in validate(name)["errors"]:
        if code == "PR01":  # fields of a data class stand in its section Attributes
            described = {
                name for field in docs.doc["Attributes"] for name in field.name.split(", ")
            }
            missing = {
                name for name in re.findall(r"'([^']*)'", text) if not name.startswith("_")
            } - described
            text = f"parameters without a description: {sorted(missing)}" if missing else ""
        elif code == "PR07":  # an array is described by its shape
            parameter = re.search(r'"([^"]*)"', text)[1]
            shape = re.search(r"shape|^\(", docs.parameter_type(parameter) or "")
            text = "" if shape else text
        elif code == "PR03":  # the order of parameters that are given by name is free
            kinds = inspect.signature(docs.obj).parameters.values()
            places = [
                p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"
            ]
            text = (
                "" if [name for name in docs.doc_parameters if name in places] == places else text
            )
        elif code == "GL08" and described_by_its_base(name):
            text = ""
        if code in ("PR01", "RT01") and described_by_its_class(name):
            text = ""
        if code in CHECKED and text:
            found.append(f"{code} {text}")
    return found


def test_docstrings():
    names = sorted(public_names())
    assert len(names) > 100
    assert_no_offenders((name, problem) for name in names for problem in problems(name))


def undocumented(name):
    """Parameters of a class of learners that are in its docstring or in its signature alone."""
    cls = getattr(annealed.learners, name)
    section = re.search(
        r"\nParameters\n-+\n(.*?)(\n\n[A-Z][a-z]+\n---|\Z)", inspect.getdoc(cls) or "", re.DOTALL
    )
    if section is None:
        return set()
    lines = [
        line.split(" :")[0] for line in section[1].splitlines() if line and not line.startswith(" ")
    ]
    documented = {word.strip() for line in lines for word in line.split(",")}
    return documented ^ set(inspect.signature(cls).parameters)


def test_docstrings_name_the_parameters_that_there_are():
    classes = [
        name
        for name in annealed.learners.__all__
        if inspect.isclass(getattr(annealed.learners, name))
    ]
    assert_no_offenders(
        (name, parameter) for name in classes for parameter in sorted(undocumented(name))
    )


def test_a_missing_description_is_found(monkeypatch):
    monkeypatch.setattr(
        annealed.learners.FSARegressor.predict, "__doc__", "Predict.\n\nReturns\n-------\ny : array"
    )
    assert any("PR01" in found for found in problems("annealed.learners.FSARegressor.predict"))
