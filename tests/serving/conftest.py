"""A small run on a table and one on images, and what serves them."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from starlette.testclient import TestClient

import shortlist as sl
from shortlist.serving.app import make_app
from shortlist.serving.limits import Limits
from tests.runs.made_texts import write_comments


@pytest.fixture(scope="session")
def leaves(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    random = np.random.default_rng(0)
    shore, length = random.choice(["north", "south"], 200), random.normal(10, 3, 200).round(1)
    table = pd.DataFrame({"length": length, "shore": shore})
    table["species"] = np.where(shore == "south", "birch", np.where(length > 10, "oak", "elm"))
    table.to_csv(folder / "leaves.csv", index=False)
    source = {"reader": "features", "path": str(folder / "leaves.csv"), "labels_key": "species"}
    config = {"data": {"train": source, "calibration": 60}, "objective": "cross-entropy", "epochs": 3}
    run = sl.runs.train(config, folder / "leaves")["run"]
    sl.runs.calibrate(run, rules=["average-k:k=1.5", "conformal:alpha=0.1", "top-k:k=2"])
    return run


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for row in range(12):
        place = folder / "images" / ("day", "night")[row % 2] / f"{row:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 100, (16, 16, 3)) + 155 * (row % 2 == 0)
        Image.fromarray(pixels.astype(np.uint8)).save(place)
    source = {"reader": "image-folder", "path": str(folder / "images"), "size": 12}
    config = {"data": {"train": source}, "backbone": "convnet", "epochs": 1}
    run = sl.runs.train(config, folder / "photos")["run"]
    sl.runs.calibrate(run, rules=["top-k:k=1"], data="train")
    return run


@pytest.fixture(scope="session")
def predictor(leaves):
    return sl.load_run(leaves)


@pytest.fixture
def client(predictor):
    with TestClient(make_app(predictor, "leaves", limits=Limits(rows=20, body=10_000, pixels=5000))) as made:
        yield made


@pytest.fixture(scope="session")
def sayings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sayings")
    path = write_comments(folder / "comments.csv", 60)
    source = {"reader": "text-table", "path": str(path), "text_column": "comment", "labels_key": "mood"}
    config = {"data": {"train": source, "calibration": 15}, "backbone": "tf-idf", "epochs": 12}
    config["optimizer"] = {"name": "adamw", "lr": 0.1}
    run = sl.runs.train(config, folder / "sayings")["run"]
    sl.runs.calibrate(run, rules=["top-k:k=1"])
    return run
