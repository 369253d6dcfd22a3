"""The contract of the top-k family, LML and the subset sums for Triton's kernels; `test_contracts.py` runs this file.

In a process with TRITON_INTERPRET=1 the kernels are interpreted, on the CPU; where there is a GPU and the variable is
not set, they run there. Oracle: the PyTorch twin in float64. Rows are in registers (the usual way for short ones) or
streamed, 8 or 16 labels at a time, or (LML's loss of label matrices) held in such blocks: shapes that the kernels are
told. Rows of as many labels as that happens with are there, too.
"""

import itertools
import math
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
from shortlist.functional.subsets import _Marginals
from shortlist.kernels import ops
from shortlist.kernels.triton import FAMILIES, launch, lml, subset_slopes
from shortlist.kernels.triton.launch import Shape
from tests.kernels.triton.no_waiting import NoWaiting

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
if INTERPRETED:
    from tests.kernels.triton.interpreter import counted

F = sl.functional
LAUNCHING = [launch, *(family for family in FAMILIES if hasattr(family, "launch"))]
_launch = launch.launch
ROWS, LABELS = 3, 21
INDEX = torch.tensor([5, -1, LABELS - 1], device=DEVICE)
MATRIX = torch.zeros(ROWS, LABELS, dtype=torch.int8, device=DEVICE)
MATRIX[0, [0, 7]], MATRIX[0, 3], MATRIX[1, 2], MATRIX[2] = 1, -1, -1, 0
MATRIX[2, [4, 5, 20]] = 1
WEIGHT = torch.tensor([0.5, 2.0, 3.0], device=DEVICE)
UPSTREAM = torch.linspace(-1, 2, ROWS * LABELS, device=DEVICE).reshape(ROWS, LABELS).sin()

CALLS: dict[str, Callable[..., Tensor]] = {
    "smooth": lambda s, k: F.smooth_topk_loss(s, INDEX, k, tau=0.5, sample_weight=WEIGHT.to(s.dtype)),
    "hinge": lambda s, k: F.topk_hinge_loss(s, INDEX, k, reduction="none"),
    "truncated": lambda s, k: F.truncated_entropy_loss(s, INDEX, k, sample_weight=WEIGHT.to(s.dtype)),
    "truncated, matrix": lambda s, k: F.truncated_entropy_loss(s, MATRIX, k, sample_weight=WEIGHT.to(s.dtype)),
    "truncated, stored": lambda s, k: F.truncated_entropy_loss(s, stored(), k),
    "log sum": lambda s, k: F.log_subset_sum(s, k),
    "marginals": lambda s, k: F.subset_marginals(s, k) * UPSTREAM.to(s.dtype),
    "lml": lambda s, k: F.lml(s, k) * UPSTREAM.to(s.dtype),
    "lml loss": lambda s, k: F.lml_loss(s, INDEX, k, reduction="sum"),
    "lml loss, matrix": lambda s, k: F.lml_loss(s, MATRIX, k, sample_weight=WEIGHT.to(s.dtype)),
    "lml loss, stored": lambda s, k: F.lml_loss(s, stored(), k),
}
EXTREMES = {"ties": 3, "equal": 8, "wide": 3, "offset": 1, "infinite": 3, "few": 8}  # each with a k


def stored() -> Any:
    return sl.labels.SparseLabels.of(MATRIX.clamp(min=0).to_sparse_csr())


def scores(kind: str) -> Tensor:
    s = torch.randn(ROWS, LABELS, generator=torch.Generator().manual_seed(2)).to(DEVICE) * 2
    if kind == "ties":
        return s.round()
    if kind == "equal":
        return torch.full_like(s, 0.25)
    if kind == "offset":
        return s + 1e4
    if kind == "wide":
        return s * 100
    if kind == "infinite":
        s[:, 1::3], s[0, 4] = -torch.inf, torch.inf
    if kind == "few":
        return torch.full_like(s, -torch.inf).index_fill(1, torch.tensor([5, 7, 20], device=DEVICE), 1.0)
    return s


def value_and_gradient(call: Callable[..., Tensor], s: Tensor, k: Any) -> tuple[Tensor, Tensor]:
    x = s.clone().requires_grad_()
    value = call(x, k)
    value[value.detach().isfinite()].sum().backward()
    assert x.grad is not None
    return value.detach().double(), x.grad.double()


def check(name: str, s: Tensor, k: int, tolerance: float = 1e-5) -> None:
    """Against the twin in float64. Which of several equal scores is the k-th is not said: gradients are compared in the
    order of their size."""
    value, slope = value_and_gradient(CALLS[name], s, k)
    with kernels.use("torch"):
        most = torch.finfo(torch.float32).max / 4  # +inf counts as a quarter of the largest number of the type
        exact, slopes = value_and_gradient(CALLS[name], s.double().clamp(max=most), k)
    finite = exact.isfinite()
    assert torch.equal(value[~finite], exact[~finite])
    assert ((value - exact)[finite].abs() <= tolerance * (exact[finite].abs() + 0.1)).all(), (value, exact)
    if name.startswith(("hinge", "truncated")):
        slope, slopes = slope.sort(-1).values, slopes.sort(-1).values
    largest = slopes.abs().amax(-1, keepdim=True)
    least = 1e-15 if name == "marginals" else 1e-37  # of the marginals' slopes the twin has no smaller ones
    assert ((slope - slopes).abs() <= tolerance * largest + least).all(), (slope - slopes).abs().max()


@pytest.fixture(autouse=True)
def _triton() -> Iterator[None]:
    with kernels.use("triton"):
        yield
        kernels.check()


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in FAMILIES:
        if hasattr(family, "shape_of"):
            monkeypatch.setattr(family, "shape_of", lambda labels, *_, **__: Shape(8, 1, True))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were launched."""
    names: list[str] = []

    def noted(kernel: Any, *args: Any, **options: Any) -> None:
        names.append(kernel.fn.__name__)
        _launch(kernel, *args, **options)

    for module in LAUNCHING:
        monkeypatch.setattr(module, "launch", noted)
    return names


@pytest.mark.parametrize("name", CALLS)
def test_rows_in_registers(name: str, served: list[str]) -> None:
    check(name, scores("plain"), 3)
    assert served


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("name", [name for name in CALLS if "stored" not in name])
def test_extreme_rows(name: str, kind: str) -> None:
    check(name, scores(kind), EXTREMES[kind])


FEW: dict[str, Callable[..., Tensor]] = {
    "smooth": lambda s, k, y, mask: F.smooth_topk_loss(s, y.argmax(1), k, mask=mask),
    "hinge": lambda s, k, y, mask: F.topk_hinge_loss(s, y.argmax(1), k, mask=mask),
    "truncated": lambda s, k, y, mask: F.truncated_entropy_loss(s, y.argmax(1), k, mask=mask),
    "truncated, matrix": lambda s, k, y, mask: F.truncated_entropy_loss(s, y, k, mask=mask),
    "truncated, stored": lambda s, k, y, mask: F.truncated_entropy_loss(
        s, sl.labels.SparseLabels.of(y.to_sparse_csr()), k, mask=mask
    ),
    "log sum": lambda s, k, y, mask: F.log_subset_sum(s, k, mask=mask),
    "marginals": lambda s, k, y, mask: F.subset_marginals(s, k, mask=mask) * s.detach().clamp(min=-1),
    "lml": lambda s, k, y, mask: F.lml(s, k, mask=mask) * s.detach().clamp(min=-1),
    "lml loss": lambda s, k, y, mask: F.lml_loss(s, y.argmax(1), k, mask=mask),
    "lml loss, matrix": lambda s, k, y, mask: F.lml_loss(s, y, k, mask=mask),
}


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("name", FEW)
def test_rows_with_fewer_usable_labels_than_k(name: str, k: int) -> None:
    """By infinite scores, by present labels (which are no rivals) and by a mask; each gradient in its place."""
    nothing = -torch.inf
    s = torch.tensor(
        [[3.0, 2.0, 0.0, 0.5, 1.0], [3.0, nothing, 0.0, nothing, nothing], [nothing, 1.0, 0.5, nothing, 2.0]],
        device=DEVICE,
    )
    y = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 1]], device=DEVICE)
    for mask in (None, torch.tensor([True, True, True, False, False], device=DEVICE)):
        value, slope = value_and_gradient(lambda x, k, mask=mask: FEW[name](x, k, y, mask), s, k)
        with kernels.use("torch"):
            exact, slopes = value_and_gradient(lambda x, k, mask=mask: FEW[name](x, k, y, mask), s.double(), k)
        torch.testing.assert_close(value, exact, rtol=1e-5, atol=1e-6, equal_nan=True)
        torch.testing.assert_close(slope, slopes, rtol=1e-5, atol=1e-6)


MASKED: dict[str, Callable[..., Tensor]] = {
    "smooth": lambda s, mask: F.smooth_topk_loss(s, INDEX, 2, mask=mask),
    "hinge": lambda s, mask: F.topk_hinge_loss(s, INDEX, 2, mask=mask),
    "truncated": lambda s, mask: F.truncated_entropy_loss(s, INDEX, 2, mask=mask),
    "truncated, matrix": lambda s, mask: F.truncated_entropy_loss(s, MATRIX, 2, mask=mask),
    "lml loss": lambda s, mask: F.lml_loss(s, INDEX, 2, mask=mask),
    "log sum": lambda s, mask: F.log_subset_sum(s, 2, mask=mask),
}


@pytest.mark.parametrize("name", MASKED)
def test_masks_leave_labels_out(name: str) -> None:
    s = scores("plain")
    mask = torch.arange(LABELS, device=DEVICE) % 6 != 1  # labels of the targets stay, but for one of the matrix
    value, slope = value_and_gradient(MASKED[name], s, mask)
    with kernels.use("torch"):
        exact, slopes = value_and_gradient(MASKED[name], s.double(), mask)
    torch.testing.assert_close(value, exact, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(slope, slopes, rtol=1e-5, atol=1e-6)
    assert (slope[:, ~mask] == 0).all()


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("name", CALLS)
def test_streamed_rows(name: str) -> None:
    check(name, scores("ties"), 2)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("name", ["lml", "lml loss"])
def test_streamed_rows_whose_largest_scores_share_a_lane(name: str) -> None:
    """The power sums do not converge there: the row is looked through again."""
    check(name, scores("plain").index_fill(1, torch.arange(0, LABELS, 8, device=DEVICE), 4.0), 1)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lml, "shape_of", lambda labels, *_, **__: Shape(8, 1, True, 3))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("kind", ["plain", *EXTREMES])
def test_rows_held_in_blocks(kind: str) -> None:
    for name in ("lml loss, matrix", "lml loss, stored"):
        check(name, scores(kind), EXTREMES.get(kind, 8))


@pytest.mark.usefixtures("held")
def test_a_nan_in_any_of_its_blocks_makes_a_row_nan() -> None:
    s = scores("plain")
    s[2, 20] = torch.nan
    value, slope = value_and_gradient(lambda x, k: F.lml_loss(x, MATRIX, k, reduction="none"), s, 2)
    assert value.isnan().tolist() == slope.isnan().all(1).tolist() == [False, False, True]
    assert not bool(slope[:2].isnan().any())


@pytest.mark.usefixtures("held")
def test_a_wrong_label_in_any_of_the_blocks_is_told() -> None:
    wrong = MATRIX.clone()
    wrong[2, 17] = 3
    F.lml_loss(scores("plain"), wrong, 2)
    with pytest.raises(ShortlistError, match=f"at flat position {2 * LABELS + 17}"):
        kernels.check()


@pytest.mark.parametrize(("labels", "k"), [(4097, 8), (5000, 1), (8192, 5)])
def test_rows_of_thousands_of_labels_are_read_once(labels: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Label matrices and stored labels: 4 bytes of scores read and 4 of gradients written, beside the target."""
    s = moves(labels, 2) * 3
    s[0, 2000:2100] = s[0].max()  # equal ones in two blocks
    y = (torch.arange(2 * labels, device=DEVICE).reshape(2, labels) % 1000 == 7).to(torch.int8)
    monkeypatch.setitem(CALLS, "here", lambda x, k: F.lml_loss(x, y, k, sample_weight=WEIGHT[:2].to(x)))
    check("here", s, k)
    targets = {"dense": y, "stored": sl.labels.SparseLabels.of(y.to_sparse_csr())}
    found = [value_and_gradient(lambda x, k, z=z: F.lml_loss(x, z, k), s, k) for z in targets.values()]
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    for kind, given in targets.items() if INTERPRETED else ():
        with counted() as bytes_:
            F.lml_loss(s.clone().requires_grad_(), given, k, reduction="sum")
        assert bytes_.written == 4 * s.numel()
        of_target = 1 if kind == "dense" else 0
        assert 0 <= bytes_.read - (4 + of_target) * s.numel() <= 64


BY_ROW: dict[str, Callable[[Tensor], Tensor]] = {
    "smooth": lambda s: F.smooth_topk_loss(s, INDEX, 2, reduction="none"),
    "hinge": lambda s: F.topk_hinge_loss(s, INDEX, 2, reduction="none"),
    "truncated, matrix": lambda s: F.truncated_entropy_loss(s, MATRIX, 2, reduction="none"),
    "lml": lambda s: F.lml(s, 2),
    "lml loss": lambda s: F.lml_loss(s, INDEX, 2, reduction="none"),
    "log sum": lambda s: F.log_subset_sum(s, 2),
    "marginals": lambda s: F.subset_marginals(s, 2) * UPSTREAM,
}


@pytest.mark.parametrize("name", BY_ROW)
def test_a_nan_makes_its_row_nan_and_no_other(name: str) -> None:
    s = scores("plain")
    s[2, 3] = torch.nan
    x = s.clone().requires_grad_()
    value = BY_ROW[name](x)
    value.sum().backward()
    assert x.grad is not None
    assert bool(value[2].isnan().all())
    assert not bool(value[:2].isnan().any())
    assert bool(x.grad[2].isnan().all())
    assert not bool(x.grad[:2].isnan().any())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_it_is(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy of the scores in float32 is made: the kernel is handed the scores themselves."""
    seen: list[torch.dtype] = []

    def noted(kernel: Any, programs: int, first: Tensor, *args: Any, **options: Any) -> None:
        if kernel.fn.__module__.endswith(("topk", "lml")):
            seen.append(first.dtype)
        _launch(kernel, programs, first, *args, **options)

    for module in LAUNCHING:
        monkeypatch.setattr(module, "launch", noted)
    s = scores("plain").to(dtype)
    for name in ("smooth", "lml"):
        x = s.clone().requires_grad_()
        CALLS[name](x, 2).float().sum().backward()
        value, slope = value_and_gradient(CALLS[name], s, 2)
        with kernels.use("torch"):
            exact, slopes = value_and_gradient(CALLS[name], s.double(), 2)
        assert slope.isfinite().all()
        assert (value - exact).abs().max() <= 4e-2
        assert (slope - slopes).abs().max() <= 2 ** (-7 if dtype == torch.bfloat16 else -10) * slopes.abs().max()
        assert x.grad is not None
        assert x.grad.dtype == dtype
    assert set(seen) == {dtype}


def test_no_gradient_is_written_where_none_is_asked_for() -> None:
    s = scores("plain")
    for name in ("smooth", "truncated", "lml loss"):
        with torch.no_grad():
            value = CALLS[name](s, 3)
        with kernels.use("torch"):
            torch.testing.assert_close(value.double(), CALLS[name](s.double(), 3), rtol=1e-5, atol=1e-6)


def test_vmap_and_second_derivatives() -> None:
    s = torch.stack([scores("plain"), scores("plain").flip(0)])
    call = CALLS["smooth"]
    batched = torch.func.vmap(torch.func.grad(lambda x: call(x, 2)))(s)
    torch.testing.assert_close(batched[1].double(), value_and_gradient(call, s[1], 2)[1], rtol=1e-5, atol=1e-6)
    x = s[0].clone().requires_grad_()
    (first,) = torch.autograd.grad(call(x, 2), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    with kernels.use("torch"):
        z = s[0].double().requires_grad_()
        (first,) = torch.autograd.grad(call(z, 2), z, create_graph=True)
        (exact,) = torch.autograd.grad(first.square().sum(), z)
    torch.testing.assert_close(second.double(), exact, rtol=1e-4, atol=1e-6)


# ---- the slopes of the subset marginals


def changes(s: Tensor, d: Tensor, k: int) -> Tensor:
    """How the marginals of a row change, by all pairs of subsets: half the mean of what a pair differs in, times the
    difference of its directions. Nothing cancels."""
    members = torch.zeros(math.comb(len(s), k), len(s), dtype=torch.float64)
    members.scatter_(1, torch.tensor([*itertools.combinations(range(len(s)), k)]), 1.0)
    chance = (members @ s.double().cpu()).softmax(0)
    between = members.unsqueeze(1) - members
    return torch.einsum("a,b,abj,ab->j", chance, chance, between, between @ d.double().cpu()) / 2


def moves(labels: int, rows: int = 1) -> Tensor:
    return torch.randn(rows, labels, generator=torch.Generator().manual_seed(5)).to(DEVICE)


WAYS = pytest.mark.parametrize("way", ["registers", "streamed"])


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "streamed":
        monkeypatch.setattr(subset_slopes, "shape_of", lambda labels, *_, **__: Shape(8, 1, True))


@WAYS
def test_slopes_are_those_of_all_subsets(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal scores are in the top and out of it, each with a direction of its own; and slopes may be very small."""
    take(way, monkeypatch)
    s, d = torch.tensor([1.0, -0.5, 1.0, 0.0, 3.0, 1.0, 0.0, 1.0, -0.5], device=DEVICE), moves(9)[0]
    gap = s + torch.tensor([0, 60, 0, 0, 60, 60, 0, 0, 0], device=DEVICE)
    for k in range(1, 9) if way == "registers" else (1, 3, 8):
        found = ops.subset_slopes(torch.stack([s, gap]), d.expand(2, 9), k).double().cpu()
        for row, scores_ in zip(found, (s, gap), strict=True):
            exact = changes(scores_, d, k)
            assert (row - exact).abs().max() <= 1e-5 * exact.abs().max(), k


@WAYS
def test_slopes_of_8_out_of_few_equal_labels_have_four_digits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel is least exact."""
    take(way, monkeypatch)
    for labels, most in ((9, 1.2e-4), (10, 3e-5), (12, 1e-5)):
        s, d = torch.zeros(labels, device=DEVICE), moves(labels)[0]
        exact = changes(s, d, 8)
        found = ops.subset_slopes(s[None], d[None], 8)[0].double().cpu()
        assert (found - exact).abs().max() <= most * exact.abs().max(), labels


@WAYS
def test_what_is_common_to_all_directions_is_not_felt(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(way, monkeypatch)
    s = scores("ties")
    d = moves(LABELS, ROWS).mul(64).round() / 64
    torch.testing.assert_close(ops.subset_slopes(s, d + 2.0**17, 3), ops.subset_slopes(s, d, 3), rtol=1e-5, atol=1e-6)
    assert (ops.subset_slopes(s, torch.tensor(1e30, device=DEVICE).expand(ROWS, LABELS), 3) == 0).all()


@WAYS
def test_one_huge_direction_costs_the_others_no_digits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a label which is certainly in, and of one which is certainly out."""
    take(way, monkeypatch)
    s, d = scores("plain"), moves(LABELS, ROWS)
    s[:, 4], s[:, 9] = 90.0, -90.0
    d[:, 4] = d[:, 9] = 1e9
    with kernels.use("torch"):
        exact = _Marginals(3).backward(d.double(), (), False, s.double())[0]
    largest = exact.abs().amax(-1, keepdim=True)
    assert (ops.subset_slopes(s, d, 3) - exact).abs().le(1e-5 * largest).all()


@WAYS
def test_directions_that_are_not_finite_stay_in_their_row_and_do_not_count_without_a_score(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(way, monkeypatch)
    s, d = scores("plain"), moves(LABELS, ROWS)
    s[:, 4], wrong = -torch.inf, d.clone()
    wrong[0, 4], wrong[1, 4], wrong[2, 5] = torch.nan, torch.inf, torch.inf
    found, exact = ops.subset_slopes(s, wrong, 2), ops.subset_slopes(s, d, 2)
    assert torch.equal(found[:2], exact[:2])
    assert not found[2].isfinite().any()
    few = torch.full_like(s, -torch.inf).index_fill(1, torch.tensor([5, 7], device=DEVICE), 1.0)
    assert (ops.subset_slopes(few, wrong, 2) == 0).all()  # nothing to choose


def test_slopes_of_scores_and_directions_wherever_they_lie() -> None:
    both = moves(2 * LABELS, ROWS)
    exact = ops.subset_slopes(both[:, ::2].contiguous(), both[:, 1::2].contiguous(), 3)
    assert torch.equal(ops.subset_slopes(both[:, ::2], both[:, 1::2], 3), exact)
    assert torch.equal(ops.subset_slopes(both[:, ::2], both[:, 1::2].T.contiguous().T, 3), exact)
    exact = ops.subset_slopes(both[:, :LABELS], both[:1, LABELS:].repeat(ROWS, 1), 3)
    assert torch.equal(ops.subset_slopes(both[:, :LABELS], both[:1, LABELS:].expand(ROWS, LABELS), 3), exact)
    assert ops.subset_slopes(both[:0], both[:0], 3).shape == (0, 2 * LABELS)
    assert (ops.subset_slopes(both[:, :1], both[:, 1:2], 1) == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_slopes_of_half_precision_are_written_as_such(dtype: torch.dtype, served: list[str]) -> None:
    s, d = scores("plain").to(dtype), moves(LABELS, ROWS)
    found, exact = ops.subset_slopes(s, d, 2), ops.subset_slopes(s.float(), d, 2)
    assert served == ["subset_slopes_kernel"] * 2
    assert found.dtype == dtype
    assert (found - exact).abs().max() <= 2 ** (-7 if dtype == torch.bfloat16 else -10) * exact.abs().max()


def test_slopes_compile_whole_batch_and_differentiate_again(served: list[str]) -> None:
    s = scores("plain")

    def gradient(call: Callable[..., Tensor], x: Tensor, **more: Any) -> Tensor:
        x = x if x.requires_grad else x.clone().requires_grad_()  # inside another one, or not
        return torch.autograd.grad(call(x, 2).sum(), x, **more)[0]

    exact = gradient(CALLS["marginals"], s)
    compiled = torch.compile(CALLS["marginals"], backend="aot_eager", fullgraph=True)
    assert torch.equal(gradient(compiled, s), exact)
    batched = torch.func.vmap(lambda d: ops.subset_slopes(s, d, 2))(torch.stack([UPSTREAM.flip(0), UPSTREAM]))
    assert torch.equal(batched[1], exact)
    assert served.count("subset_slopes_kernel") == 3
    twice = gradient(lambda z, k: gradient(CALLS["marginals"], z, create_graph=True).square(), s)
    with kernels.use("torch"):
        wanted = gradient(lambda z, k: gradient(CALLS["marginals"], z, create_graph=True).square(), s.double())
    torch.testing.assert_close(twice.double(), wanted, rtol=1e-4, atol=1e-6)


# ---- nothing waits


@pytest.mark.parametrize("name", [name for name in CALLS if "stored" not in name])
def test_nothing_waits_for_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    for k in (2, 9):  # by the kernel, and by the twin
        x = scores("plain").requires_grad_()
        with NoWaiting():
            CALLS[name](x, k).sum().backward()
        assert x.grad is not None
        assert bool(x.grad.isfinite().all())


@pytest.mark.parametrize("loss", [F.truncated_entropy_loss, F.lml_loss])
def test_nor_with_a_label_matrix_of_floats(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    labels = (torch.arange(ROWS * LABELS).reshape(ROWS, LABELS) % 7 == 0).to(DEVICE)
    for k in (2, 9):
        found = []
        for target in (labels, labels.float()):
            x = scores("plain").requires_grad_()
            with NoWaiting():
                loss(x, target, k).backward()
            found.append(x.grad)
        assert torch.equal(*found)


@pytest.mark.parametrize("kind", ["index", "matrix"])
def test_a_wrong_target_is_told_by_the_next_call(kind: str) -> None:
    s = scores("plain")
    target = (torch.tensor([5, LABELS, 3]) if kind == "index" else torch.full((ROWS, LABELS), 2)).to(DEVICE)
    before = device_flags._devices[s.device].counts["truncated_entropy"]
    F.truncated_entropy_loss(s, target, 2)
    if not INTERPRETED:
        torch.cuda.synchronize()  # the flag has followed the call to the host
    with pytest.raises(ShortlistError, match=rf"truncated_entropy was given, in its call {before + 1}, .* not allowed"):
        F.truncated_entropy_loss(s, INDEX, 2)
    F.truncated_entropy_loss(s, INDEX, 2)  # told once


def test_a_wrong_target_is_told_at_once_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    s, wrong = scores("plain"), torch.tensor([5, LABELS, 3], device=DEVICE)
    monkeypatch.setenv("SHORTLIST_CHECKS", "1")
    with pytest.raises(ShortlistError):
        F.smooth_topk_loss(s, wrong, 2)
    monkeypatch.delenv("SHORTLIST_CHECKS")
    F.smooth_topk_loss(s, wrong, 2)
    with pytest.raises(ShortlistError, match="flat position 1"):
        kernels.check()


def test_wrong_weights_are_told_later_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    F.smooth_topk_loss(scores("plain"), INDEX, 2, sample_weight=-WEIGHT)
    with pytest.raises(ShortlistError, match=r"smooth_topk was given.*a weight"):
        kernels.check()


# ---- bytes


@pytest.mark.skipif(not INTERPRETED, reason="the interpreter counts")
@pytest.mark.parametrize("name", ["smooth", "hinge", "truncated", "log sum", "lml", "lml loss", "lml loss, matrix"])
def test_a_row_is_read_once_or_twice_and_written_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As cross-entropy's, forward and gradient: 8 bytes per label of float32 in registers, 12 where it is streamed.
    With several labels per row LML's loss reads it a third time; and the labels are bytes."""
    n = 64
    y = (torch.arange(n) % 9 == 0).to(DEVICE, torch.int8).unsqueeze(0)
    s = torch.randn(1, n, generator=torch.Generator().manual_seed(0)).requires_grad_()
    row = {
        "smooth": lambda: F.smooth_topk_loss(s, torch.tensor([5]), 2),
        "hinge": lambda: F.topk_hinge_loss(s, torch.tensor([5]), 2),
        "truncated": lambda: F.truncated_entropy_loss(s, torch.tensor([5]), 2),
        "log sum": lambda: F.log_subset_sum(s, 2),
        "lml": lambda: F.lml(s, 2),
        "lml loss": lambda: F.lml_loss(s, torch.tensor([5]), 2),
        "lml loss, matrix": lambda: F.lml_loss(s, y, 2),
    }[name]
    for expected in (8 + 1, 16 + 2) if "matrix" in name else (8, 12):
        with counted() as bytes_:
            row()
        few = bytes_.read + bytes_.written - expected * n  # what adds the rows up
        assert 0 <= few <= 64, (bytes_.read / n, bytes_.written / n)
        for family in FAMILIES:
            if hasattr(family, "shape_of"):
                monkeypatch.setattr(family, "shape_of", lambda labels, *_, **__: Shape(16, 1, True))


@pytest.mark.skipif(not INTERPRETED, reason="the interpreter counts")
def test_slopes_read_scores_and_direction_once_or_twice_and_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s, d = moves(64), moves(64).flip(1)
    for way, expected in {"registers": 12, "streamed": 20}.items():
        take(way, monkeypatch)
        with counted() as bytes_:
            ops.subset_slopes(s, d, 2)
        few = expected * s.numel() - bytes_.read - bytes_.written  # the top's, one at a time
        assert 0 <= few <= 2 * s.element_size()


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
def test_memory_of_slopes_is_their_own() -> None:
    s, d = moves(64, 2), moves(64, 2).flip(1)
    for direction in (d, d[:1].expand(2, 64), d[:, :1].expand(2, 64)):
        with Launches(s, d) as seen:
            ops.subset_slopes(s, direction, 2)
        assert seen.peak <= 1.1 * s.numel() * s.element_size()


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
@pytest.mark.parametrize("name", ["smooth_topk_loss", "topk_hinge_loss", "truncated_entropy_loss", "lml_loss"])
def test_memory_beyond_the_scores_is_that_of_the_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda _: True)
    s, index = torch.randn(16, 512).requires_grad_(), torch.arange(16)
    with Launches(s, index) as seen:
        getattr(F, name)(s, index, 5).backward()
    assert seen.peak <= 1.1 * s.numel() * s.element_size()
