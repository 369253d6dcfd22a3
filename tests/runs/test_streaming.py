"""Scores that are too many to be held: the verbs find and write what they do with all scores at once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from shortlist import LabelSets, ShortlistError, runs
from shortlist.labels import label_set_files
from shortlist.runs import report_data
from shortlist.training import learner, scored
from shortlist.training.scored import Scored

SINGLE = {
    "data": {"train": {"reader": "ambiguous-numbers", "size": 300}, "test": 90},
    "objective": {"name": "smooth-topk", "k": 3},
    "epochs": 1,
    "metrics": ["topk-accuracy@1", "average-k-accuracy@3", "ndcg@5"],
}


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small, and a batch has 16 rows of 100 labels."""
    monkeypatch.setattr(scored, "KEPT_BYTES", 0)
    monkeypatch.setattr(learner, "BATCH_SCORES", 1600)
    monkeypatch.setattr(Scored, "whole", lambda self: pytest.fail("all scores were held"))


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(runs.train(SINGLE, tmp_path_factory.mktemp("runs") / "single")["run"])


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with several labels, some unknown."""
    folder = tmp_path_factory.mktemp("several")
    generator = np.random.default_rng(0)
    features = generator.normal(size=(120, 6)).astype(np.float32)
    labels = (features @ generator.normal(size=(6, 8)) > 1).astype(np.int8)
    labels[generator.random(labels.shape) < 0.1] = -1
    np.savez(folder / "data.npz", X=features, y=labels)
    config = {
        "data": {"train": {"reader": "features", "path": str(folder / "data.npz")}, "validation": 40, "test": 30},
        "objective": {"name": "binary"},
        "epochs": 2,
    }
    return Path(runs.train(config, folder / "run")["run"])


RULES = ["top-k:k=2", "average-k:k=3", "average-k:k=2,min_size=1", "conformal", "conformal:scaling=temperature"]


def found_by(run: Path, out: Path, rules: list[str]) -> dict[str, Any]:
    calibrated = runs.calibrate(run, rules=rules, out=out)
    texts = {file.name: json.loads(file.read_text()) for file in sorted(out.glob("*.json"))}
    for name, text in texts.items():
        if name.startswith("average"):
            del text["state"]["counts"]  # which buckets are open depends on the way there
    return {"rules": texts, **{key: value for key, value in calibrated.items() if key != "written"}}


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, rel=1e-6, nan_ok=True))
    return bool(found == expected)


@pytest.mark.parametrize("kind", ["single", "several"])
def test_calibrate_and_evaluate_find_the_same(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(kind)
    rules = RULES if kind == "single" else [*RULES[:3], "conformal:alpha=0.2", "risk-control:risk=recall,alpha=0.2"]
    whole = found_by(run, tmp_path / "whole", rules)
    runs.calibrate(run, rules=rules)
    metrics = ["propensity-precision@1", "mean-average-precision-sample", "ndcg@3"]
    evaluated = [runs.evaluate(run, "test"), runs.evaluate(run, "test", metrics=metrics)]
    request.getfixturevalue("streaming")
    assert same(found_by(run, tmp_path / "parts", rules), whole)
    assert same([runs.evaluate(run, "test"), runs.evaluate(run, "test", metrics=metrics)], evaluated)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_predict_writes_the_same_file(
    ending: str, single: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole, parts = tmp_path / f"whole{ending}", tmp_path / f"parts{ending}"
    first = runs.predict(single, "test", rule="top-k:k=3", out=whole)
    request.getfixturevalue("streaming")
    second = runs.predict(single, "test", rule="top-k:k=3", out=parts)
    assert {**first, "written": 0} == {**second, "written": 0}
    if ending == ".parquet":
        assert pq.read_table(parts).equals(pq.read_table(whole))
        assert LabelSets.from_parquet(parts) == LabelSets.from_parquet(whole)
    else:
        assert parts.read_bytes() == whole.read_bytes()


def test_parquet_is_written_row_group_by_row_group(
    single: Path, tmp_path: Path, streaming: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_set_files, "_GROUP", 30)
    runs.predict(single, "test", rule="top-k:k=3", out=tmp_path / "sets.parquet")
    metadata = pq.ParquetFile(tmp_path / "sets.parquet").metadata
    assert [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)] == [32, 32, 26]


def test_a_prediction_that_fails_in_the_middle_leaves_the_older_file(
    single: Path, tmp_path: Path, streaming: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Scored.batches

    def failing(self: Scored) -> Any:
        for number, batch in enumerate(batches(self)):
            if number == 3:
                raise KeyboardInterrupt
            yield batch

    for ending in (".csv", ".parquet", ".jsonl"):
        place = tmp_path / f"sets{ending}"
        place.write_text("older")
        with monkeypatch.context() as patch:
            patch.setattr(Scored, "batches", failing)
            with pytest.raises(KeyboardInterrupt):
                runs.predict(single, "test", rule="top-k:k=3", out=place)
        assert place.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 3


def test_broken_images_are_left_out_of_every_batch(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(0)
    for label in ("dark", "light"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(12):
            pixels = rng.integers(0, 128, (8, 8, 3)) + (120 if label == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / label / f"{number}.png")
    config = {
        "data": {"train": {"reader": "image-folder", "path": str(tmp_path / "photos"), "size": 8}},
        "backbone": {"name": "convnet"},
        "epochs": 1,
    }
    run = runs.train(config, tmp_path / "run")["run"]
    new = tmp_path / "new"
    new.mkdir()
    for number in range(40):
        (new / f"{number:02}.png").write_bytes((tmp_path / "photos" / "dark" / f"{number % 12}.png").read_bytes())
    for number in (3, 20, 21):
        (new / f"{number:02}.png").write_text("no image")
    whole = {ending: tmp_path / f"whole{ending}" for ending in (".csv", ".jsonl")}
    done = [runs.predict(run, new, rule="top-k:k=1", out=place) for place in whole.values()]
    request.getfixturevalue("streaming")
    for (ending, place), first in zip(whole.items(), done, strict=True):
        second = runs.predict(run, new, rule="top-k:k=1", out=tmp_path / f"parts{ending}")
        assert {**first, "written": 0} == {**second, "written": 0}
        assert (second["examples"], len(second["skipped"])) == (37, 3)
        assert (tmp_path / f"parts{ending}").read_bytes() == place.read_bytes()
    for file in new.iterdir():
        file.write_text("no image")
    with pytest.raises(ShortlistError, match="none of the 40 images can be decoded"):
        runs.predict(run, new, rule="top-k:k=1", out=tmp_path / "none.csv")
    assert not (tmp_path / "none.csv").exists()


def test_training_records_the_same_metrics(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    whole = runs.Run(runs.train(SINGLE, tmp_path / "whole")["run"]).records()
    request.getfixturevalue("streaming")
    parts = runs.Run(runs.train(SINGLE, tmp_path / "parts")["run"]).records()
    assert same([{**record, "seconds": 0} for record in parts], [{**record, "seconds": 0} for record in whole])


def test_a_metric_of_ones_own_is_given_all_scores(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored, "KEPT_BYTES", 0)
    monkeypatch.setattr(learner, "BATCH_SCORES", 1600)
    found = runs.evaluate(single, "test", metrics=["tests.runs.test_streaming:rows_seen"], allow_import=[__name__])
    assert found["metrics"] == {"tests.runs.test_streaming:rows_seen": 90}


def rows_seen(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    assert len(scores) == len(target)
    return torch.tensor(float(len(scores)))


def test_a_report_looks_at_as_many_examples_as_can_be_held(
    single: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_data, "FEWEST", 10)
    monkeypatch.setattr(scored, "KEPT_BYTES", 4 * 100 * 30)
    np.save(tmp_path / "groups.npy", np.arange(90) % 2)
    made = runs.report(single, out=tmp_path / "some", groups=tmp_path / "groups.npy")
    assert made["examples"] == 30
    page = (tmp_path / "some" / "index.html").read_text("utf-8")
    assert "30 of 90 examples, drawn at random, because the scores of all would take 0.0 GB" in page
    monkeypatch.setattr(scored, "KEPT_BYTES", 0)
    assert runs.report(single, out=tmp_path / "few", part="train")["examples"] == 10
