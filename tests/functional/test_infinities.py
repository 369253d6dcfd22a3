"""Infinite scores: one rule for every loss, native and twin alike, and never a NaN."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist import kernels
from tests.functional.harness import value_and_gradient
from tests.kernels_here import PATHS

INF = float("inf")
SCORES = [0.5, -1e37, INF, -INF]
LOSSES: dict[str, Callable[..., Tensor]] = {
    "binary": F.binary_loss,
    "binary without weight": lambda s, t, **o: F.binary_loss(s, t, pos_weight=0.0, **o),
    "asymmetric": F.asymmetric_loss,
    "asymmetric without clip": lambda s, t, **o: F.asymmetric_loss(s, t, clip=0.0, gamma_neg=2.5, **o),
    "partial binary": F.partial_binary_loss,
    "partial selective": lambda s, t, **o: F.partial_selective_loss(s, t, likelihood_topk=1, **o),
    "two way": F.two_way_loss,
    "lsep": F.lsep_loss,
    "multilabel softmax": F.multilabel_softmax_loss,
    "rml": F.rml_loss,
    "warp": lambda s, t, **o: F.warp_loss(s, t, exact=True, **o),
}
ROWS = torch.tensor(list(itertools.product(SCORES, repeat=2)))
TARGETS = [(1, 1), (1, 0), (0, 1), (0, 0), (1, -1)]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_infinite_scores_count_as_a_quarter_of_the_largest_number(
    name: str, dtype: torch.dtype, target: tuple[int, int]
) -> None:
    most = torch.finfo(dtype).max / 4
    for row in ROWS.to(dtype):
        labels, results = torch.tensor([target]), []
        for path in PATHS:
            with kernels.use(path):
                value, gradient = value_and_gradient(LOSSES[name], row[None], labels)
                limit = value_and_gradient(LOSSES[name], row[None].clamp(-most, most), labels)
            assert 0 <= float(value) <= INF  # not NaN
            assert bool(gradient.isfinite().all())
            torch.testing.assert_close((value, gradient), limit, rtol=0, atol=0)
            results.append((value, gradient))
        torch.testing.assert_close(results[0], results[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("proposals", [(0.0, INF, -INF), (-INF, -INF, -INF), (INF, INF, 0.0), (-INF, 0.0, 1.0)])
def test_average_k_with_infinite_scores_of_both_heads(
    proposals: tuple[float, ...], dtype: torch.dtype, path: str
) -> None:
    for scores in ((0.5, INF, -INF), (-INF, -INF, INF)):
        rows = torch.tensor([scores, proposals], dtype=dtype)
        loss, gradient = value_and_gradient(
            lambda both: F.average_k_loss(both[:1], both[1:], torch.tensor([0]), k=2), rows
        )
        assert 0 <= float(loss) <= INF
        assert bool(gradient.isfinite().all())


def test_single_positive_losses_with_infinite_scores(path: str) -> None:
    for row in ROWS:
        for loss in (F.assume_negative_loss, lambda s, t: F.expected_positive_loss(s, t, k=1)):
            value, gradient = value_and_gradient(loss, row[None], torch.tensor([0]))
            assert 0 <= float(value) <= INF
            assert bool(gradient.isfinite().all())


def test_a_hopeless_pair_hides_no_digit_of_the_others_in_rml() -> None:
    """The sum over absent labels above a bar is not a difference of huge numbers."""
    near = F.rml_loss(torch.tensor([[1.0, 9.0, 0.5]]), torch.tensor([[1, 0, 0]]))
    far = F.rml_loss(torch.tensor([[1.0, 1e37, 0.5]]), torch.tensor([[1, 0, 0]]))
    assert float(far) == pytest.approx(float(near), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_present_label_at_minus_infinity_is_pulled_up_by_lml_loss(dtype: torch.dtype, path: str) -> None:
    scores = torch.tensor([[1.0, -INF, 0.0]], dtype=dtype)
    value, gradient = value_and_gradient(F.lml_loss, scores, torch.tensor([1]), 1)
    assert float(value) == INF
    torch.testing.assert_close(gradient, torch.tensor([[0.5, -1.0, 0.5]], dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("large", [1e37, -1e37, INF, -INF])
def test_tied_scores_are_tied_however_large(large: float, dtype: torch.dtype, path: str) -> None:
    scores, target = torch.full((1, 4), large, dtype=dtype), torch.tensor([[1, 0, 0, 0]])
    four = torch.tensor(4.0, dtype=dtype).log()
    for loss in (F.lsep_loss(scores, target), F.multilabel_softmax_loss(scores, target)):
        torch.testing.assert_close(loss, four)


def test_a_steep_focus_has_a_finite_gradient_at_infinity(path: str) -> None:
    scores, target = torch.tensor([[-INF, INF, -1e37, 0.0]]), torch.tensor([[1, 0, 1, 1]])
    _, gradient = value_and_gradient(F.asymmetric_loss, scores, target, gamma_pos=7.3, gamma_neg=7.3, clip=0.0)
    assert bool(gradient.isfinite().all())


def test_candidates_that_weigh_nothing_cost_nothing(path: str) -> None:
    scores = torch.full((1, 9), -INF)
    loss = F.average_k_loss(scores, torch.zeros(1, 9), torch.tensor([0]), k=9, alpha=0.0)
    assert not loss.isnan()


def test_warp_of_infinite_float64_scores_is_not_a_difference_of_infinities(path: str) -> None:
    scores = torch.tensor([[INF, -INF, -INF, 3.0, -INF, INF, -INF, -1e307]], dtype=torch.float64)
    for target in ([1, 0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 1]):
        loss, gradient = value_and_gradient(F.warp_loss, scores, torch.tensor([target]), exact=True)
        assert 0 <= float(loss) <= INF
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("offset", [0.0, 2.0**40])
def test_warp_in_float64_loses_no_digits_to_an_offset(offset: float, path: str) -> None:
    scores = torch.tensor([[0.25, 1.5, -0.75, 0.125]], dtype=torch.float64) + offset
    assert F.warp_loss(scores, torch.tensor([[1, 0, 0, 0]]), exact=True).item() == (2.25 + 0.875) * 1.5 / 2


def test_a_row_with_a_nan_is_nan_also_where_there_is_nothing_to_choose(path: str) -> None:
    scores = torch.tensor([[1.0, torch.nan, -INF]])
    assert F.lml(scores, 3).isnan().all()
    assert F.lml(scores, 2).isnan().all()
    assert F.log_subset_sum(scores, 3).isnan().all()
    assert F.subset_marginals(scores, 3).isnan().all()
    assert F.lsep_loss(scores[:, :2], torch.tensor([[1, 1]])).isnan()


def test_a_temperature_that_overflows_takes_no_label_out_of_its_row(path: str) -> None:
    p = F.lml(torch.tensor([[0.0, -1e37, -1e37]]), 2, temperature=1e-3)
    torch.testing.assert_close(p, torch.tensor([[1.0, 0.5, 0.5]]))
