"""A formula as an ONNX graph in float32, with the names that scikit-learn's converter gives to outputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .formula import DATE, TEXT, Formula, Printer

OUTPUTS = {"prediction": "variable", "probability": "probabilities", "score": "score"}
_OPERATIONS = {"+": "Sum", "-": "Sub", "*": "Mul", "/": "Div", "max": "Max", "exp": "Exp", "<": "Less", "if": "Where"}
_OPERATIONS |= {"cell": "Sub", "is": "Equal", "empty date": "IsNaN", "none": "IsNaN"}
_LARGEST = float(np.finfo(np.float32).max)


def write_onnx(formula: Formula) -> bytes:
    """Return an ONNX model: an input (n_rows, 1) for each column, text or float32; dates float64, days since 1970.

    Classes have the outputs ``label`` (n_rows,) and ``probabilities`` (n_rows, n_classes), numbers
    ``variable`` (n_rows, n_outputs); both have ``score`` (n_rows, n_scores).

    Parameters
    ----------
    formula : Formula

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the model uses no column, or a column has a name that ONNX does not allow.
    ModuleNotFoundError
        Without the package onnx.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("export to .onnx needs onnx: pip install 'annealed[export]'", name=error.name) from None
    if not formula.columns:
        raise ValueError("a model without columns has no ONNX graph; expected at least one column")
    for name in formula.columns:
        if name in ("", "label", *OUTPUTS.values()):
            raise ValueError(f"column {name!r}: ONNX expects another name than label, {', '.join(OUTPUTS.values())} and none")
    graph = _Graph(set(formula.columns))
    show = graph.printer(formula)
    for stage in formula.stages:
        show.names.update({name: show(e) for name, e in stage.items()})
    found: dict[str, list[str]] = {}
    for what, _, e in formula.results:
        label = formula.classes is not None and what == "prediction"
        found.setdefault("label" if label else OUTPUTS[what], []).append(show(e))
    types = {"f": TensorProto.FLOAT, "b": TensorProto.BOOL, "U": TensorProto.STRING}
    outputs = []
    for name, parts in found.items():
        if name == "label":
            labels = graph.constant(np.array(formula.classes))
            graph.add("Gather", labels, graph.add("Reshape", *parts, graph.constant(np.array([-1]))), out=name)
            kind = types.get(np.array(formula.classes).dtype.kind, TensorProto.INT64)
        else:
            graph.add("Concat", *parts, out=name, axis=1)
            kind = TensorProto.FLOAT
        outputs.append(helper.make_tensor_value_info(name, kind, [None] if name == "label" else [None, len(parts)]))
    kinds = {TEXT: TensorProto.STRING, DATE: TensorProto.DOUBLE}
    columns = formula.columns.items()
    inputs = [helper.make_tensor_value_info(name, kinds.get(kind, TensorProto.FLOAT), [None, 1]) for name, kind in columns]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    made = helper.make_graph(graph.nodes, "annealed", inputs, outputs, graph.constants)
    model = helper.make_model(made, opset_imports=opsets, ir_version=8, producer_name="annealed")
    checker.check_model(model)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants, with names that no column has."""

    def __init__(self, taken: set[str]):
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = taken

    def _name(self) -> str:
        name = f"n{len(self.nodes) + len(self.constants)}"
        while name in self._taken:
            name += "_"
        return name

    def add(self, op: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        """Append a node; return its output."""
        from onnx import helper

        name = out or self._name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        """A tensor."""
        from onnx import TensorProto, helper, numpy_helper

        name = self._name()
        if values.dtype.kind == "U":
            tensor = helper.make_tensor(name, TensorProto.STRING, values.shape, [word.encode() for word in values])
        else:
            tensor = numpy_helper.from_array(values, name)
        self.constants.append(tensor)
        return name

    def printer(self, formula: Formula) -> Printer:
        """What turns expressions into nodes, each a column (n_rows, 1) of float32; words are numbered."""
        words = {word: float(i) for i, word in enumerate(formula.levels)}
        codes = {"keys_strings": ["", *words], "values_floats": [-1.0, *words.values()], "default_float": -2.0}
        cells = {name: name for name in formula.columns}
        cells |= {name: self.add("LabelEncoder", name, domain="ai.onnx.ml", **codes) for name in formula.of_kind(TEXT)}
        column = partial(np.full, (1, 1))

        def literal(value: Any) -> str:
            return self.constant(column(words.get(value, value), np.float32))

        def days(cell: str, centre: str) -> str:
            return self.add("Cast", self.add("Sub", cell, self.add("Cast", centre, to=11)), to=1)

        symbols = {op: partial(self.add, name) for op, name in _OPERATIONS.items()}
        symbols |= {
            "cell date": days,
            "is text": symbols["is"],
            "empty": lambda cell: self.add("Not", self.add("LessOrEqual", self.add("Abs", cell), literal(_LARGEST))),
            "empty text": lambda cell: self.add("Equal", cell, literal(-1.0)),
            "label": lambda i: self.constant(column(max(i, 0), np.int64)),
        }
        return Printer(symbols, literal, cells, formula.columns)
