"""The contract of the losses of label matrices, and of one label per row, for Triton's kernels: `test_contracts.py`
runs this file. Oracle: the PyTorch twin in float64.

In a process with TRITON_INTERPRET=1 the kernels are interpreted, on the CPU; where there is a GPU and the variable is
not set, they run there.

A row is short (in registers as one block), long (streamed) or, in some losses, held (in registers, in several blocks):
for the latter two the kernels are told to take 16 labels at a time. Rows of thousands of labels are there, too.
"""

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
from shortlist.kernels.triton import (
    OFFERS,
    asymmetric,
    average_k,
    entries,
    expected_positive,
    pairs,
    two_way,
)
from shortlist.kernels.triton.launch import Shape, launch
from shortlist.labels.sparse_labels import SparseLabels
from tests.kernels.triton.no_waiting import NoWaiting

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
ROUNDING = 1 if INTERPRETED else 16  # a GPU's own exp and log are less exact than the host's
if INTERPRETED:
    from tests.kernels.triton.interpreter import counted
torch.set_default_device(DEVICE)

F = sl.functional
LABELS = 21
WEIGHT = torch.tensor([1.0, 0.0, 2.0, 0.5])
MATRIX_LOSSES: dict[str, Callable[..., Tensor]] = {
    "binary": lambda s, y, **o: F.binary_loss(s, y, **o),
    "binary, weighted": lambda s, y, **o: F.binary_loss(
        s, y, pos_weight=(torch.arange(1.0, LABELS + 1) / 32).to(s), **o
    ),
    "binary, of chances": lambda s, y, **o: F.binary_loss(s, chances(y), **o),
    "binary, of chances, weighted": lambda s, y, **o: F.binary_loss(
        s, chances(y), pos_weight=(torch.arange(1.0, LABELS + 1) / 32).to(s), **o
    ),
    "partial-binary": lambda s, y, **o: F.partial_binary_loss(s, y, boost=3.0, **o),
    "asymmetric": lambda s, y, **o: F.asymmetric_loss(s, y, **o),
    "asymmetric, not whole": lambda s, y, **o: F.asymmetric_loss(s, y, gamma_neg=2.5, gamma_pos=0.5, clip=0.0, **o),
    "asymmetric, detached": lambda s, y, **o: F.asymmetric_loss(s, y, gamma_neg=1.5, detach_focus=True, **o),
    "selective": lambda s, y, **o: F.partial_selective_loss(s, y, likelihood_topk=3, clip=0.05, **o),
    "selective, prior": lambda s, y, **o: F.partial_selective_loss(
        s, y, prior=(torch.arange(LABELS) % 5 == 0).to(s), likelihood_topk=2, **o
    ),
    "negative": lambda s, y, **o: F.partial_selective_loss(s, y, mode="negative", **o),
    "lsep": lambda s, y, **o: F.lsep_loss(s, y, **o),
    "two-way, sample": lambda s, y, **o: F.two_way_loss(s, y, way="sample", margin=0.5, **o),
    "two-way": lambda s, y, **o: F.two_way_loss(s, y, **o),
    "two-way, class": lambda s, y, **o: F.two_way_loss(s, y, way="class", negative_temperature=2.0, **o),
    "multilabel-softmax": lambda s, y, **o: F.multilabel_softmax_loss(s, y, **o),
}
INDEX_LOSSES: dict[str, Callable[..., Tensor]] = {
    "assume-negative": lambda s, y, **o: F.assume_negative_loss(s, y, **o),
    "assume-negative, smoothed": lambda s, y, **o: F.assume_negative_loss(s, y, label_smoothing=0.2, **o),
    "expected-positive": lambda s, y, **o: F.expected_positive_loss(s, y, 2.3, beta=0.3, **o),
    "expected-positive, normalised": lambda s, y, **o: F.expected_positive_loss(s, y, 2.3, normalize=True, **o),
    "average-k": lambda s, y, **o: F.average_k_loss(s, s.flip(0) * 0.5, y, 2.4, alpha=0.6, **o),
}
LOSSES = MATRIX_LOSSES | INDEX_LOSSES
HELD_LOSSES = ("selective", "selective, prior", "two-way", "two-way, class")
EVERY_LENGTH = pytest.mark.parametrize(
    ("name", "length"),
    [(name, length) for length in ("short", "long") for name in LOSSES] + [(name, "held") for name in HELD_LOSSES],
    indirect=["length"],
)
BATCH_LOSSES = ("two-way", "two-way, class", *list(INDEX_LOSSES)[2:])


def matrix() -> Tensor:
    """Rows of all three kinds of labels; one without present labels, one without absent ones."""
    generator = torch.Generator("cpu").manual_seed(1)
    y = torch.randint(-1, 2, (4, LABELS), generator=generator, device="cpu").to(DEVICE, torch.int8)
    y[2] = y[2].clamp(max=0)
    y[3] = y[3].abs() * 2 - 1
    return y


def chances(y: Tensor) -> Tensor:
    """Of every label that is known, more than a half where it is present; some are certain."""
    chance = torch.arange(y.shape[-1]) % 5 / 10.0
    return torch.where(y < 0, -1.0, torch.where(y > 0, 1.0 - chance, chance))


def target(name: str) -> Tensor:
    return matrix() if name in MATRIX_LOSSES else torch.tensor([5, 2, -1, LABELS - 1])


def scores(kind: str) -> Tensor:
    s = torch.randn(4, LABELS, generator=torch.Generator("cpu").manual_seed(2), device="cpu").to(DEVICE)
    if kind == "offset":
        return (s + 1e6).float()
    if kind == "wide":
        return s * 50
    if kind == "infinite":
        s[0, ::4], s[0, 1::4], s[3, 3] = torch.inf, -torch.inf, torch.inf
    return s


def gradients(loss: Callable[..., Tensor], s: Tensor, y: Any, **options: Any) -> tuple[Tensor, Tensor]:
    x = s.clone().requires_grad_()
    value = loss(x, y, **options)
    value.sum().backward()
    assert x.grad is not None
    return value.detach(), x.grad


def by_twin(loss: Callable[..., Tensor], s: Tensor, y: Any, dtype: torch.dtype = torch.float64, **options: Any) -> Any:
    weight = options.pop("sample_weight", None)
    with kernels.use("torch"):
        return gradients(loss, s.to(dtype), y, sample_weight=None if weight is None else weight.to(dtype), **options)


def assert_close(got: Tensor, wanted: Tensor, tolerance: float) -> None:
    assert got.isfinite().all() == wanted.isfinite().all()
    size = wanted.abs().max().clamp(min=1e-30)
    wrong = (got.double() - wanted.to(got.device).double()).abs().max() / size.to(got.device)
    assert wrong.item() <= tolerance * ROUNDING


@pytest.fixture(autouse=True)
def _triton() -> Iterator[None]:
    with kernels.use("triton"):
        yield
        kernels.check()


@pytest.fixture(params=["short", "long", "held"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "long":
        for family in (asymmetric, entries, pairs, two_way):
            monkeypatch.setattr(family, "shape_of", lambda *_, **__: Shape(16, 1, True))
        monkeypatch.setattr(entries, "PART", 16)
        for family in (average_k, expected_positive):
            monkeypatch.setattr(family, "_BLOCK", 16)
        monkeypatch.setattr(two_way, "TILE_ROWS", 2)
        monkeypatch.setattr(two_way, "CHUNK", 2)
        monkeypatch.setattr(two_way, "COLUMNS_BLOCK", 16)
    if request.param == "held":
        for family in (asymmetric, two_way):
            monkeypatch.setattr(family, "shape_of", lambda *_, **__: Shape(16, 1, True, 2))
    value: str = request.param
    return value


def test_every_operator_of_these_losses_has_a_kernel() -> None:
    assert {
        "binary", "partial_binary", "asymmetric", "assume_negative", "expected_positive",
        "pair_rows", "two_way", "multilabel_softmax", "average_k",
    } <= set(OFFERS)  # fmt: skip


@EVERY_LENGTH
def test_ordinary_scores(name: str, length: str) -> None:
    s, y = scores("ordinary"), target(name)
    reduction = "sum" if length == "short" else "mean"
    value, gradient = gradients(LOSSES[name], s, y, sample_weight=WEIGHT, reduction=reduction)
    wanted, slope = by_twin(LOSSES[name], s, y, sample_weight=WEIGHT, reduction=reduction)
    assert_close(value, wanted, 5e-7)
    assert_close(gradient, slope, 1e-6)


@EVERY_LENGTH
def test_extreme_scores(name: str, length: str) -> None:
    s, y = scores("offset" if length == "long" else "wide"), target(name)
    value, gradient = gradients(LOSSES[name], s, y)
    wanted, slope = by_twin(LOSSES[name], s, y)
    assert_close(value, wanted, 2e-6)
    assert_close(gradient, slope, 4e-6)


@pytest.mark.parametrize(
    ("name", "length"),
    [
        *((name, "short") for name in LOSSES if "chances" not in name),  # of which there is no native kernel
        *((name, "held") for name in HELD_LOSSES),
    ],
    indirect=["length"],
)
def test_infinite_scores(name: str, length: str) -> None:
    """What is infinite is a quarter of the largest float32: compared with the native kernel, or the twin in float32."""
    s, y = scores("infinite"), target(name)
    value, gradient = gradients(LOSSES[name], s, y)
    with kernels.use("native"):
        wanted, slope = gradients(LOSSES[name], s.cpu(), y.cpu())
    assert_close(value, wanted, 1e-6)
    assert_close(gradient, slope, 1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in BATCH_LOSSES])
def test_without_a_reduction(name: str) -> None:
    s, y = scores("ordinary"), target(name)
    value, gradient = gradients(LOSSES[name], s, y, reduction="none", sample_weight=WEIGHT)
    wanted, slope = by_twin(LOSSES[name], s, y, reduction="none", sample_weight=WEIGHT)
    assert_close(value, wanted, 5e-7)
    assert_close(gradient, slope, 1e-6)


@pytest.mark.parametrize("name", MATRIX_LOSSES)
def test_unknown_labels_may_be_nan(name: str) -> None:
    if name.startswith(("selective", "negative")):
        pytest.skip("unknown labels count there")
    s, y = scores("ordinary"), matrix()
    clean = gradients(LOSSES[name], s, y)
    given = gradients(LOSSES[name], s.masked_fill(y == -1, torch.nan), y)
    assert torch.equal(given[0], clean[0])
    assert torch.equal(given[1], clean[1])


@pytest.mark.parametrize("name", LOSSES)
def test_a_nan_is_told(name: str) -> None:
    s, y = scores("ordinary"), target(name)
    column = int((y[0] == 0).nonzero()[0]) if name in MATRIX_LOSSES else 5
    s[0, column] = torch.nan
    value, gradient = gradients(LOSSES[name], s, y)
    assert value.isnan()
    assert gradient[0, column].isnan()
    if name not in BATCH_LOSSES:
        assert gradient[1:].isfinite().all()


@pytest.mark.parametrize("way", ["class", "both"])
def test_a_nan_in_a_column_that_is_not_observed_does_not_reach_the_gradient(way: str) -> None:
    s, y = torch.tensor([[0.5, torch.nan, -1.0], [0.0, 2.0, 1.0]]), torch.tensor([[0, 0, 0], [0, 0, 1]])
    given = gradients(F.two_way_loss, s, y, way=way)
    clean = gradients(F.two_way_loss, s.nan_to_num(0.0), y, way=way)
    assert torch.equal(given[0], clean[0])
    assert torch.equal(given[1], clean[1])


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_observed(name: str) -> None:
    y = torch.full_like(target(name), -1)
    for weight in (None, torch.zeros(4)):
        if name.startswith(("selective", "negative")) and weight is None:
            continue
        given = y if weight is None else target(name)
        value, gradient = gradients(LOSSES[name], scores("ordinary"), given, sample_weight=weight)
        assert value == 0
        assert (gradient == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["binary", "selective", "two-way", "multilabel-softmax", *list(INDEX_LOSSES)[::2]])
def test_half_precision_is_read_directly(name: str, dtype: torch.dtype) -> None:
    s, y = scores("ordinary").to(dtype), target(name)
    value, gradient = gradients(LOSSES[name], s, y)
    wanted, slope = by_twin(LOSSES[name], s, y)
    assert gradient.dtype == dtype
    step = torch.finfo(dtype).eps
    assert_close(value, wanted, step)
    assert_close(gradient, slope, 2 * step)


def kinds_of_targets() -> dict[str, Any]:
    y = matrix()
    types = (torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64)
    same: dict[str, Any] = {str(kind): y.to(kind) for kind in types}
    for index in (torch.int32, torch.int64):
        for rest in (0, -1):
            rows, labels = (y != rest).nonzero(as_tuple=True)
            offsets = torch.cat([torch.zeros(1, dtype=torch.int64), (y != rest).sum(1).cumsum(0)])
            values = torch.cat([y[rows, labels], torch.tensor([rest], dtype=torch.int8)])
            same[f"sparse, {index}, {rest}"] = SparseLabels.made(offsets, labels.to(index), values, LABELS)
    return same


@pytest.mark.parametrize("kind", kinds_of_targets())
def test_targets_of_every_kind(kind: str, length: str) -> None:
    s, y = scores("ordinary"), kinds_of_targets()[kind]
    names = {"short": ["binary", "two-way"], "long": ["selective", "lsep"], "held": ["selective", "two-way"]}[length]
    for name in names if "sparse" in kind else names[:1]:
        wanted = gradients(LOSSES[name], s, matrix())
        got = gradients(LOSSES[name], s, y)
        assert torch.equal(got[0], wanted[0])
        assert torch.equal(got[1], wanted[1])


@pytest.mark.parametrize("name", ["partial-binary", "asymmetric", "multilabel-softmax", "two-way, sample"])
def test_stored_labels(name: str, length: str) -> None:
    wanted = gradients(LOSSES[name], scores("ordinary"), matrix())
    got = gradients(LOSSES[name], scores("ordinary"), kinds_of_targets()["sparse, torch.int32, -1"])
    assert torch.equal(got[0], wanted[0])
    assert torch.equal(got[1], wanted[1])


def test_bool_targets() -> None:
    s, y = scores("ordinary"), matrix() > 0
    assert_close(F.binary_loss(s, y), by_twin(F.binary_loss, s, y)[0], 5e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_masks_leave_labels_out(name: str) -> None:
    """By the kernel, or by the twin where only it knows of masks."""
    s, mask = scores("ordinary"), torch.arange(LABELS) % 3 > 0
    value, gradient = gradients(LOSSES[name], s, target(name), mask=mask)
    wanted, slope = by_twin(LOSSES[name], s, target(name), mask=mask)
    assert_close(value, wanted, 5e-7)
    assert_close(gradient, slope, 1e-6)
    assert (gradient[:, ~mask] == 0).all()


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_waits_for_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    x, y = scores("ordinary").requires_grad_(), target(name)
    with NoWaiting():
        LOSSES[name](x, y, sample_weight=WEIGHT).backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("name", MATRIX_LOSSES)
def test_nor_with_a_label_matrix_of_floats(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = gradients(LOSSES[name], scores("ordinary"), matrix())
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    x, y = scores("ordinary").requires_grad_(), matrix().float()
    with NoWaiting():
        value = LOSSES[name](x, y)
        value.backward()
    assert_close(value.detach(), wanted[0], 2e-7)
    assert x.grad is not None
    assert_close(x.grad, wanted[1], 2e-7)


@pytest.mark.parametrize("wrong", [1.5, -0.5, torch.nan])
def test_a_wrong_chance_is_told_by_the_next_call(wrong: float) -> None:
    y = chances(matrix())
    y[1, 4] = wrong
    F.binary_loss(scores("ordinary"), y)
    if not INTERPRETED:
        torch.cuda.synchronize()
    with pytest.raises(ShortlistError, match=f"binary was given.*at flat position {LABELS + 4}"):
        F.binary_loss(scores("ordinary"), matrix())


def test_a_wrong_chance_is_told_where_it_is_masked_too() -> None:
    y, mask = chances(matrix()), torch.arange(LABELS) != 4
    y[1, 4] = 1.5

    def call() -> None:
        F.binary_loss(scores("ordinary"), y, mask=mask)
        kernels.check()

    with pytest.raises(ShortlistError, match=r"1\.5|at flat position"):
        call()


@pytest.mark.parametrize("of", ["target", "sample_weight"])
def test_torch_func_differentiates_by_what_is_not_a_score(of: str) -> None:
    """In the first call of all, and what it leaves behind is of use to the next."""
    device_flags._devices.known.clear()
    s, given = scores("ordinary"), {"target": chances(matrix()).clamp(min=0), "sample_weight": WEIGHT}
    found = torch.func.grad(lambda value: F.binary_loss(s, **{**given, of: value}))(given[of])
    value = given[of].clone().requires_grad_()
    F.binary_loss(s, **{**given, of: value}).backward()
    assert value.grad is not None
    assert_close(found, value.grad, 1e-6)


@pytest.mark.parametrize("name", ["binary", "partial-binary", "selective", "lsep", "two-way", "multilabel-softmax"])
def test_a_wrong_value_is_told_by_the_next_call(name: str) -> None:
    s, y = scores("ordinary"), matrix()
    y[1, 4] = 3
    LOSSES[name](s, y)
    if not INTERPRETED:
        torch.cuda.synchronize()  # the flag has followed the call to the host
    with pytest.raises(ShortlistError, match=f"at flat position {LABELS + 4}"):
        LOSSES[name](s, matrix())
    LOSSES[name](s, matrix())


def test_ties_of_the_likeliest_unknown_labels_go_to_the_lower_label(length: str) -> None:
    s, y = torch.zeros(1, LABELS), torch.full((1, LABELS), -1)
    s[0, 7] = torch.nan  # the least likely
    s[0, 9] = 1.0
    gradient = gradients(F.partial_selective_loss, s, y, likelihood_topk=3)[1]
    assert (gradient[0] == 0).nonzero().flatten().tolist() == [0, 1, 9]


def test_rows_with_fewer_unknown_labels_than_are_left_out(length: str) -> None:
    """None, one and two of them, and four likeliest: no label that is known is taken for one."""
    s, y = scores("ordinary")[:3], torch.zeros(3, LABELS, dtype=torch.int8)
    y[1, 4], y[2, [0, 9]], y[2, 3] = -1, -1, 1
    value, gradient = gradients(F.partial_selective_loss, s, y, likelihood_topk=4)
    wanted, slope = by_twin(F.partial_selective_loss, s, y, likelihood_topk=4)
    assert_close(value, wanted, 5e-7)
    assert_close(gradient, slope, 1e-6)


def test_fewer_candidates_than_the_batch_may_have(length: str) -> None:
    s, y = scores("ordinary")[:, :3], torch.tensor([2, 0, -1, -1])
    value, gradient = gradients(LOSSES["average-k"], s, y)
    wanted, slope = by_twin(LOSSES["average-k"], s, y)
    assert_close(value, wanted, 5e-7)
    assert_close(gradient, slope, 1e-6)


def test_candidates_of_equal_shares_are_the_earlier(length: str) -> None:
    s, y = torch.zeros(4, LABELS), torch.tensor([0, 1, -1, 3])
    x = s.clone().requires_grad_()
    F.average_k_loss(x, s, y, k=2.0).backward()
    assert x.grad is not None
    up = (x.grad < 0).nonzero().tolist()  # three rows: three candidates, the first of the first row; and three labels
    assert up == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 1], [3, 3]]


def test_vmap_keeps_batches_apart() -> None:
    s, y = torch.stack([scores("ordinary"), scores("wide")]), torch.stack([matrix(), matrix().flip(0)])
    for name in ("binary", "two-way"):
        got = torch.func.vmap(LOSSES[name])(s, y)
        assert torch.equal(got, torch.stack([LOSSES[name](s[0], y[0]), LOSSES[name](s[1], y[1])]))


@pytest.mark.parametrize("name", ["two-way", "average-k", "expected-positive", "binary"])
def test_compiles_whole(name: str) -> None:
    s, y = scores("ordinary"), target(name)
    compiled = torch.compile(LOSSES[name], backend="aot_eager", fullgraph=True)
    got, wanted = gradients(compiled, s, y), gradients(LOSSES[name], s, y)
    assert_close(got[0], wanted[0], 1e-6)
    assert_close(got[1], wanted[1], 1e-6)


def wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two-way's columns: of few rows, they are as many numbers, and few programs to interpret."""
    monkeypatch.setattr(two_way, "TILE_ROWS", 2)
    monkeypatch.setattr(two_way, "TILE_LABELS", 512)


COUNTED = {  # bytes of scores that are read per label of a long row
    "binary": 4,
    "binary, of chances": 4,
    "asymmetric": 4,
    "lsep": 8,
    "multilabel-softmax": 8,
    "selective": 8,
    "assume-negative": 4,
}


@pytest.mark.skipif(not INTERPRETED, reason="the interpreter counts")
@pytest.mark.parametrize(
    ("name", "length", "read"),
    [
        *((name, "short", 4) for name in COUNTED),
        *((name, "long", read) for name, read in COUNTED.items()),
        ("selective", "held", 4),
    ],
    indirect=["length"],
)
def test_bytes_per_label(name: str, length: str, read: int) -> None:
    """Of the scores and their gradient, beside the target."""
    s = torch.zeros(2, 32)
    y = torch.zeros(2, 32, dtype=torch.int8) if name in MATRIX_LOSSES else torch.zeros(2, dtype=torch.int64)
    if name == "selective":
        y -= 1
    of_target = 0 if name in INDEX_LOSSES else 4 if "chances" in name else read // 4
    x = s.requires_grad_()
    with counted() as count:
        LOSSES[name](x, y, reduction="sum")
    rows = 2 * 32
    assert count.written == 4 * rows
    assert 0 <= count.read - (read + of_target) * rows <= 64  # the rest: numbers of rows


@pytest.mark.parametrize(
    ("name", "labels", "rest"),
    [
        ("selective", 4097, 0),
        ("selective", 5000, -1),
        ("selective", 8192, 0),
        ("two-way", 4097, -1),
        ("two-way", 8192, 0),
    ],
)
def test_rows_of_thousands_of_labels(name: str, labels: int, rest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Label matrices and stored labels; scores are read once, and the gradient is written once (two-way: below)."""
    wide_tiles(monkeypatch)
    generator = torch.Generator("cpu").manual_seed(3)
    s = torch.randn(2, labels, generator=generator, device="cpu").to(DEVICE) * 3
    s[0, 2000:2100] = s[0].max()  # equal ones in two blocks
    y = torch.full((2, labels), rest, dtype=torch.int8)
    y[:, 7::500], y[:, 8::500], y[:, 9::7] = 1, 0, -1
    rows, at = (y != rest).nonzero(as_tuple=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), (y != rest).sum(1).cumsum(0)])
    values = torch.cat([y[rows, at], torch.tensor([rest], dtype=torch.int8)])
    found = gradients(LOSSES[name], s, y, sample_weight=WEIGHT[2:])
    stored = gradients(LOSSES[name], s, SparseLabels.made(offsets, at, values, labels), sample_weight=WEIGHT[2:])
    wanted, slope = by_twin(LOSSES[name], s, y, sample_weight=WEIGHT[2:])
    assert_close(found[0], wanted, 1e-6)
    assert_close(found[1], slope, 2e-6)
    assert torch.equal(stored[0], found[0])
    assert torch.equal(stored[1], found[1])
    if INTERPRETED and name == "selective":
        x = s.clone().requires_grad_()
        with counted() as count:
            LOSSES[name](x, y, reduction="sum")
        assert count.written == 4 * s.numel()
        assert 0 <= count.read - (4 + 1) * s.numel() <= 64


@pytest.mark.skipif(not INTERPRETED, reason="the interpreter counts")
@pytest.mark.parametrize("labels", [4096, 4097, 8192])
def test_the_rows_of_two_way_are_read_once(labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wide_tiles(monkeypatch)
    kernel, reads = two_way.two_way_rows_kernel, []

    def noted(one: Any, *args: Any, **options: Any) -> None:
        with counted() as count:
            launch(one, *args, **options)
        if one is kernel:
            reads.append((count.read, count.written))

    monkeypatch.setattr(two_way, "launch", noted)
    x = torch.randn(2, labels).requires_grad_()
    LOSSES["two-way"](x, (x.detach() > 2).to(torch.int8))
    [(read, written)] = reads
    assert written == 4 * x.numel()
    assert read == (4 + 1 + 2 * 4) * x.numel()  # the score, the target, and two numbers of the label's column


@pytest.mark.parametrize("loss", [F.binary_loss, F.lsep_loss])
def test_a_linear_loss_by_blocks_is_computed_by_the_kernels(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, kernel_of = [], ops.triton_kernel
    monkeypatch.setattr(ops, "triton_kernel", lambda name: (asked.append(name), kernel_of(name))[1])
    features, weight = torch.randn(4, 5, requires_grad=True), torch.randn(LABELS, 5, requires_grad=True)
    whole = loss(features @ weight.T, matrix())
    expected = torch.autograd.grad(whole, (features, weight))
    asked.clear()
    value = F.linear_loss(loss, features, weight, matrix(), memory=300)
    found = torch.autograd.grad(value, (features, weight))
    assert asked.count("binary" if loss is F.binary_loss else "pair_rows") > 1
    torch.testing.assert_close((value, found), (whole, expected), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not INTERPRETED, reason="counted by operations, as on a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["binary", "asymmetric", "lsep", "assume-negative", "expected-positive"])
def test_memory_beyond_the_scores_is_that_of_the_gradient(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.device_flags.waits", lambda _: True)
    s = torch.randn(8, 1024).to(dtype).requires_grad_()
    y = (s.detach() > 2).to(torch.int8) if name in MATRIX_LOSSES else torch.arange(8)
    with Launches(s, y) as seen:
        LOSSES[name](s, y).backward()
    assert seen.peak <= 1.1 * s.numel() * s.element_size()
