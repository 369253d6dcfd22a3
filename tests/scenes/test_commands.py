"""Scenes on the command line: train, evaluate, predict and report like any other data."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from shortlist.errors import ShortlistError
from shortlist.runs.run import Run
from shortlist.scenes import read_graphs
from shortlist.scenes.task import SceneTask
from shortlist.tasks import Predictions
from tests.cli.command import run_here
from tests.scenes.made import made_scenes

CONFIG = """
data:
  train: {reader: placed-shapes, size: 40}
  validation: {reader: placed-shapes, size: 20, part: val}
  calibration: null
  test: {reader: placed-shapes, size: 20, part: test}
backbone: {name: relations, embedding: 8, context: 8, hidden: 16}
objective: {name: scene-lml, k: 5}
optimizer: {name: adamw, lr: 5e-3}
epochs: 2
batch_size: 8
"""


NUMBERS = "data={train: {reader: ambiguous-numbers, size: 50}}"
PLAIN = ("objective={name: lml}", "backbone={name: mlp}")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenes") / "config.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def run(config: Path) -> Path:
    from shortlist.runs import train

    return Path(train(config, config.parent / "run")["run"])


def test_training_chooses_the_epoch_by_recall_and_resumes_to_the_same_weights(config, tmp_path, capsys):
    whole = run_here(capsys, "train", config, "--out", tmp_path / "whole", "--json")
    assert whole.code == 0, whole.err
    assert whole.json["metric"] == "scene-recall@50"
    assert run_here(capsys, "train", config, "epochs=1", "--out", tmp_path / "part", "-q").code == 0
    longer = (tmp_path / "part" / "config.yaml").read_text().replace("epochs: 1\n", "epochs: 2\n")
    (tmp_path / "part" / "config.yaml").write_text(longer)
    assert run_here(capsys, "train", "--resume", tmp_path / "part", "-q").code == 0
    ours, theirs = Run(tmp_path / "whole").weights("last"), Run(tmp_path / "part").weights("last")
    assert all(ours[name].equal(theirs[name]) for name in ours)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions_train(precision, config, tmp_path, capsys):
    found = run_here(capsys, "train", config, "epochs=1", f"precision={precision}", "--out", tmp_path / "run", "--json")
    assert found.code == 0, found.err
    assert 0 < found.json["best"]["scene-recall@50"] <= 1


def test_evaluation_measures_recall_and_mean_recall(run, capsys):
    found = run_here(capsys, "evaluate", run, "test", "--json").json
    assert found["examples"] == 20
    assert set(found["metrics"]) == {
        f"{name}@{k}"
        for name in ("scene-recall", "scene-recall-unconstrained", "scene-mean-recall")
        for k in (20, 50, 100)
    }
    one = run_here(capsys, "evaluate", run, "test", "--metric", "scene-recall@3", "--json").json["metrics"]
    assert 0 < one["scene-recall@3"] < found["metrics"]["scene-recall@50"]


def test_where_nothing_is_zero_shot_it_is_said(run, capsys):
    found = run_here(capsys, "evaluate", run, "train", "--metric", "scene-zero-shot-recall@3", "--json")
    assert found.json["metrics"] == {"scene-zero-shot-recall@3": None}
    assert "nothing is zero-shot here: training images have the classes and predicates of all" in found.err


def test_images_whose_names_are_equal_once_cleaned_have_a_picture_each(tmp_path):
    images = ("a/1.jpg", "a_1.jpg", "A 1.jpg", "a_1.jpg-2")
    data = replace(made_scenes((2, 3, 2, 2)), ids=images)
    wanted = Predictions(tmp_path, "test", draw=tmp_path / "drawn")
    SceneTask().write_predictions(data, torch.zeros(2 + 6 + 2 + 2, 3), wanted)
    written = {file.name: file.read_text().partition('aria-label="')[2] for file in (tmp_path / "drawn").iterdir()}
    assert written.keys() == {"a_1.jpg.svg", "a_1.jpg-2.svg", "A_1.jpg-3.svg", "a_1.jpg-2-2.svg"}
    assert sorted(title.partition(":")[0] for title in written.values()) == sorted(images)


def test_prediction_writes_graphs_and_pictures(run, tmp_path, capsys):
    out = tmp_path / "graphs.jsonl"
    found = run_here(capsys, "predict", run, "test", "-o", out, "--draw", tmp_path / "pictures", "--json")
    assert found.code == 0, found.err
    graphs = read_graphs(out)
    assert len(graphs) == 20
    assert max(len(graph.relations) for graph in graphs) == 5  # the objective's k
    assert (tmp_path / "pictures" / f"{graphs[0].image}.svg").read_text().startswith("<svg")
    wide = run_here(capsys, "predict", run, "test", "-o", out, "--rule", "top-k:k=7,constrained=false", "--json")
    assert wide.json["constrained"] is False
    assert max(len(graph.relations) for graph in read_graphs(out)) == 7


def test_the_report_shows_recall_curves_and_drawn_graphs(run, tmp_path, capsys):
    made = run_here(capsys, "report", run, "--out", tmp_path / "report", "--json")
    assert made.code == 0, made.err
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert page.count("<svg") == 9 + 2  # graphs and charts
    assert "scene-lml" in page
    figures = ["recall", "training", *(f"graph-{number}" for number in range(1, 10))]
    written = {file.name for file in (tmp_path / "report" / "figures").iterdir()}
    assert written == {f"{name}.{kind}" for name in figures for kind in ("png", "svg")}


def test_a_run_of_one_epoch_has_no_curves_and_still_a_report(config, tmp_path, capsys):
    run_here(capsys, "train", config, "epochs=1", "--out", tmp_path / "run", "-q")
    found = run_here(capsys, "report", tmp_path / "run")
    assert found.code == 0, found.err
    page = (tmp_path / "run" / "report" / "index.html").read_text("utf-8")
    assert 'href="#training"' not in page
    assert 'data-label="constrained R@20"' in page


def test_the_graphs_of_runs_side_by_side_are_those_of_the_same_images(run, config, tmp_path, capsys):
    other = run_here(capsys, "train", config, "objective=scene-softmax", "--out", tmp_path / "other", "-q")
    assert other.code == 0, other.err
    made = run_here(capsys, "report", run, tmp_path / "other", "--out", tmp_path / "report", "--json")
    assert made.code == 0, made.err
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert page.count("<svg") == 8 + 2
    shown = [re.findall(rf"<b>([^<]+)</b> by {name}<", page) for name in ("scene-lml", "scene-softmax")]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calibrate", "RUN"), "there is nothing to calibrate"),
        (("predict", "RUN", "test", "--rule", "average-k-5"), "--rule for scenes is top-k:k=20"),
        (("predict", "RUN", "test", "-o", "graphs.parquet"), "graphs are written as .jsonl"),
        (("predict", "RUN", "test", "--explain", "why.jsonl"), "--explain is for labels: the answers of 'scene-lml'"),
        (("predict", "RUN", "test", "--draw", "CONFIG"), "--draw .*config.yaml: is a file, not a folder"),
        (("predict", "RUN", "test", "--draw", "NEW", "--images", "NEW"), "--images .*new: there is no such folder"),
        (("train", "CONFIG", "objective.k=.nan", "--dry-run"), "k must be a whole number, or a share .* got nan"),
        (("train", "CONFIG", "objective.k=.inf", "--dry-run"), "k must be a whole number, or a share .* got inf"),
        (("train", "CONFIG", "objective.others=.nan", "--dry-run"), "others must be at least 0, got nan"),
        (("report", "RUN", "--explain"), "--explain is for labels: the answers of 'scene-lml'"),
        (("evaluate", "RUN", "test", "--metric", "topk-accuracy@1"), "not for scenes: use one of scene-recall@k"),
        (("train", "CONFIG", "objective={name: lml}", "--dry-run"), "use one of scene-softmax, scene-lml"),
        (("train", "CONFIG", "backbone={name: mlp}", "--dry-run"), "set backbone.name=relations-light"),
        (("train", "CONFIG", "stop.metric=topk-accuracy@1", "--dry-run"), "not for scenes"),
        (("train", "CONFIG", "augment.flip=true", "--out", "NEW"), "augment is for images, the training data has s"),
        (("train", "CONFIG", "data.corruptions=[{name: missing-labels, rate: 0.5}]", "--dry-run"), "scenes are ans"),
        (
            ("train", "CONFIG", NUMBERS, *PLAIN, "stop.metric=scene-recall@5", "--dry-run"),
            "the metric 'scene-recall@5' is not for features: use one of topk-accuracy@k",
        ),
        (
            ("train", "CONFIG", NUMBERS, "--dry-run"),
            "objective 'scene-lml' takes scenes .* use lml",
        ),
        (
            ("train", "CONFIG", "data.test={reader: ambiguous-numbers, size: 50}", "--dry-run"),
            "data.test: it has 100 labels, the training data has 6",
        ),
    ],
)
def test_what_does_not_go_with_scenes_is_an_error(arguments, message, run, config, tmp_path, capsys):
    names = {"RUN": run, "CONFIG": config, "NEW": tmp_path / "new"}
    result = run_here(capsys, *(names.get(argument, argument) for argument in arguments))
    assert result.code == 2
    assert re.search(message, result.err), result.err


def test_predicted_graphs_are_drawn_on_their_images(run, tmp_path, capsys):
    from PIL import Image

    out, images = tmp_path / "graphs.jsonl", tmp_path / "images"
    images.mkdir()
    arguments = ["predict", run, "test", "-o", out, "--draw", tmp_path / "pictures", "--images", images]
    missing = run_here(capsys, *arguments)
    assert missing.code == 2
    assert "there is no" in missing.err
    for graph in read_graphs(out):
        Image.new("RGB", (123, 45)).save(images / graph.image, format="PNG")
    assert run_here(capsys, *arguments).code == 0
    drawn = (tmp_path / "pictures" / f"{graph.image}.svg").read_text()
    assert "data:image/png;base64," in drawn
    assert 'viewBox="0 0 123 45"' in drawn


def test_data_without_relations_is_refused_in_training_and_in_the_report(tmp_path):
    data = made_scenes(relations=0)
    with pytest.raises(ShortlistError, match="no image has a recorded relation: there is nothing to learn from"):
        SceneTask().start(nn.Identity(), data)
    with pytest.raises(ShortlistError, match="no image has a recorded relation: there is nothing to report on"):
        SceneTask().write_report("", [], data, tmp_path, {})


def test_training_data_without_examples_is_refused(config, tmp_path, capsys):
    for name in ("annotations", "objects", "predicates"):
        (tmp_path / f"{name}.json").write_text("{}" if name == "annotations" else "[]")
    found = run_here(capsys, "train", config, f"data.train={{reader: vrd, path: {tmp_path}/annotations.json}}")
    assert (found.code, "data.train has no examples" in found.err) == (2, True)
