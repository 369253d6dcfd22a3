"""The smooth top-k loss against every k-subset, against long rows, and against what seed 003 proves about it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    assert_gradients,
    assert_losses,
    random_scores,
    random_target,
    value_and_gradient,
)


def check(scores: Tensor, target: Tensor, k: int, tau: float, alpha: float, enumerate_: bool = False) -> None:
    """Loss and gradient of every row within the tolerance of the oracle."""
    exact_loss, exact_gradient = oracles.over_rows(
        lambda row, y, usable: oracles.smooth_topk(row, y, k, tau, alpha, usable, enumerate_), scores, target.tolist()
    )
    loss, gradient = value_and_gradient(
        F.smooth_topk_loss, scores, target, k, tau=tau, alpha=alpha, reduction="none"
    )
    assert_losses(loss, exact_loss, floor=1e-6 * tau)
    assert_gradients(gradient, exact_gradient)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("tau", [10.0, 1.0, 0.1, 0.01, 1e-4])
def test_equals_enumeration_over_all_k_subsets(kernel: str, tau: float, alpha: float, dtype: torch.dtype) -> None:
    for n in range(2, 11):
        # float32 values for both types, so that the two share one enumeration
        scores = random_scores(2, n, seed=n).to(dtype)
        for k in range(1, n):
            check(scores, random_target(2, n, seed=k), k, tau, alpha, enumerate_=True)


SCALES = [(0.01, "plain"), (1.0, "plain"), (30.0, "ties"), (1e5, "plain"), (1e5, "ties"), (1.0, "equal")]
SIZES = [(40, 1), (40, 39), (60, 59), (200, 20), (200, 100), (1000, 5), (1000, 100)]
LONG = [(*size, *scale) for size in SIZES for scale in SCALES]
LONG += [(2000, 500, *scale) for scale in SCALES[1::2]]  # the oracle takes a second for each of these
LONG += [(1100, k, *scale) for k in (1073, 1098, 1099) for scale in (SCALES[1], SCALES[5])]  # few or none are left over


def long_row(n: int, scale: float, kind: str) -> Tensor:
    """One float64 row whose values float32 holds too (offsets aside)."""
    if kind == "equal":
        return torch.full((1, n), scale, dtype=torch.float64)
    scores = random_scores(1, n, scale=scale, seed=n).double()
    if kind == "ties":
        scores = (scores / scale * 2).round() * scale / 2
    return scores.float().double()


@pytest.mark.parametrize(("n", "k", "scale", "kind"), LONG)
def test_long_rows_are_exact_at_every_scale(n: int, k: int, scale: float, kind: str, kernel: str) -> None:
    scores = long_row(n, scale, kind)
    target = scores.topk(k + 1).indices[:, -1]  # the label that is just outside: the loss is neither 0 nor linear
    check(scores, target, k, 1.0, 1.0)
    check(scores.float(), target, k, 1.0, 1.0)


@pytest.mark.parametrize("rank", ["first", "last"])
@pytest.mark.parametrize("tau", [1e-3, 0.1, 5.0])
def test_a_target_at_either_end_of_the_row_is_exact(tau: float, rank: str, kernel: str) -> None:
    for dtype in FLOATS:
        scores = random_scores(2, 100, scale=5.0).to(dtype)
        check(scores, scores.argmax(-1) if rank == "first" else scores.argmin(-1), 7, tau, 1.0)


@pytest.mark.parametrize("offset", [1e6, -1e6])
@pytest.mark.parametrize(("n", "k"), [(8, 3), (200, 20), (1000, 5)])
def test_an_offset_of_a_million_costs_nothing_in_float64(n: int, k: int, offset: float, kernel: str) -> None:
    scores = long_row(n, 1.0, "plain") + offset
    check(scores, random_target(1, n), k, 0.1, 1.0)


def test_is_cross_entropy_at_k_1_tau_1_alpha_0(kernel: str) -> None:
    for dtype in FLOATS:
        scores, target = random_scores(16, 50, dtype=dtype, scale=4.0), random_target(16, 50)
        loss, gradient = value_and_gradient(F.smooth_topk_loss, scores, target, 1, alpha=0.0, reduction="none")
        expected, slope = value_and_gradient(torch.nn.functional.cross_entropy, scores, target, reduction="none")
        torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(gradient, slope, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_has_no_jump_as_a_gap_grows(dtype: torch.dtype, kernel: str) -> None:
    """The published code jumps by tau log k where its "hard" fallback starts; the slope in a gap is at most 1/k."""
    k, n, step = 5, 20, 0.125
    gap = torch.arange(0, 1000, step, dtype=dtype)
    for moved in ("above", "below"):  # the k largest rise together, or the target and the rest fall
        scores = random_scores(n, dtype=dtype).sort(descending=True).values.expand(len(gap), n).clone()
        scores[:, :k] += gap[:, None] if moved == "above" else 0
        scores[:, k:] -= gap[:, None] if moved == "below" else 0
        for target in (0, k, n - 1):
            for tau in (1.0, 0.1):
                loss = F.smooth_topk_loss(scores, torch.full((len(gap),), target), k, tau=tau, reduction="none")
                rounding = 8 * torch.finfo(dtype).eps * (1 + loss.abs().max())
                assert bool(((loss[1:] - loss[:-1]).abs() <= step + rounding).all())
                assert bool(((loss[2:] - 2 * loss[1:-1] + loss[:-2]).abs() <= 0.05 + rounding).all())


def test_is_exact_while_a_gap_grows(kernel: str) -> None:
    for gap in [0.0, 1.0, 10.0, 40.0, 80.0, 90.0, 100.0, 110.0, 300.0, 700.0, 750.0, 2000.0]:
        for dtype in FLOATS:
            scores = random_scores(2, 12).to(dtype)
            scores[:, :4] += gap
            check(scores, torch.tensor([2, 9]), 4, 0.25, 1.0)


def satisfies_proposition_2(scores: Tensor, target: int, k: int) -> bool:
    s = scores.sort(descending=True).values
    strict = bool(s[k - 2] > s[k - 1]) if k > 1 else True
    return strict and bool((s[k - 1] > s[k]) | (scores[target] / k > 1 + s[k - 1] / k))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_meets_the_hinge_as_tau_vanishes(k: int, kernel: str) -> None:
    """Proposition 2; how fast: a log-sum of C terms lies within tau log C of its largest."""
    scores, target = random_scores(32, 9, dtype=torch.float64, scale=3.0), random_target(32, 9)
    assert all(satisfies_proposition_2(row, int(y), k) for row, y in zip(scores, target, strict=True))
    hinge = F.topk_hinge_loss(scores, target, k, reduction="none")
    for tau in [1.0, 0.1, 1e-2, 1e-4, 1e-8]:
        smooth = F.smooth_topk_loss(scores, target, k, tau=tau, reduction="none")
        assert bool((smooth <= hinge + tau * math.log(math.comb(9, k)) + 1e-12).all())
        assert bool((smooth >= hinge - tau * math.log(math.comb(8, k - 1)) - 1e-12).all())


def test_bounds_the_hinge_from_above_at_k_1(kernel: str) -> None:
    """Proposition 3, first half."""
    scores, target = random_scores(64, 7, dtype=torch.float64, scale=2.0), random_target(64, 7)
    for tau in (10.0, 1.0, 0.1):
        smooth = F.smooth_topk_loss(scores, target, 1, tau=tau, reduction="none")
        assert bool((smooth >= F.topk_hinge_loss(scores, target, 1, reduction="none") - 1e-12).all())


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("low", [-1e4, -math.inf])
def test_is_below_the_hinge_on_the_paper_example_for_k_above_1(k: int, low: float, kernel: str) -> None:
    """Proposition 3, second half: its construction has loss tau log(1 + e^(x/tau) / k) < x (eq. 31)."""
    tau, x = 0.5, 4.0
    scores = torch.full((1, 10), low, dtype=torch.float64)
    scores[0, 1 : k + 1] = 1.0  # beta
    scores[0, 0] = 1.0 - k * (x - 1)  # alpha of the paper: x = 1 + (beta - alpha) / k
    smooth = F.smooth_topk_loss(scores, torch.tensor([0]), k, tau=tau)
    hinge = F.topk_hinge_loss(scores, torch.tensor([0]), k)
    assert float(hinge) == pytest.approx(x, rel=1e-12)
    assert float(smooth) == pytest.approx(tau * math.log1p(math.exp(x / tau) / k), rel=1e-12)
    assert smooth < hinge


@given(data=st.data())
def test_bounds_the_prediction_loss_up_to_a_factor(data: st.DataObject) -> None:
    """Proposition 4: L >= (1 - tau log k) [y not among the k largest]."""
    n = data.draw(st.integers(2, 12))
    k = data.draw(st.integers(1, n - 1))
    tau = data.draw(st.sampled_from([10.0, 1.0, 0.3, 0.1, 0.01]))
    row = data.draw(st.lists(st.floats(-50, 50), min_size=n, max_size=n))
    scores, target = torch.tensor([row], dtype=torch.float64), torch.tensor([data.draw(st.integers(0, n - 1))])
    wrong = bool(scores[0].topk(k).values[-1] > scores[0, target[0]])
    assert float(F.smooth_topk_loss(scores, target, k, tau=tau)) >= (1 - tau * math.log(k)) * wrong - 1e-12


def test_gradients_of_a_row_cancel(kernel: str) -> None:
    """Adding a number to every score changes nothing."""
    for dtype in FLOATS:
        scores, target = random_scores(8, 300, dtype=dtype, scale=3.0), random_target(8, 300)
        _, gradient = value_and_gradient(F.smooth_topk_loss, scores, target, 12, reduction="sum")
        rounding = 300 * torch.finfo(dtype).eps * gradient.abs().max()
        assert float(gradient.double().sum(-1).abs().max()) <= rounding


def test_rows_without_k_other_usable_labels_count_as_right(kernel: str) -> None:
    scores = random_scores(3, 6, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=torch.bool)
    loss, gradient = value_and_gradient(
        F.smooth_topk_loss, scores, torch.tensor([1, 1, 0]), 3, mask=mask, reduction="none"
    )
    assert loss[0] == 0
    assert loss[1] > 0
    assert loss[2] == 0
    assert not gradient[0].any()
    assert gradient[1].any()
    assert not gradient[2].any()
