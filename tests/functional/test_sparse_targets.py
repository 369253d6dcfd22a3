"""Label matrices of which some entries are stored: every loss says what it says of the whole matrix."""

from typing import Any

import pytest
import torch
from scipy import sparse
from torch import Tensor

import shortlist.functional as F
from shortlist import LabelSets, kernels
from shortlist.errors import ShortlistError
from shortlist.labels import SparseLabels
from tests.functional.harness import CASES, FLOATS, some_scores, some_target, value_and_gradient

SHAPES = [(7, 6), (3, 70), (40, 131), (3, 5000)]  # around vectors, blocks of columns and chunks of rows
OF_MATRIX = [name for name, case in CASES.items() if {"matrix", "single"} & set(case.targets)]
every_loss = pytest.mark.parametrize("name", OF_MATRIX)


def target_of(name: str, rows: int, labels: int, rest: int = 0) -> Tensor:
    """A matrix of which most entries are ``rest``; with rows and columns that are all 1, 0 and -1 where it is small."""
    if "single" in CASES[name].targets:
        index = some_target(name, rows, labels, kind="index")
        one = torch.arange(labels) == index.unsqueeze(-1)
        return torch.where(one, 1, torch.where(index < 0, -1, 0).unsqueeze(-1))
    if labels < 10:
        return some_target(name, rows, labels, kind="matrix")
    generator = torch.Generator().manual_seed(rows)
    target = torch.full((rows, labels), rest)
    for value in (-1, 0, 1, 1):
        target.scatter_(1, torch.randint(labels, (rows, 2), generator=generator), value)
    target[1, 2::3], target[2] = 1, rest
    return target


def stored(target: Tensor, rest: int = 0) -> SparseLabels:
    rows, labels = (target != rest).nonzero(as_tuple=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(rows, minlength=len(target)).cumsum(0)])
    values = torch.cat([target[rows, labels], torch.tensor([rest])])
    return SparseLabels(offsets, labels, values, target.shape[1])


@every_loss
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_and_gradients_are_those_of_the_whole_matrix_to_the_bit(
    name: str, dtype: torch.dtype, kernel: str
) -> None:
    call = CASES[name].call
    for rows, labels in SHAPES:
        scores = some_scores(rows, labels, dtype=dtype, scale=3.0)
        weight = torch.rand(rows, dtype=dtype, generator=torch.Generator().manual_seed(2))
        for rest in (0, -1):
            target = target_of(name, rows, labels, rest).to(torch.int8)
            expected = value_and_gradient(call, scores, target, sample_weight=weight)
            found = value_and_gradient(call, scores, stored(target, rest), sample_weight=weight)
            assert all(map(torch.equal, found, expected))


@every_loss
def test_every_form_is_taken(name: str, path: str) -> None:
    call, scores = CASES[name].call, some_scores(7, 6)
    target = target_of(name, 7, 6)
    matrix = sparse.csr_array(target.numpy())
    narrow = stored(target)
    narrow = SparseLabels(narrow.offsets, narrow.indices.int(), narrow.values, 6)
    expected = value_and_gradient(call, scores, target)
    forms = [
        matrix, sparse.coo_matrix(target.numpy().astype(float)), LabelSets.from_sparse(matrix), narrow,
        target.to_sparse_csr(),
    ]  # fmt: skip
    for form in forms:
        assert all(map(torch.equal, value_and_gradient(call, scores, form), expected))


@every_loss
def test_reductions_masks_and_half_precision(name: str, path: str) -> None:
    case, scores, target = CASES[name], some_scores(40, 131), target_of(name, 40, 131)
    mask = torch.rand(40, 131, generator=torch.Generator().manual_seed(1)) > 0.1
    for options in [*({"reduction": reduction} for reduction in case.reductions), {"mask": mask}, {"mask": mask[0]}]:
        expected = value_and_gradient(case.call, scores, target, **options)
        assert all(map(torch.equal, value_and_gradient(case.call, scores, stored(target), **options), expected))
    assert torch.equal(case.call(scores.bfloat16(), stored(target)), case.call(scores.bfloat16(), target))


@pytest.mark.parametrize("name", ["binary", "two_way", "lml", "assume_negative"])  # one of each kind
def test_compiles_to_one_graph(name: str) -> None:
    call, scores, labels = CASES[name].call, some_scores(7, 6), stored(target_of(name, 7, 6))
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    expected = value_and_gradient(call, scores, labels)
    torch.testing.assert_close(value_and_gradient(compiled, scores, labels), expected, rtol=1e-12, atol=1e-15)


@every_loss
def test_transforms_and_gradients_of_gradients(name: str, path: str) -> None:
    call, target = CASES[name].call, target_of(name, 7, 6)

    def derivatives(labels: Any) -> list[Tensor]:
        scores = some_scores(7, 6, seed=3).requires_grad_()
        (gradient,) = torch.autograd.grad(call(scores, labels), scores, create_graph=True)
        found = [torch.func.grad(call)(scores.detach(), labels), gradient.detach()]
        if gradient.requires_grad:  # not of losses that are piecewise linear
            found += torch.autograd.grad((gradient * some_scores(7, 6, seed=4)).sum(), scores)
        return found

    assert all(map(torch.equal, derivatives(stored(target)), derivatives(target)))


@every_loss
@pytest.mark.parametrize("memory", [800, 10**6])
def test_on_a_linear_layer_by_blocks(name: str, memory: int) -> None:
    functions: dict[str, tuple[Any, dict[str, Any]]] = {
        "lml": (F.lml_loss, {"k": 3}),
        "truncated_entropy": (F.truncated_entropy_loss, {"k": 3}),
        "two_way_sample": (F.two_way_loss, {"way": "sample"}),
        "warp_exact": (F.warp_loss, {"exact": True}),
        "expected_positive": (F.expected_positive_loss, {"k": 1.7}),
        "average_k": (F.average_k_loss, {"k": 2.3}),
    }
    loss, options = functions.get(name) or (getattr(F, f"{name}_loss"), {})
    target = target_of(name, 40, 31)
    for reduction in CASES[name].reductions:
        found = []
        for labels in (target, stored(target)):
            x, w = some_scores(40, 5).requires_grad_(), some_scores(31, 5, seed=4).requires_grad_()
            weight = (w, -w) if loss is F.average_k_loss else w
            value = F.linear_loss(loss, x, weight, labels, memory=memory, reduction=reduction, **options)
            found.append([value, *torch.autograd.grad(value.sum(), [x, w])])
        torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-14)


def test_a_kernel_makes_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernels.info()["native module"]:
        pytest.skip("no native kernels here")
    monkeypatch.setattr(SparseLabels, "to_dense", lambda self: pytest.fail("the matrix was made"))
    for name in OF_MATRIX:
        value_and_gradient(CASES[name].call, some_scores(7, 6), stored(target_of(name, 7, 6)))


def test_whatever_offsets_and_labels_say_a_kernel_stays_inside_its_memory() -> None:
    """Only a program that made them by hand, unchecked, gets here."""
    offsets, indices = torch.tensor([-5, 3, 10**9]), torch.tensor([10**9, -7, 2, 1, 1])
    labels = SparseLabels.made(offsets, indices, torch.ones(6, dtype=torch.int8), 4)
    for loss in (F.binary_loss, F.two_way_loss, F.lsep_loss, F.rml_loss):
        assert loss(some_scores(2, 4), labels).shape == ()
    assert F.lml_loss(some_scores(2, 4), labels, k=2).shape == ()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (sparse.csr_array([[0, 2], [0, 0]]), r"matrix\[0, 1\] is 2: allowed are"),
        (sparse.csr_array([[0, 1]]), r"sparse target of shape \(1, 2\) does not fit scores of shape \(2, 2\)"),
        (LabelSets.from_lists([[0], [1]], 3), r"sparse target of shape \(2, 3\) does not fit"),
        (torch.tensor([[0.0, 0.5], [0, 0]]).to_sparse_csr(), r"target\[0, 1\] is 0.5: a label matrix holds"),
        (torch.eye(2).to_sparse(), r"target must be a dense tensor, or a sparse one of layout torch.sparse_csr"),
        (stored(torch.eye(2).long()).to("meta"), "target is on device meta, the scores are on cpu"),
        ([[0], [1]], "target must be a torch.Tensor"),
    ],
)
def test_says_what_is_wrong(target: Any, words: str) -> None:
    for loss in (F.binary_loss, F.two_way_loss):
        with pytest.raises(ShortlistError, match=words):
            loss(torch.zeros(2, 2), target)


def test_losses_of_one_label_say_so() -> None:
    with pytest.raises(ShortlistError, match="row 1 of target holds 2 present labels"):
        F.assume_negative_loss(torch.zeros(2, 3), LabelSets.from_lists([[0], [1, 2]], 3))
    with pytest.raises(ShortlistError, match=r"target must be a torch\.Tensor of class indices, got LabelSets"):
        F.smooth_topk_loss(torch.zeros(2, 3), LabelSets.from_lists([[0], [1]], 3), k=1)  # type: ignore[arg-type]
    with pytest.raises(ShortlistError, match="a label matrix takes sample_weight"):
        F.lml_loss(torch.zeros(1, 3), LabelSets.from_lists([[0]], 3), k=1, weight=torch.ones(3))
