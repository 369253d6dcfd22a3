"""The recipe linear-evaluation."""

from pathlib import Path

import numpy as np
import pytest
import torch

from shortlist.data import Dataset, ambiguous_numbers
from shortlist_recipes._frozen_features import STRENGTHS, evaluate_linearly, of_classes
from shortlist_recipes.linear_evaluation import COARSE, DOWNSTREAM, INPUTS, LOSSES, OTHER, RECIPE, halves
from tests.recipes.smoke import resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("linear-evaluation", tmp_path)
    rows = content["tables"][0]["rows"]
    assert {(row["task"], row["loss"]) for row in rows} == {(t, o) for t in (OTHER, COARSE) for o in (*LOSSES, INPUTS)}
    assert all(row["best on test"]["mean"] >= row["chosen"]["mean"] for row in rows)
    assert all(row["source"]["mean"] is None for row in rows if row["loss"] == INPUTS)


def test_paper_scale_tries_every_data_set_with_every_loss() -> None:
    assert resolves(RECIPE, "paper") == 2 * len(DOWNSTREAM) * len(LOSSES)


def test_there_are_45_strengths_from_a_millionth_to_a_hundred_thousand() -> None:
    assert len(STRENGTHS) == 45
    assert (STRENGTHS[0], STRENGTHS[-1]) == pytest.approx((1e-6, 1e5))
    steps = np.diff(np.log10(STRENGTHS))
    np.testing.assert_allclose(steps, steps[0])


def test_halves_share_no_class_and_divide_every_group() -> None:
    data = ambiguous_numbers(100)
    ours, others = halves(data, seed=3)
    assert sorted(ours + others) == list(range(100))
    assert data.groups is not None
    assert data.groups[ours].bincount().tolist() == [5] * 10
    assert halves(data, seed=4) != (ours, others)


def test_the_strength_is_chosen_on_validation_data() -> None:
    """Features on which weak regularisation is right for validation data and wrong for test data."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)).astype("f4")
    y = (x[:, 0] > 0).astype(np.int64)
    strengths = (1e-6, 1e5)
    parts = {"train": (x, y), "validation": (x, y), "test": (x, 1 - y)}
    found = evaluate_linearly(parts, strengths=strengths)
    assert found["log strength"] == pytest.approx(-6)
    assert found["chosen"] == pytest.approx(found["curve"][0])
    assert found["best on test"] == max(found["curve"])
    assert found["chosen"] < found["best on test"]


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 5)).astype("f4")
    y = rng.integers(0, 3, 300)
    test = rng.normal(size=(500, 5)).astype("f4")
    scale = np.sqrt(((x - x.mean(0)) ** 2).mean())
    cold = LogisticRegression(C=1 / 3.0, max_iter=1000).fit((x - x.mean(0)) / scale, y)
    answers = cold.predict((test - x.mean(0)) / scale)
    found = evaluate_linearly({"train": (x, y), "validation": (x, y), "test": (test, answers)}, strengths=(3.0, 1e3))
    assert found["curve"][0] > 0.98


def test_of_classes_leaves_out_examples_of_unknown_label() -> None:
    data = Dataset(torch.eye(4), torch.tensor([2, -1, 0, 2]), ("a", "b", "c"))
    assert of_classes(data, [1, 2]).target.tolist() == [1, 1]


def test_with_one_label_present_the_sample_wise_loss_is_the_softmax_loss() -> None:
    from shortlist.functional import multilabel_softmax_loss, two_way_loss
    from shortlist.labels import from_indices

    torch.manual_seed(0)
    scores, target = torch.randn(20, 7, dtype=torch.float64), from_indices(torch.randint(7, (20,)), 7)
    torch.testing.assert_close(two_way_loss(scores, target, way="sample"), multilabel_softmax_loss(scores, target))
