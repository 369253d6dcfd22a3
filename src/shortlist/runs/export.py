"""A run as one ONNX file: from what it takes to scores, probabilities and the sets of a rule."""

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.choices import Choices
from shortlist.data.column_use import as_option
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.exporting.columns import inputs_of
from shortlist.exporting.model import FEATURES, PIXELS, example_inputs, make_model, run_model
from shortlist.exporting.networks import FromPixels
from shortlist.exporting.nodes import HASH_OPSET
from shortlist.exporting.rules import check_exportable
from shortlist.files import PathLike, written_whole
from shortlist.optional import require
from shortlist.runs.inputs import Inputs
from shortlist.runs.predictor import Predictor
from shortlist.runs.run import Run, open_run
from shortlist.sets import SetRule

_CHECKED = 64  # made-up rows by which the file is compared with the run
_TOLERANCE = 1e-3  # of a score, beside 1


def export(
    run: Run | PathLike, *, out: PathLike, rule: str | None = None, allow_import: Sequence[str] = ()
) -> dict[str, Any]:
    """Write a run as an ONNX model with the outputs ``scores``, ``probabilities`` (not of an objective that only ranks)
    and ``sets`` (True where the label is in the set), for any number of rows. It is what ``shortlist export`` does, and
    prints as JSON.

    A table's columns go in as they are written: ``numbers`` (double, NaN for blanks; dates are days since 1970) and
    ``categories`` (text); images as ``pixels``, uint8 (rows, height, width, 3), already resized; other runs take
    ``features``. ``rule`` is one that was fitted, or one that needs no fitting, such as ``"top-k:k=3"``. The metadata
    of the file names labels and inputs, the rule, what it promises and what it was calibrated on. What cannot be
    exported is refused before anything is written.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     done = export(run, out=f"{folder}/model.onnx", rule="threshold:value=0.1")
    >>> done["inputs"], done["outputs"]
    ([{'name': 'features', 'type': 'float32', 'shape': [128]}], ['scores', 'probabilities', 'sets'])
    """
    place = Path(out)
    if place.suffix != ".onnx":
        raise ShortlistError(f"--out {place}: the file of an ONNX model ends in .onnx")
    for package in ("onnx", "onnxruntime", "onnxscript"):
        require(package, "export")
    opened = open_run(run, allow_import)
    opened.check_predicts()
    if opened.inputs.counts_words:
        raise ShortlistError(f"{opened.path} is a run on texts, and ONNX has no words: serve it with shortlist serve")
    predictor = opened.predictor()
    if predictor.crops > 1:
        raise ShortlistError(
            f"the run answers by {predictor.crops} crops of every image, which one graph cannot: set crops: 1 in its "
            f"config.yaml, calibrate it again, and export"
        )
    name, chosen = predictor.rule(rule)
    check_exportable(chosen)
    inputs = opened.inputs
    network, shape, pixels = _network(predictor, inputs)
    preprocessor = inputs.preprocessor if isinstance(inputs.preprocessor, Preprocessor) else None  # texts were refused
    several = [] if preprocessor is None else [one for one in preprocessor.categories if isinstance(one, Choices)]
    if several and preprocessor is not None:
        name = (preprocessor.column_names or ())[several[0].column]
        raise ShortlistError(
            f"the column {name!r} holds several choices in a cell, and ONNX does not cut texts: train with "
            f"data.train.name_columns={as_option([name])}, which takes each cell as one name, or serve the run"
        )
    model = make_model(
        network,
        shape,
        pixels=pixels,
        preprocessor=preprocessor,
        link=None if predictor.only_ranks else predictor.link_beside(chosen),
        rule=chosen,
        label_names=predictor.label_names,
        facts=rule_facts(name, chosen)
        | {"run": opened.path.name, "objective": opened.config.objective.name}
        | ({"resizing": inputs.resizing} if pixels else {}),
    )
    checked = _compared(model, network, preprocessor, chosen)
    with written_whole(place) as file:
        file.write(model.SerializeToString())
    return {
        "written": os.fspath(out),
        "rule": name,
        "promise": chosen.promise,
        "inputs": _described(model),
        "outputs": [output.name for output in model.graph.output],
        "opset": model.opset_import[0].version,
        "breaks ties by hash": model.opset_import[0].version >= HASH_OPSET,
        "checked": checked,
    }


def rule_facts(name: str, rule: SetRule) -> dict[str, Any]:
    """What whoever gets its sets should know of a rule."""
    return {
        "rule": name,
        "rule_settings": repr(rule),
        "promise": rule.promise,
        "calibrated_on": rule.fitted_on,
        "calibrated_at": rule.fitted_at,
        "calibration_rows": rule.rows,
    }


def _network(predictor: Predictor, inputs: Inputs) -> tuple[torch.nn.Module, tuple[int, ...], bool]:
    """What makes scores, the shape of one of its inputs, and whether these are pixels."""
    if inputs.preprocessor is not None or not inputs.takes_images:
        return predictor, inputs.in_shape, False
    looks = predictor.first_network()
    mean, std, (height, width) = inputs.pixel_scale
    mean, std = getattr(looks, "pixel_mean", None) or mean, getattr(looks, "pixel_std", None) or std
    return FromPixels(predictor, tuple(mean), tuple(std)).eval(), (height, width, len(mean)), True


def _described(model: Any) -> list[dict[str, Any]]:
    known = {prop.key: prop.value for prop in model.metadata_props}
    return json.loads(known["shortlist.inputs"])


def _compared(
    model: Any, network: torch.nn.Module, preprocessor: Preprocessor | None, rule: SetRule
) -> dict[str, Any]:
    """Scores and sets of made-up rows by onnxruntime beside those of the run."""
    given = example_inputs(model, preprocessor, _CHECKED)
    found = run_model(model, given)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortlistWarning)  # of made-up rows, some names of which are new
        scores = network(_for_network(given, preprocessor)).float().numpy()
    apart = np.abs(found["scores"] - scores)
    if not (apart <= _TOLERANCE * (1 + np.abs(scores))).all():
        raise ShortlistError(
            f"nothing is written: on made-up rows the ONNX graph gives scores that differ from the run's by up to "
            f"{apart.max():.3g}"
        )
    differ = (found["sets"] != rule.predict(scores).to_dense()).any(1)
    return {
        "rows": _CHECKED,
        "largest difference of scores": float(apart.max()),
        "rows whose sets differ": int(differ.sum()),
    }


def _for_network(given: dict[str, NDArray[Any]], preprocessor: Preprocessor | None) -> torch.Tensor:
    """Made-up inputs as the run itself makes them: columns are features by then."""
    if preprocessor is None:
        return torch.from_numpy(given[PIXELS if PIXELS in given else FEATURES])
    columns: dict[str, NDArray[Any]] = {}
    for one in inputs_of(preprocessor):
        columns |= dict(zip(one["columns"], given[one["name"]].T, strict=True))
    if preprocessor.column_names is None:
        table = np.zeros((_CHECKED, preprocessor.num_columns))
        for name, values in columns.items():
            table[:, int(name)] = values
        made = preprocessor.transform(table)
    else:
        pandas = require("pandas")
        columns |= {name: pandas.to_datetime(columns[name], unit="D") for name in preprocessor.dates}
        made = preprocessor.transform(pandas.DataFrame(columns))
    return torch.from_numpy(made.toarray() if hasattr(made, "tocsr") else made)
