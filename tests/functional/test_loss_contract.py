"""What every loss promises alike: reductions, weights, ignored rows, masks, broken rows, types and shapes."""

import pytest
import torch
from torch import Tensor

from tests import oracles
from tests.functional.harness import (
    FLOATS,
    LOSSES,
    MATRIX_LOSSES,
    TOLERANCE,
    assert_gradients,
    assert_losses,
    exactly,
    random_matrix,
    random_scores,
    random_target,
    value_and_gradient,
)

K = 3
pytestmark = pytest.mark.usefixtures("path")
every_loss = pytest.mark.parametrize("name", LOSSES)
matrix_losses = pytest.mark.parametrize("name", MATRIX_LOSSES)
both_types = pytest.mark.parametrize("dtype", FLOATS)


def ignored_and_observed(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Six rows of nine labels, two of them ignored."""
    return random_scores(6, 9, dtype=dtype), torch.tensor([4, -1, 0, 8, -1, 4])


@every_loss
@both_types
def test_none_gives_one_loss_per_row_and_0_for_ignored_rows(name: str, dtype: torch.dtype) -> None:
    scores, target = ignored_and_observed(dtype)
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    seen = target >= 0
    exact = exactly(LOSSES[name], scores[seen], target[seen], K)
    assert loss.shape == (6,)
    assert not loss[~seen].any()
    assert not gradient[~seen].any()
    assert_losses(loss[seen], exact[0], floor=0.1)
    assert_gradients(gradient[seen], exact[1])


@every_loss
@both_types
def test_sum_and_mean_reduce_what_none_returns(name: str, dtype: torch.dtype) -> None:
    scores, target = ignored_and_observed(dtype)
    rows, slopes = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    tolerance = {"rtol": TOLERANCE[dtype] / 10, "atol": 0.0}
    total = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="sum")
    torch.testing.assert_close(total, (rows.sum(), slopes), **tolerance)
    mean = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="mean")
    torch.testing.assert_close(mean, (rows.sum() / 4, slopes / 4), **tolerance)
    default = LOSSES[name].call(scores, target, K)
    assert torch.equal(default, mean[0])


@every_loss
@pytest.mark.parametrize("which", ["weight", "sample_weight", "both"])
def test_weights_multiply_and_mean_divides_by_their_sum(name: str, which: str) -> None:
    scores, target = ignored_and_observed(torch.float64)
    rows, slopes = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    class_weight = torch.linspace(0.5, 2.5, 9, dtype=torch.float64)
    row_weight = torch.tensor([1.0, 5.0, 0.0, 2.0, 7.0, 0.25], dtype=torch.float64)
    options, w = {}, (target >= 0).double()
    if which in ("weight", "both"):
        options["weight"], w = class_weight, w * class_weight[target.clamp(min=0)]
    if which in ("sample_weight", "both"):
        options["sample_weight"], w = row_weight, w * row_weight
    for reduction, expected in {
        "none": (rows * w, slopes * w[:, None]),
        "sum": ((rows * w).sum(), slopes * w[:, None]),
        "mean": ((rows * w).sum() / w.sum(), slopes * w[:, None] / w.sum()),
    }.items():
        got = value_and_gradient(LOSSES[name].call, scores, target, K, reduction=reduction, **options)
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-15)


def test_weighted_mean_is_that_of_cross_entropy() -> None:
    scores, target = ignored_and_observed(torch.float64)
    weight = torch.linspace(0.5, 2.5, 9, dtype=torch.float64)
    expected = torch.nn.functional.cross_entropy(scores, target, weight=weight, ignore_index=-1)
    loss = LOSSES["truncated_entropy_loss"].call(scores, target, 1, weight=weight)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=0)


@matrix_losses
def test_a_matrix_counts_rows_with_a_present_label(name: str) -> None:
    scores, target = random_scores(5, 9, dtype=torch.float64), random_matrix(5, 9)
    target[1] = 0
    target[3] = torch.tensor([-1, 0, 0, -1, 0, 0, 0, 0, 0])
    row_weight = torch.tensor([1.0, 5.0, 0.5, 2.0, 3.0], dtype=torch.float64)
    seen = torch.tensor([0, 2, 4])
    exact = exactly(LOSSES[name], scores[seen], target[seen], K)
    rows, slopes = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    assert not rows[[1, 3]].any()
    assert not slopes[[1, 3]].any()
    assert_losses(rows[seen], exact[0])
    assert_gradients(slopes[seen], exact[1])
    torch.testing.assert_close(LOSSES[name].call(scores, target, K), rows.sum() / 3, rtol=1e-12, atol=0)
    weighted = LOSSES[name].call(scores, target, K, sample_weight=row_weight)
    torch.testing.assert_close(weighted, (rows * row_weight).sum() / 4.5, rtol=1e-12, atol=0)


@every_loss
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nothing_observed_gives_0_and_a_zero_gradient(name: str, reduction: str) -> None:
    scores = random_scores(3, 9)
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, torch.full((3,), -1), K, reduction=reduction)
    assert not loss.any()
    assert not gradient.any()
    assert loss.shape == (torch.Size([3]) if reduction == "none" else torch.Size([]))


@matrix_losses
@pytest.mark.parametrize("fill", [0, -1])
def test_nothing_present_gives_0_and_a_zero_gradient(name: str, fill: int) -> None:
    loss, gradient = value_and_gradient(LOSSES[name].call, random_scores(3, 9), torch.full((3, 9), fill), K)
    assert float(loss) == 0
    assert not gradient.any()


@every_loss
def test_weights_of_zero_everywhere_give_0(name: str) -> None:
    scores, target = random_scores(3, 9), random_target(3, 9)
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, sample_weight=torch.zeros(3))
    assert float(loss) == 0
    assert not gradient.any()


@every_loss
@both_types
@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_whatever_an_ignored_row_holds_stays_out(name: str, broken: float, dtype: torch.dtype) -> None:
    scores, target = ignored_and_observed(dtype)
    expected = value_and_gradient(LOSSES[name].call, scores, target, K)
    scores[1] = broken
    scores[4, 2] = broken
    got = value_and_gradient(LOSSES[name].call, scores, target, K)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


@every_loss
@both_types
def test_nan_makes_its_own_row_nan_and_no_other(name: str, dtype: torch.dtype) -> None:
    scores, target = random_scores(4, 9, dtype=dtype), torch.tensor([1, 2, 3, 4])
    expected = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    scores[1, 7] = torch.nan
    scores[2, 3] = torch.nan  # the target's own score
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    assert bool(loss[1:3].isnan().all())
    assert bool(gradient[1:3].isnan().all())
    torch.testing.assert_close(loss[[0, 3]], expected[0][[0, 3]], rtol=0, atol=0)
    torch.testing.assert_close(gradient[[0, 3]], expected[1][[0, 3]], rtol=0, atol=0)
    assert bool(LOSSES[name].call(scores, target, K).isnan())


@every_loss
@both_types
def test_a_mask_takes_labels_out_of_the_row(name: str, dtype: torch.dtype) -> None:
    scores, target = random_scores(6, 12, dtype=dtype), random_target(6, 12)
    mask = (random_scores(6, 12, seed=3) > -0.3) | (torch.nn.functional.one_hot(target, 12) == 1)
    assert int(mask.sum(-1).min()) > K + 1
    exact = exactly(LOSSES[name], scores, target, K, mask)
    minus_infinity = scores.masked_fill(~mask, -torch.inf)
    hidden = scores.masked_fill(~mask, torch.nan)
    for s, m in ((scores, mask), (minus_infinity, None), (hidden, mask)):
        loss, gradient = value_and_gradient(LOSSES[name].call, s, target, K, mask=m, reduction="none")
        assert_losses(loss, exact[0], floor=0.1)
        assert_gradients(gradient, exact[1])
        assert not gradient[~mask].any()


@every_loss
@both_types
def test_plus_infinity_is_the_largest_finite_number(name: str, dtype: torch.dtype) -> None:
    scores, target = random_scores(4, 6, dtype=dtype), torch.tensor([1, 2, 0, 5])
    scores[0, 0] = torch.inf  # another label
    scores[1, 2] = torch.inf  # the target
    scores[2, :5] = torch.inf  # both, and more than k
    scores[3, :5] = torch.inf  # more than k others, the target finite
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    assert not loss.isnan().any()
    assert not gradient.isnan().any()
    limit = scores.clamp(max=oracles.largest(dtype))
    assert_losses(loss, exactly(LOSSES[name], limit, target, K)[0], floor=0.1)
    assert_gradients(gradient[:2], exactly(LOSSES[name], limit, target, K)[1][:2])


@every_loss
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_half_precision_is_computed_in_float32(name: str, half: torch.dtype, reduction: str) -> None:
    scores, target = random_scores(6, 40, dtype=half, scale=4.0), random_target(6, 40)
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction=reduction)
    expected = value_and_gradient(LOSSES[name].call, scores.float(), target, K, reduction=reduction)
    assert loss.dtype == gradient.dtype == half
    torch.testing.assert_close((loss, gradient), tuple(t.to(half) for t in expected), rtol=0, atol=0)


@every_loss
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_at_logits_of_60(name: str, half: torch.dtype) -> None:
    scores = torch.full((3, 1000), -60.0, dtype=half)
    scores[0, :500] = 60.0
    scores[1, 7] = 60.0
    scores[2] = 60.0
    for target in (0, 7, 999):
        loss, gradient = value_and_gradient(LOSSES[name].call, scores, torch.full((3,), target), K, reduction="none")
        assert bool(loss.isfinite().all())
        assert bool(gradient.isfinite().all())


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_label_at_minus_40_still_gets_its_gradient(name: str, dtype: torch.dtype) -> None:
    scores = random_scores(2, 30, dtype=dtype)
    scores[:, 4] = -40.0
    _, gradient = value_and_gradient(LOSSES[name].call, scores, torch.tensor([4, 4]), K, reduction="sum")
    full = 1 / K if name in ("smooth_topk_loss", "topk_hinge_loss") else 1.0
    assert gradient[:, 4].tolist() == pytest.approx([-full, -full], rel=1e-2)


@every_loss
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 3)])
def test_any_leading_shape(name: str, shape: tuple[int, ...]) -> None:
    scores, target = random_scores(*shape, 9), random_target(shape, 9)
    mask = (random_scores(*shape, 9, seed=3) > -1) | (torch.nn.functional.one_hot(target, 9) == 1)
    flat = value_and_gradient(
        LOSSES[name].call, scores.reshape(-1, 9), target.reshape(-1), K, mask=mask.reshape(-1, 9), reduction="none"
    )
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, mask=mask, reduction="none")
    assert loss.shape == shape
    torch.testing.assert_close((loss.reshape(-1), gradient.reshape(-1, 9)), flat, rtol=0, atol=0)
    mean = LOSSES[name].call(scores, target, K, mask=mask)
    assert mean.shape == ()
    torch.testing.assert_close(mean, flat[0].mean())


@matrix_losses
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_any_leading_shape_of_a_matrix(name: str, shape: tuple[int, ...]) -> None:
    scores, target = random_scores(*shape, 9), random_matrix(*shape, 9)
    flat = value_and_gradient(LOSSES[name].call, scores.reshape(-1, 9), target.reshape(-1, 9), K, reduction="none")
    loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    assert loss.shape == shape
    torch.testing.assert_close((loss.reshape(-1), gradient.reshape(-1, 9)), flat, rtol=0, atol=0)


@every_loss
def test_an_empty_batch_has_no_loss(name: str) -> None:
    scores, target = torch.zeros(0, 9), torch.zeros(0, dtype=torch.long)
    for reduction, shape in {"none": (0,), "mean": (), "sum": ()}.items():
        loss, gradient = value_and_gradient(LOSSES[name].call, scores, target, K, reduction=reduction)
        assert loss.shape == shape
        assert not loss.any()
        assert gradient.shape == (0, 9)


@every_loss
def test_non_contiguous_scores_are_the_same_scores(name: str) -> None:
    scores, target = random_scores(6, 9), random_target(6, 9)
    expected = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    every_other = torch.full((6, 18), torch.nan)
    every_other[:, ::2] = scores
    for view in (scores.T.contiguous().T, every_other[:, ::2]):
        leaf = view.detach().requires_grad_()
        assert not leaf.is_contiguous()
        loss = LOSSES[name].call(leaf, target, K, reduction="none")
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        torch.testing.assert_close((loss.detach(), gradient), expected, rtol=0, atol=0)


@every_loss
def test_an_expanded_row_sums_its_gradients(name: str) -> None:
    scores, target = random_scores(1, 9), random_target(4, 9)
    call = LOSSES[name].call
    loss, gradient = value_and_gradient(lambda s: call(s.expand(4, 9), target, K, reduction="none"), scores)
    rows = value_and_gradient(LOSSES[name].call, scores.repeat(4, 1), target, K, reduction="none")
    torch.testing.assert_close(loss, rows[0], rtol=0, atol=0)
    torch.testing.assert_close(gradient, rows[1].sum(0, keepdim=True))


@every_loss
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_targets_of_any_integer_type(name: str, dtype: torch.dtype) -> None:
    scores, target = random_scores(6, 9), random_target(6, 9)
    assert torch.equal(LOSSES[name].call(scores, target.to(dtype), K), LOSSES[name].call(scores, target, K))


@every_loss
def test_inputs_are_never_modified(name: str) -> None:
    scores, target = ignored_and_observed()
    scores[1] = torch.nan
    mask = (random_scores(6, 9, seed=3) > -1) | (torch.nn.functional.one_hot(target.clamp(min=0), 9) == 1)
    weight, row_weight = torch.rand(9), torch.rand(6)
    before = [t.clone() for t in (scores, target, mask, weight, row_weight)]
    value_and_gradient(LOSSES[name].call, scores, target, K, mask=mask, weight=weight, sample_weight=row_weight)
    LOSSES[name].call(scores, target, K, mask=mask)
    for now, then in zip((scores, target, mask, weight, row_weight), before, strict=True):
        assert torch.equal(now.nan_to_num(123.0), then.nan_to_num(123.0))


@every_loss
@both_types
def test_two_runs_give_the_same_bits(name: str, dtype: torch.dtype) -> None:
    scores, target = random_scores(128, 700, dtype=dtype), random_target(128, 700)
    first = value_and_gradient(LOSSES[name].call, scores, target, 5)
    for _ in range(3):
        torch.testing.assert_close(value_and_gradient(LOSSES[name].call, scores, target, 5), first, rtol=0, atol=0)


@every_loss
def test_upstream_gradients_scale_each_row(name: str) -> None:
    scores, target = random_scores(4, 9, dtype=torch.float64), random_target(4, 9)
    upstream = torch.tensor([1.0, -2.0, 0.0, 3.5], dtype=torch.float64)
    _, plain = value_and_gradient(LOSSES[name].call, scores, target, K, reduction="none")
    _, scaled = value_and_gradient(lambda s: LOSSES[name].call(s, target, K, reduction="none") * upstream, scores)
    torch.testing.assert_close(scaled, plain * upstream[:, None], rtol=1e-12, atol=0)


@every_loss
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_graph_that_is_kept_gives_the_same_gradient_again(name: str, reduction: str) -> None:
    scores, target = ignored_and_observed(torch.float64)
    scores.requires_grad_()
    generator = {"generator": torch.Generator().manual_seed(0)} if name == "noised_topk" else {}
    loss = LOSSES[name].call(scores, target, K, reduction=reduction, **generator)
    upstream = torch.full_like(loss, 3.0)
    (tripled,) = torch.autograd.grad(loss, scores, upstream, retain_graph=True)
    (first,) = torch.autograd.grad(loss, scores, torch.ones_like(loss), retain_graph=True)
    assert first.any()
    torch.testing.assert_close(tripled, 3 * first)
    kept = first.clone()
    first.zero_()  # what was given away belongs to who asked for it
    loss.sum().backward()
    assert torch.equal(scores.grad, kept)
    with pytest.raises(RuntimeError, match="second time"):
        loss.sum().backward()


@every_loss
@pytest.mark.parametrize("which", ["weight", "sample_weight"])
@pytest.mark.parametrize("of_scores", [True, False])
def test_weights_can_be_learned(name: str, which: str, of_scores: bool) -> None:
    scores, target = ignored_and_observed(torch.float64)
    scores.requires_grad_(of_scores)
    weight = torch.linspace(0.5, 2.5, 9 if which == "weight" else 6, dtype=torch.float64, requires_grad=True)
    loss = LOSSES[name].call(scores, target, K, reduction="sum", **{which: weight})
    loss.backward()
    rows = LOSSES[name].call(scores.detach(), target, K, reduction="none")
    where = target.clamp(min=0) if which == "weight" else torch.arange(6)
    expected = torch.zeros_like(weight).index_add(0, where, rows).detach()
    torch.testing.assert_close(weight.grad, expected, rtol=1e-12, atol=1e-15)


@every_loss
def test_a_bad_target_is_refused_with_learned_weights_too(name: str) -> None:
    scores, weight = random_scores(2, 9), torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"is 9: allowed are 0\.\.8"):
        LOSSES[name].call(scores, torch.tensor([0, 9]), K, sample_weight=weight)
