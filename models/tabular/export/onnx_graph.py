"""A formula as an ONNX graph in float32, with the names that scikit-learn's converter gives to outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .formula import DATE, TEXT, Curve, Formula, Lookup

OUTPUTS = ("label", "probabilities", "variable", "score")
_LARGEST = np.float64(np.finfo(np.float32).max)


def write_onnx(formula: Formula) -> bytes:
    """Return an ONNX model: an input (n_rows, 1) for each column, text or float32; dates float64, as days since 1970.

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
    if not formula.terms:
        raise ValueError("a model without columns has no ONNX graph; expected at least one column")
    for name in formula.columns:
        if name in ("", *OUTPUTS):
            raise ValueError(f"column {name!r}: ONNX expects a name that is not empty and none of {', '.join(OUTPUTS)}")
    graph = _Graph(set(formula.columns))
    score = graph.add("Sum", *(graph.term(term) for term in formula.terms), graph.constant(formula.intercept[None]))
    results = {}
    if formula.classes is None:
        results["variable"] = graph.add("Exp" if formula.link == "log" else "Identity", score)
    else:
        results["label"] = graph.label(score, formula.classes)
        if formula.probabilities:
            results["probabilities"] = graph.probabilities(score, formula)
    results["score"] = score
    nodes = [*graph.nodes, *(helper.make_node("Identity", [made], [name]) for name, made in results.items())]
    kinds = {TEXT: TensorProto.STRING, DATE: TensorProto.DOUBLE}
    inputs = [
        helper.make_tensor_value_info(name, kinds.get(kind, TensorProto.FLOAT), [None, 1])
        for name, kind in formula.columns.items()
    ]
    labels = np.array(formula.classes or (0.0,))
    types = {"f": TensorProto.FLOAT, "b": TensorProto.BOOL, "U": TensorProto.STRING}
    widths = {"label": [], "probabilities": [len(labels)]}
    outputs = [
        helper.make_tensor_value_info(
            name,
            types.get(labels.dtype.kind, TensorProto.INT64) if name == "label" else TensorProto.FLOAT,
            [None, *widths.get(name, [len(formula.intercept)])],
        )
        for name in results
    ]
    made = helper.make_graph(nodes, "annealed", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8, producer_name="annealed")
    checker.check_model(model)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants, with names that no column has."""

    def __init__(self, taken: set[str]):
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = taken | set(OUTPUTS)

    def _name(self) -> str:
        name = f"n{len(self._taken)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Append a node; return its output."""
        from onnx import helper

        name = self._name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any, kind: str = "") -> str:
        """A tensor: numbers as float32, of dates as float64; text, whole numbers and truth values as they are."""
        from onnx import TensorProto, helper, numpy_helper

        values, name = np.asarray(values), self._name()
        if values.dtype.kind == "U":
            tensor = helper.make_tensor(name, TensorProto.STRING, values.shape, [word.encode() for word in values.ravel()])
        else:
            single = values.dtype.kind == "f" and kind != DATE
            tensor = numpy_helper.from_array(values.astype(np.float32) if single else values, name)
        self.constants.append(tensor)
        return name

    def term(self, term: Curve | Lookup) -> str:
        """What a column adds, (n_rows, n_outputs)."""
        found = self._lookup(term) if isinstance(term, Lookup) else self._curve(term)
        if term.kind == TEXT:
            return found
        finite = self.add("LessOrEqual", self.add("Abs", term.column), self.constant(_LARGEST, term.kind))
        return self.add("Where", finite, found, self.constant(term.missing[None]))

    def _curve(self, term: Curve) -> str:
        u = self.add("Sub", term.column, self.constant(np.float64(term.centre), term.kind))
        parts = term.anchors[:, None], term.values, term.slopes
        anchor, value, slope = (self.constant(part, term.kind) for part in parts)
        if len(term.knots):
            reached = self.add("Cast", self.add("GreaterOrEqual", u, self.constant(term.knots[None], term.kind)), to=7)
            piece = self.add("ReduceSum", reached, self.constant(np.array([1])), keepdims=0)
            anchor, value, slope = (self.add("Gather", part, piece) for part in (anchor, value, slope))
        found = self.add("Add", value, self.add("Mul", slope, self.add("Sub", u, anchor)))
        return self.add("Cast", found, to=1) if term.kind == DATE else found

    def _lookup(self, term: Lookup) -> str:
        n = len(term.levels)
        keys = {"keys_strings": [*term.levels, ""]} if term.kind == TEXT else {"keys_floats": [*term.levels, float("nan")]}
        codes = {"values_int64s": [*range(n), n + 1], "default_int64": n}
        row = self.add("LabelEncoder", term.column, domain="ai.onnx.ml", **keys, **codes)
        return self.add("Gather", self.constant(term.rows), self.add("Reshape", row, self.constant(np.array([-1]))))

    def label(self, score: str, classes: tuple[Any, ...]) -> str:
        """Labels (n_rows,)."""
        if len(classes) == 2:
            row = self.add("Cast", self.add("Greater", score, self.constant(np.float32(0))), to=7)
        else:
            row = self.add("ArgMax", score, axis=1)
        return self.add("Gather", self.constant(np.array(classes)), self.add("Reshape", row, self.constant(np.array([-1]))))

    def probabilities(self, score: str, formula: Formula) -> str:
        """Probabilities (n_rows, n_classes)."""
        if len(formula.intercept) > 1 and formula.probabilities == "softmax":
            return self.add("Softmax", score, axis=1)
        p = self.add("Sigmoid", score)
        if len(formula.intercept) > 1:
            total = self.add("ReduceSum", p, self.constant(np.array([1])), keepdims=1)
            return self.add("Div", p, self.add("Max", total, self.constant(np.float32(1e-30))))
        if formula.flip:
            share = self.add("Mul", p, self.constant(np.float32(1.0 - 2.0 * formula.flip)))
            p = self.add("Add", share, self.constant(np.float32(formula.flip)))
        return self.add("Concat", self.add("Sub", self.constant(np.float32(1)), p), p, axis=1)
