"""PredCls, SGCls and SGDet from config and command line: train, evaluate, predict --draw, report."""

import re

import numpy as np
import pytest
from PIL import Image

from shortlist.runs.run import Run
from shortlist.scenes import placed_shapes, read_graphs
from tests.cli.command import run_here
from tests.scenes.test_given import detections, rows_of, written

PARTS = {"train": 24, "val": 8, "test": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of a detector for each part, and the images."""
    folder = tmp_path_factory.mktemp("detector")
    for part, size in PARTS.items():
        data = placed_shapes(size, part=part)
        detections(data, folder / f"{part}-found.npz", extra=2)
        written(rows_of(data, unions=True), folder / f"{part}-seen.h5")
        for name in data.ids:
            Image.fromarray(np.full((120, 120, 3), 90, np.uint8)).save(folder / name, "PNG")
    return folder


def config(folder, path, task, backbone=None, **options):
    """A config file of a small run."""
    def source(part):
        given = {"reader": "placed-shapes", "size": PARTS[part], "part": part, "task": task, "images": str(folder)}
        if task == "sgdet":
            given["detections"] = str(folder / f"{part}-found.npz")
        return {**given, **{key: str(folder / f"{part}-{value}") for key, value in options.items()}}

    import yaml

    content = {
        "data": {"train": source("train"), "validation": source("val"), "test": source("test"), "calibration": None},
        "backbone": backbone or {"name": "relations-light", "embedding": 8, "context": 8, "hidden": 16},
        "objective": {"name": "scene-lml", "k": 0.25},
        "optimizer": {"name": "adamw", "lr": 5e-3},
        "epochs": 1,
        "batch_size": 8,
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
def test_a_task_goes_from_training_to_the_report(task, folder, tmp_path, capsys):
    options = {} if task == "sgdet" else {"features": "seen.h5"}
    made = config(folder, tmp_path / "config.yaml", task, **options)
    run = tmp_path / "run"
    trained = run_here(capsys, "train", made, "--out", run, "--json")
    assert trained.code == 0, trained.err
    assert Run(run).facts["scenes"].get("task", "predcls") == task
    measured = run_here(capsys, "evaluate", run, "test", "--json").json
    assert measured["examples"] == 8
    assert 0 <= measured["metrics"]["scene-recall@50"] <= 1
    names = ["scene-recall@3", "scene-recall-public@3", "scene-zero-shot-recall@3", "scene-mean-recall-public@3"]
    options = [word for name in names for word in ("--metric", name)]
    values = run_here(capsys, "evaluate", run, "test", *options, "--json").json["metrics"]
    assert list(values) == names
    # shapes are recorded once, but boxes grow by a pixel: one that just does not lie on another may then
    assert values["scene-recall-public@3"] == pytest.approx(values["scene-recall@3"], abs=0.05)
    told = run_here(capsys, "predict", run, "test", "--rule", "top-k:k=4", "--draw", tmp_path / "drawn", "--json").json
    graphs = read_graphs(told["written"][0])
    assert len(graphs) == 8
    assert max(len(graph.relations) for graph in graphs) == 4
    drawn = (tmp_path / "drawn" / f"{graphs[0].image}.svg").read_text()
    assert "data:image/png;base64," in drawn
    assert 'viewBox="0 0 240 240"' in drawn  # boxes are of the image made larger
    assert run_here(capsys, "report", run).code == 0
    page = (run / "report" / "index.html").read_text()
    assert page.count("data:image/jpeg;base64,") >= 3
    assert re.search(r'<td class="right">\d+(: [\w ]+ \(test-\d\))?', page)
    assert "<th scope=\"col\">missed</th>" in page


@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
def test_motifnet_has_all_three_tasks(task, folder, tmp_path, capsys):
    backbone = {"name": "motifnet", "embedding": 8, "hidden": 8, "pooling": 16, "union_channels": 2}
    options = {} if task == "sgdet" else {"features": "seen.h5"}
    made = config(folder, tmp_path / "config.yaml", task, backbone, **options)
    unseen = "metrics=[scene-zero-shot-recall-unconstrained@50]"
    trained = run_here(capsys, "train", made, unseen, "--out", tmp_path / "run", "--json")
    assert trained.code == 0, trained.err
    assert 0 <= trained.json["best"]["scene-recall@50"] <= 1
    assert 0 <= trained.json["best"]["scene-zero-shot-recall-unconstrained@50"] <= 1


def test_a_backbone_looks_at_the_images_of_the_config(folder, tmp_path, capsys):
    backbone = {"name": "motifnet", "embedding": 8, "hidden": 8, "pooling": 16, "union_channels": 4, "regions": True}
    made = config(folder, tmp_path / "config.yaml", "sgcls", backbone)
    seen = "{name: convnet, widths: [2, 4], size: 32, pooled: false}"
    changes = [f"data.{part}.features={seen}" for part in ("train", "validation", "test")]
    trained = run_here(capsys, "train", made, *changes, "--out", tmp_path / "run", "--json")
    assert trained.code == 0, trained.err
    assert Run(tmp_path / "run").facts["in_shape"] == [6, 6, 0, 4 * 49, 4 * 49, 0, 1]


def test_data_of_another_task_is_refused(folder, tmp_path, capsys):
    made = config(folder, tmp_path / "config.yaml", "sgcls")
    found = run_here(capsys, "train", made, "data.test.task=predcls", "--dry-run")
    assert found.code == 2
    assert "data.test: its task is predcls, that of the training data is sgcls: set task=sgcls" in found.err


def test_k_is_a_number_or_a_share_of_the_pairs_of_an_image(folder, tmp_path, capsys):
    made = config(folder, tmp_path / "config.yaml", "predcls")
    for k, message in (("0", "got 0"), ("2.5", "got 2.5"), ("-0.1", "got -0.1")):
        found = run_here(capsys, "train", made, f"objective.k={k}", "--dry-run")
        assert found.code == 2
        assert f"k must be a whole number, or a share of an image's pairs below 1, {message}" in found.err
