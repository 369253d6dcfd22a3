"""The two-way loss (seed 002): its ways, temperatures and margin."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6), some_target("two_way", 7, 6)


@pytest.mark.parametrize("way", ["both", "sample", "class"])
@pytest.mark.parametrize(("t_p", "t_n", "margin"), [(4.0, 1.0, 0.0), (1.0, 1.0, 0.7), (0.5, 3.0, -2.0)])
def test_every_way_equals_the_formula_at_any_temperature_and_margin(
    way: str, t_p: float, t_n: float, margin: float, kernel: str
) -> None:
    options = {"positive_temperature": t_p, "negative_temperature": t_n, "margin": margin}
    actual = value_and_gradient(F.two_way_loss, SCORES, TARGET, way=way, **options)
    exact = value_and_gradient(oracles.two_way, SCORES, TARGET, way=way, t_p=t_p, t_n=t_n, margin=margin)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-15)


def test_with_one_present_label_and_temperature_1_the_sample_way_is_softmax_cross_entropy(path: str) -> None:
    target = torch.tensor([0, 3, 5, 2, 2, 1, 4])
    matrix = torch.nn.functional.one_hot(target, 6)
    loss = F.two_way_loss(SCORES, matrix, positive_temperature=1.0, way="sample", reduction="none")
    expected = torch.nn.functional.cross_entropy(SCORES, target, reduction="none")
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


def test_the_class_way_is_the_sample_way_of_the_transpose(path: str) -> None:
    by_class = F.two_way_loss(SCORES, TARGET, way="class")
    torch.testing.assert_close(by_class, F.two_way_loss(SCORES.T, TARGET.T, way="sample"), rtol=1e-14, atol=0)


def test_a_shift_of_a_row_leaves_its_sample_way_alone(path: str) -> None:
    shifted = SCORES + torch.arange(7.0)[:, None]
    options = {"way": "sample", "reduction": "none", "negative_temperature": 2.0}
    torch.testing.assert_close(F.two_way_loss(shifted, TARGET, **options), F.two_way_loss(SCORES, TARGET, **options))


def test_a_label_without_an_absent_rival_costs_nothing_but_counts(path: str) -> None:
    loss = F.two_way_loss(torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[1, 1], [1, 0]]), way="sample")
    torch.testing.assert_close(loss, torch.tensor(2.0).log() / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"way": "row"}, "way must be one of 'both', 'sample', 'class', got 'row'"),
        ({"positive_temperature": 0.0}, "positive_temperature must be a positive finite number"),
        ({"negative_temperature": float("inf")}, "negative_temperature must be a positive finite number"),
        ({"way": "class", "reduction": "none"}, "two_way_loss with way='class' couples the rows"),
        ({"way": "sample", "reduction": "average"}, "reduction must be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.two_way_loss(SCORES, TARGET, **options)


@pytest.mark.parametrize("way", ["both", "class"])
def test_a_nan_where_no_label_is_present_is_not_observed(way: str, kernel: str) -> None:
    scores = torch.tensor([[0.5, torch.nan, -1.0], [0.0, 2.0, 1.0]])
    target = torch.tensor([[0, 0, 0], [0, 0, 1]])
    loss, gradient = value_and_gradient(F.two_way_loss, scores, target, way=way)
    expected = value_and_gradient(F.two_way_loss, scores.nan_to_num(0.0), target, way=way)
    assert torch.equal(loss, expected[0])
    assert torch.equal(gradient, expected[1])


def test_a_nan_makes_the_whole_of_its_row_nan_its_unknown_entries_too(kernel: str) -> None:
    scores, target = torch.tensor([[0.5, torch.nan, 1.0], [0.2, 0.3, -1.0]]), torch.tensor([[1, 0, -1], [0, 0, 1]])
    for way in ("both", "sample"):
        _, gradient = value_and_gradient(F.two_way_loss, scores, target, way=way)
        assert gradient.isnan().tolist() == [[True] * 3, [False] * 3]


def test_a_nan_in_a_column_where_nothing_is_absent_is_told_in_value_and_gradient(kernel: str) -> None:
    scores, target = torch.tensor([[torch.nan, 0.0], [1.0, 1.0]]), torch.tensor([[1, -1], [1, -1]])
    loss, gradient = value_and_gradient(F.two_way_loss, scores, target, way="class")
    assert loss.isnan()
    assert gradient.isnan().tolist() == [[True, False], [True, False]]


def test_a_heavy_row_below_a_featherlight_one_has_a_finite_gradient(path: str) -> None:
    scores = torch.tensor([[1e37], [-3.0], [0.0]])
    weight = torch.tensor([1e-30, 1e6, 1.0])
    target = torch.tensor([[0], [0], [1]])
    _, gradient = value_and_gradient(
        F.two_way_loss, scores, target, sample_weight=weight, negative_temperature=1e15, way="class"
    )
    torch.testing.assert_close(gradient, torch.tensor([[1.0], [0.0], [-1.0]]))


@pytest.mark.parametrize("way", ["both", "class"])
def test_a_nan_reaches_the_known_entries_of_its_column_and_no_unknown_one(way: str, kernel: str) -> None:
    scores = torch.tensor([[0.5, torch.nan, 1.0], [0.2, 0.3, -1.0], [0.1, 0.4, 0.0], [2.0, 0.5, 1.0]])
    target = torch.tensor([[1, 0, 1], [0, 1, 0], [1, -1, 0], [0, 1, 1]])
    weight = torch.tensor([1.0, 1.0, 1.0, 0.0])
    loss, gradient = value_and_gradient(F.two_way_loss, scores, target, way=way, sample_weight=weight)
    assert loss.isnan()
    expected = [[way == "both", True, way == "both"], [False, True, False], [False] * 3, [False] * 3]
    assert gradient.isnan().tolist() == expected


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("way", ["both", "class", "sample"])
def test_a_row_that_weighs_nothing_is_out_whatever_the_type_of_the_target(
    way: str, dtype: torch.dtype, path: str
) -> None:
    scores, target = some_scores(4, 9), some_target("two_way", 4, 9).clamp(min=0)
    weight = torch.tensor([0.0, 1.5, 0.0, 2.0], dtype=scores.dtype)
    alone = value_and_gradient(F.two_way_loss, scores[1::2], target[1::2], way=way, sample_weight=weight[1::2])
    loss, gradient = value_and_gradient(F.two_way_loss, scores, target.to(dtype), way=way, sample_weight=weight)
    torch.testing.assert_close((loss, gradient[1::2]), alone)
    assert not gradient[::2].any()
