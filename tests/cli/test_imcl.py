"""IMCL as published, from the command line: captions and word vectors in, explained labels out."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shortlist.cli import main
from tests.cli.command import run_here

THINGS = {"dog": (200, 30, 30), "cat": (30, 200, 30), "kite": (30, 30, 200)}
GLOVE = "dog 1 0.1 0\ncat 0.9 0.3 0\nkite 0 0.2 1\nsky 0.1 0.1 0.9\na 0 0 0.1\n"
CONFIG = """
data:
  train: {reader: coco-words, path: captions.json, images: photos, words: 6, size: 16}
  validation: 8
  calibration: null
  test: 8
  corruptions: [{name: missing-labels, rate: 0.5}]
backbone: {name: convnet, widths: [4, 8]}
objective:
  name: imcl
  warm_up: 0.5
  dictionary: encoded
  graph: vectors
  graph_file: glove.txt
  graph_degree: 2
  graph_start: given
  balance: loss
  search: approximate
  proposed: 20
optimizer: {name: rmsprop, lr: 0.01, momentum: 0.9, decay: 0.9, eps: 1.0}
epochs: 2
batch_size: 4
accumulate: 2
"""


def made_photos() -> None:
    rng = np.random.default_rng(0)
    content: dict[str, list[dict[str, object]]] = {"images": [], "annotations": []}
    Path("photos").mkdir()
    for number in range(48):
        thing = list(THINGS)[number % 3]
        pixels = np.clip(rng.normal(THINGS[thing], 40, (16, 16, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(f"photos/{number:012}.png")
        content["images"].append({"id": number, "file_name": f"{number:012}.png"})
        sky = " in the sky" if thing == "kite" else ""
        content["annotations"].append({"id": number, "image_id": number, "caption": f"A {thing}{sky}."})
    Path("captions.json").write_text(json.dumps(content))
    Path("glove.txt").write_text(GLOVE)
    Path("imcl.yaml").write_text(CONFIG)


def test_imcl_trains_on_captions_as_published_and_explains_its_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made_photos()
    for command in (
        ["train", "imcl.yaml", "--dry-run"],
        ["train", "imcl.yaml", "--out", "run", "-q"],
        ["predict", "run", "test", "--rule", "top-k:k=2", "--explain", "why.jsonl"],
        ["report", "run"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code in (0, None)
    why = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    assert len(why) == 16
    assert {row["label"] for row in why} <= {"a", "cat", "dog", "in", "kite", "sky", "the"}
    assert all(example.endswith(".png") and example != row["id"] for row in why for example in row["examples"])
    assert "Why these labels" in Path("run/report/index.html").read_text("utf-8")


def test_what_would_go_wrong_after_hours_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    target = np.eye(4, dtype=np.int8).repeat(4, 0)
    for name, labels in (("data.npz", target), ("unknown.npz", np.full_like(target, -1))):
        np.savez(name, X=np.eye(4).repeat(4, 0), y=labels)
    Path("imcl.yaml").write_text(
        "data: {train: {reader: features, path: data.npz}, validation: null, calibration: null, test: 0.25}\n"
        "objective: {name: imcl}\nepochs: 1\nbatch_size: 4\n"
    )
    assert run_here(capsys, "train", "imcl.yaml", "--out", "run", "-q").code == 0
    predict = ["predict", "run", "test", "--rule", "top-k:k=1", "-o", "sets.jsonl", "--explain"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    for command, message in (
        ([*predict, "sets.jsonl"], "--explain sets.jsonl: that is where the sets go"),
        ([*predict, "nowhere/why.jsonl"], "--explain nowhere/why.jsonl: there is no folder nowhere"),
        (["train", "imcl.yaml", "data.train.path=unknown.npz", "-q"], "no label of the training data is known"),
        (["train", "imcl.yaml", "objective.search=approximate", "objective.warm_up=1", "-q"], "needs faiss"),
        (["train", "imcl.yaml", "objective.graph_start=given", "--dry-run"], "graph='co-occurrence' has none"),
    ):
        result = run_here(capsys, *command)
        assert (result.code, message in result.err) == (2, True), result.err
    assert not Path("sets.jsonl").exists()
