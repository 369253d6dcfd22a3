"""The whole of a predictor as one ONNX model: inputs, network, probabilities, and the sets of one rule."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shortlist import __version__
from shortlist.data.preprocessing import Preprocessor
from shortlist.exporting.columns import NAMES, NUMBERS, features_of, inputs_of
from shortlist.exporting.networks import ROWS, network_model
from shortlist.exporting.nodes import Graph
from shortlist.exporting.rules import linked, sets_of
from shortlist.links import AnyLink
from shortlist.optional import require
from shortlist.sets import SetRule

FEATURES, PIXELS, SCORES = "features", "pixels", "scores"
_IR = 10  # the format of the file: runtimes refuse newer ones than they know


def make_model(
    network: nn.Module,
    in_shape: Sequence[int],
    *,
    pixels: bool,
    preprocessor: Preprocessor | None,
    link: AnyLink | None,
    rule: SetRule,
    label_names: Sequence[str],
    facts: Mapping[str, Any],
) -> Any:
    """The model from inputs to ``scores``, ``probabilities`` (of a link) and ``sets``, bool (rows, labels).

    The network takes features of ``in_shape``; with ``pixels``, uint8 (height, width, channels). A preprocessor makes
    the features of a table's columns. ``facts`` go into the metadata, as JSON.
    """
    onnx = require("onnx", "export")
    kinds = {"double": onnx.TensorProto.DOUBLE, "string": onnx.TensorProto.STRING}
    name, kind = (PIXELS, torch.uint8) if pixels else (FEATURES, torch.float32)
    before, after = Graph(), Graph()
    described: list[dict[str, Any]] = [{"name": name, "type": str(kind)[6:], "shape": list(in_shape)}]  # torch.uint8
    if preprocessor is not None:
        described = inputs_of(preprocessor)
        before.named(features_of(before, preprocessor), name)
    after.start_after(before)
    shape = [ROWS, len(label_names)]
    outputs = [onnx.helper.make_tensor_value_info(SCORES, onnx.TensorProto.FLOAT, shape)]
    if link is not None:
        after.named(linked(after, SCORES, link), "probabilities")
        outputs.append(onnx.helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, shape))
    after.named(sets_of(after, rule, SCORES, len(label_names)), "sets")
    outputs.append(onnx.helper.make_tensor_value_info("sets", onnx.TensorProto.BOOL, shape))
    model = network_model(network, torch.zeros(2, *in_shape, dtype=kind), name)
    inputs = list(model.graph.input)
    if preprocessor is not None:
        inputs = [
            onnx.helper.make_tensor_value_info(one["name"], kinds[one["type"]], [ROWS, len(one["columns"])])
            for one in described
        ]
    if after.opset > model.opset_import[0].version:
        model = onnx.version_converter.convert_version(model, after.opset)
    graph = onnx.helper.make_graph(
        [*before.nodes, *model.graph.node, *after.nodes],
        "shortlist",
        inputs,
        outputs,
        [*before.constants, *model.graph.initializer, *after.constants],
    )
    opsets = [("", model.opset_import[0].version), ("ai.onnx.ml", 3)]
    whole = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(*one) for one in opsets],
        functions=list(model.functions),
        ir_version=_IR,
        producer_name="shortlist",
        producer_version=__version__,
    )
    known = {"labels": list(label_names), "inputs": described, **facts}
    onnx.helper.set_model_props(whole, {f"shortlist.{key}": json.dumps(value) for key, value in known.items()})
    onnx.checker.check_model(whole, full_check=False)
    return whole


def run_model(model: Any, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What onnxruntime makes of these inputs, by the name of each output."""
    runtime = require("onnxruntime", "export")
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def example_inputs(model: Any, preprocessor: Preprocessor | None, rows: int) -> dict[str, NDArray[Any]]:
    """Made-up inputs, the same every time, by which the model can be compared with what it was made of."""
    random = np.random.default_rng(0)
    if preprocessor is None:
        (wanted,) = model.graph.input
        shape = [rows, *(size.dim_value for size in wanted.type.tensor_type.shape.dim[1:])]
        if wanted.name == PIXELS:
            return {PIXELS: random.integers(0, 256, shape, dtype=np.uint8)}
        return {FEATURES: random.normal(size=shape).astype(np.float32)}
    found: dict[str, NDArray[Any]] = {}
    for one in inputs_of(preprocessor):
        if one["name"] == NUMBERS:
            numbers = preprocessor.numbers
            values = random.normal(size=(rows, len(one["columns"])))
            values = values if numbers is None else values * numbers.scale + numbers.centre
            if numbers is not None and numbers.marked:
                values[::3, numbers.marked[0]] = np.nan
            found[NUMBERS] = values
        else:
            choices = [[*of.names, "never seen before"] for of in preprocessor.categories]
            found[NAMES] = np.array([[random.choice(some) for some in choices] for _ in range(rows)], dtype=object)
    return found
