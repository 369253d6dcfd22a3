"""log sigma_k, the subset marginals (its gradient), and multi-crop prediction."""

import math

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import FLOATS, TOLERANCE, assert_gradients, random_scores, value_and_gradient

KINDS = ["plain", "ties", "equal", "wide", "offset"]
LONG = [(n, k, kind) for n, k in [(200, 1), (200, 20), (200, 100), (200, 199), (1000, 5)] for kind in KINDS]
LONG += [(2000, 500, "plain"), (2000, 500, "wide")]
LONG += [(1100, k, kind) for k in (1098, 1099, 1100) for kind in ("plain", "equal")]


def check(scores: Tensor, k: int, mask: Tensor | None = None) -> None:
    """log_subset_sum, its gradient, and the marginals of every row."""
    log, gradient = value_and_gradient(F.log_subset_sum, scores, k, mask=mask)
    marginals = F.subset_marginals(scores, k, mask=mask)
    exact_log, exact = oracles.over_rows(
        lambda row, k, usable: oracles.log_subset_sum(row, k, usable), scores, [k] * len(scores), mask
    )
    usable = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    size = usable.double().topk(k).values.abs().sum(-1)  # the sum of k scores is where rounding enters
    allowed = {torch.float32: 1e-6, torch.float64: 1e-13}[scores.dtype] * (1 + size + exact_log.abs())
    assert bool(((log.double() - exact_log).abs() <= allowed).all())
    assert_gradients(gradient, exact)
    assert float((marginals.double() - exact).abs().max()) <= TOLERANCE[scores.dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1e3, 1e5])
def test_equal_enumeration_for_every_k(scale: float, dtype: torch.dtype, kernel: str) -> None:
    for n in (1, 2, 3, 8):
        scores = random_scores(2, n, scale=scale).to(dtype)
        for k in range(1, n + 1):
            check(scores, k)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k", "kind"), LONG)
def test_long_rows_are_exact(n: int, k: int, kind: str, dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(1, n).double()
    scores = {
        "plain": scores,
        "ties": (scores * 2).round(),
        "equal": torch.full_like(scores, 0.75),
        "wide": (scores * 1e4).float().double(),
        "offset": (scores * 8).round() / 8 + 1e6,
    }[kind]
    check(scores.to(dtype), k)


@pytest.mark.parametrize("n", [7, 40, 1100])
def test_the_labels_left_out_are_a_small_subset_of_the_scores_negated(n: int, kernel: str) -> None:
    scores, upstream = random_scores(1, n).double(), random_scores(1, n, seed=1).double()

    def along(scores: Tensor, k: int) -> Tensor:
        return F.subset_marginals(scores, k) * upstream

    for left_out in (1, 2):
        p, gradient = value_and_gradient(along, scores, n - left_out)
        q, mirrored = value_and_gradient(along, -scores, left_out)
        torch.testing.assert_close(p, upstream - q, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(gradient, mirrored, rtol=1e-9, atol=1e-12)
    p, gradient = value_and_gradient(along, scores, n)
    assert torch.equal(p, upstream)
    assert float(gradient.abs().max()) <= 1e-12


@pytest.mark.parametrize("dtype", FLOATS)
def test_marginals_are_softmax_at_k_1(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(8, 30, dtype=dtype, scale=5.0)
    torch.testing.assert_close(F.subset_marginals(scores, 1), scores.softmax(-1), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(F.log_subset_sum(scores, 1), scores.logsumexp(-1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k"), [(10, 3), (1000, 5), (1000, 999), (5000, 100)])
def test_marginals_sum_to_k(n: int, k: int, dtype: torch.dtype, kernel: str) -> None:
    for scale in (0.01, 1.0, 30.0, 1e5):
        p = F.subset_marginals(random_scores(2, n, dtype=dtype, scale=scale), k).double()
        tolerance = 1e-5 if dtype == torch.float32 else 1e-9
        assert bool(((p.sum(-1) - k).abs() <= tolerance * min(k, n - k) + n * 2.0**-25).all())
        assert bool(((p >= 0) & (p <= 1)).all())


def test_all_labels_are_one_subset(kernel: str) -> None:
    scores = random_scores(4, 6, dtype=torch.float64)
    torch.testing.assert_close(F.log_subset_sum(scores, 6), scores.sum(-1))
    assert bool((F.subset_marginals(scores, 6) == 1).all())


def test_equal_labels_are_counted(kernel: str) -> None:
    log = F.log_subset_sum(torch.zeros(1, 2000, dtype=torch.float64), 500)
    assert float(log) == pytest.approx(math.log(math.comb(2000, 500)), rel=1e-12)


def test_marginals_are_the_gradient_of_the_log_sum(kernel: str) -> None:
    scores = random_scores(3, 40, dtype=torch.float64, scale=3.0)
    _, gradient = value_and_gradient(F.log_subset_sum, scores, 6)
    torch.testing.assert_close(gradient, F.subset_marginals(scores, 6), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [0.01, 2.0, 30.0])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 9])
def test_the_jacobian_of_the_marginals_is_the_covariance_of_the_subset(k: int, scale: float, kernel: str) -> None:
    """Var and Cov of "j is in the subset", by enumeration."""
    scores = random_scores(10, dtype=torch.float64, scale=scale)
    scores[3] = scores[7]
    jacobian = torch.autograd.functional.jacobian(lambda s: F.subset_marginals(s, k), scores)
    subsets = torch.tensor(
        [[j in c for j in range(10)] for c in oracles.combinations(range(10), k)], dtype=torch.float64
    )
    weight = (subsets @ scores).softmax(0)
    mean = weight @ subsets
    covariance = (subsets - mean).T @ (weight[:, None] * (subsets - mean))
    torch.testing.assert_close(jacobian, covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "offset", "steep", "tied", "masked", "infinite"])
@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_slope_of_long_rows_is_that_of_the_formula(k: int, kind: str, dtype: torch.dtype, kernel: str) -> None:
    """Against two orders of autograd through the log of a plain sum over subsets, built label by label in double."""
    scores = random_scores(130, dtype=torch.float64, scale=50.0 if kind == "steep" else 2.0)
    scores = {
        "offset": lambda s: s.float().double() - 1e4,
        "tied": lambda s: s.round(),
        "masked": lambda s: s.index_fill(0, torch.arange(0, 130, 3), float("-inf")),
        "infinite": lambda s: s.index_fill(0, torch.tensor([5]), float("inf")),
    }.get(kind, lambda s: s)(scores).to(dtype)
    upstream = random_scores(130, seed=1, dtype=dtype)
    row = scores.clone().requires_grad_()
    (slope,) = torch.autograd.grad(F.subset_marginals(row, k), row, upstream)

    def log_sum(s: Tensor) -> Tensor:
        logs = [torch.zeros((), dtype=torch.float64), *[torch.tensor(-torch.inf, dtype=torch.float64)] * k]
        for value in s[s > float("-inf")]:
            logs = [logs[0], *(torch.logaddexp(logs[i], logs[i - 1] + value) if logs[i - 1] > -torch.inf else logs[i]
                               for i in range(1, k + 1))]
        return logs[k]

    exact = scores.double().clamp(max=5e2).requires_grad_()  # an infinite score is far above the others, no more
    (marginals,) = torch.autograd.grad(log_sum(exact), exact, create_graph=True)
    (wanted,) = torch.autograd.grad(marginals, exact, upstream.double())
    error = (slope.double() - wanted).abs().max()
    assert error <= {torch.float32: 1e-5, torch.float64: 1e-9}[dtype] * wanted.abs().max() + 1e-12


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_mask_takes_labels_out_of_the_row(dtype: torch.dtype, kernel: str) -> None:
    scores, mask = random_scores(5, 12).to(dtype), random_scores(5, 12, seed=3) > -0.3
    assert int(mask.sum(-1).min()) > 4
    check(scores, 4, mask)
    minus_infinity = scores.masked_fill(~mask, -torch.inf)
    assert torch.equal(F.subset_marginals(minus_infinity, 4), F.subset_marginals(scores, 4, mask=mask))
    assert not F.subset_marginals(scores, 4, mask=mask)[~mask].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_exactly_k_usable_labels_are_all_in(dtype: torch.dtype, kernel: str) -> None:
    scores, mask = random_scores(1, 6, dtype=dtype), torch.tensor([[True, False, True, True, False, False]])
    p, gradient = value_and_gradient(lambda s: F.subset_marginals(s, 3, mask=mask) ** 2, scores)
    assert p[0].tolist() == mask[0].tolist()
    assert not gradient.any()
    log = F.log_subset_sum(scores, 3, mask=mask)
    torch.testing.assert_close(log, scores[mask].sum().reshape(1))


def test_fewer_usable_labels_than_k_have_no_subset(kernel: str) -> None:
    """sigma_k of fewer than k labels is 0: its logarithm is -inf, nothing flows back, and all of them are in."""
    scores, mask = random_scores(2, 5), torch.tensor([[True, True, False, False, False], [True] * 5])
    log, gradient = value_and_gradient(F.log_subset_sum, scores, 3, mask=mask)
    assert log[0] == -torch.inf
    assert log[1].isfinite()
    assert not gradient[0].any()
    p, gradient = value_and_gradient(lambda s: F.subset_marginals(s, 3, mask=mask) ** 2, scores)
    assert p[0].tolist() == mask[0].tolist()
    assert not gradient[0].any()
    assert gradient[1].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_with_nan_is_nan_and_leaves_the_others_right(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(3, 7, dtype=dtype)
    broken = scores.clone()
    broken[1, 3] = torch.nan
    for function in (F.log_subset_sum, F.subset_marginals):
        expected = value_and_gradient(lambda s, f=function: f(s, 2) ** 2, scores)
        value, gradient = value_and_gradient(lambda s, f=function: f(s, 2) ** 2, broken)
        assert bool(value[1].isnan().all())
        assert bool(gradient[1].isnan().all())
        kept = tuple(t[[0, 2]] for t in expected)
        torch.testing.assert_close((value[[0, 2]], gradient[[0, 2]]), kept, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_plus_infinity_is_the_largest_finite_number(dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(2, 5, dtype=dtype)
    scores[0, 1] = torch.inf
    scores[1, [0, 2, 4]] = torch.inf
    limit = scores.clamp(max=oracles.largest(dtype))
    p = F.subset_marginals(scores, 2)
    assert torch.equal(p, F.subset_marginals(limit, 2))
    torch.testing.assert_close(p[1, [0, 2, 4]], torch.full((3,), 2 / 3, dtype=dtype))
    assert torch.equal(F.log_subset_sum(scores, 2), F.log_subset_sum(limit, 2))
    assert not F.log_subset_sum(scores, 2).isnan().any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_multi_crop_averages_the_marginals_over_crops(dtype: torch.dtype, kernel: str) -> None:
    crops = random_scores(2, 3, 10, 8, dtype=dtype, scale=2.0)
    p = F.multi_crop_probabilities(crops, 3)
    assert p.shape == (2, 3, 8)
    rows = crops.reshape(-1, 8)
    exact = torch.stack([torch.tensor(oracles.log_subset_sum(*args)[1]) for args in row_arguments(rows, 3)])
    torch.testing.assert_close(p.double(), exact.reshape(2, 3, 10, 8).mean(2), rtol=0, atol=TOLERANCE[dtype])
    torch.testing.assert_close(p.sum(-1), torch.full((2, 3), 3.0, dtype=dtype), rtol=1e-5, atol=0)


def row_arguments(rows: Tensor, k: int) -> list[tuple[tuple[float, ...], int, tuple[int, ...]]]:
    return [(values, k, usable) for values, usable in map(oracles.plain_row, rows)]


def test_multi_crop_of_one_crop_is_the_marginals(kernel: str) -> None:
    scores = random_scores(4, 9)
    torch.testing.assert_close(F.multi_crop_probabilities(scores[:, None], 2), F.subset_marginals(scores, 2))
