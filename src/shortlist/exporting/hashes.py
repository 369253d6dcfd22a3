"""The hash that breaks ties (`shortlist.sets._hash`) and labels in order, as nodes: whole numbers of 64 bits, so that
every runtime gives the same bits."""

import numpy as np
from numpy.typing import NDArray

from shortlist.exporting.nodes import HASH_OPSET, Graph, Value

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
_SIGN = np.uint64(1 << 63)


def mix(graph: Graph, x: Value) -> str:
    """The splitmix64 finaliser."""
    for shift, factor in _FACTORS:
        x = graph("Mul", graph("BitwiseXor", x, _shifted(graph, x, shift)), factor)
    return graph("BitwiseXor", x, _shifted(graph, x, 31))


def row_hashes(graph: Graph, scores: str, num_labels: int) -> str:
    """One hash for each row of float32 scores, (rows, 1)."""
    graph.opset = HASH_OPSET
    zero = np.float32(0)
    scores = graph("Where", graph("Equal", scores, zero), zero, scores)  # -0.0 counts as 0.0
    bits = graph.cast(graph("BitCast", scores, to=12), "UINT64")  # 12 is uint32
    numbers = graph("BitwiseOr", mix(graph, _multiples(num_labels)), np.uint64(1))
    # not ReduceSum: that of onnxruntime adds whole numbers as doubles
    return mix(graph, graph("MatMul", bits, graph("Unsqueeze", numbers, np.array([1], np.int64))))


def label_hashes(graph: Graph, rows: str, num_labels: int) -> str:
    """The hash of every row and label, (rows, labels)."""
    return mix(graph, graph("Add", rows, _multiples(num_labels)))


def in_order_of_size(graph: Graph, hashes: Value) -> str:
    """Signed numbers in the order of the unsigned hashes: runtimes sort and compare these."""
    return graph.cast(graph("BitwiseXor", hashes, _SIGN), "INT64")


def descending(graph: Graph, values: str, scores: str, num_labels: int) -> str:
    """The labels of each row by falling value, equal values by the hash of the raw row and the label."""
    every = np.array([num_labels], np.int64)
    hashes = in_order_of_size(graph, label_hashes(graph, row_hashes(graph, scores, num_labels), num_labels))
    _, by_hash = graph.several("TopK", 2, hashes, every, largest=0)
    # TopK leaves equal values in the order in which they stand: here that of their hashes
    _, places = graph.several("TopK", 2, graph("GatherElements", values, by_hash, axis=1), every)
    return graph("GatherElements", by_hash, places, axis=1)


def ranks(graph: Graph, order: str, num_labels: int) -> str:
    """For each label of each row its place in an order, from 0."""
    places = np.arange(num_labels, dtype=np.int64)[None]
    return in_place(graph, order, graph("Expand", places, graph("Shape", order)))


def in_place(graph: Graph, order: str, values: str) -> str:
    """Values that stand in an order of the labels, back at their labels."""
    return graph("ScatterElements", values, order, values, axis=1)


def best(graph: Graph, scores: str, k: int, num_labels: int) -> str:
    """Which labels are among the k best of their row."""
    return graph("Less", ranks(graph, descending(graph, scores, scores, num_labels), num_labels), np.int64(k))


def uniform(graph: Graph, scores: str, seed: int, num_labels: int) -> str:
    """A number in [0, 1) for each row, of the seed and the row's content, (rows, 1)."""
    key = mix(graph, np.array([seed % 2**64], np.uint64))
    mixed = mix(graph, graph("BitwiseXor", row_hashes(graph, scores, num_labels), key))
    return graph("Mul", graph.cast(_shifted(graph, mixed, 11), "DOUBLE"), np.float64(2.0**-53))


def _multiples(num_labels: int) -> NDArray[np.uint64]:
    return np.arange(1, num_labels + 1, dtype=np.uint64) * _GOLDEN


def _shifted(graph: Graph, x: Value, places: int) -> str:
    return graph("BitShift", x, np.uint64(places), direction="RIGHT")
