"""The contract of float16 scores for Triton's kernels; `test_contracts.py` runs this file.

No gradient is kept for backward, since a float16 has no room for a small one: backward computes it again, times all
that came from above, and rounds it once. Oracles: the PyTorch twin in float64, rounded once; and the kernel of float32.
"""

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from benchmarks.twins import Launches
from torch import Tensor

import shortlist as sl
from shortlist import device_flags, kernels
from shortlist.errors import ShortlistError
from shortlist.kernels import ops
from tests.kernels.triton import labels_contract
from tests.kernels.triton.labels_contract import LABELS, ROUNDING, WEIGHT, matrix, scores

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if INTERPRETED:
    from tests.kernels.triton.interpreter import counted

F = sl.functional
HALF = 2.0**-11  # the most that one rounding changes a float16, as a share of it
LEAST = 2.0**-25  # and where it is too small for all of its digits
LARGE, SMALL = 2.0**15, 2.0**-13  # the largest power of two that comes from above in float16; about 1e-4
TOPK: dict[str, Callable[..., Tensor]] = {
    "smooth": lambda s, y, **o: F.smooth_topk_loss(s, y, 3, tau=0.5, **o),
    "hinge": lambda s, y, **o: F.topk_hinge_loss(s, y, 3, **o),
    "truncated": lambda s, y, **o: F.truncated_entropy_loss(s, y, 3, **o),
    "lml loss": lambda s, y, **o: F.lml_loss(s, y, 3, **o),
}
OF_MATRICES: dict[str, Callable[..., Tensor]] = {
    "truncated, matrix": lambda s, y, **o: F.truncated_entropy_loss(s, y, 3, **o),
    "lml loss, matrix": lambda s, y, **o: F.lml_loss(s, y, 3, **o),
}
LOSSES: dict[str, Callable[..., Tensor]] = labels_contract.LOSSES | TOPK | OF_MATRICES
LAYERS: dict[str, Callable[[Tensor], Tensor]] = {
    "log sum": lambda s: F.log_subset_sum(s, 3),
    "lml": lambda s: F.lml(s, 3),
}


def target(name: str) -> Tensor:
    return matrix() if name in labels_contract.MATRIX_LOSSES or name in OF_MATRICES else labels_contract.target("")


def pulled(value: Tensor, x: Tensor, upstream: Tensor | float, **options: Any) -> Tensor:
    given = upstream if isinstance(upstream, Tensor) else torch.full_like(value, upstream)
    (gradient,) = torch.autograd.grad(value, x, given, **options)
    return gradient


def in_type(call: Callable[[Tensor], Tensor], s: Tensor, dtype: torch.dtype, upstream: float) -> tuple[Tensor, Tensor]:
    x = s.to(dtype).requires_grad_()
    value = call(x)
    return value.detach(), pulled(value, x, upstream)


def by_twin(call: Callable[[Tensor], Tensor], s: Tensor, upstream: float) -> tuple[Tensor, Tensor]:
    with kernels.use("torch"):
        return in_type(call, s, torch.float64, upstream)


def assert_rounded_once(got: Tensor, exact: Tensor) -> None:
    """Beside the rounding of float32 sums, which are as exact as the largest of a row."""
    assert got.dtype == torch.float16
    wrong, size = (got.double() - exact).abs(), exact.abs()
    assert (wrong <= HALF * size + LEAST + 4e-6 * ROUNDING * size.amax(-1, keepdim=True)).all(), (wrong / size).max()


@pytest.fixture(autouse=True)
def _triton() -> Iterator[None]:
    with kernels.use("triton"):
        yield
        kernels.check()


@pytest.mark.parametrize("upstream", [LARGE, SMALL])
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "average-k"])
def test_a_gradient_times_what_came_from_above_is_rounded_once(name: str, upstream: float) -> None:
    s, y = scores("ordinary").half(), target(name)
    weight = {"sample_weight": WEIGHT} if upstream == LARGE else {}

    def call(x: Tensor) -> Tensor:
        return LOSSES[name](x, y, **{key: value.to(x) for key, value in weight.items()})

    value, gradient = in_type(call, s, torch.float16, upstream)
    wanted, slope = by_twin(call, s, upstream)
    assert (value.double() - wanted).abs() <= HALF * wanted.abs() * 1.01
    assert_rounded_once(gradient, slope)


@pytest.mark.parametrize("upstream", [LARGE, SMALL])
@pytest.mark.parametrize("name", LAYERS)
def test_so_is_that_of_a_layer(name: str, upstream: float) -> None:
    s = scores("ordinary").half()
    value, gradient = in_type(LAYERS[name], s, torch.float16, upstream)
    wanted, slope = by_twin(LAYERS[name], s, upstream)
    assert_rounded_once(value, wanted)
    assert_rounded_once(gradient, slope)


@pytest.mark.parametrize("upstream", [LARGE, SMALL])
def test_so_are_those_of_both_heads(upstream: float) -> None:
    s, y, results = scores("ordinary").half(), target("average-k"), []
    for dtype, kernel in ((torch.float16, "triton"), (torch.float64, "torch")):
        with kernels.use(kernel):
            heads = [one.to(dtype).requires_grad_() for one in (s, s.flip(0) * 0.5)]
            value = F.average_k_loss(*heads, y, 2.4, alpha=0.6, sample_weight=WEIGHT.to(dtype))
            results.append(torch.autograd.grad(value, heads, torch.full_like(value, upstream)))
    for got, exact in zip(*results, strict=True):
        assert_rounded_once(got, exact)


OF_ROWS = ("partial-binary", "lsep", "two-way, sample", "multilabel-softmax", "assume-negative", *TOPK, *OF_MATRICES)


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_have_factors_of_their_own(name: str) -> None:
    s, y, upstream = scores("ordinary").half(), target(name), torch.tensor([2.0**-9, 3.0, 0.0, -(2.0**14)])
    results = []
    for dtype, kernel in ((torch.float16, "triton"), (torch.float64, "torch")):
        with kernels.use(kernel):
            x = s.to(dtype).requires_grad_()
            results.append(pulled(LOSSES[name](x, y, reduction="none"), x, upstream.to(dtype)))
    assert_rounded_once(*results)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "average-k"])
def test_extreme_scores_have_the_gradient_of_float32(name: str) -> None:
    """Infinite ones in the first row and the last, wide ones in the second; where rows are apart, a NaN."""
    s, y = torch.where(torch.arange(4)[:, None] == 1, scores("wide"), scores("infinite")).half(), target(name)
    if name in OF_ROWS:
        s[3, 4] = torch.nan

    def call(x: Tensor) -> Tensor:
        return LOSSES[name](x, y, reduction="sum")

    value, gradient = in_type(call, s, torch.float16, 64.0)
    wanted, slope = in_type(call, s, torch.float32, 64.0)
    torch.testing.assert_close(value, wanted.half(), rtol=2 * HALF, atol=0, equal_nan=True)
    torch.testing.assert_close(gradient, slope.half(), rtol=2 * HALF, atol=2 * LEAST, equal_nan=True)


SHARES: dict[str, Callable[[Tensor], Tensor]] = {
    "multilabel softmax": lambda s: F.multilabel_softmax_loss(s, matrix(), reduction="sum"),
    "smooth": lambda s: F.smooth_topk_loss(s, torch.zeros(4, dtype=torch.int64), 1, reduction="sum"),
    "lml loss": lambda s: F.lml_loss(s, torch.zeros(4, dtype=torch.int64), 3, reduction="sum"),
    "log sum": lambda s: F.log_subset_sum(s, 3),
    "lml": lambda s: F.lml(s, 3)[:, 1:4] * 0.5,
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_too_small_for_float16_survive_where_the_gradient_is_large(name: str) -> None:
    """A share of 1e-8, times a loss scaled by 32,768, has a place in float16."""
    s = scores("ordinary").half() / 8
    s[:, 4:] -= 18.5
    _, exact = by_twin(SHARES[name], s, 1.0)
    few = (exact.abs() < LEAST) & (exact != 0)
    assert few.any()  # in float16 these would be 0, whatever they are multiplied by
    _, gradient = in_type(SHARES[name], s, torch.float16, LARGE)
    wanted = exact * LARGE
    places = few & (wanted.abs() > 2.0**-14)  # where float16 has all of its digits
    assert places.any()
    wrong = (gradient.double() - wanted).abs()[places] / wanted.abs()[places]
    assert wrong.max() <= HALF + 1e-5 * ROUNDING


def test_a_factor_beyond_the_largest_float16_does_not_overflow_on_the_way() -> None:
    s, y = scores("ordinary").half(), target("smooth")
    kernel = ops.smooth_topk.gradient
    assert kernel is not None
    gradient = kernel(s, (y,), None, "mean", 0, torch.tensor([65536.0 / 64]), 3, 1.0, 1.0)
    _, slope = by_twin(lambda x: F.smooth_topk_loss(x, y, 3, reduction="sum"), s, 65536.0 / 64)
    assert_rounded_once(gradient, slope)
    assert kernel(s, (y,), None, "sum", 0, torch.tensor([65536.0 * 64]), 3, 1.0, 1.0).isinf().any()


FEW = ["binary", "two-way", "average-k", "expected-positive", "smooth", "truncated, matrix"]


@pytest.mark.parametrize("name", FEW)
def test_asked_twice_it_is_the_same(name: str) -> None:
    x, y = scores("ordinary").half().requires_grad_(), target(name)
    value = LOSSES[name](x, y)
    first = pulled(value, x, LARGE, retain_graph=True)
    second = pulled(value, x, LARGE)
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", FEW)
def test_a_target_that_was_changed_meanwhile_is_not_taken_for_the_one_given(name: str) -> None:
    """Backward reads it again, and raises as PyTorch does where an input was changed in place."""
    x, y = scores("ordinary").half().requires_grad_(), target(name).clone()
    value = LOSSES[name](x, y)
    y.copy_(y.flip(0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pulled(value, x, 1.0)


@pytest.mark.parametrize("name", FEW)
def test_its_own_gradient_is_that_of_the_formula(name: str) -> None:
    y, results = target(name), []
    for dtype, kernel in ((torch.float16, "triton"), (torch.float64, "torch")):
        with kernels.use(kernel):
            x = scores("ordinary").half().to(dtype).requires_grad_()
            first = pulled(LOSSES[name](x, y), x, 8.0, create_graph=True)
            results.append(pulled(first, x, torch.linspace(-1, 2, 4 * LABELS).sin().to(dtype).view(4, -1)).double())
    torch.testing.assert_close(*results, rtol=4e-3, atol=2e-3 * float(results[1].abs().max()))


@pytest.mark.parametrize("name", [*FEW, "log sum", "lml"])
def test_compiles_whole(name: str) -> None:
    torch.compiler.reset()
    s, y = scores("ordinary").half(), target(name)
    call = LAYERS.get(name, lambda x: LOSSES[name](x, y))
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    got, wanted = in_type(compiled, s, torch.float16, LARGE), in_type(call, s, torch.float16, LARGE)
    torch.testing.assert_close(got, wanted, rtol=2 * HALF, atol=2 * LEAST)


@pytest.mark.parametrize("name", ["binary", "two-way", "smooth", "average-k"])
def test_vmap_keeps_batches_apart(name: str) -> None:
    s = torch.stack([scores("ordinary"), scores("wide") / 8]).half()
    y = torch.stack([target(name), target(name).flip(0)])
    upstream = torch.tensor([LARGE, 3.0]).half()
    x = s.clone().requires_grad_()
    gradient = pulled(torch.func.vmap(LOSSES[name])(x, y), x, upstream)
    for i in (0, 1):
        _, wanted = in_type(lambda one, i=i: LOSSES[name](one, y[i]), s[i], torch.float16, float(upstream[i]))
        torch.testing.assert_close(gradient[i], wanted, rtol=2 * HALF, atol=2 * LEAST)


@pytest.mark.parametrize("name", ["binary", "truncated, matrix"])
def test_stored_labels(name: str) -> None:
    stored = sl.labels.SparseLabels.of(matrix().clamp(min=0).to_sparse_csr())
    s, dense = scores("ordinary").half(), stored.to_dense()
    got = in_type(lambda x: LOSSES[name](x, stored), s, torch.float16, LARGE)
    wanted = in_type(lambda x: LOSSES[name](x, dense), s, torch.float16, LARGE)
    assert torch.equal(got[0], wanted[0])
    assert torch.equal(got[1], wanted[1])


@pytest.mark.parametrize("name", ["binary", "smooth", "expected-positive"])
def test_a_wrong_target_is_told_once_though_backward_reads_it_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda _: True)
    x, y = scores("ordinary").half().requires_grad_(), target(name)
    y[0] = 77
    value = LOSSES[name](x, y)
    with pytest.raises(ShortlistError, match="not allowed"):
        kernels.check()
    value.backward()
    kernels.check()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_rounded_p_does_not_spoil_the_gradient_of_lml(dtype: torch.dtype) -> None:
    """p of the first three is 1 in half precision, of the others 0: what backward needs of them is not in p."""
    s = torch.zeros(2, LABELS).to(dtype)
    s[:, :3] = 20.0
    upstream = torch.linspace(-1, 1, 2 * LABELS).reshape(2, LABELS).to(dtype) * 2048
    x, z = s.clone().requires_grad_(), s.double().requires_grad_()
    got = pulled(F.lml(x, 3), x, upstream)
    with kernels.use("torch"):
        exact = pulled(F.lml(z, 3), z, upstream.double())
    assert (exact != 0).all()
    wrong = (got.double() - exact).abs()
    assert (wrong <= torch.finfo(dtype).eps * exact.abs() + LEAST).all()


# ---- memory and bytes

LONG: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "binary": lambda s, y: F.binary_loss(s, y),
    "binary, weighted": lambda s, y: F.binary_loss(s, y, pos_weight=2.5),
    "partial-binary": lambda s, y: F.partial_binary_loss(s, y),
    "asymmetric": lambda s, y: F.asymmetric_loss(s, y),
    "selective": lambda s, y: F.partial_selective_loss(s, y, likelihood_topk=5),
    "lsep": lambda s, y: F.lsep_loss(s, y),
    "two-way": lambda s, y: F.two_way_loss(s, y),
    "multilabel-softmax": lambda s, y: F.multilabel_softmax_loss(s, y),
    "truncated, matrix": lambda s, y: F.truncated_entropy_loss(s, y, 5),
    "lml loss, matrix": lambda s, y: F.lml_loss(s, y, 5),
    "assume-negative": lambda s, y: F.assume_negative_loss(s, y),
    "expected-positive": lambda s, y: F.expected_positive_loss(s, y, 2.0),
    "smooth": lambda s, y: F.smooth_topk_loss(s, y, 5),
    "hinge": lambda s, y: F.topk_hinge_loss(s, y, 5),
    "truncated": lambda s, y: F.truncated_entropy_loss(s, y, 5),
    "lml loss": lambda s, y: F.lml_loss(s, y, 5),
    "log sum": lambda s, y: F.log_subset_sum(s, 5).sum(),
}
MATRICES = tuple(LONG)[:10]


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
@pytest.mark.parametrize("name", LONG)
def test_memory_beyond_the_scores_is_that_of_the_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda _: True)
    rows, labels = 4, 2048
    s = torch.randn(rows, labels).half().requires_grad_()
    y = (s.detach() > 2).to(torch.int8) if name in MATRICES else torch.arange(rows)
    size = s.numel() * 2
    numbers = {"two-way": 12, "binary, weighted": 2}.get(name, 0)  # per label, whatever the number of rows
    gc.collect()
    with Launches(s, y) as seen:
        value = LONG[name](s, y)
        before = seen.alive
        value.backward()
    assert seen.peak <= 1.1 * size + 4 * labels * numbers
    assert before <= 0.1 * size + 4 * labels * numbers  # nothing is kept


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
def test_memory_of_both_heads_is_that_of_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda _: True)
    sets, proposals = (torch.randn(4, 2048).half().requires_grad_() for _ in range(2))
    with Launches(sets, proposals) as seen:
        F.average_k_loss(sets, proposals, torch.arange(4), 2.0).backward()
    assert seen.peak <= 1.1 * 2 * sets.numel() * 2


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
def test_memory_of_lml_is_that_of_p_and_of_the_gradient() -> None:
    s, upstream = torch.randn(4, 1024).half().requires_grad_(), torch.randn(4, 1024).half()
    with Launches(s, upstream) as seen:
        F.lml(s, 5).backward(upstream)
    assert seen.peak <= 2.1 * s.numel() * 2


@pytest.mark.parametrize("name", ["selective", "two-way", "lml loss, matrix"])
def test_rows_of_thousands_of_labels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels_contract.wide_tiles(monkeypatch)
    s = torch.randn(2, 5000, generator=torch.Generator("cpu").manual_seed(4), device="cpu").to(WEIGHT.device).half()
    y = (s > 2).to(torch.int8) - (s < -2).to(torch.int8)
    value, gradient = in_type(lambda x: LONG[name](x, y), s, torch.float16, LARGE)
    wanted, slope = by_twin(lambda x: LONG[name](x, y), s, LARGE)
    assert (value.double() - wanted).abs() <= HALF * wanted.abs() * 1.01
    assert_rounded_once(gradient, slope)


@pytest.mark.skipif(not INTERPRETED, reason="the interpreter counts")
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        *((name, 64) for name in ("binary", "asymmetric", "lsep", "multilabel-softmax", "smooth", "lml loss")),
        *((name, 5000) for name in ("selective", "lml loss, matrix")),
    ],
)
def test_six_bytes_per_label(name: str, labels: int) -> None:
    """Two read forward; two read and two written backward. In float32 they are 8, and with a mean over a label matrix
    16."""
    s = torch.randn(2, labels).half().requires_grad_()
    y = (s.detach() > 1).to(torch.int8) if name in MATRICES else torch.tensor([3, 5])
    of_target = 1 if name in MATRICES else 0
    with counted() as count:
        value = LONG[name](s, y)
    assert count.written == 0
    assert 0 <= count.read - (2 + of_target) * s.numel() <= 128  # the rest: numbers of rows
    with counted() as count:
        value.backward()
    assert count.written == 2 * s.numel()
    assert 0 <= count.read - (2 + of_target) * s.numel() <= 128
