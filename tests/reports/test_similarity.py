"""Why these labels: what the page shows of an IMCL run."""

import math
import re

import numpy as np
import pytest
import torch

from shortlist.data import Dataset
from shortlist.objectives import build
from shortlist.reports import ReportData, RunResult, write
from shortlist.reports.similarity import explain_run, place_graph
from shortlist.training.learner import Learner
from tests.objectives.tiny import FEATURES, LABELS, tiny, train

NAMES = ("<b>cat</b>", "dog", "owl", "cow", "ant", "bee", "elk", "emu")


def explained(epochs=4):
    data = tiny("label-matrix")
    objective = build("imcl", {"warm_up": 0.0}, in_features=FEATURES, num_labels=LABELS, train_target=data.target)
    train(objective, data, epochs=epochs)
    dataset = Dataset(data.features, data.target, NAMES, ids=tuple(f"photo-{row}" for row in range(len(data.target))))
    return explain_run(Learner(torch.nn.Identity(), objective), dataset), dataset, objective


def test_cards_complete_unknown_labels_only_and_name_other_examples():
    why, dataset, _ = explained()
    assert 0 < len(why["cards"]) <= 6
    for card in why["cards"]:
        row = dataset.ids.index(card["name"])
        filled = [NAMES.index(label["name"]) for label in card["filled"]]
        assert (dataset.target[row, filled] == -1).all()
        assert card["because"]
        assert all(other["name"] != card["name"] for other in card["because"])
        assert card["present"] == [name for name, y in zip(NAMES, dataset.target[row], strict=True) if y == 1]


def test_edges_are_the_strongest_of_the_graph():
    why, _, objective = explained()
    strongest = objective.memory.graph.strongest(1)[0]
    assert why["edges"][0] == (NAMES[strongest.source], NAMES[strongest.to], strongest.weight)


def test_a_model_of_the_warm_up_asks_the_dictionary_that_it_would_have_had():
    data = tiny("label-matrix")
    objective = build("imcl", {"warm_up": 1.0}, in_features=FEATURES, num_labels=LABELS, train_target=data.target)
    train(objective, data, epochs=4)
    why = explain_run(Learner(torch.nn.Identity(), objective), Dataset(data.features, data.target, NAMES))
    assert why["cards"]
    assert why["edges"] == []


def test_without_any_label_known_to_be_present_there_are_no_cards():
    data = tiny("label-matrix")
    target = data.target.clamp(max=0)
    objective = build("imcl", in_features=FEATURES, num_labels=LABELS, train_target=target)
    why = explain_run(Learner(torch.nn.Identity(), objective), Dataset(data.features, target, NAMES))
    assert why == {"cards": [], "predicted": [], "on": "train", "edges": []}


@pytest.mark.parametrize("name", ["binary", "cross-entropy", "imcl"])
def test_predictions_of_any_run_are_explained_by_training_examples(name):
    data = tiny("indices" if name == "cross-entropy" else "label-matrix")
    objective = build(name, in_features=FEATURES, num_labels=LABELS, train_target=data.target)
    train(objective, data, epochs=6)
    train_set = Dataset(data.features, data.target, NAMES)
    shown = Dataset(data.held_out, data.truth, NAMES, ids=tuple(f"new-{row}" for row in range(len(data.truth))))
    why = explain_run(Learner(torch.nn.Identity(), objective), train_set, shown, "test")
    assert bool(why["cards"]) == (name == "imcl")
    assert len(why["predicted"]) == 6
    for card in why["predicted"]:
        assert card["name"].startswith("new-")
        said = {label for other in card["because"] for label in other["present"]}
        assert card["filled"][0]["name"] in said  # which some of these examples have


def test_an_objective_that_only_ranks_cannot_be_explained():
    data = tiny("label-matrix")
    objective = build("fast0tag", in_features=FEATURES, num_labels=LABELS, train_target=data.target)
    with pytest.raises(ValueError, match="'fast0tag' has no probabilities of labels"):
        explain_run(Learner(torch.nn.Identity(), objective), Dataset(data.features, data.target, NAMES))


def test_the_page_shows_them_with_names_escaped_and_pages_of_others_do_not(tmp_path):
    why, _, _ = explained()
    scores = np.random.default_rng(0).normal(size=(20, LABELS)).astype(np.float32)
    target = (scores > 0.5).astype(np.int8)
    run = RunResult("imcl", "imcl", scores, target, "sigmoid", why=why)
    page = write(ReportData("Partial labels", [run], NAMES), tmp_path / "with").read_text("utf-8")
    assert "Why these labels" in page
    assert why["cards"][0]["because"][0]["name"] in page
    assert re.search(r'<div class="graph"><svg [^>]*aria-label="The strongest edges', page)
    assert "<b>cat</b>" not in page
    assert {"label_graph.png", "label_graph.svg"} <= {file.name for file in (tmp_path / "with" / "figures").iterdir()}
    without = RunResult("binary", "binary", scores, target, "sigmoid")
    assert "Why these labels" not in write(ReportData("x", [without], NAMES), tmp_path / "without").read_text("utf-8")


def test_a_graph_of_many_labels_shows_a_few_and_no_edge_without_both_ends():
    edges = [(f"a{i}", f"b{i}", 1.0 / (i + 1)) for i in range(50)]
    drawn = place_graph(edges)
    names = {node["name"] for node in drawn["nodes"]}
    assert len(names) == 24
    assert len(drawn["arrows"]) == 12
    assert place_graph([]) is None


def test_arrows_end_beside_the_dot_of_their_label_and_not_beneath_it():
    drawn = place_graph([("sofa", "chair", 0.5), ("chair", "sofa", 0.25), ("car", "chair", -0.5)])
    dots = {node["name"]: node["dot"] for node in drawn["nodes"]}
    for arrow in drawn["arrows"]:
        end = arrow["curve"][-1]
        to = arrow["text"].split(" → ")[1].split(":")[0]
        assert 3 < math.dist(end, dots[to]) < 6  # a dot's radius is 3
