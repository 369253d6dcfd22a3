"""A run as an ONNX file gives the scores, probabilities and sets of the run."""

import json
import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image

import shortlist as sl
from shortlist.errors import ShortlistError
from shortlist.runs.export import export
from shortlist.runs.run import Run

SPECIES = ["birch", "elm", "oak"]


def table(rows: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    shore, length = random.choice(["north", "south", None], rows), random.normal(10, 3, rows).round(1)
    found = pd.DataFrame({"length": length, "shore": shore, "age": random.integers(1, 9, rows)})
    found.loc[::17, "length"] = np.nan
    found.loc[8::50, "age"] = 9999  # far from all others: cut off
    found["seen"] = pd.date_range("2024-01-01", periods=rows, freq="7h").strftime("%d/%m/%Y %H:%M")
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A run on a table of numbers, names and blanks, and the result of its export."""
    folder = tmp_path_factory.mktemp("leaves")
    rows = table(300, 0)
    rows["species"] = np.where(rows["shore"] == "south", "birch", np.where(rows["length"] > 10, "oak", "elm"))
    rows.to_csv(folder / "leaves.csv", index=False)
    source = {"reader": "features", "path": str(folder / "leaves.csv"), "labels_key": "species"}
    config = {
        "data": {"train": source, "calibration": 60, "na_values": ["", "NA", 8]},
        "objective": "cross-entropy",
        "epochs": 3,
    }
    run = sl.runs.train(config, folder / "run")["run"]
    sl.runs.calibrate(run, rules=["average-k:k=1.5", "top-k:k=2"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.ShortlistWarning)  # the rows that it is compared by are nobody's
        return run, folder, export(run, out=folder / "model.onnx", rule="average-k-1.5")


def test_the_raw_columns_of_a_table_give_the_sets_of_the_run(exported) -> None:
    run, folder, done = exported
    new = table(10_000, 1)
    new.loc[5, "shore"] = "east"  # never seen
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    days = (pd.to_datetime(new["seen"], format="%d/%m/%Y %H:%M") - pd.Timestamp(0)) / pd.Timedelta(days=1)
    numbers, names = new[["length", "age"]].assign(seen=days).to_numpy(), new[["shore"]].fillna("").to_numpy(object)
    scores, probabilities, sets = session.run(None, {"numbers": numbers, "categories": names})
    predictor = sl.load_run(run)
    assert np.abs(scores - predictor.scores(new).numpy()).max() < 1e-5
    assert np.abs(probabilities - predictor.probabilities(new).numpy()).max() < 1e-6
    wanted = predictor.predict_sets(new, "average-k-1.5").to_dense()
    differ = (sets != wanted).any(1)
    near = np.abs(probabilities - predictor.rules["average-k-1.5"].threshold).min(1) < 1e-5
    assert (near | ~differ).all()
    assert differ.sum() <= 5
    assert [one["name"] for one in done["inputs"]] == ["numbers", "categories"]
    assert done["inputs"][0]["days since 1970"] == ["seen"]
    assert done["checked"]["rows whose sets differ"] == 0


def test_the_file_says_what_it_is(exported) -> None:
    _, folder, _ = exported
    model = onnx.load(folder / "model.onnx")
    said = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert said["shortlist.labels"] == SPECIES
    assert said["shortlist.rule"] == "average-k-1.5"
    assert said["shortlist.calibration_rows"] == 60
    assert said["shortlist.calibrated_on"] == "calibration"
    assert said["shortlist.calibrated_at"] is not None
    assert said["shortlist.inputs"][0]["columns"] == ["length", "age", "seen"]
    assert "promise" in " ".join(said)


@pytest.mark.parametrize("encoder", [None, "identity"], ids=["images", "features of images"])
def test_images_go_in_as_pixels(tmp_path, encoder) -> None:
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (24, 18, 15, 3), dtype=np.uint8)
    for row, image in enumerate(pixels):
        place = tmp_path / "images" / SPECIES[row % 3] / f"{row:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    source = {"reader": "image-folder", "path": str(tmp_path / "images"), "size": 12}
    config = {"data": {"train": source}, "backbone": "convnet", "epochs": 1}
    if encoder is not None:
        made = {"encoder": encoder, "cache": str(tmp_path / "cache")}
        config = {"data": {"train": source, **made}, "epochs": 1}
    run = sl.runs.train(config, tmp_path / "run")["run"]
    export(run, out=tmp_path / "model.onnx", rule="threshold:value=0.3")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    images = [Image.fromarray(image) for image in pixels]
    resized = np.stack([np.asarray(image.resize((12, 12))) for image in images])  # as the guide says
    scores = session.run(["scores"], {"pixels": resized})[0]
    resizing = json.loads(session.get_modelmeta().custom_metadata_map["shortlist.resizing"])
    assert resizing == {"filter": "bicubic", "crop": False}
    assert np.abs(scores - sl.load_run(run).scores(images).numpy()).max() < 1e-4


class Unexportable(torch.nn.Module):
    out_features = 2

    def forward(self, x):
        return x[:, :2] * float(x.sum())  # a number that leaves the graph


def test_a_network_that_pytorch_cannot_export_is_refused_before_anything_is_written(tmp_path, exported) -> None:
    opened = Run(exported[0])
    opened.predictor().model.backbone = Unexportable()
    with pytest.raises(ShortlistError, match="cannot export this network"):
        export(opened, out=tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("rule", "out", "said"), [
    ("top-k-2", "model.pt", "ends in .onnx"),
    ("conformal-0.1", "model.onnx", "there is no fitted rule"),
    ("top-k:k=9", "model.onnx", "k must be between 1 and 3"),
])  # fmt: skip
def test_wrong_requests_are_refused_before_anything_is_written(rule, out, said, exported, tmp_path) -> None:
    with pytest.raises(ShortlistError, match=said):
        export(exported[0], out=tmp_path / out, rule=rule)
    assert list(tmp_path.iterdir()) == []
