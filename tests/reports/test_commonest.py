"""Single labels against always answering the commonest one, and labels that are never answered."""

import numpy as np
import torch

from shortlist.reports import from_scores
from shortlist.reports.commonest import FirstLabels, said_of_first
from shortlist.reports.contents import contents
from shortlist.runs.results import results_of


def first_of(first: list[int], target: list[int], labels: int = 4) -> FirstLabels:
    seen = FirstLabels()
    seen.update(np.eye(labels)[first], np.array(target))
    return seen


def test_rows_are_counted_in_any_parts_and_unknown_ones_are_left_out() -> None:
    random = np.random.default_rng(0)
    first, target = random.integers(0, 4, 50).tolist(), random.integers(-1, 3, 50).tolist()
    parts = FirstLabels()
    for begin in range(0, 50, 7):
        parts.merge(first_of(first[begin : begin + 7], target[begin : begin + 7]))
    assert parts.found() == first_of(first, target).found()
    known = [(one, right) for one, right in zip(first, target, strict=True) if right >= 0]
    commonest = parts.found()["commonest"]
    assert commonest["accuracy"] == max(np.bincount([right for _, right in known])) / len(known)
    assert commonest["model"] == np.mean([one == right for one, right in known])
    assert first_of([0, 1], [-1, -1]).found() == {}


def test_a_model_that_is_clearly_better_is_not_warned_of() -> None:
    target = [0] * 60 + [1] * 40
    assert first_of(target, target).found()["commonest"]["beaten"]
    assert said_of_first(first_of(target, target).found()) == []
    by_one = [0] * 60 + [1] + [0] * 39
    found = first_of(by_one, target).found(["no", "yes", "a", "b"])
    assert found["commonest"] == {"label": "no", "accuracy": 0.6, "model": 0.61, "beaten": False, "examples": 100}
    (said,) = said_of_first(found, "none", "mlp")
    assert said.endswith("it is not clearly better than that.")  # a network is what it has


def test_labels_that_are_never_first_are_counted_and_three_are_named() -> None:
    found = first_of([0] * 20 + [5] * 80, [0, 1, 2, 3, 4] * 4 + [5] * 80, 7).found(list("abcdefg"))
    assert found["never_first"] == {"labels": 4, "of": 6, "such_as": ["b", "c", "d"]}
    said = said_of_first(found, "none", "identity")[-1]
    assert "4 of the 6 labels of these examples are never the model's first label ('b', 'c', 'd', ...)" in said
    assert "imbalance=balanced-sampling" in said
    assert "imbalance" not in said_of_first(found, "class-weights", "identity")[-1]


def test_a_label_with_so_few_examples_that_chance_may_have_missed_it_is_not_named() -> None:
    target = [0] * 5 + [1] * 5 + [2] * 2
    assert first_of([0] * 5 + [1, 1, 0, 0, 0, 0, 1], target).found()["never_first"]["labels"] == 0
    assert first_of([0] * 5 + [1] * 7, target).found()["never_first"]["labels"] == 1


def test_results_have_it_for_single_labels_alone() -> None:
    scores = torch.eye(3)[[0, 0, 1]]
    three_times = torch.tensor([0, 2, 1]).repeat(3)
    found = results_of(scores.repeat(3, 1), three_times, "softmax", {}, label_names=("a", "b", "c"))
    assert found["never_first"]["such_as"] == ["c"]
    several = results_of(scores, torch.tensor([[1, 1, 0], [0, 0, 1], [0, 1, 0]]), "sigmoid", {})
    assert "commonest" not in several


def test_the_page_says_it() -> None:
    found = contents(from_scores(np.eye(2)[[0] * 120], np.array([0] * 110 + [1] * 10), ["ok", "fraud"], k=1))
    assert found["about"]["Always the commonest label"] == "right in 91.7\u202f% (ok)"
    assert any("'fraud'" in said for said in found["cautions"])


def test_where_few_examples_judge_no_other_model_is_advised() -> None:
    (said,) = said_of_first(first_of([0, 0, 1, 1, 1], [0, 0, 1, 1, 1]).found(), "none", "identity")
    assert said.endswith("it is not clearly better than that, as far as 5 examples can tell.")
