"""What every multi-label, partial-label and average-K loss promises, checked for all of them and with every kernel."""

import pytest
import torch
from torch import Tensor

from shortlist import kernels
from shortlist.functional.label_matrix import is_label
from tests.functional.cases_multilabel import CASES, COUPLED, INDICES, MATRIX, ROWWISE, some_scores, some_target
from tests.functional.harness import value_and_gradient
from tests.kernels_here import PATHS

every_loss = pytest.mark.parametrize("name", CASES)


@every_loss
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 500.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_value_and_gradient_equal_the_formula(
    name: str, scale: float, dtype: torch.dtype, tolerance: float, kernel: str
) -> None:
    scores, target = some_scores(7, 6, dtype=dtype, scale=scale), some_target(name, 7, 6)
    value, gradient = value_and_gradient(CASES[name].call, scores, target)
    exact, exact_gradient = value_and_gradient(CASES[name].oracle, scores.double(), target)
    assert abs(value.double() - exact) <= tolerance * exact.abs()
    assert (gradient.double() - exact_gradient).abs().max() <= tolerance * exact_gradient.abs().max()


@every_loss
def test_the_type_of_the_target_does_not_matter(name: str, kernel: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    expected = value_and_gradient(CASES[name].call, scores, target)
    floats = () if CASES[name].indices else (torch.float16, torch.float32, torch.float64)
    for dtype in (torch.int8, torch.int32, *floats):
        assert all(map(torch.equal, value_and_gradient(CASES[name].call, scores, target.to(dtype)), expected))


@pytest.mark.parametrize("name", MATRIX)
def test_a_matrix_of_bools_is_one_of_present_and_absent(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6) == 1
    expected = value_and_gradient(CASES[name].call, scores, target.long())
    assert all(map(torch.equal, value_and_gradient(CASES[name].call, scores, target), expected))


@pytest.mark.parametrize("name", INDICES)
def test_indices_say_the_same_as_a_matrix_with_one_present_label(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    matrix = torch.where(torch.arange(6) == target[:, None], 1, -(torch.arange(7) % 2)[:, None])  # absent or unknown
    expected = value_and_gradient(CASES[name].call, scores, target)
    assert all(map(torch.equal, value_and_gradient(CASES[name].call, scores, matrix), expected))


@pytest.mark.parametrize("name", INDICES)
def test_a_matrix_with_two_present_labels_in_a_row_is_refused(name: str, path: str) -> None:
    with pytest.raises(ValueError, match="row 1 of target holds 2 present labels"):
        CASES[name].call(torch.zeros(2, 3), torch.tensor([[0, 1, 0], [1, 0, 1]]))


@pytest.mark.parametrize("name", MATRIX)
def test_a_matrix_holding_something_else_is_refused_with_its_first_bad_entry(name: str, path: str) -> None:
    with pytest.raises(ValueError, match=r"target\[1, 2\] is 2"):
        CASES[name].call(torch.zeros(2, 3), torch.tensor([[0, 1, 0], [1, 0, 2]]))


@pytest.mark.parametrize("name", sorted(set(MATRIX) - {"partial_selective"}))
def test_unknown_labels_influence_neither_value_nor_gradient(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    value, gradient = value_and_gradient(CASES[name].call, scores, target)
    for other in (float("nan"), float("inf"), -1e4):
        changed = scores.masked_fill(target == -1, other)
        value_changed, gradient_changed = value_and_gradient(CASES[name].call, changed, target)
        torch.testing.assert_close(value_changed, value, rtol=1e-14, atol=0)
        torch.testing.assert_close(gradient_changed, gradient, rtol=1e-14, atol=1e-16)
        assert not gradient_changed[target == -1].any()


@pytest.mark.parametrize("name", INDICES)
def test_unknown_rows_influence_neither_value_nor_gradient(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    kept = target >= 0
    expected, expected_gradient = value_and_gradient(CASES[name].call, scores[kept], target[kept])
    scores[~kept] = float("nan")
    value, gradient = value_and_gradient(CASES[name].call, scores, target)
    torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
    torch.testing.assert_close(gradient[kept], expected_gradient, rtol=1e-14, atol=1e-16)
    assert not gradient[~kept].any()


@every_loss
@pytest.mark.parametrize("rows", [0, 4])
def test_nothing_observed_costs_nothing(name: str, rows: int, path: str) -> None:
    target = torch.full((rows,) if CASES[name].indices else (rows, 6), -1)
    call = CASES[name].call
    if name == "partial_selective":  # whose definition makes use of unknown labels
        call = lambda s, t: CASES[name].call(s, t, mode="ignore")  # noqa: E731
    value, gradient = value_and_gradient(call, some_scores(rows, 6), target)
    assert value == 0
    assert not gradient.any()


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(name: str, dtype: torch.dtype, path: str) -> None:
    scores = torch.where(some_scores(7, 6) > 0, 60.0, -60.0).to(dtype)
    target = some_target(name, 7, 6)
    value, gradient = value_and_gradient(CASES[name].call, scores, target)
    exact, exact_gradient = value_and_gradient(CASES[name].call, scores.float(), target)
    assert value.dtype == gradient.dtype == dtype
    assert value.isfinite()
    assert torch.equal(value, exact.to(dtype))
    torch.testing.assert_close(gradient, exact_gradient.to(dtype), rtol=torch.finfo(dtype).eps, atol=0)


@every_loss
def test_leading_dimensions_are_rows(name: str, path: str) -> None:
    scores, target = some_scores(8, 6), some_target(name, 8, 6)
    shape = (2, 4) if CASES[name].indices else (2, 4, 6)
    torch.testing.assert_close(
        CASES[name].call(scores.reshape(2, 4, 6), target.reshape(shape)), CASES[name].call(scores, target)
    )
    one = CASES[name].call(scores[3], target[3])
    torch.testing.assert_close(one, CASES[name].call(scores[3:4], target[3:4]))


@every_loss
def test_a_mask_takes_labels_out(name: str, path: str) -> None:
    scores, target = some_scores(7, 8), some_target(name, 7, 6)
    keep = torch.tensor([True, True, False, True, True, False, True, True])
    if CASES[name].indices:
        wide = torch.where(target < 0, -1, keep.nonzero().flatten()[target])
        wide[-1], target[-1] = 2, -1  # a row whose own label is taken out is not observed
    else:
        wide = torch.ones(7, 8, dtype=torch.long)
        wide[:, keep] = target
    scores[:, 5] = float("nan")
    value, gradient = value_and_gradient(CASES[name].call, scores, wide, mask=keep)
    expected, expected_gradient = value_and_gradient(CASES[name].call, scores[:, keep], target)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient[:, keep], expected_gradient)
    assert not gradient[:, ~keep].any()


@pytest.mark.parametrize("name", sorted(set(CASES) - {"average_k"}))
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_sample_weight_counts_a_row_that_many_times(name: str, reduction: str, kernel: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    times = torch.tensor([1, 2, 1, 0, 3, 1, 2])
    weighted = CASES[name].call(scores, target, sample_weight=times.double(), reduction=reduction)
    repeated = CASES[name].call(
        scores.repeat_interleave(times, 0), target.repeat_interleave(times, 0), reduction=reduction
    )
    torch.testing.assert_close(weighted, repeated)


@pytest.mark.parametrize("name", INDICES)
def test_a_class_weight_is_the_sample_weight_of_its_rows(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    weight = torch.rand(6, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    by_class = CASES[name].call(scores, target, weight=weight)
    by_row = CASES[name].call(scores, target, sample_weight=weight[target.clamp(min=0)])
    torch.testing.assert_close(by_class, by_row)


@pytest.mark.parametrize("name", ROWWISE)
def test_none_sum_and_mean_are_one_loss(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    each = CASES[name].call(scores, target, reduction="none")
    assert each.shape == (scores.shape if CASES[name].by == "entry" else scores.shape[:1])
    torch.testing.assert_close(CASES[name].call(scores, target, reduction="sum"), each.sum())
    nines = torch.full((7,), 9.0, dtype=torch.float64)
    torch.testing.assert_close(CASES[name].call(scores, target, sample_weight=nines), CASES[name].call(scores, target))


@pytest.mark.parametrize("name", COUPLED)
def test_a_loss_that_couples_the_batch_says_so_when_asked_for_each_row(name: str) -> None:
    with pytest.raises(ValueError, match="couples the rows of the batch: reduction must be 'mean' or 'sum', got"):
        CASES[name].call(some_scores(7, 6), some_target(name, 7, 6), reduction="none")


@every_loss
def test_first_and_second_derivatives_are_right(name: str, path: str) -> None:
    scores, target = some_scores(4, 4, seed=3).requires_grad_(), some_target(name, 4, 4)
    loss = CASES[name].call
    assert torch.autograd.gradcheck(lambda s: loss(s, target), scores)
    assert torch.autograd.gradgradcheck(lambda s: loss(s, target), scores, atol=1e-6)


@every_loss
def test_vmap_equals_a_loop(name: str, path: str) -> None:
    scores = some_scores(3, 7, 6)
    target = torch.stack([some_target(name, 7, 6, seed) for seed in range(3)])
    batched = torch.func.vmap(torch.func.grad(CASES[name].call))(scores, target)
    looped = torch.stack([value_and_gradient(CASES[name].call, s, t)[1] for s, t in zip(scores, target, strict=True)])
    torch.testing.assert_close(batched, looped)


@every_loss
def test_compiles_to_one_graph(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    compiled = torch.compile(CASES[name].call, fullgraph=True, backend="aot_eager")
    expected = value_and_gradient(CASES[name].call, scores, target)
    torch.testing.assert_close(value_and_gradient(compiled, scores, target), expected, rtol=1e-12, atol=1e-15)


@every_loss
def test_inputs_and_grad_mode_are_left_alone(name: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    before: tuple[Tensor, Tensor] = (scores.clone(), target.clone())
    with torch.no_grad():
        value = CASES[name].call(scores.requires_grad_(), target)
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert not value.requires_grad
    assert torch.equal(scores.detach(), before[0])
    assert torch.equal(target, before[1])


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_the_kernels_agree_with_their_twins_on_rows_of_any_length(name: str, dtype: torch.dtype, scale: float) -> None:
    """Vectors, their tails, blocks of columns and chunks of rows: lengths around all of them."""
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for rows, labels in ((40, 7), (3, 70), (70, 131), (4, 2048), (5, 4500)):
        scores, target = some_scores(rows, labels, dtype=dtype, scale=scale), some_target(name, rows, labels)
        weight = torch.rand(rows, dtype=dtype, generator=torch.Generator().manual_seed(2))
        weight[-1] = 0
        value, gradient = value_and_gradient(CASES[name].call, scores, target, sample_weight=weight)
        with kernels.use("torch"):
            exact, exact_gradient = value_and_gradient(
                CASES[name].call, scores.double(), target, sample_weight=weight.double()
            )
        assert abs(value - exact) <= tolerance * exact
        assert (gradient - exact_gradient).abs().max() <= tolerance * exact_gradient.abs().max()


@pytest.mark.parametrize("name", sorted(set(CASES) - {"average_k"}))  # whose proposals would be infinite with them
def test_an_absent_label_at_minus_infinity_costs_what_a_very_low_score_does(name: str, path: str) -> None:
    scores, target = some_scores(7, 6), some_target(name, 7, 6)
    absent = ~is_label(target, 6) if CASES[name].indices else target == 0
    low, low_gradient = value_and_gradient(CASES[name].call, scores.masked_fill(absent, -1e9), target)
    limit, limit_gradient = value_and_gradient(CASES[name].call, scores.masked_fill(absent, -float("inf")), target)
    torch.testing.assert_close(limit, low, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(limit_gradient, low_gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [name for name in MATRIX if CASES[name].by == "row"])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_nan_in_an_observed_score_makes_its_row_nan_in_an_unknown_one_nothing(name: str, label: int, path: str) -> None:
    target = torch.tensor([[1, 0, -1, 0], [1, 0, 1, 0]])
    scores = some_scores(2, 4)
    clean = CASES[name].call(scores, target, reduction="none")
    scores[0, label] = torch.nan
    loss = CASES[name].call(scores, target, reduction="none")
    assert bool(loss[0].isnan()) == (label < 2)
    assert torch.equal(loss[1], clean[1])
    if label == 2:
        assert torch.equal(loss, clean)


@pytest.mark.parametrize("name", [name for name in MATRIX if CASES[name].by == "row"])
def test_an_absent_label_at_plus_infinity_is_the_same_for_kernel_and_twin(name: str) -> None:
    scores, target = torch.tensor([[0.0, torch.inf, 0.5, -1.0]]), torch.tensor([[1, 0, 0, 0]])
    losses = []
    for choice in PATHS:
        with kernels.use(choice):
            losses.append(CASES[name].call(scores, target))
    torch.testing.assert_close(losses[0], losses[-1], rtol=1e-6, atol=0.0)
    assert not losses[0].isnan()
