"""`linear_loss` and the same loss of whole scores: one value, one gradient of features, weight and bias."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import linear

import shortlist.functional as F
from shortlist import kernels
from shortlist.errors import ShortlistError
from shortlist.functional._linear_head import Head
from shortlist.labels import SparseLabels
from tests.processes import run_two

ROWS, SIZE, LABELS = 13, 5, 17
FEW = 4 * 2 * LABELS * 8  # bytes: four rows of float64 at a time
BY_LABELS = 2 * ROWS * 8 * 5  # five labels at a time
Loss = Callable[..., Tensor]

INDEX: dict[str, tuple[Loss, dict[str, Any]]] = {
    "smooth_topk": (F.smooth_topk_loss, {"k": 3}),
    "topk_hinge": (F.topk_hinge_loss, {"k": 2}),
    "truncated_entropy": (F.truncated_entropy_loss, {"k": 2}),
    "lml": (F.lml_loss, {"k": 3}),
    "noised_topk": (F.noised_topk_loss, {"k": 2}),
    "assume_negative": (F.assume_negative_loss, {}),
    "average_k": (F.average_k_loss, {"k": 2.5, "alpha": 0.7}),
    "expected_positive": (F.expected_positive_loss, {"k": 3.0, "beta": 0.3}),
    "expected_positive_normalised": (F.expected_positive_loss, {"k": 3.0, "normalize": True}),
}
MATRIX: dict[str, tuple[Loss, dict[str, Any]]] = {
    "truncated_entropy_matrix": (F.truncated_entropy_loss, {"k": 2}),
    "lml_matrix": (F.lml_loss, {"k": 3}),
    "lml_k_by_row": (F.lml_loss, {"k": torch.arange(ROWS) % 5 + 1}),
    "binary": (F.binary_loss, {}),
    "binary_weighted": (F.binary_loss, {"pos_weight": torch.linspace(0.5, 2, LABELS, dtype=torch.float64)}),
    "partial_binary": (F.partial_binary_loss, {}),
    "asymmetric": (F.asymmetric_loss, {}),
    "partial_selective": (F.partial_selective_loss, {"likelihood_topk": 2}),
    "two_way": (F.two_way_loss, {}),
    "two_way_class": (F.two_way_loss, {"way": "class"}),
    "two_way_sample": (F.two_way_loss, {"way": "sample"}),
    "lsep": (F.lsep_loss, {}),
    "multilabel_softmax": (F.multilabel_softmax_loss, {}),
    "warp": (F.warp_loss, {}),
    "warp_exact": (F.warp_loss, {"exact": True}),
    "rml": (F.rml_loss, {}),
}
COUPLED = ("average_k", "expected_positive", "expected_positive_normalised", "two_way", "two_way_class")
ALL = INDEX | MATRIX


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def target_of(name: str) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    if name in INDEX:
        return torch.randint(-1, LABELS, (ROWS,), generator=generator)
    target = torch.randint(-1, 2, (ROWS, LABELS), generator=generator)
    target[4], target[:, 6] = 0, -1  # a row with nothing present, a label that nobody knows
    return target


def both_ways(
    name: str, memory: int | None = FEW, dtype: torch.dtype = torch.float64, **options: Any
) -> tuple[list[Tensor], list[Tensor]]:
    """The value and the gradients of whole scores, and those by blocks."""
    loss, own = ALL[name]
    heads = 2 if loss is F.average_k_loss else 1
    inputs = [numbers(ROWS, SIZE, dtype=dtype)]
    for seed in range(heads):
        inputs += [numbers(LABELS, SIZE, seed=10 + seed, dtype=dtype), numbers(LABELS, seed=20 + seed, dtype=dtype)]
    target, found = target_of(name), []
    for whole in (True, False):
        x, *parts = [tensor.clone().requires_grad_() for tensor in inputs]
        chosen = {**own, **options}
        if "pos_weight" in chosen:
            chosen["pos_weight"] = chosen["pos_weight"].to(dtype)
        if name in ("warp", "noised_topk"):
            chosen["generator"] = torch.Generator().manual_seed(5)
        if whole:
            scores = [linear(x, parts[2 * i], parts[2 * i + 1]) for i in range(heads)]
            value = loss(*scores, target, **chosen)
        else:
            chosen["class_weight"] = chosen.pop("weight", None)
            weight = tuple(parts[::2]) if heads == 2 else parts[0]
            bias = tuple(parts[1::2]) if heads == 2 else parts[1]
            value = F.linear_loss(loss, x, weight, target, bias=bias, memory=memory, **chosen)
        upstream = numbers(*value.shape, seed=7, dtype=dtype)
        found.append([value.detach(), *torch.autograd.grad(value, [x, *parts], upstream)])
    return found[0], found[1]


def assert_same(whole: list[Tensor], blocks: list[Tensor], tolerance: float) -> None:
    for one, other in zip(whole, blocks, strict=True):
        assert other.dtype == one.dtype
        size = max(1.0, float(one.detach().abs().max()))
        torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * size)


EXACT = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("given", ["plain", "sample_weight", "mask", "one_mask", "weight"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ALL)
def test_blocks_give_what_whole_scores_give(name: str, reduction: str, given: str, dtype: torch.dtype) -> None:
    if reduction == "none" and name in COUPLED:
        pytest.skip("couples the rows of the batch")
    if given == "weight" and name not in INDEX:
        pytest.skip("class weights go with class indices")
    sample_weight = numbers(ROWS, seed=30, dtype=dtype).abs()
    sample_weight[3] = 0
    mask = numbers(ROWS, LABELS, seed=31) > -1
    options = {
        "plain": {},
        "sample_weight": {"sample_weight": sample_weight},
        "mask": {"mask": mask},
        "one_mask": {"mask": mask[0]},
        "weight": {"weight": numbers(LABELS, seed=32, dtype=dtype).abs()},
    }[given]
    assert_same(*both_ways(name, dtype=dtype, reduction=reduction, **options), tolerance=EXACT[dtype])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("backend", ["native", "torch"])
def test_in_float32_too_with_kernels_and_without(name: str, backend: str) -> None:
    if backend == "native" and kernels.info()["in use"] == "torch":
        pytest.skip("no native kernels here")
    with kernels.use(kernels.info()["in use"] if backend == "native" else "torch"):
        assert_same(*both_ways(name, dtype=torch.float32), tolerance=1e-5)


@pytest.mark.parametrize("name", ["two_way", "two_way_class", "smooth_topk", "average_k"])
@pytest.mark.parametrize("memory", [1, BY_LABELS, None])
def test_any_memory_gives_the_same(name: str, memory: int | None) -> None:
    assert_same(*both_ways(name, memory=memory), tolerance=1e-10)


@pytest.mark.parametrize("name", ["warp", "noised_topk"])
def test_the_same_noise_whatever_the_blocks(name: str) -> None:
    values = [both_ways(name, memory=memory)[1] for memory in (1, FEW, 10**9)]
    for other in values[1:]:
        assert_same(values[0], other, tolerance=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("name", ["warp", "noised_topk"])
def test_the_same_noise_from_the_generator_that_all_share(name: str, reduction: str) -> None:
    """And with losses of rows, whose backward draws it again, what is drawn afterwards goes on where it was."""
    loss, own = ALL[name]
    found, after = [], []
    for memory in (None, 1, FEW, 10**9):
        x, weight = numbers(ROWS, SIZE).requires_grad_(), numbers(LABELS, SIZE, seed=10).requires_grad_()
        torch.manual_seed(8)
        if memory is None:
            value = loss(linear(x, weight), target_of(name), reduction=reduction, **own)
        else:
            value = F.linear_loss(loss, x, weight, target_of(name), reduction=reduction, memory=memory, **own)
        after.append(torch.rand(3))
        found.append([value.detach(), *torch.autograd.grad(value.sum(), [x, weight])])
        after.append(torch.rand(3))
    for other in found[1:]:
        assert_same(found[0], other, tolerance=1e-12)
    assert all(torch.equal(one, other) for one, other in zip(after, after[:2] * 4, strict=True))


def test_candidates_that_tie_are_those_of_whole_scores() -> None:
    """All proposals are equal: the earliest entries are the candidates, wherever blocks end."""
    loss, target = F.average_k_loss, torch.arange(ROWS)
    features, weight = numbers(ROWS, SIZE), numbers(LABELS, SIZE, seed=1).requires_grad_()
    proposals = torch.zeros(LABELS, SIZE, dtype=torch.float64)
    whole = loss(linear(features, weight), linear(features, proposals), target, 3.3)
    blocks = F.linear_loss(loss, features, (weight, proposals), target, k=3.3, memory=FEW)
    assert_same([whole, *torch.autograd.grad(whole, weight)], [blocks, *torch.autograd.grad(blocks, weight)], 1e-12)


def test_candidates_are_those_of_whole_scores_where_far_more_may_be() -> None:
    """More entries than are held at once, of few different scores: some are let go, and ties stay in their order."""
    rows, labels, loss = 60, 3000, F.average_k_loss
    features, weight = numbers(rows, SIZE), numbers(labels, SIZE, seed=1).requires_grad_()
    proposals = numbers(labels, 1, seed=2).round()
    for steepness in (0.0, 1.0, -3.0):  # the same in all rows; rows that are more and more, or less and less, sure
        steep = torch.exp(steepness * torch.arange(rows, dtype=torch.float64).unsqueeze(-1) / rows)
        inputs = torch.cat([features, steep], -1)
        heads = [torch.cat([weight, torch.zeros(labels, 1)], -1), torch.cat([torch.zeros(labels, SIZE), proposals], -1)]
        target = torch.arange(rows)
        whole = loss(*[linear(inputs, head) for head in heads], target, 40.0)
        blocks = F.linear_loss(loss, inputs, tuple(heads), target, k=40.0, memory=7 * 2 * 8 * labels)
        assert_same([whole, *torch.autograd.grad(whole, weight)], [blocks, *torch.autograd.grad(blocks, weight)], 1e-11)


def test_rows_in_several_dimensions_and_no_rows_at_all() -> None:
    features, weight = numbers(2, 3, SIZE), numbers(LABELS, SIZE, seed=1)
    target = torch.randint(LABELS, (2, 3), generator=torch.Generator().manual_seed(0))
    mask = numbers(2, 1, LABELS, seed=2) > -1
    losses = F.linear_loss(F.lml_loss, features, weight, target, k=2, mask=mask, reduction="none", memory=1)
    torch.testing.assert_close(losses, F.lml_loss(linear(features, weight), target, 2, mask=mask, reduction="none"))
    weight.requires_grad_()
    nothing = F.linear_loss(F.smooth_topk_loss, features[:0, 0], weight, target[:0, 0], k=2)
    assert nothing == 0
    assert torch.equal(torch.autograd.grad(nothing, weight)[0], torch.zeros_like(weight))


def test_a_second_backward_and_the_gradient_of_the_gradient() -> None:
    features, weight = numbers(ROWS, SIZE).requires_grad_(), numbers(LABELS, SIZE, seed=1).requires_grad_()
    target = target_of("binary")
    value = F.linear_loss(F.binary_loss, features, weight, target, memory=FEW)
    first = torch.autograd.grad(value, [features, weight], retain_graph=True)
    second = torch.autograd.grad(value, [features, weight], retain_graph=True)
    assert_same(list(first), list(second), 1e-14)
    (slope,) = torch.autograd.grad(value, features, create_graph=True)
    (curved,) = torch.autograd.grad(slope.square().sum(), weight)
    whole = F.binary_loss(linear(features, weight), target)
    (slope,) = torch.autograd.grad(whole, features, create_graph=True)
    torch.testing.assert_close(curved, torch.autograd.grad(slope.square().sum(), weight)[0])


@pytest.mark.parametrize("name", ["smooth_topk", "binary", "two_way", "expected_positive", "average_k"])  # every plan
def test_under_autocast_compile_and_func(name: str) -> None:
    features, weight = numbers(ROWS, SIZE, dtype=torch.float32), numbers(LABELS, SIZE, seed=1, dtype=torch.float32)
    weight.requires_grad_()
    target, (function, own) = target_of(name), ALL[name]

    def loss(x: Tensor, w: Tensor) -> Tensor:
        return F.linear_loss(function, x, (w, 2 * w) if name == "average_k" else w, target, memory=FEW, **own)

    plain = torch.autograd.grad(loss(features, weight), weight)[0]
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(features, weight)
        rough = torch.autograd.grad(value, weight)[0]
    assert value.dtype == torch.bfloat16
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, plain, rtol=0.05, atol=0.02)
    compiled = torch.compile(loss, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(features, weight), weight)[0], plain)
    torch.testing.assert_close(torch.func.grad(loss, argnums=1)(features, weight.detach()), plain)


def test_without_gradients_nothing_is_kept() -> None:
    features, weight = numbers(ROWS, SIZE), numbers(LABELS, SIZE, seed=1).requires_grad_()
    with torch.no_grad():
        value = F.linear_loss(F.lml_loss, features, weight, target_of("lml"), k=2, memory=FEW)
    assert not value.requires_grad
    torch.testing.assert_close(value, F.lml_loss(linear(features, weight).detach(), target_of("lml"), 2))


SAMPLED = ("warp", "noised_topk")  # each process draws noise of its own
Shared = tuple[str, str, bool, torch.dtype]
SHARED: list[Shared] = [
    (name, reduction, masked, dtype)
    for name in ALL
    if name not in SAMPLED
    for reduction in ("mean", "sum", "none")
    if reduction != "none" or name not in COUPLED
    for masked in (False, True)
    for dtype in EXACT
]
SPLIT = 9  # of the rows: unequal shares


def heads_of(name: str, dtype: torch.dtype) -> list[list[Tensor]]:
    """Weight and bias of each head."""
    seeds = (1, 2) if name == "average_k" else (1,)
    return [
        [
            numbers(LABELS, SIZE, seed=seed, dtype=dtype).requires_grad_(),
            numbers(LABELS, seed=9 + seed, dtype=dtype).requires_grad_(),
        ]
        for seed in seeds
    ]


def shared_loss(name: str, reduction: str, masked: bool, dtype: torch.dtype) -> tuple[Loss, Tensor, dict[str, Any]]:
    loss, own = ALL[name]
    options = own | {"reduction": reduction}
    if "pos_weight" in options:
        options["pos_weight"] = options["pos_weight"].to(dtype)
    if masked:
        weight = numbers(ROWS, seed=30, dtype=dtype).abs()
        options |= {"mask": numbers(ROWS, LABELS, seed=31) > -1, "sample_weight": weight}
    return loss, target_of(name), options


def shares(rank: int, address: str) -> None:
    """On one of two processes: the value and the gradients of its rows, under the global batch's loss."""
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=2)
    rows = slice(0, SPLIT) if rank == 0 else slice(SPLIT, ROWS)
    torch.set_num_threads(1)
    found = {}
    for number, case in enumerate(SHARED):
        loss, target, options = shared_loss(*case)
        heads = heads_of(case[0], case[3])
        x = numbers(ROWS, SIZE, dtype=case[3])[rows].requires_grad_()
        weight, bias = ([head[part] for head in heads] for part in (0, 1))
        own = {
            name: value[rows] if isinstance(value, Tensor) and len(value) == ROWS else value
            for name, value in options.items()
        }
        for form in ("whole", "sparse")[: target.ndim]:
            value = F.linear_loss(
                loss,
                x,
                tuple(weight) if len(heads) == 2 else weight[0],
                target[rows] if form == "whole" else SparseLabels.from_dense(target[rows]),
                bias=tuple(bias) if len(heads) == 2 else bias[0],
                memory=FEW,
                **own,
            )
            found[number, form] = [value.detach(), *torch.autograd.grad(value.sum(), [x, *weight, *bias])]
    torch.save(found, f"{address}-{rank}")
    dist.destroy_process_group()


def test_two_processes_share_the_loss_of_the_global_batch(tmp_path: Path) -> None:
    address = str(tmp_path / "address")
    run_two(shares, address)
    shares_of = [torch.load(f"{address}-{rank}", weights_only=True) for rank in (0, 1)]
    for number, case in enumerate(SHARED):
        loss, target, options = shared_loss(*case)
        heads, x = heads_of(case[0], case[3]), numbers(ROWS, SIZE, dtype=case[3]).requires_grad_()
        whole = loss(*[linear(x, *head) for head in heads], target, **options)
        parts = [head[part] for part in (0, 1) for head in heads]
        exact = [whole.detach(), *torch.autograd.grad(whole.sum(), [x, *parts])]
        apart = case[1] == "none"  # losses of rows stay with their process, and nobody averages
        for form in ("whole", "sparse")[: target.ndim]:
            one, other = (found[number, form] for found in shares_of)
            value = torch.cat([one[0], other[0]]) if apart else (one[0] + other[0]) / 2  # as DDP averages
            of_features = torch.cat([one[1], other[1]]) / (1 if apart else 2)
            means = [(a + b) / (1 if apart else 2) for a, b in zip(one[2:], other[2:], strict=True)]
            assert_same(exact, [value, of_features, *means], EXACT[case[3]])


def given(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "loss": F.smooth_topk_loss,
        "features": numbers(ROWS, SIZE),
        "weight": numbers(LABELS, SIZE),
        "target": torch.zeros(ROWS, dtype=torch.int64),
        "k": 2,
        "memory": FEW,
    }
    return plain | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weight": numbers(LABELS, SIZE + 1)}, "does not fit features of shape"),
        ({"bias": numbers(LABELS + 1)}, "bias must have shape"),
        ({"target": torch.zeros(ROWS + 1, dtype=torch.int64)}, "allowed are class indices of shape"),
        ({"target": torch.arange(ROWS) + 9}, r"target\[8\] is 17: allowed are 0..16"),
        ({"sample_weight": torch.linspace(1, -0.1, ROWS)}, r"sample_weight\[11\]"),
        ({"memory": 0}, "memory must be a whole number of at least 1"),
        ({"sigma": 1}, "smooth_topk_loss has no option 'sigma'"),
        ({"loss": torch.nn.functional.relu}, "takes a loss of shortlist.functional"),
        ({"weight": (numbers(LABELS, SIZE),) * 2}, "one head"),
        ({"loss": F.average_k_loss}, "weight must be a pair"),
        ({"sample_weight": torch.ones(ROWS, requires_grad=True)}, "gives no gradient of sample_weight"),
        ({"features": numbers(ROWS, SIZE, dtype=torch.float32)}, "they must be of one type"),
        ({"bias": numbers(LABELS, dtype=torch.float32)}, "float64 and bias torch.float32: they must be of one type"),
        ({"loss": "lml"}, "takes a loss of shortlist.functional, got 'lml'"),
        ({"loss": partial(F.smooth_topk_loss, tau=2.0)}, "takes a loss of shortlist.functional"),
        ({"loss": torch.nn.functional.cross_entropy}, "takes a loss of shortlist.functional"),
        (
            {"loss": F.average_k_loss, "weight": (numbers(LABELS, SIZE),) * 2, "bias": (numbers(LABELS),) * 3},
            "bias a pair or None",
        ),
    ],
)
def test_says_what_is_wrong_in_terms_of_the_whole_batch(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ShortlistError, match=words):
        F.linear_loss(**given(**changes))


def test_a_bad_label_is_named_by_its_place_in_the_whole_matrix() -> None:
    target = torch.zeros(ROWS, LABELS, dtype=torch.int64)
    target[9, 4] = 7
    with pytest.raises(ShortlistError, match=r"target\[9, 4\] is 7"):
        F.linear_loss(F.binary_loss, numbers(ROWS, SIZE), numbers(LABELS, SIZE), target, memory=FEW)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("smooth_topk", {"reduction": "median"}),
        ("two_way", {"reduction": "none"}),
        ("two_way_class", {"reduction": "none"}),
        ("average_k", {"reduction": "none"}),
        ("average_k", {"k": LABELS + 1}),
        ("average_k", {"alpha": -1.0}),
        ("expected_positive", {"k": 0}),
        ("expected_positive", {"beta": -1.0}),
        ("smooth_topk", {"sample_weight": torch.ones(())}),
        ("smooth_topk", {"sample_weight": torch.ones(ROWS + 3)}),
    ],
)
def test_refuses_what_the_loss_of_whole_scores_refuses(name: str, options: dict[str, Any]) -> None:
    loss, own = ALL[name]
    x, weight = numbers(ROWS, SIZE), numbers(LABELS, SIZE)
    heads = 2 if loss is F.average_k_loss else 1
    with pytest.raises(ShortlistError) as whole:
        loss(*[linear(x, weight)] * heads, target_of(name), **own | options)
    with pytest.raises(ShortlistError, match=re.escape(str(whole.value))):
        F.linear_loss(loss, x, (weight, weight) if heads == 2 else weight, target_of(name), **own | options)


def test_a_k_for_more_rows_than_there_are_is_refused() -> None:
    ks = torch.ones(3, dtype=torch.long)
    with pytest.raises(ShortlistError, match=r"one entry per row, shape \(2,\), got \(3,\)"):
        F.linear_loss(F.lml_loss, numbers(2, SIZE), numbers(LABELS, SIZE), torch.zeros_like(ks[:2]), k=ks)


@pytest.mark.parametrize("shape", [(SIZE,), (3, 0)])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_one_row_without_a_batch_and_rows_without_features(shape: tuple[int, ...], reduction: str) -> None:
    x, weight, bias = numbers(*shape), numbers(LABELS, shape[-1]), numbers(LABELS)
    target = torch.zeros(shape[:-1], dtype=torch.long)
    whole = F.assume_negative_loss(linear(x, weight, bias), target, reduction=reduction)
    blocks = F.linear_loss(F.assume_negative_loss, x, weight, target, bias=bias, reduction=reduction)
    assert_same([whole], [blocks], 1e-12)


def test_a_masked_label_has_no_gradient_in_a_row_with_a_nan() -> None:
    mask = torch.ones(ROWS, LABELS, dtype=torch.bool)
    mask[:, 2] = False
    x, weight, bias = numbers(ROWS, SIZE), numbers(LABELS, SIZE), numbers(LABELS)
    bias[5] = torch.nan
    bias.requires_grad_()
    F.linear_loss(
        F.average_k_loss, x, (weight, weight), target_of("average_k"), bias=(numbers(LABELS), bias), k=2, mask=mask
    ).backward()
    assert bias.grad is not None
    assert bias.grad.isnan().tolist() == [label != 2 for label in range(LABELS)]


def test_a_nan_of_the_sets_is_told_even_where_they_weigh_nothing() -> None:
    x, weight, bias = numbers(ROWS, SIZE), numbers(LABELS, SIZE), numbers(LABELS)
    bias[5] = torch.nan
    target = torch.zeros(ROWS, dtype=torch.long)
    biases = (bias, numbers(LABELS))
    assert F.linear_loss(F.average_k_loss, x, (weight, weight), target, bias=biases, k=2, alpha=0).isnan()


@pytest.mark.parametrize(("rows", "labels", "scale"), [(4096, 10, 20.0), (512, 3000, 0.1)])
def test_gradients_in_float16_neither_overflow_nor_vanish(rows: int, labels: int, scale: float) -> None:
    x, weight = (numbers(rows, 3) * scale).half(), (numbers(labels, 3, seed=1) * 0.1).half().requires_grad_()
    target = torch.arange(rows) % 3
    (F.linear_loss(F.lml_loss, x, weight, target, k=1).float() * 256).backward()
    exact = weight.detach().double().requires_grad_()
    (F.lml_loss(linear(x.double(), exact), target, k=1) * 256).backward()
    torch.testing.assert_close(weight.grad.double()[3:], exact.grad[3:], rtol=0.01, atol=1e-4)  # type: ignore[index, union-attr]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_backward_computes_in_the_type_of_its_forward(reduction: str) -> None:
    x, weight = numbers(ROWS, SIZE, dtype=torch.bfloat16), numbers(LABELS, SIZE, dtype=torch.float32).requires_grad_()
    target = target_of("assume_negative")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        blocks = F.linear_loss(F.assume_negative_loss, x, weight, target, reduction=reduction)
        whole = F.assume_negative_loss(linear(x, weight), target, reduction=reduction)
    found = torch.autograd.grad(blocks.sum(), weight, create_graph=True)[0]
    torch.testing.assert_close(found, torch.autograd.grad(whole.sum(), weight)[0])


def test_losses_of_rows_keep_no_graph_of_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    add = Head.add

    def noting(self: Head, *args: Any) -> None:
        seen.append(torch.is_grad_enabled())
        add(self, *args)

    monkeypatch.setattr(Head, "add", noting)
    weight = numbers(LABELS, SIZE).requires_grad_()
    options = {"reduction": "none", "memory": FEW}
    F.linear_loss(F.binary_loss, numbers(ROWS, SIZE), weight, target_of("binary"), **options).sum().backward()
    assert seen == [False] * 4


def test_inference_mode_and_no_grad_gather_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Head, "add")
    weight = numbers(LABELS, SIZE).requires_grad_()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert F.linear_loss(F.binary_loss, numbers(ROWS, SIZE), weight, target_of("binary")) > 0


def test_every_loss_is_tried_here() -> None:
    losses = {getattr(F, name) for name in F.__all__ if name.endswith("_loss")} - {F.linear_loss}
    assert losses == {loss for loss, _ in ALL.values()}


def test_blocks_have_the_memory_of_their_gradients_again(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels.info()["in use"] == "torch":
        pytest.skip("no native kernels here")
    seen = []
    add = Head.add

    def noting(self: Head, gradient: Tensor, *args: Any) -> None:
        seen.append(gradient.data_ptr())
        add(self, gradient, *args)

    monkeypatch.setattr(Head, "add", noting)
    F.linear_loss(
        F.binary_loss, numbers(ROWS, SIZE), numbers(LABELS, SIZE).requires_grad_(), target_of("binary"), memory=FEW
    )
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_no_labels_at_all_are_what_they_are_of_whole_scores() -> None:
    x, weight = numbers(ROWS, SIZE), numbers(0, SIZE)
    target = torch.zeros(ROWS, 0, dtype=torch.int8)
    assert F.linear_loss(F.binary_loss, x, weight, target) == F.binary_loss(linear(x, weight), target) == 0


def own_mean_loss(scores: Tensor, target: Tensor, *, reduction: str = "mean", sync: bool | None = None) -> Tensor:
    return (scores.square() * (target == 1)).mean()


def test_a_loss_that_forms_its_own_mean_is_refused() -> None:
    with pytest.raises(ShortlistError, match="own_mean_loss forms a mean of its own"):
        F.linear_loss(own_mean_loss, numbers(ROWS, SIZE), numbers(LABELS, SIZE), target_of("binary"))
