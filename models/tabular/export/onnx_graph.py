"""Export of a formula as an ONNX graph in float32, with the output names of skl2onnx."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...messages import naming_extra
from .formula import DATE, NUMBER, TEXT, Formula, Printer

OUTPUTS = {"prediction": "variable", "probability": "probabilities", "score": "score"}
_OPERATIONS = {
    "+": "Sum",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "max": "Max",
    "exp": "Exp",
    "log": "Log",
    "<": "Less",
    "if": "Where",
    "cell": "Sub",
    "is": "Equal",
    "is text": "Equal",
    "empty date": "IsNaN",
    "none": "IsNaN",
}
_LARGEST = float(np.finfo(np.float32).max)


def write_onnx(formula: Formula) -> bytes:
    """Return an ONNX model with an input of shape (n_rows, 1) for each column.

    Inputs are text, numbers in float32, or dates as days since 1970 in float64.

    Classifiers have the outputs ``label``, of shape (n_rows,), and ``probabilities``, of shape
    (n_rows, n_classes). Regression models have the output ``variable``, of shape (n_rows,
    n_outputs). Both have the output ``score``, of shape (n_rows, n_scores).

    Parameters
    ----------
    formula : Formula
        Formula of the model.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the model uses no columns, or a column has a name that ONNX does not allow.
    ModuleNotFoundError
        If the package onnx is not installed.
    """
    with naming_extra("export to .onnx requires the package onnx", "export"):
        from onnx import TensorProto, checker, helper
    if not formula.columns:
        raise ValueError(
            "a model without columns cannot be exported to ONNX; expected at least one column"
        )
    if taken := [name for name in formula.columns if name in ("", "label", *OUTPUTS.values())]:
        raise ValueError(
            f"column {taken[0]!r} has a reserved name; "
            f"expected a name other than label, {', '.join(OUTPUTS.values())}"
        )
    graph = _Graph(formula.columns)
    show = Printer(graph.symbols(), graph.literal, graph.cells, formula.columns)
    for stage in formula.stages:
        show.names.update({name: show(e) for name, e in stage.items()})
    levels: dict[str, list[str]] = {}
    for what, _, e in formula.results:
        levels.setdefault(
            "label" if what == "prediction" and formula.classes else OUTPUTS[what], []
        ).append(show(e))
    outputs = []
    for name, parts in levels.items():
        kind, shape = TensorProto.FLOAT, [None, len(parts)]
        if name == "label":
            labels = np.array(formula.classes)
            kinds = {"f": kind, "b": TensorProto.BOOL, "U": TensorProto.STRING}
            kind, shape = kinds.get(labels.dtype.kind, TensorProto.INT64), [None]
            graph.add(
                "Gather",
                graph.constant(labels),
                graph.add("Squeeze", *parts, graph.constant(np.array([1]))),
                out=name,
            )
        else:
            graph.add("Concat", *parts, out=name, axis=1)
        outputs.append(helper.make_tensor_value_info(name, kind, shape))
    types = {TEXT: TensorProto.STRING, DATE: TensorProto.DOUBLE, NUMBER: TensorProto.FLOAT}
    inputs = [
        helper.make_tensor_value_info(name, types[kind], [None, 1])
        for name, kind in formula.columns.items()
    ]
    model = helper.make_model(
        helper.make_graph(
            graph.encoders() + graph.nodes, "annealed", inputs, outputs, graph.constants
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)],
        ir_version=8,
        producer_name="annealed",
    )
    checker.check_model(model)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants of a graph. Each value is a float32 column (n_rows, 1), in which words
    are represented by numbers."""

    def __init__(self, columns: dict[str, str]):
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.words: dict[str, float] = {}
        self._stem = "_" * (1 + max(len(name) for name in columns))  # differs from all column names
        self.cells = {
            name: f"{self._stem}t{name}" if kind == TEXT else name for name, kind in columns.items()
        }

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        from onnx import helper

        name = out or f"{self._stem}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        """Return the name of a constant tensor."""
        from onnx import numpy_helper

        name = f"{self._stem}c{len(self.constants)}"
        self.constants.append(
            numpy_helper.from_array(
                values.astype(object) if values.dtype.kind == "U" else values, name
            )
        )
        return name

    def literal(self, value: Any) -> str:
        """Return a constant for a number, or for the number that represents a word."""
        value = (
            self.words.setdefault(value, float(len(self.words)))
            if isinstance(value, str)
            else value
        )
        return self.constant(np.full((1, 1), value, np.float32))

    def encoders(self) -> list[Any]:
        """Return nodes that map words to numbers; empty text is -1, and unknown words are -2."""
        from onnx import helper

        words, numbers = ["", *self.words], [-1.0, *self.words.values()]
        codes: dict[str, Any] = {
            "keys_strings": words,
            "values_floats": numbers,
            "default_float": -2.0,
        }
        texts = [(name, out) for name, out in self.cells.items() if name != out]
        return [
            helper.make_node("LabelEncoder", [name], [out], domain="ai.onnx.ml", **codes)
            for name, out in texts
        ]

    def symbols(self) -> dict[str, Callable[..., str]]:
        """Return a printer that converts operations to nodes."""
        add, literal = self.add, self.literal
        special: dict[str, Callable[..., str]] = {
            "cell date": lambda cell, day: add(
                "Cast", add("Sub", cell, add("Cast", day, to=11)), to=1
            ),
            "empty": lambda cell: add(
                "Not", add("LessOrEqual", add("Abs", cell), literal(_LARGEST))
            ),
            "empty text": lambda cell: add("Equal", cell, literal(-1.0)),
            "label": lambda i: self.constant(np.full((1, 1), max(i, 0))),
        }
        return {op: partial(add, name) for op, name in _OPERATIONS.items()} | special
