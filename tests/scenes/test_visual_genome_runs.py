"""Files as Visual Genome's are distributed, photos and a detector's boxes: all three tasks from the command line."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image, ImageDraw

from shortlist.scenes import read_graphs
from tests.cli.command import run_here

CLASSES = {"man": (200, 80, 80), "hat": (80, 80, 200), "dog": (150, 110, 60)}
PREDICATES = ("above", "left of")
IMAGES, TRAINING = 20, 14  # of which the first four are for validation
SIZE = (400, 300)  # of the files; boxes are those of an image whose longer side is 1,024
CONFIG = """
data:
  train: &vg {reader: visual-genome, path: VG-SGG.h5, image_data: image_data.json, validation: 4, images: photos, TASK}
  validation: {<<: *vg, part: validation}
  test: {<<: *vg, part: test}
  calibration: null
backbone: {name: motifnet, embedding: 8, hidden: 8, pooling: 16, union_channels: 2}
objective: {name: scene-lml, k: 4}
optimizer: {name: sgd, lr: 6e-3, momentum: 0.9, clip: 5}
schedule: {name: plateau, patience: 3, factor: 0.1}
stop: {metric: scene-recall@100, patience: 9}
epochs: 1
batch_size: 6
"""


def write_files() -> None:
    rng, larger = np.random.default_rng(0), 1024 / max(SIZE)
    boxes, labels, pairs, predicates = [], [], [], []
    first = {"box": [], "rel": []}
    last = {"box": [], "rel": []}
    found: dict[str, list[object]] = {"image": [], "box": [], "scores": []}
    Path("photos").mkdir()
    for image in range(IMAGES):
        picture, own = Image.new("RGB", SIZE, (235, 235, 225)), []
        for _ in range(3):
            number, (x, y), (w, h) = rng.integers(3), rng.integers(0, 200, 2), rng.integers(40, 100, 2)
            ImageDraw.Draw(picture).rectangle([x, y, x + w, y + h], fill=list(CLASSES.values())[number])
            own.append(np.array([x, y, x + w, y + h]) * larger)
            labels.append([number + 1])
            found["image"].append(f"{image + 100}.jpg".encode())
            found["box"].append(own[-1] + rng.normal(0, 4, 4))
            found["scores"].append(np.where(np.arange(3) == number, 3.0, 0.0))
        start, began = len(boxes), len(pairs)
        boxes += [[*(box[:2] + box[2:]) / 2, *(box[2:] - box[:2])] for box in own]
        for a, b in ((0, 1), (1, 2), (2, 0)):
            pairs.append([start + a, start + b])
            predicates.append([1 if own[a][1] < own[b][1] else 2])
        for name, begin, rows in (("box", start, boxes), ("rel", began, pairs)):
            first[name].append(begin)
            last[name].append(len(rows) - 1)
        picture.save(f"photos/{image + 100}.jpg")
    with h5py.File("VG-SGG.h5", "w") as file:
        file["boxes_1024"], file["labels"] = np.array(boxes).round().astype(np.int32), np.array(labels)
        file["relationships"], file["predicates"] = np.array(pairs, np.int32), np.array(predicates)
        file["split"] = np.where(np.arange(IMAGES) < TRAINING, 0, 2).astype(np.int32)
        for name in ("box", "rel"):
            file[f"img_to_first_{name}"] = np.array(first[name], np.int32)
            file[f"img_to_last_{name}"] = np.array(last[name], np.int32)
    with h5py.File("found.h5", "w") as file:
        for name, rows in found.items():
            file[name] = np.array(rows)
    dicts = {
        "label_to_idx": {name: number for number, name in enumerate(CLASSES, 1)},
        "predicate_to_idx": {name: number for number, name in enumerate(PREDICATES, 1)},
    }
    Path("VG-SGG-dicts.json").write_text(json.dumps(dicts))
    sizes = [{"image_id": image + 100, "width": SIZE[0], "height": SIZE[1]} for image in range(IMAGES)]
    Path("image_data.json").write_text(json.dumps(sizes))


@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
def test_visual_genome_goes_from_its_files_to_drawn_graphs_and_a_page(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_files()
    given = f"task: {task}" + (", detections: found.h5" if task == "sgdet" else "")
    Path("vg.yaml").write_text(CONFIG.replace("TASK", given))
    trained = run_here(capsys, "train", "vg.yaml", "--out", "run", "--json")
    assert trained.code == 0, trained.err
    measured = run_here(capsys, "evaluate", "run", "test", "--metric", "scene-recall-unconstrained@20", "--json").json
    assert measured["examples"] == IMAGES - TRAINING
    if task == "predcls":  # an image has 6 pairs and 2 predicates: all of them are among 20
        assert measured["metrics"] == {"scene-recall-unconstrained@20": 1.0}
    drawn = run_here(capsys, "predict", "run", "test", "--draw", "drawn", "-o", "graphs.jsonl", "--json")
    assert drawn.code == 0, drawn.err
    graphs = read_graphs("graphs.jsonl")
    assert [graph.image for graph in graphs] == [f"{image + 100}.jpg" for image in range(TRAINING, IMAGES)]
    assert all(len(graph.relations) == 4 for graph in graphs)
    assert "data:image/jpeg;base64," in Path("drawn/114.jpg.svg").read_text()
    assert run_here(capsys, "report", "run").code == 0
    page = Path("run/report/index.html").read_text("utf-8")
    assert "118.jpg" in page
    assert "Recorded and not among them" in page
