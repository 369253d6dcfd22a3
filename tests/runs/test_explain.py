"""``shortlist predict --explain``: for each label, the training examples that speak for it."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from shortlist import runs
from tests.objectives.tiny import FEATURES, LABELS, tiny


def a_run(folder, objective="imcl"):
    data = tiny("label-matrix")
    header = ["name", *(f"f{i}" for i in range(FEATURES)), *(f"y_{i}" for i in range(LABELS))]
    rows = [
        [f"photo-{row}", *(f"{x:.4f}" for x in features), *("" if y < 0 else str(y) for y in target)]
        for row, (features, target) in enumerate(zip(data.features.tolist(), data.target.tolist(), strict=True))
    ]
    (folder / "photos.csv").write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]))
    train = {"reader": "features", "path": str(folder / "photos.csv"), "ids_key": "name"}
    config = {
        "data": {"train": train, "test": 16, "validation": None, "calibration": None},
        "objective": {"name": objective, "warm_up": 0.0} if objective == "imcl" else objective,
        "epochs": 3, "batch_size": 16,
    }  # fmt: skip
    return runs.train(config, folder / "run")["run"]


@pytest.mark.parametrize("objective", ["imcl", "binary"])
def test_every_label_of_a_set_has_its_examples_and_their_shares_add_up(tmp_path, objective):
    run = a_run(tmp_path, objective)
    done = runs.predict(run, "test", rule="top-k:k=2", out=tmp_path / "sets.jsonl", explain=tmp_path / "why.jsonl")
    assert done["written"] == [str(tmp_path / "sets.jsonl"), str(tmp_path / "why.jsonl")]
    why = [json.loads(line) for line in (tmp_path / "why.jsonl").read_text().splitlines()]
    assert len(why) == 32
    for row in why:
        assert len(row["examples"]) == len(row["weights"]) == len(row["shares"]) == len(row["feature_weights"])
        assert row["id"] not in row["examples"]
        assert all(name.startswith("photo-") for name in row["examples"])
        if objective == "binary":
            assert sum(row["shares"]) == pytest.approx(row["value"], abs=1e-4)


def test_of_the_training_part_only_what_was_unknown_is_explained(tmp_path):
    run = a_run(tmp_path)
    place = tmp_path / "why.parquet"
    runs.predict(run, "train", rule="top-k:k=8", out=tmp_path / "sets.csv", explain=place)
    why = pyarrow.parquet.read_table(place).to_pylist()
    (first, *_) = {row["id"] for row in why}
    target = tiny("label-matrix").target[int(first.removeprefix("photo-"))]
    unknown = {str(label) for label in range(LABELS) if target[label] == -1}
    assert {row["label"].removeprefix("y_") for row in why if row["id"] == first} == unknown
    assert all(row["id"] not in row["examples"] for row in why)


def test_new_files_without_labels_are_explained(tmp_path):
    run = a_run(tmp_path)
    lines = (tmp_path / "photos.csv").read_text().splitlines()[:4]
    (tmp_path / "new.csv").write_text("\n".join(line.rsplit(",", LABELS)[0] for line in lines))
    runs.predict(run, tmp_path / "new.csv", rule="top-k:k=1", out=tmp_path / "s.csv", explain=tmp_path / "why.jsonl")
    assert len((tmp_path / "why.jsonl").read_text().splitlines()) == 3


def test_other_endings_and_scores_of_other_models_are_errors(tmp_path):
    with pytest.raises(ValueError, match=r"explanations are written as \.jsonl or \.parquet"):
        runs.predict("run", "test", explain="why.csv")
    with pytest.raises(ValueError, match="--explain is for runs"):
        runs.predict(scores="scores.npy", explain="why.jsonl")


def test_the_report_explains_any_run_that_is_asked_for(tmp_path):
    run = a_run(tmp_path, "binary")
    assert "Why these labels" not in Path(runs.report(run)["written"]).read_text("utf-8")
    assert "Of the part test" in Path(runs.report(run, explain=True)["written"]).read_text("utf-8")
