"""The LML projection: y = sigma(s + nu) with sum y = k, and its gradient."""

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import FLOATS, random_scores, value_and_gradient

NU = {torch.float32: 1e-6, torch.float64: 1e-13}  # how well the solver knows nu


def assert_sums_to(k: int | Tensor, y: Tensor) -> None:
    """|sum - k| <= 1e-5 min(k, n-k) + n 2^-25 in float32; in float64 the same with its own digits."""
    n = y.shape[-1]
    k = torch.as_tensor(k, dtype=torch.float64)
    share, unit = (1e-5, 2.0**-25) if y.dtype == torch.float32 else (1e-12, 2.0**-54)
    assert bool(((y.double().sum(-1) - k).abs() <= share * torch.minimum(k, n - k) + n * unit).all())


def check(scores: Tensor, k: int, temperature: float = 1.0, mask: Tensor | None = None) -> None:
    """Every y within the error that an error of NU in nu, and rounding of s, explain; gradients likewise."""
    upstream = random_scores(*scores.shape, dtype=scores.dtype, seed=9)
    leaf = scores.detach().clone().requires_grad_()
    y = F.lml(leaf, k, temperature=temperature, mask=mask)
    (gradient,) = torch.autograd.grad(y, leaf, upstream)
    tiny = torch.finfo(scores.dtype).tiny
    for i, row in enumerate(scores):
        values, usable = oracles.plain_row(row, None if mask is None else mask[i])
        exact = oracles.lml(values, k, usable, temperature)
        inner = NU[scores.dtype] * (2 + exact.margins + np.log(len(row)))  # relative error of y (1 - y)
        slack = inner * exact.y * (1 - exact.y) + torch.finfo(scores.dtype).eps * exact.y + tiny
        error = np.abs(y[i].detach().double().numpy() - exact.y)
        assert (error <= slack).all(), f"row {i}: y off by {error.max()}"
        expected = exact.vjp(upstream[i].double().tolist())
        error = np.abs(gradient[i].double().numpy() - expected).max()
        assert error <= 10 * NU[scores.dtype] * (2 + np.log(len(row))) * np.abs(expected).max() + tiny, (
            f"row {i}: gradient off by {error} of {np.abs(expected).max()}"
        )


ROWS = {
    "plain": random_scores(3, 12),
    "narrow": random_scores(3, 12, scale=0.01),
    "wide": random_scores(3, 12, scale=30.0),
    "very wide": random_scores(3, 12, scale=1e5),
    "equal": torch.full((1, 12), 0.5),
    "ties": (random_scores(3, 12) * 2).round(),
    "two values": torch.tensor([[5.0] * 4 + [-5.0] * 8]),
    "one above": torch.tensor([[30.0] + [0.0] * 11]),
    "one below": torch.tensor([[-30.0] + [0.0] * 11]),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("k", [1, 4, 11])
@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients_equal_the_projection(name: str, k: int, dtype: torch.dtype, kernel: str) -> None:
    check(ROWS[name].to(dtype), k)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k"), [(300, 1), (300, 5), (300, 150), (300, 299)])
def test_long_rows_equal_the_projection(n: int, k: int, dtype: torch.dtype, kernel: str) -> None:
    check(random_scores(1, n, scale=3.0).to(dtype), k)


SIDE_BY_SIDE = torch.stack(
    [
        *random_scores(3, 300),
        *random_scores(2, 300, scale=0.01),
        *random_scores(2, 300, scale=30.0),
        *random_scores(2, 300, scale=1e5),
        *(random_scores(2, 300) * 2).round(),
        *random_scores(1, 300) - 1e4,
        torch.full((300,), 0.5),
        torch.tensor([90.0, 45.0] + [0.0] * 298),
        torch.tensor([0.0] * 297 + [200.0] * 3),
        torch.tensor([-30.0] + [0.0] * 299),
        torch.tensor([float("inf"), 3.0] + [0.0] * 100 + [float("-inf")] * 198),
        torch.tensor([1.0, 2.0, 3.0] + [float("-inf")] * 297),
    ]
)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_rows_of_all_kinds_side_by_side_equal_the_projection(k: int, dtype: torch.dtype, kernel: str) -> None:
    check(SIDE_BY_SIDE.to(dtype), k)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_is_the_same_to_the_last_bit_beside_any_others(dtype: torch.dtype, kernel: str) -> None:
    rows = torch.cat([SIDE_BY_SIDE, torch.full((1, 300), float("nan"))]).to(dtype)
    alone = torch.cat([F.lml(row[None], 3) for row in rows])
    for seed in range(5):
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(F.lml(rows[order], 3), alone[order], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("row", "k"),
    [
        ((40.0, 0.0, 0.0), 1),
        ((40.0, 0.0, 0.0), 2),
        ((20.0, 20.0, -20.0, -20.0), 2),
        ((90.0, 0.0, -3.0, -3.0), 1),
        ((99.0, 0.0, 0.0), 1),
        ((101.0, 0.0, 0.0), 1),
        ((150.0, 149.0, 0.0, -1.0, -2.0), 2),
        ((1e4, 0.0, 0.0), 1),
        ((1e30, 0.0, -1e30), 1),
    ],
)
def test_saturated_rows_know_their_nu(row: tuple[float, ...], k: int, dtype: torch.dtype, kernel: str) -> None:
    """Where sum y = k holds for a whole interval of nu in floating point, only one of them is right."""
    check(torch.tensor([row], dtype=dtype), k)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (10, 3), (1000, 5), (1000, 999), (5000, 100)])
def test_rows_sum_to_k(n: int, k: int, dtype: torch.dtype, kernel: str) -> None:
    for scale in (0.01, 1.0, 30.0, 1e5):
        assert_sums_to(k, F.lml(random_scores(4, n, dtype=dtype, scale=scale), k))


@pytest.mark.parametrize("dtype", FLOATS)
def test_of_the_negated_scores_with_n_minus_k_is_the_complement(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(6, 20, dtype=dtype, scale=4.0)
    for k in (1, 7, 19):
        torch.testing.assert_close(F.lml(-scores, 20 - k), 1 - F.lml(scores, k), rtol=0, atol=4 * NU[dtype])


@pytest.mark.parametrize("offset", [1.0, 1e6, -1e6])
@pytest.mark.parametrize("dtype", FLOATS)
def test_ignores_an_offset(offset: float, dtype: torch.dtype, kernel: str) -> None:
    scores = (random_scores(6, 20, dtype=dtype, scale=4.0) * 8).round() / 8  # exact with the offset, in float32 too
    torch.testing.assert_close(F.lml(scores + offset, 5), F.lml(scores, 5), rtol=0, atol=NU[dtype])


def test_an_offset_of_a_million_is_exact_to_the_rounding_of_the_scores(kernel: str) -> None:
    check(random_scores(2, 50, dtype=torch.float64) + 1e6, 7)
    check(random_scores(2, 50, dtype=torch.float32, scale=10.0) + 1e6, 7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_of_two_labels_is_the_sigmoid_of_half_the_difference(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(50, 2, dtype=dtype, scale=5.0)
    half = (scores[:, 0] - scores[:, 1]) / 2
    expected = torch.stack([half.sigmoid(), (-half).sigmoid()], dim=-1)
    torch.testing.assert_close(F.lml(scores, 1), expected, rtol=20 * NU[dtype], atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0])
def test_preserves_order(scale: float, dtype: torch.dtype, kernel: str) -> None:
    """Proposition 1 of seed 000."""
    scores = random_scores(8, 60, dtype=dtype, scale=scale)
    y = F.lml(scores, 9).gather(-1, scores.argsort(-1))
    assert bool((y[:, 1:] >= y[:, :-1]).all())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0])
def test_tied_labels_get_the_same_probability(scale: float, dtype: torch.dtype, kernel: str) -> None:
    """To the bit, wherever they stand in the row: else ties would be broken by position."""
    scores = (random_scores(8, 60, dtype=dtype) * 4).round() / 4 * scale
    y = F.lml(scores, 9)
    same = scores[:, :, None] == scores[:, None, :]
    assert torch.equal(y[:, :, None].expand_as(same)[same], y[:, None, :].expand_as(same)[same])


def test_lies_between_0_and_1(kernel: str) -> None:
    for scale in (1.0, 100.0, 1e5):
        y = F.lml(random_scores(8, 60, scale=scale), 9)
        assert bool(((y >= 0) & (y <= 1)).all())


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_label_at_minus_infinity_gets_exactly_0_and_no_gradient(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(3, 9, dtype=dtype)
    scores[:, [2, 5]] = -torch.inf
    y, gradient = value_and_gradient(lambda s: F.lml(s, 3) * torch.arange(9), scores)
    assert not y[:, [2, 5]].any()
    assert not gradient[:, [2, 5]].any()
    assert bool(gradient.isfinite().all())
    check(scores, 3)
    kept = [0, 1, 3, 4, 6, 7, 8]
    torch.testing.assert_close(F.lml(scores, 3)[:, kept], F.lml(scores[:, kept], 3), rtol=0, atol=NU[dtype])


def test_a_mask_is_minus_infinity(kernel: str) -> None:
    scores, mask = random_scores(4, 9), random_scores(4, 9, seed=3) > -0.5
    expected = F.lml(scores.masked_fill(~mask, -torch.inf), 3)
    torch.testing.assert_close(F.lml(scores, 3, mask=mask), expected, rtol=0, atol=0)
    check(scores.double(), 3, mask=mask)


def test_a_mask_hides_whatever_is_below_it(kernel: str) -> None:
    scores, mask = random_scores(2, 6), torch.ones(2, 6, dtype=torch.bool)
    mask[:, 1] = False
    expected = value_and_gradient(lambda s: F.lml(s, 2, mask=mask) ** 2, scores)
    for hidden in (torch.nan, torch.inf, -torch.inf):
        scores[:, 1] = hidden
        got = value_and_gradient(lambda s: F.lml(s, 2, mask=mask) ** 2, scores)
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_a_mask_broadcasts_over_the_rows(kernel: str) -> None:
    scores, mask = random_scores(2, 3, 6), torch.tensor([True, True, False, True, True, True])
    assert torch.equal(F.lml(scores, 2, mask=mask), F.lml(scores, 2, mask=mask.expand(2, 3, 6)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_k_may_differ_between_rows(dtype: torch.dtype, kernel: str) -> None:
    scores, k = random_scores(2, 3, 8, dtype=dtype, scale=3.0), torch.tensor([[1, 2, 7], [3, 3, 4]])
    y, gradient = value_and_gradient(lambda s: F.lml(s, k) * torch.arange(8), scores)
    assert_sums_to(k, F.lml(scores, k))
    for index in np.ndindex(2, 3):
        single = value_and_gradient(lambda s, i=index: F.lml(s, int(k[i])) * torch.arange(8), scores[index])
        torch.testing.assert_close((y[index], gradient[index]), single, rtol=10 * NU[dtype], atol=NU[dtype])


def test_k_per_row_with_a_mask_puts_all_usable_labels_in_where_k_is_not_less(kernel: str) -> None:
    scores = random_scores(3, 5)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    y = F.lml(scores, torch.tensor([2, 1, 4]), mask=mask)
    assert y[0].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert_sums_to(torch.tensor([2, 1, 4]), y)


@pytest.mark.parametrize("usable", [0, 1, 3])
@pytest.mark.parametrize("by", ["mask", "minus infinity"])
def test_a_row_with_no_more_usable_labels_than_k_takes_them_all(usable: int, by: str, kernel: str) -> None:
    scores, mask = random_scores(2, 6), torch.ones(2, 6, dtype=torch.bool)
    mask[0, usable:] = False
    if by == "minus infinity":
        scores, mask = scores.masked_fill(~mask, -torch.inf), None
    y, gradient = value_and_gradient(lambda s: F.lml(s, 3, mask=mask) * torch.arange(6), scores)
    assert F.lml(scores, 3, mask=mask)[0].tolist() == [1.0] * usable + [0.0] * (6 - usable)
    assert not gradient[0].any()
    assert gradient[1].any()
    assert y.isfinite().all()


HUNDRED_THOUSAND = random_scores(1, 100_000, scale=2.0)


@cache
def projection_of_a_hundred_thousand(k: int) -> Tensor:
    """By bisection in float64: the rows are far from saturated."""
    s = HUNDRED_THOUSAND.double().numpy()
    low, high = -s.max() - 20, -s.min() + 20
    for _ in range(60):
        nu = (low + high) / 2
        low, high = (low, nu) if (1 / (1 + np.exp(-s - nu))).sum() > k else (nu, high)
    return torch.tensor(1 / (1 + np.exp(-s - nu)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("k", [1, 5, 50_000, 99_999])
def test_a_hundred_thousand_labels(k: int, dtype: torch.dtype, kernel: str) -> None:
    y = F.lml(HUNDRED_THOUSAND.to(dtype), k)
    assert_sums_to(k, y)
    rtol, atol = (3e-5, 1e-7) if dtype == torch.float32 else (1e-9, 1e-15)
    torch.testing.assert_close(y.double(), projection_of_a_hundred_thousand(k), rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", FLOATS)
def test_five_thousand_tied_labels_share_k_evenly(dtype: torch.dtype, kernel: str) -> None:
    for k in (1, 5, 4999):
        y, gradient = value_and_gradient(lambda s, k=k: F.lml(s, k)[0, :1], torch.full((1, 5000), 3.7, dtype=dtype))
        assert float(y) == pytest.approx(k / 5000, rel=10 * NU[dtype])
        h = k / 5000 * (1 - k / 5000)
        assert float(gradient[0, 0]) == pytest.approx(h * (1 - 1 / 5000), rel=1e3 * NU[dtype])
        assert float(gradient[0, 1]) == pytest.approx(-h / 5000, rel=1e3 * NU[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_five_thousand_tied_labels_below_a_few_large_ones(dtype: torch.dtype, kernel: str) -> None:
    scores = torch.zeros(1, 5003, dtype=dtype)
    scores[0, :3] = torch.tensor([4.0, 8.0, 12.0])
    values, usable = oracles.plain_row(scores[0])
    y, exact = F.lml(scores, 5), oracles.lml(values, 5, usable)
    np.testing.assert_allclose(y[0].double().numpy(), exact.y, rtol=20 * NU[dtype])


def test_temperature_divides_the_scores(kernel: str) -> None:
    for temperature in (0.25, 0.7, 3.0):
        check(random_scores(3, 10, dtype=torch.float64), 3, temperature)
    scores = random_scores(3, 10)
    torch.testing.assert_close(F.lml(scores, 3, temperature=0.25), F.lml(scores * 4, 3), rtol=0, atol=1e-6)


def test_an_offset_costs_no_digits_at_a_temperature(kernel: str) -> None:
    scores, mask = torch.tensor([[0.0, 0.0625, 0.125, 0.25, 0.5, 900.0]]), torch.arange(6) < 5
    for k in (2, torch.tensor([2])):
        p = [F.lml(scores + offset, k, temperature=0.3, mask=mask) for offset in (0.0, 1e6)]
        losses = [
            F.lml_loss(scores + offset, torch.tensor([0]), k, temperature=0.3, mask=mask) for offset in (0.0, 1e6)
        ]
        torch.testing.assert_close((p[1], losses[1]), (p[0], losses[0]), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_projects_along_any_dimension(dim: int, kernel: str) -> None:
    scores, mask = random_scores(4, 5, 6), random_scores(4, 5, 6, seed=3) > -1
    expected = value_and_gradient(lambda s: F.lml(s, 2, mask=mask.movedim(dim, -1)) ** 2, scores.movedim(dim, -1))
    got = value_and_gradient(lambda s: F.lml(s, 2, dim=dim, mask=mask) ** 2, scores)
    torch.testing.assert_close(got, tuple(t.movedim(-1, dim) for t in expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_with_nan_is_nan_and_leaves_the_others_right(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(3, 7, dtype=dtype)
    expected = value_and_gradient(lambda s: F.lml(s, 2) ** 2, scores)
    broken = scores.clone()
    broken[1, 3] = torch.nan
    y, gradient = value_and_gradient(lambda s: F.lml(s, 2) ** 2, broken)
    assert bool(y[1].isnan().all())
    assert bool(gradient[1].isnan().all())
    torch.testing.assert_close((y[[0, 2]], gradient[[0, 2]]), tuple(t[[0, 2]] for t in expected), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_plus_infinity_is_the_largest_finite_number(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(3, 6, dtype=dtype)
    scores[0, 2] = torch.inf
    scores[1, :3] = torch.inf
    scores[2, 1], scores[2, 4] = torch.inf, -torch.inf
    upstream = random_scores(3, 6, dtype=dtype, seed=4)
    y, gradient = value_and_gradient(lambda s: F.lml(s, 2) * upstream, scores)
    assert bool(gradient.isfinite().all())
    limit = scores.clamp(max=oracles.largest(dtype))
    torch.testing.assert_close(y, F.lml(limit, 2) * upstream, rtol=0, atol=0)
    check(scores, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_are_finite_at_every_extreme(dtype: torch.dtype, kernel: str) -> None:
    top = torch.finfo(dtype).max
    rows = [(top, -top, 0.0, 0.0), (top, top, top, -top), (0.0, 0.0, 0.0, 0.0), (1e-38, 0.0, -1e-38, 0.0), (-top,) * 4]
    scores = torch.tensor(rows, dtype=dtype)
    for k in (1, 2, 3):
        y, gradient = value_and_gradient(lambda s, k=k: F.lml(s, k) * torch.arange(4), scores)
        assert bool(y.isfinite().all())
        assert bool(gradient.isfinite().all())
        assert_sums_to(k, F.lml(scores, k))


def test_k_per_row_may_be_a_column_or_one_number_expanded(kernel: str) -> None:
    scores, columns = torch.randn(4, 6), torch.tensor([[1, 5], [2, 5], [3, 5], [4, 5]])
    torch.testing.assert_close(F.lml(scores, columns[:, 0]).sum(-1), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    torch.testing.assert_close(F.lml(scores, torch.tensor([3]).expand(4)), F.lml(scores, 3))


def test_a_whole_number_of_numpy_is_a_whole_number() -> None:
    scores = torch.randn(2, 5)
    assert torch.equal(F.lml(scores, np.int64(2)), F.lml(scores, 2))
    target = torch.tensor([0, 1])
    assert torch.equal(F.smooth_topk_loss(scores, target, np.int32(2)), F.smooth_topk_loss(scores, target, 2))
    for wrong in (2.0, True, torch.tensor(2)):
        with pytest.raises(ValueError, match="k must be"):
            F.smooth_topk_loss(scores, target, wrong)
