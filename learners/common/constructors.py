"""Constructors that spell out their own parameters only."""

from __future__ import annotations

import inspect
from typing import Any

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class InheritsParameters:
    """Base of estimators whose constructors take ``**parameters`` and pass them on: each parameter is listed in one class.

    scikit-learn reads an estimator's parameters from the signature of ``__init__``. So each class gets a constructor whose
    signature lists what all constructors along its method resolution order take, up to the first without ``**parameters``.
    Positional parameters are inherited through ``*args`` only. ``class B(A, without=("name",))`` leaves a parameter of A out; the
    constructor of B must then give A a value for it.
    """

    _own_signature: inspect.Signature
    _without: tuple[str, ...]

    def __init_subclass__(cls, without: tuple[str, ...] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._without = without
        if "__init__" not in vars(cls):

            def __init__(self, *args: Any, **parameters: Any) -> None:
                super(cls, self).__init__(*args, **parameters)

            cls.__init__ = __init__  # type: ignore[method-assign]
        cls._own_signature = inspect.signature(cls.__init__)
        cls.__init__.__signature__ = _merged(cls)  # type: ignore[attr-defined]


def _merged(cls: type) -> inspect.Signature:
    merged: dict[str, inspect.Parameter] = {}
    without: set[str] = set()
    positional = True
    for parent in cls.__mro__:
        own = vars(parent).get("_own_signature")
        if own is None:
            continue
        for parameter in own.parameters.values():
            if parameter.kind not in _VARIABLE and (positional or parameter.kind is parameter.KEYWORD_ONLY):
                merged.setdefault(parameter.name, parameter)
        without.update(vars(parent)["_without"])
        kinds = {parameter.kind for parameter in own.parameters.values()}
        positional = positional and inspect.Parameter.VAR_POSITIONAL in kinds
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            break
    kept = [parameter for name, parameter in merged.items() if name not in without]
    return inspect.Signature(sorted(kept, key=lambda parameter: parameter.kind))
