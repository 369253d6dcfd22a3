"""A graph in the making: one call adds one node and gives the name of its result."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.optional import require

Value = str | NDArray[Any] | np.generic  # the name of a result, or a constant

PLAIN_OPSET = 18  # known to every onnxruntime since 2023
HASH_OPSET = 26  # the first that can read the bits of a number (BitCast), which the hash that breaks ties needs


class Graph:
    """Nodes and constants, in order.

    >>> graph = Graph()
    >>> graph("Mul", "scores", np.float32(2)), [node.op_type for node in graph.nodes], graph.opset
    ('shortlist/2', ['Mul'], 18)
    """

    def __init__(self) -> None:
        self._onnx = require("onnx", "export")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.opset = PLAIN_OPSET
        self._count = 0

    def __call__(self, operator: str, *inputs: Value, **attributes: Any) -> str:
        """The name of a node's first result."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, results: int, *inputs: Value, **attributes: Any) -> list[str]:
        """The names of a node's results."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        found = [self._name() for _ in range(results)]
        self.nodes.append(self._onnx.helper.make_node(operator, names, found, **attributes))
        return found

    def constant(self, value: Any) -> str:
        name = self._name()
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def cast(self, value: Value, kind: str) -> str:
        """As another type: FLOAT, DOUBLE, INT64, UINT64, BOOL."""
        return self("Cast", value, to=getattr(self._onnx.TensorProto, kind))

    def named(self, value: str, name: str) -> str:
        """The same result under a name of our choice."""
        self.nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        return name

    def start_after(self, other: "Graph") -> None:
        """Take names that another graph has not taken."""
        self._count = other._count

    def _name(self) -> str:
        self._count += 1
        return f"shortlist/{self._count}"
