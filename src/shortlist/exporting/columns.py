"""The columns of a table as features, as nodes: what a `Preprocessor` learnt, from raw numbers and names."""

from typing import Any

import numpy as np

from shortlist.data.cells import is_number
from shortlist.data.column_features import Categories, Numbers
from shortlist.data.frame_columns import MISSING
from shortlist.data.preprocessing import Preprocessor
from shortlist.exporting.nodes import Graph

NUMBERS, NAMES = "numbers", "categories"  # what the inputs of a table are called


def inputs_of(prepared: Preprocessor) -> list[dict[str, Any]]:
    """The inputs that the graph wants: name, type, and the columns in their order."""

    def named(columns: Any) -> list[str]:
        return [str(column) if prepared.column_names is None else prepared.column_names[column] for column in columns]

    if prepared.kind == "sparse":
        return [{"name": NUMBERS, "type": "double", "columns": [str(n) for n in range(prepared.num_columns)]}]
    found = []
    if prepared.numbers is not None:
        days = {"days since 1970": list(prepared.dates)} if prepared.dates else {}
        found.append({"name": NUMBERS, "type": "double", "columns": named(prepared.numbers.columns), **days})
    if prepared.categories:
        found.append({"name": NAMES, "type": "string", "columns": named(one.column for one in prepared.categories)})
    return found


def features_of(graph: Graph, prepared: Preprocessor) -> str:
    """Features, float32 (rows, width), of these inputs."""
    if prepared.kind == "sparse":
        features = graph.cast(NUMBERS, "FLOAT")
        scale = prepared.sparse_scale
        return features if scale is None else graph("Div", features, scale.astype(np.float32))
    parts = [] if prepared.numbers is None else _numbers(graph, prepared.numbers, prepared.na_values)
    for place, one in enumerate(prepared.categories):
        column = graph("Gather", NAMES, np.int64(place), axis=1)
        parts.append(_one_hot(graph, one, column, prepared.na_values))
    return graph("Concat", *parts, axis=1)


def _numbers(graph: Graph, numbers: Numbers, na_values: tuple[str, ...]) -> list[str]:
    blank = graph("IsNaN", NUMBERS)
    for text in na_values:
        if is_number(text) and np.isfinite(float(text)):
            blank = graph("Or", blank, graph("Equal", NUMBERS, np.float64(text)))
    filled = graph("Where", blank, numbers.fill, NUMBERS)
    if numbers.cut or numbers.reach:
        low, high = numbers.bounds()
        filled = graph("Min", graph("Max", filled, low), high)
    scaled = graph("Div", graph("Sub", filled, numbers.centre), numbers.scale)
    parts = [graph.cast(scaled, "FLOAT")]
    if numbers.marked:
        marks = graph("Gather", graph.cast(blank, "FLOAT"), np.array(numbers.marked, np.int64), axis=1)
        parts.append(marks)
    return parts


def _one_hot(graph: Graph, categories: Categories, column: str, na_values: tuple[str, ...]) -> str:
    place = {name: number for number, name in enumerate(categories.names)}
    rare = len(place)  # also of what was never seen; left out below where there is no such place
    known = dict.fromkeys(na_values, place.get(MISSING, rare)) | place
    for name, number in place.items():  # a column of which all other rows hold numbers may come as numbers: 1.0 is 1
        if is_number(name):
            known.setdefault(str(float(name)), number)
    names, numbers = list(known), list(known.values())
    found = graph(
        "LabelEncoder", column, domain="ai.onnx.ml", keys_strings=names, values_int64s=numbers, default_int64=rare
    )
    hot = graph("OneHot", found, np.int64(rare + 1), np.array([0, 1], np.float32), axis=-1)
    return graph("Slice", hot, np.array([0]), np.array([categories.width]), np.array([1]))
