"""What every loss promises, each promise checked once for all of them."""

import pytest
import torch
from torch import Tensor

from shortlist import kernels
from shortlist.functional.label_matrix import is_label
from tests import oracles
from tests.functional.harness import (
    CASES,
    FLOATS,
    LOSSES,
    TOLERANCE,
    Case,
    K,
    assert_gradients,
    assert_losses,
    exactly,
    random_scores,
    some_scores,
    some_target,
    value_and_gradient,
)
from tests.kernels_here import PATHS

HALVES = [torch.float16, torch.bfloat16]
ROWS, LABELS = 7, 6


def of(*kinds: str, **wanted: object) -> pytest.MarkDecorator:
    """The losses with these kinds of targets and these properties; a loss of two kinds comes twice."""
    chosen = [
        (name, kind)
        for name, case in CASES.items()
        for kind in case.targets
        if kind in kinds and all(getattr(case, key) == value for key, value in wanted.items())
    ]
    return pytest.mark.parametrize(("name", "kind"), chosen)


every_loss = of("index", "matrix")
not_coupled = pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.by != "batch"])


def batch(name: str, kind: str | None = None, dtype: torch.dtype = torch.float64) -> tuple[Case, Tensor, Tensor]:
    return CASES[name], some_scores(ROWS, LABELS, dtype=dtype), some_target(name, ROWS, LABELS, kind=kind)


def observed(case: Case, target: Tensor) -> Tensor:
    """How much each row counts."""
    if target.ndim == 1:
        return (target >= 0).double()
    if case.by == "entry":
        return (target != -1).double().sum(-1)
    return (target != -1 if case.counts_known else target == 1).any(-1).double()


# ---- values


@every_loss
@pytest.mark.parametrize("dtype", FLOATS)
def test_value_and_gradient_equal_the_formula(name: str, kind: str, dtype: torch.dtype, kernel: str) -> None:
    case, _, target = batch(name, kind)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9 if case.topk else 1e-12
    for scale in (0.01, 1.0, 30.0, 500.0):
        scores = some_scores(ROWS, LABELS, dtype=dtype, scale=scale)
        value, gradient = value_and_gradient(case.call, scores, target)
        exact, exact_gradient = case.exact(scores.double(), target)
        assert abs(value.double() - exact) <= tolerance * (exact.abs() + 0.1 * case.topk)
        assert (gradient.double() - exact_gradient).abs().max() <= tolerance * exact_gradient.abs().max()


@every_loss
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_the_kernels_agree_with_their_twins_on_rows_of_any_length(
    name: str, kind: str, dtype: torch.dtype, scale: float
) -> None:
    """Vectors, their tails, blocks of columns and chunks of rows: lengths around all of them."""
    call = CASES[name].call
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9 if CASES[name].topk else 1e-12
    for rows, labels in ((40, 7), (3, 70), (70, 131), (4, 2048), (5, 4500)):
        scores = some_scores(rows, labels, dtype=dtype, scale=scale)
        target = some_target(name, rows, labels, kind=kind)
        weight = torch.rand(rows, dtype=dtype, generator=torch.Generator().manual_seed(2))
        weight[-1] = 0
        value, gradient = value_and_gradient(call, scores, target, sample_weight=weight)
        with kernels.use("torch"):
            exact, slope = value_and_gradient(call, scores.double(), target, sample_weight=weight.double())
        assert abs(value - exact) <= tolerance * exact
        assert (gradient - slope).abs().max() <= tolerance * slope.abs().max()


@of("index", "matrix", topk=False)
def test_first_and_second_derivatives_are_right(name: str, kind: str, path: str) -> None:
    """Those of the top-k family are in test_transforms, with the layers'; so are vmap and compile."""
    scores, target = some_scores(4, 4, seed=3).requires_grad_(), some_target(name, 4, 4)
    assert torch.autograd.gradcheck(lambda s: CASES[name].call(s, target), scores)
    assert torch.autograd.gradgradcheck(lambda s: CASES[name].call(s, target), scores, atol=1e-6)


@of("index", "matrix", topk=False)
def test_vmap_equals_a_loop(name: str, kind: str, path: str) -> None:
    scores, call = some_scores(3, ROWS, LABELS), CASES[name].call
    target = torch.stack([some_target(name, ROWS, LABELS, seed) for seed in range(3)])
    batched = torch.func.vmap(torch.func.grad(call))(scores, target)
    looped = torch.stack([value_and_gradient(call, s, t)[1] for s, t in zip(scores, target, strict=True)])
    torch.testing.assert_close(batched, looped)


@of("index", "matrix", topk=False)
def test_compiles_to_one_graph(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name)
    compiled = torch.compile(case.call, fullgraph=True, backend="aot_eager")
    expected = value_and_gradient(case.call, scores, target)
    torch.testing.assert_close(value_and_gradient(compiled, scores, target), expected, rtol=1e-12, atol=1e-15)


def test_weighted_mean_is_that_of_cross_entropy(path: str) -> None:
    _, scores, target = batch("truncated_entropy")
    weight = torch.linspace(0.5, 2.5, LABELS, dtype=torch.float64)
    expected = torch.nn.functional.cross_entropy(scores, target, weight=weight, ignore_index=-1)
    loss = LOSSES["truncated_entropy_loss"].call(scores, target, 1, weight=weight)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=0)


# ---- targets


@every_loss
def test_the_type_of_the_target_does_not_matter(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    floats = () if kind == "index" else (torch.float16, torch.float32, torch.float64)
    for dtype in (torch.int8, torch.int16, torch.int32, *floats):
        expected = value_and_gradient(case.call, scores, target)
        assert all(map(torch.equal, value_and_gradient(case.call, scores, target.to(dtype)), expected))
    known = target.clamp(min=0)  # which unsigned types hold
    expected = value_and_gradient(case.call, scores, known)
    for dtype in (torch.uint8,) if kind == "index" else (torch.uint8, torch.bool):
        assert all(map(torch.equal, value_and_gradient(case.call, scores, known.to(dtype)), expected))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "index" in case.targets[:-1]])
def test_indices_say_the_same_as_a_matrix_with_one_present_label(name: str, path: str) -> None:
    case, scores, target = batch(name)
    matrix = torch.where(torch.arange(LABELS) == target[:, None], 1, -(torch.arange(ROWS) % 2)[:, None])
    expected = value_and_gradient(case.call, scores, target)
    torch.testing.assert_close(value_and_gradient(case.call, scores, matrix), expected, rtol=1e-15, atol=1e-17)


@of("single")
def test_a_matrix_with_two_present_labels_in_a_row_is_refused(name: str, kind: str, path: str) -> None:
    with pytest.raises(ValueError, match="row 1 of target holds 2 present labels"):
        CASES[name].call(torch.zeros(2, 4), torch.tensor([[0, 1, 0, 0], [1, 0, 1, 0]]))


@of("matrix", "single")
def test_a_matrix_holding_something_else_is_refused_with_its_first_bad_entry(name: str, kind: str, path: str) -> None:
    for weight in (None, torch.ones(2, requires_grad=True)):
        with pytest.raises(ValueError, match=r"target\[1, 2\] is 2"):
            CASES[name].call(torch.zeros(2, 4), torch.tensor([[0, 1, 0, 0], [0, 0, 2, 0]]), sample_weight=weight)


@of("index")
def test_an_index_out_of_range_is_refused(name: str, kind: str, path: str) -> None:
    for weight in (None, torch.ones(2, requires_grad=True)):
        with pytest.raises(ValueError, match=r"target\[1\] is 9: allowed are 0\.\.8"):
            CASES[name].call(random_scores(2, 9), torch.tensor([0, 9]), sample_weight=weight)


@of("matrix", topk=False)
def test_unknown_labels_influence_neither_value_nor_gradient(name: str, kind: str, path: str) -> None:
    if name == "partial_selective":
        pytest.skip("its definition makes use of unknown labels")
    case, scores, target = batch(name)
    value, gradient = value_and_gradient(case.call, scores, target)
    for other in (torch.nan, torch.inf, -1e4):
        changed = scores.masked_fill(target == -1, other)
        value_changed, gradient_changed = value_and_gradient(case.call, changed, target)
        torch.testing.assert_close(value_changed, value, rtol=1e-14, atol=0)
        torch.testing.assert_close(gradient_changed, gradient, rtol=1e-14, atol=1e-16)
        assert not gradient_changed[target == -1].any()


@of("index", "matrix")
@pytest.mark.parametrize("dtype", FLOATS)
def test_whatever_an_ignored_row_holds_stays_out(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    case, scores, target = batch(name, kind, dtype)
    if kind == "matrix" and not case.topk:
        pytest.skip("its rows are ignored label by label")
    seen = observed(case, target) > 0
    expected, expected_gradient = value_and_gradient(case.call, scores[seen], target[seen])
    for broken in (torch.nan, torch.inf, -torch.inf):
        scores[~seen] = broken
        value, gradient = value_and_gradient(case.call, scores, target)
        torch.testing.assert_close(value, expected, rtol=10 * torch.finfo(dtype).eps, atol=0)
        torch.testing.assert_close(gradient[seen], expected_gradient, rtol=10 * torch.finfo(dtype).eps, atol=1e-16)
        assert not gradient[~seen].any()


@every_loss
@pytest.mark.parametrize("rows", [0, 4])
def test_nothing_observed_costs_nothing(name: str, kind: str, rows: int, path: str) -> None:
    case = CASES[name]
    more = {"mode": "ignore"} if name == "partial_selective" else {}  # whose definition makes use of unknown labels
    for fill in (-1, 0) if case.topk and kind == "matrix" else (-1,):
        target = torch.full((rows,) if kind == "index" else (rows, LABELS), fill)
        for reduction in case.reductions:
            scores = some_scores(rows, LABELS)
            loss, gradient = value_and_gradient(case.call, scores, target, reduction=reduction, **more)
            shape = (rows, LABELS) if case.by == "entry" else (rows,)
            assert loss.shape == (shape if reduction == "none" else ())
            assert gradient.shape == (rows, LABELS)
            assert not loss.any()
            assert not gradient.any()


# ---- reductions and weights


@not_coupled
@pytest.mark.parametrize("dtype", FLOATS)
def test_none_sum_and_mean_are_one_loss(name: str, dtype: torch.dtype, path: str) -> None:
    case, scores, target = batch(name, dtype=dtype)
    each, slopes = value_and_gradient(case.call, scores, target, reduction="none")
    assert each.shape == (scores.shape if case.by == "entry" else scores.shape[:1])
    tolerance = {"rtol": TOLERANCE[dtype] / 5, "atol": 0.0}
    total = value_and_gradient(case.call, scores, target, reduction="sum")
    torch.testing.assert_close(total, (each.sum(), slopes), **tolerance)
    mean = value_and_gradient(case.call, scores, target, reduction="mean")
    assert torch.equal(case.call(scores, target), mean[0])
    if name != "partial_selective":  # which counts the unknown labels that it chose
        count = observed(case, target).sum().to(dtype)
        torch.testing.assert_close(mean, (each.sum() / count, slopes / count), **tolerance)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.by == "batch"])
def test_a_loss_that_couples_the_batch_says_so_when_asked_for_each_row(name: str) -> None:
    case, scores, target = batch(name)
    with pytest.raises(ValueError, match="couples the rows of the batch: reduction must be 'mean' or 'sum', got"):
        case.call(scores, target, reduction="none")


@every_loss
def test_a_sample_weight_counts_a_row_that_many_times(name: str, kind: str, kernel: str) -> None:
    case, scores, target = batch(name, kind)
    times = torch.tensor([1, 2, 1, 0, 3, 1, 2])
    if case.by != "batch":
        rows, weight = case.call(scores, target, reduction="none"), times.double()
        weighted = case.call(scores, target, sample_weight=weight, reduction="none")
        torch.testing.assert_close(weighted, rows * (weight if rows.ndim == 1 else weight[:, None]))
        torch.testing.assert_close(case.call(scores, target, sample_weight=9 + 0 * weight), case.call(scores, target))
    for reduction in ("mean", "sum") if name != "average_k" else ():  # whose candidates are chosen without weights
        weighted = value_and_gradient(case.call, scores, target, sample_weight=times.double(), reduction=reduction)
        repeated = value_and_gradient(
            lambda s, r=reduction: case.call(
                s.repeat_interleave(times, 0), target.repeat_interleave(times, 0), reduction=r
            ),
            scores,
        )
        torch.testing.assert_close(weighted, repeated)


@of("index")
def test_a_class_weight_is_the_sample_weight_of_its_rows(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name)
    weight = torch.rand(LABELS, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    rows, own = weight[target.clamp(min=0)], torch.linspace(0.5, 2.0, ROWS, dtype=torch.float64)
    for reduction in case.reductions:
        by_class = value_and_gradient(case.call, scores, target, weight=weight, reduction=reduction)
        by_row = value_and_gradient(case.call, scores, target, sample_weight=rows, reduction=reduction)
        torch.testing.assert_close(by_class, by_row)
        both = case.call(scores, target, weight=weight, sample_weight=own, reduction=reduction)
        torch.testing.assert_close(both, case.call(scores, target, sample_weight=rows * own, reduction=reduction))


@every_loss
def test_weights_of_zero_everywhere_give_0(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    loss, gradient = value_and_gradient(case.call, scores, target, sample_weight=torch.zeros(ROWS))
    assert float(loss) == 0
    assert not gradient.any()


@every_loss
def test_a_scaled_loss_of_nothing_has_no_gradient(name: str, kind: str, path: str) -> None:
    """Whatever it is multiplied by (`torch.amp.GradScaler`: 65,536 and more): what was divided by may not overflow."""
    case, scores, target = batch(name, kind, torch.float32)
    more = {"mode": "ignore"} if name == "partial_selective" else {}
    given: list[tuple[Tensor, dict[str, Tensor]]] = [
        (torch.full_like(target, -1), {}),
        (torch.full_like(target, -1), {"sample_weight": torch.ones(len(scores))}),
        (target, {"sample_weight": torch.zeros(len(scores))}),
    ]
    for y, options in given:
        x = scores.clone().requires_grad_()
        (case.call(x, y, **options, **more) * 2.0**30).backward()
        assert x.grad is not None
        assert (x.grad == 0).all()


@not_coupled
def test_weights_can_be_learned(name: str, path: str) -> None:
    case, scores, target = batch(name)
    each = case.call(scores, target, reduction="none")
    rows = each if each.ndim == 1 else each.sum(-1)
    for of_scores in (True, False):
        weight = torch.linspace(0.5, 2.5, ROWS, dtype=torch.float64, requires_grad=True)
        case.call(scores.clone().requires_grad_(of_scores), target, reduction="sum", sample_weight=weight).backward()
        torch.testing.assert_close(weight.grad, rows, rtol=1e-12, atol=1e-15)
        if "index" in case.targets:
            weight = torch.linspace(0.5, 2.5, LABELS, dtype=torch.float64, requires_grad=True)
            case.call(scores.clone().requires_grad_(of_scores), target, reduction="sum", weight=weight).backward()
            expected = torch.zeros_like(weight).index_add(0, target.clamp(min=0), rows)
            torch.testing.assert_close(weight.grad, expected.detach(), rtol=1e-12, atol=1e-15)


# ---- masks, infinities, NaN


@every_loss
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_mask_takes_labels_out(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    case, scores, target = CASES[name], some_scores(ROWS, 8, dtype=dtype), some_target(name, ROWS, LABELS, kind=kind)
    keep = torch.tensor([True, True, False, True, True, False, True, True])
    if kind == "index":
        wide = torch.where(target < 0, -1, keep.nonzero().flatten()[target])
        wide[-1], target[-1] = 2, -1  # a row whose own label is taken out is not observed
    else:
        wide = torch.ones(ROWS, 8, dtype=torch.long)
        wide[:, keep] = target
    scores[:, 5] = torch.nan
    value, gradient = value_and_gradient(case.call, scores, wide, mask=keep)
    expected, expected_gradient = value_and_gradient(case.call, scores[:, keep], target)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient[:, keep], expected_gradient)
    assert not gradient[:, ~keep].any()
    if case.topk and kind == "index":  # -inf says the same
        out = value_and_gradient(case.call, scores.masked_fill(~keep, -torch.inf), torch.where(wide == 2, -1, wide))
        torch.testing.assert_close(out, (value, gradient))


@of("index", topk=True)
@pytest.mark.parametrize("dtype", FLOATS)
def test_plus_infinity_is_the_largest_finite_number(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    scores, target = random_scores(4, 6, dtype=dtype), torch.tensor([1, 2, 0, 5])
    scores[0, 0] = torch.inf  # another label
    scores[1, 2] = torch.inf  # the target
    scores[2, :5] = torch.inf  # both, and more than k
    scores[3, :5] = torch.inf  # more than k others, the target finite
    loss, gradient = value_and_gradient(CASES[name].call, scores, target, reduction="none")
    assert not loss.isnan().any()
    assert not gradient.isnan().any()
    exact = exactly(LOSSES[f"{name}_loss"], scores.clamp(max=oracles.largest(dtype)), target, K)
    assert_losses(loss, exact[0], floor=0.1)
    assert_gradients(gradient[:2], exact[1][:2])


@of("matrix", "index", topk=False)
def test_an_absent_label_at_minus_infinity_costs_what_a_very_low_score_does(name: str, kind: str, path: str) -> None:
    if name == "average_k":
        pytest.skip("its proposals, made of the same scores, would be infinite with them")
    case, scores, target = batch(name)
    absent = ~is_label(target, LABELS) if kind == "index" else target == 0
    low = value_and_gradient(case.call, scores.masked_fill(absent, -1e9), target)
    limit = value_and_gradient(case.call, scores.masked_fill(absent, -torch.inf), target)
    torch.testing.assert_close(limit, low, rtol=1e-12, atol=1e-15)


@of("matrix", topk=False, by="row")
def test_an_absent_label_at_plus_infinity_is_the_same_for_kernel_and_twin(name: str, kind: str) -> None:
    scores, target = torch.tensor([[0.0, torch.inf, 0.5, -1.0]]), torch.tensor([[1, 0, 0, 0]])
    losses = []
    for choice in PATHS:
        with kernels.use(choice):
            losses.append(CASES[name].call(scores, target))
    torch.testing.assert_close(losses[0], losses[-1], rtol=1e-6, atol=0.0)
    assert not losses[0].isnan()


@of("index", topk=True)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_makes_its_own_row_nan_and_no_other(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    scores, target, call = random_scores(4, 9, dtype=dtype), torch.tensor([1, 2, 3, 4]), CASES[name].call
    expected = value_and_gradient(call, scores, target, reduction="none")
    scores[1, 7] = torch.nan
    scores[2, 3] = torch.nan  # the target's own score
    loss, gradient = value_and_gradient(call, scores, target, reduction="none")
    assert bool(loss[1:3].isnan().all())
    assert bool(gradient[1:3].isnan().all())
    torch.testing.assert_close(loss[[0, 3]], expected[0][[0, 3]], rtol=0, atol=0)
    torch.testing.assert_close(gradient[[0, 3]], expected[1][[0, 3]], rtol=0, atol=0)
    assert bool(call(scores, target).isnan())


@of("matrix", topk=False, by="row")
def test_nan_in_an_observed_score_makes_its_row_nan_in_an_unknown_one_nothing(name: str, kind: str, path: str) -> None:
    target, scores, call = torch.tensor([[1, 0, -1, 0], [1, 0, 1, 0]]), some_scores(2, 4), CASES[name].call
    clean = call(scores, target, reduction="none")
    for label in (0, 1, 2):
        broken = scores.clone()
        broken[0, label] = torch.nan
        loss = call(broken, target, reduction="none")
        assert bool(loss[0].isnan()) == (label < 2)
        assert torch.equal(loss[1], clean[1])
        assert label < 2 or torch.equal(loss, clean)


# ---- types and shapes


@every_loss
@pytest.mark.parametrize("half", HALVES)
def test_half_precision_is_computed_in_float32(name: str, kind: str, half: torch.dtype, path: str) -> None:
    case, scores, target = batch(name, kind)
    for values in (4 * scores, torch.where(scores > 0, 60.0, -60.0)):
        rounded = values.to(half)
        for reduction in case.reductions:
            loss, gradient = value_and_gradient(case.call, rounded, target, reduction=reduction)
            exact = value_and_gradient(case.call, rounded.float(), target, reduction=reduction)
            assert loss.dtype == gradient.dtype == half
            assert bool(loss.isfinite().all())
            assert bool(gradient.isfinite().all())
            assert torch.equal(loss, exact[0].to(half))
            rounding = 0.0 if case.topk else 2 * torch.finfo(half).eps  # average-k's gradient is a sum of two
            torch.testing.assert_close(gradient, exact[1].to(half), rtol=rounding, atol=0)


@of("index", topk=True)
@pytest.mark.parametrize("dtype", [*HALVES, *FLOATS])
def test_a_label_at_minus_40_still_gets_its_gradient(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    scores = random_scores(2, 30, dtype=dtype)
    scores[:, 4] = -40.0
    _, gradient = value_and_gradient(CASES[name].call, scores, torch.tensor([4, 4]), reduction="sum")
    full = 1 / K if name in ("smooth_topk", "topk_hinge") else 1.0
    assert gradient[:, 4].tolist() == pytest.approx([-full, -full], rel=1e-2)


@of("index", topk=True)
@pytest.mark.parametrize("half", HALVES)
def test_half_precision_is_finite_at_logits_of_60(name: str, kind: str, half: torch.dtype, path: str) -> None:
    scores = torch.full((3, 1000), -60.0, dtype=half)
    scores[0, :500] = 60.0
    scores[1, 7] = 60.0
    scores[2] = 60.0
    for target in (0, 7, 999):
        loss, gradient = value_and_gradient(CASES[name].call, scores, torch.full((3,), target), reduction="none")
        assert bool(loss.isfinite().all())
        assert bool(gradient.isfinite().all())


@every_loss
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 3)])
def test_leading_dimensions_are_rows(name: str, kind: str, shape: tuple[int, ...], path: str) -> None:
    case, rows = CASES[name], torch.Size(shape).numel()
    scores, target = some_scores(rows, 9), some_target(name, 8, 9, kind=kind)[-rows:]
    mask = (random_scores(rows, 9, seed=3) > -1) | (is_label(target, 9) if kind == "index" else target == 1)
    for reduction in case.reductions:
        flat, slopes = value_and_gradient(case.call, scores, target, mask=mask, reduction=reduction)
        loss, gradient = value_and_gradient(
            case.call,
            scores.reshape(*shape, 9),
            target.reshape((*shape, *target.shape[1:])),
            mask=mask.reshape(*shape, 9),
            reduction=reduction,
        )
        assert loss.shape == ((*shape, *flat.shape[1:]) if reduction == "none" else ())
        torch.testing.assert_close((loss.reshape(flat.shape), gradient.reshape(rows, 9)), (flat, slopes))


@every_loss
def test_scores_and_targets_of_any_strides_are_the_same(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    expected = value_and_gradient(case.call, scores, target)
    every_other = torch.full((ROWS, 2 * LABELS), torch.nan, dtype=scores.dtype)
    every_other[:, ::2] = scores
    for view in (scores.T.contiguous().T, every_other[:, ::2]):
        leaf = view.detach().requires_grad_()
        assert not leaf.is_contiguous()
        loss = case.call(leaf, target.repeat_interleave(2, 0)[::2])
        (gradient,) = torch.autograd.grad(loss, leaf)
        # to the bit but for sums over the batch, which PyTorch adds up in an order that depends on strides
        torch.testing.assert_close((loss.detach(), gradient), expected, rtol=1e-15 if case.by == "batch" else 0, atol=0)


@every_loss
def test_an_expanded_row_sums_its_gradients(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    loss, gradient = value_and_gradient(lambda s: case.call(s.expand(ROWS, LABELS), target), scores[:1])
    repeated, slopes = value_and_gradient(case.call, scores[:1].repeat(ROWS, 1), target)
    assert torch.equal(loss, repeated)
    torch.testing.assert_close(gradient, slopes.sum(0, keepdim=True))


# ---- what a call leaves behind


@every_loss
def test_inputs_and_grad_mode_are_left_alone(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    given = {"mask": scores > -9, "sample_weight": torch.rand(ROWS)}
    given |= {"weight": torch.rand(LABELS)} if kind == "index" else {}
    before = [t.clone() for t in (scores, target, *given.values())]
    value_and_gradient(case.call, scores, target, **given)
    with torch.no_grad():
        value = case.call(scores.requires_grad_(), target)
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert not value.requires_grad
    assert all(map(torch.equal, (scores.detach(), target, *given.values()), before))


@every_loss
@pytest.mark.parametrize("dtype", FLOATS)
def test_two_runs_give_the_same_bits(name: str, kind: str, dtype: torch.dtype, path: str) -> None:
    scores, target = random_scores(64, 500, dtype=dtype), some_target(name, 64, 500, kind=kind)
    first = value_and_gradient(CASES[name].call, scores, target)
    for _ in range(3):
        torch.testing.assert_close(value_and_gradient(CASES[name].call, scores, target), first, rtol=0, atol=0)


@not_coupled
def test_upstream_gradients_scale_each_row(name: str, path: str) -> None:
    case, scores, target = batch(name)
    upstream = torch.tensor([1.0, -2.0, 0.0, 3.5, 1.0, 0.5, 2.0], dtype=torch.float64)
    _, plain = value_and_gradient(case.call, scores, target, reduction="none")
    _, scaled = value_and_gradient(
        lambda s: case.call(s, target, reduction="none").reshape(ROWS, -1) * upstream[:, None], scores
    )
    torch.testing.assert_close(scaled, plain * upstream[:, None], rtol=1e-12, atol=0)


@every_loss
def test_a_graph_that_is_kept_gives_the_same_gradient_again(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    for reduction in case.reductions:
        leaf = scores.clone().requires_grad_()
        loss = case.call(leaf, target, reduction=reduction)
        (tripled,) = torch.autograd.grad(loss, leaf, torch.full_like(loss, 3.0), retain_graph=True)
        (first,) = torch.autograd.grad(loss, leaf, torch.ones_like(loss), retain_graph=True)
        assert first.any()
        torch.testing.assert_close(tripled, 3 * first)
        kept = first.clone()
        first.zero_()  # what was given away belongs to who asked for it
        loss.sum().backward()
        assert torch.equal(leaf.grad, kept)
        with pytest.raises(RuntimeError, match="second time"):
            loss.sum().backward()


@every_loss
def test_a_loss_may_be_changed_in_place_before_backward(name: str, kind: str, path: str) -> None:
    case, scores, target = batch(name, kind)
    _, expected = value_and_gradient(case.call, scores, target)
    _, half = value_and_gradient(lambda s: case.call(s, target).mul_(0.5), scores)
    torch.testing.assert_close(half, expected / 2)
