"""Runs on tables of numbers of very different scale, categories and blanks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from shortlist import ShortlistError, runs
from shortlist.runs.find_data import find_data
from shortlist.runs.prepare import prepare

TRAIN = {"reader": "features", "path": "table.csv", "labels_key": "kind"}
CONFIG = {"data": {"train": TRAIN, "validation": 60, "calibration": None, "test": 200}, "epochs": 20}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Income, a small share, blanks and a city, all of which tell the kinds apart."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    lines = ["income,share,age,city,kind"]
    for _ in range(800):
        kind = int(random.integers(3))
        income, share = 3e6 + 1e6 * (random.normal() + kind), 1e-3 * (random.normal() - (kind == 1))
        age = "NA" if random.random() < 0.2 else f"{random.normal() * 10 + 30 + 8 * (kind == 2):.1f}"
        city = ("Oslo", "Rome", "Lima")[kind if random.random() < 0.5 else int(random.integers(3))]
        lines.append(f"{income:.0f},{share:.6f},{age},{city},{'abc'[kind]}")
    Path("table.csv").write_text("\n".join(lines))
    return Path("table.csv")


def test_a_mixed_table_trains_as_well_as_a_pipeline_of_scikit_learn(table: Path) -> None:
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    run = runs.Run(runs.train(CONFIG, "run")["run"])
    assert run.records()[0]["loss"] < math.log(3)
    ours = runs.evaluate(run, "test", metrics=["topk-accuracy@1"])["metrics"]["topk-accuracy@1"]

    frame = pd.read_csv(table)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    columns = make_column_transformer((numbers, ["income", "share", "age"]), (OneHotEncoder(), ["city"]))
    pipeline = make_pipeline(columns, LogisticRegression(max_iter=1000))
    theirs = cross_val_score(pipeline, frame, frame["kind"], cv=5).mean()  # over all rows: less noise than one part has
    assert ours > theirs - 0.05


def test_what_was_fitted_is_kept_and_used_whatever_the_new_data_looks_like(table: Path) -> None:
    run = runs.Run(runs.train(CONFIG, "run")["run"])
    kept = json.loads((run.path / "preprocessing.json").read_text())
    assert kept["column_names"] == run.facts["columns"] == ["income", "share", "age", "city"]
    train = prepare(CONFIG).parts["train"]  # fitted on the training part alone: it, and not the whole, has mean 0
    assert torch.allclose(train.inputs[:, :3].mean(0), torch.zeros(3), atol=1e-5)

    before, _ = find_data(run, "test")
    Path("one.csv").write_text("city,age,share,income\nOslo,?,0.0001,3000000\nParis,40,0,5000000\n")
    data, _ = find_data(run, "one.csv", labelled=False)
    assert torch.isfinite(run.scores(data)).all()
    assert run.preprocessed(data).in_shape == before.in_shape
    (run.path / "preprocessing.json").unlink()
    with pytest.raises(ShortlistError, match="there is no file"):
        runs.evaluate(runs.Run(run.path), "test")


def test_one_key_turns_it_off(table: Path) -> None:
    ready = prepare(CONFIG, overrides=["data.preprocess=none", "data.train.input_columns=[income,share]"])
    assert ready.preprocessor is None
    assert float(ready.parts["train"].inputs[:, 0].mean()) > 1e6


def test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", X=np.full((40, 2), 7.0, dtype="f4"), y=np.arange(40) % 2)
    data = {"train": {"reader": "features", "path": str(tmp_path / "all.npz"), "num_labels": 2}}
    ready = prepare({"data": data})
    assert (ready.preprocessor, float(ready.parts["train"].inputs.min())) == (None, 7.0)


def test_a_run_on_a_table_is_resumed_with_what_was_fitted(table: Path) -> None:
    whole = runs.Run(runs.train(CONFIG, "whole", overrides=["epochs=2"])["run"])
    half = runs.Run(runs.train(CONFIG, "half", overrides=["epochs=1"])["run"])
    config = (half.path / "config.yaml").read_text()
    (half.path / "config.yaml").write_text(config.replace("epochs: 1\n", "epochs: 2\n"))
    runs.train(resume=half.path)
    assert runs.Run(half.path).records()[1]["loss"] == whole.records()[1]["loss"]
