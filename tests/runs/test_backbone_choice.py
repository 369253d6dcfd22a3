"""The backbone ``auto``: similarities to training rows where they do better, settled before the run is made."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix, random_array

import shortlist as sl
from shortlist import runs
from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.estimators import SetClassifier
from shortlist.models import build_backbone
from shortlist.runs.prepare import prepare
from shortlist.runs.train import Interrupted
from shortlist.training import loop
from shortlist.training.features_cache import cached_features
from tests.cli.command import run_here

LABELS = [f"y{label}" for label in range(10)]
AT_ONCE: dict[str, Any] = {"objective": "binary", "optimizer": "lbfgs", "backbone": "auto"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def products(rows: int) -> pd.DataFrame:
    """Ten labels, each of which is present where two of twelve columns have the same sign."""
    x = np.random.default_rng(rows).normal(size=(rows, 12))
    x = np.sign(x) + 0.3 * x
    y = {name: (x[:, at % 4] * x[:, (at + 1 + at // 4) % 4] > 0).astype(int) for at, name in enumerate(LABELS)}
    columns = {f"x{at}": 2.0**at * (x[:, at] + at) for at in range(12)}
    return pd.DataFrame(columns | y)


def planes(rows: int) -> pd.DataFrame:
    """Labels that a linear model tells."""
    frame = products(rows)
    values = frame[[f"x{at}" for at in range(12)]]
    signs = np.sign(values - values.mean())
    return frame.assign(**{name: (signs[f"x{at}"] > 0).astype(int) for at, name in enumerate(LABELS)})


def halves(rows: int) -> pd.DataFrame:
    """Six labels that a linear model tells best, and four that it does not."""
    frame = products(rows)
    x = np.stack([frame[f"x{at}"] / 2.0**at - at for at in range(12)], axis=1)
    sums = x @ np.random.default_rng(7).normal(size=(12, 6))
    return frame.assign(**{name: (sums[:, at] > 0).astype(int) for at, name in enumerate(LABELS[:6])})


def source(frame: pd.DataFrame, path: str = "all.csv") -> dict[str, Any]:
    frame.to_csv(path, index=False)
    return {"reader": "features", "path": path, "label_columns": LABELS}


def alone(frame: pd.DataFrame) -> dict[str, Any]:
    """All rows to train on."""
    return {"train": source(frame), "validation": None, "calibration": None}


@pytest.fixture
def fitted(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """A run that ``shortlist fit`` made of a table, and what it said."""
    source(products(400))
    result = run_here(capsys, "fit", "all.csv", "-o", "run", *(f"--labels={name}" for name in LABELS))
    assert result.code == 0, result.err
    return "run", result.err


def test_fit_takes_similarities_where_they_do_better_and_says_so(fitted: tuple[str, str]) -> None:
    run, said = runs.Run(fitted[0]), fitted[1]
    assert (run.config.backbone.name, run.config.backbone.options["landmarks"]) == ("similarities", 120)
    assert run.config.optimizer.name == "lbfgs"
    assert "backbone: {name: auto}" in said
    tried = run.facts["backbones_tried"]
    assert tried["similarities"]["loss"] < tried["identity"]["loss"]
    told = "similarities to 120 training rows: better than a linear model of the columns on each of three folds (loss "
    told += f"{tried['similarities']['loss']:.4g} and first label right in "
    assert f"backbone: {told}" in said
    assert told in Path("run/report/index.html").read_text("utf-8")
    assert run.records()[0]["seconds"] > 0
    metrics = runs.evaluate(run, "test")["metrics"]
    runs.fit("all.csv", "linear", labels=LABELS, overrides=["backbone=identity"])
    linear = runs.evaluate("linear", "test")["metrics"]
    assert metrics["mean-average-precision"] > linear["mean-average-precision"] + 0.1


def test_a_run_of_similarities_goes_wherever_a_run_goes(fitted: tuple[str, str]) -> None:
    new = products(50).drop(columns=LABELS)
    predictor = sl.load_run("run")
    scores = predictor.scores(new)
    assert scores.shape == (50, 10)
    new.to_csv("new.csv", index=False)
    done = runs.predict("run", "new.csv", out="sets.jsonl", explain="why.jsonl")
    lines = [json.loads(line) for line in Path(done["written"][0]).read_text().splitlines()]
    assert [sorted(line["labels"]) for line in lines if "labels" in line] == predictor.predict(new)
    runs.calibrate("run", rules=["top-k:k=3"])
    runs.export("run", out="model.onnx", rule="top-k-3")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    found = session.run(["scores"], {"numbers": new.to_numpy(float)})[0]
    np.testing.assert_allclose(found, scores, atol=1e-3)
    runs.train("run/config.yaml", "again")
    assert torch.equal(sl.load_run("again").scores(new), scores)


def test_a_row_that_is_not_a_number_spoils_no_other(fitted: tuple[str, str]) -> None:
    model, rows = runs.Run("run").learner(), torch.zeros(3, 12)
    rows[1, 2] = torch.nan
    with torch.no_grad():
        assert model.scores(rows).isnan().all(1).tolist() == [False, True, False]


def test_a_run_that_is_interrupted_before_it_is_fitted_resumes_to_the_same_bits(monkeypatch: Any) -> None:
    config = {**AT_ONCE, "data": alone(products(300))}
    runs.train(config, "whole")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop, "fit_at_once", interrupted)
        with pytest.raises(Interrupted, match="--resume run"):
            runs.train(config, "run")
    assert runs.Run("run").config.backbone.name == "similarities"
    runs.train(resume="run")
    found, wanted = (runs.Run(path).weights() for path in ("run", "whole"))
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_similarities_and_columns_have_a_share_each_where_their_mean_does_better() -> None:
    frame, new = halves(300), halves(200)
    runs.train({**AT_ONCE, "data": alone(frame)}, "run")
    run, scores = runs.Run("run"), sl.load_run("run").scores(new)
    assert run.config.backbone.options == {"landmarks": 120, "one_scale": False, "with_columns": True}
    tried = run.facts["backbones_tried"]
    assert tried["similarities"]["loss"] < tried["identity"]["loss"]
    runs.train("run/config.yaml", "again")
    assert torch.equal(sl.load_run("again").scores(new), scores)
    runs.train("run/config.yaml", "columns", overrides=["backbone=identity"])
    runs.train("run/config.yaml", "similar", overrides=["backbone.with_columns=false"])
    parts = [sl.load_run(name).scores(new) for name in ("similar", "columns")]
    shares = torch.linalg.lstsq(torch.stack([part.flatten() for part in parts], 1), scores.flatten()).solution
    mean = scores / shares.sum()
    assert round(float(shares[0] / shares.sum()), 2) in (0.25, 0.5, 0.75)
    torch.testing.assert_close(scores, shares[0] * parts[0] + shares[1] * parts[1], atol=1e-4, rtol=1e-4)
    target = torch.as_tensor(new[LABELS].to_numpy(copy=True))
    lost = [float(sl.functional.binary_loss(each, target)) for each in (scores, mean)]
    assert lost[0] < 0.95 * lost[1]  # a mean is less sure than it might be
    means = [sl.metrics.functional.mean_average_precision(part, target) for part in (scores, *parts)]
    assert means[0] > max(means[1:])
    runs.export("run", out="model.onnx", rule="top-k:k=1")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    numbers = new.drop(columns=LABELS).to_numpy(float)
    np.testing.assert_allclose(session.run(["scores"], {"numbers": numbers})[0], scores, atol=1e-3)


def test_half_of_each_where_a_weight_decay_is_given() -> None:
    frame, new = halves(200), halves(100)
    config = {**AT_ONCE, "data": alone(frame), "optimizer": {"name": "lbfgs", "weight_decay": 1.0}}
    config["backbone"] = {"name": "similarities", "landmarks": 60, "with_columns": True}
    runs.train(config, "run")
    runs.train(config, "columns", overrides=["backbone=identity"])
    runs.train(config, "similar", overrides=["backbone.with_columns=false"])
    scores, *parts = (sl.load_run(name).scores(new) for name in ("run", "similar", "columns"))
    torch.testing.assert_close(scores, (parts[0] + parts[1]) / 2, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "backbone"), [(products, "similarities"), (halves, "similarities"), (planes, "identity")]
)
def test_a_run_answers_as_set_classifier_does(make: Any, backbone: str) -> None:
    frame, new = make(300), make(100).drop(columns=LABELS)
    seed = int(np.random.RandomState(3).randint(2**31 - 1))
    runs.train({**AT_ONCE, "data": alone(frame), "seed": seed}, "run")
    assert runs.Run("run").config.backbone.name == backbone
    peer = SetClassifier(random_state=3).fit(frame.drop(columns=LABELS), frame[LABELS].to_numpy())
    assert (peer.hidden_ != ()) == (backbone == "similarities")
    np.testing.assert_allclose(sl.load_run("run").scores(new), peer.decision_function(new), atol=1e-3)


@pytest.mark.parametrize(
    ("given", "backbone"),
    [
        (["backbone=identity"], "identity"),
        (["backbone=similarities"], "similarities"),
        (["backbone={name: similarities, landmarks: 7}"], "similarities"),
        (["optimizer=lbfgs", "optimizer.weight_decay=1"], "identity"),
        (["epochs=2"], "identity"),
        (["backbone=similarities", "optimizer=adamw", "epochs=2"], "similarities"),
    ],
)
def test_what_is_given_decides(given: list[str], backbone: str) -> None:
    source(products(120))
    done = runs.fit("all.csv", "run", labels=LABELS, overrides=given)
    config = runs.Run("run").config
    assert (done["backbone"], config.backbone.name) == (backbone, backbone)
    assert runs.Run("run").facts["backbones_tried"] is None
    if backbone == "similarities":
        landmarks = runs.Run("run").weights()["backbone.landmarks"]
        assert len(landmarks) == config.backbone.options["landmarks"] == (7 if "landmarks" in given[0] else 72)


def test_a_linear_model_stays_where_similarities_are_not_better(capsys: pytest.CaptureFixture[str]) -> None:
    source(planes(400))
    result = run_here(capsys, "fit", "all.csv", "-o", "run", *(f"--labels={name}" for name in LABELS))
    assert runs.Run("run").config.backbone.name == "identity"
    assert "backbone: a linear model of the columns: similarities to training rows are not better on each" in result.err


def test_sparse_features_stay_linear() -> None:
    x, y = products(120).to_numpy(np.float32)[:, :12], products(120)[LABELS].to_numpy(copy=True)
    data = Dataset(csr_matrix(x), torch.as_tensor(y), tuple(LABELS))
    ready = prepare({**AT_ONCE, "data": {"train": {"reader": "ambiguous-numbers"}}}, parts={"train": data})
    assert ready.config.backbone.name == "identity"
    assert (ready.choice, ready.facts["backbones_tried"]) == (None, None)


def classes(rows: int) -> pd.DataFrame:
    """The first two labels as one of four classes."""
    frame = products(rows)
    return frame.drop(columns=LABELS).assign(kind=["abcd"[2 * a + b] for a, b in frame[["y0", "y1"]].to_numpy()])


def test_fit_takes_similarities_for_single_labels_too(capsys: pytest.CaptureFixture[str]) -> None:
    classes(400).to_csv("all.csv", index=False)
    result = run_here(capsys, "fit", "all.csv", "-o", "run")
    assert result.code == 0, result.err
    run, new = runs.Run("run"), classes(300)
    assert (run.config.backbone.name, run.config.objective.name) == ("similarities", "cross-entropy")
    assert "better than a linear model of the columns on each of three folds (loss " in result.err
    runs.fit("all.csv", "linear", overrides=["backbone=identity"])
    wanted = torch.tensor(new["kind"].map("abcd".index).to_numpy())
    right = [(sl.load_run(name).scores(new).argmax(1) == wanted).float().mean() for name in ("run", "linear")]
    assert right[0] > right[1] + 0.2
    runs.train("run/config.yaml", "again")
    assert torch.equal(sl.load_run("again").scores(new), sl.load_run("run").scores(new))


@pytest.mark.parametrize("target", ["kind", "x0"])
def test_a_run_of_single_labels_answers_as_set_classifier_does(target: str) -> None:
    frame, new = classes(300), classes(100).drop(columns="kind")
    if target == "x0":  # a linear model tells it
        frame["kind"] = np.where(frame["x0"] > 0, "a", "b")
    frame.to_csv("all.csv", index=False)
    read = {"reader": "features", "path": "all.csv", "labels_key": "kind"}
    config = {**AT_ONCE, "objective": "cross-entropy", "seed": int(np.random.RandomState(3).randint(2**31 - 1))}
    runs.train({**config, "data": {"train": read, "validation": None, "calibration": None}}, "run")
    peer = SetClassifier(random_state=3).fit(frame.drop(columns="kind"), frame["kind"])
    assert (peer.hidden_ != ()) == (runs.Run("run").config.backbone.name == "similarities") == (target == "kind")
    np.testing.assert_allclose(sl.load_run("run").scores(new).softmax(1), peer.predict_proba(new), atol=1e-3)


def test_features_of_any_scale_have_similarities_too() -> None:
    """Not a table, which is standardised before: rows far from zero lose nothing to rounding."""
    frame = products(300)
    values, y = frame.drop(columns=LABELS).to_numpy(), frame[LABELS].to_numpy()
    scores = []
    for name, x in (("near", values), ("far", values + 1000 * values.std(0))):
        np.savez(f"{name}.npz", features=x, labels=y)
        read = {"reader": "features", "path": f"{name}.npz", "inputs_key": "features", "labels_key": "labels"}
        data = {"train": read, "validation": None, "calibration": None}
        runs.train({**AT_ONCE, "data": data}, name)
        assert runs.Run(name).config.backbone.name == "similarities"
        scores.append(sl.load_run(name).scores(torch.tensor(x, dtype=torch.float32)))
    torch.testing.assert_close(scores[0], scores[1], atol=0.05, rtol=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"backbone": {"name": "similarities", "landmarks": 0}}, "landmarks must be a whole number of at least 1"),
        ({"backbone": {"name": "similarities", "landmark": 3}}, "did you mean 'landmarks'"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ShortlistError, match=words):
        runs.train({**AT_ONCE, "data": alone(products(60)), **change}, "run")


def test_rows_that_are_nearly_all_equal_have_no_similarities() -> None:
    frame = products(60)
    frame.loc[:50, [f"x{at}" for at in range(12)]] = 1.0
    config = {**AT_ONCE, "data": alone(frame)}
    runs.train(config, "run")
    assert runs.Run("run").config.backbone.name == "identity"
    with pytest.raises(ShortlistError, match="most training rows are equal"):
        runs.train({**config, "backbone": "similarities"}, "other")


def test_sparse_features_and_encoders_have_no_similarities() -> None:
    sparse = csr_matrix(random_array((60, 2000), density=0.01, rng=np.random.default_rng(0)))
    data = Dataset(sparse, torch.eye(2, dtype=torch.int8)[torch.arange(60) % 2], ("a", "b"))
    config = {**AT_ONCE, "backbone": "similarities", "data": {"train": {"reader": "ambiguous-numbers"}}}
    with pytest.raises(ShortlistError, match="similarities are of dense features"):
        prepare(config, parts={"train": data})
    with pytest.raises(ShortlistError, match="name them as its backbone"):
        cached_features(data, build_backbone("similarities", in_shape=(2000,)), ".")
