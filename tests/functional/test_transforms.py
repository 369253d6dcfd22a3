"""Every function under gradcheck, double backward, torch.func.vmap and torch.compile."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

import shortlist.functional as F
from shortlist import kernels
from tests.functional.harness import _noised, random_scores

ROWS, LABELS, K = 4, 6, 2
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 0]], dtype=torch.bool)
INDEX = torch.tensor([1, 4, -1, 0])
MATRIX = torch.tensor([[0, 1, 0, 0, -1, 0], [1, 0, 0, 0, 1, 0], [0, 0, 0, -1, 0, 0], [0, 1, 0, 1, 0, 0]])
K_PER_ROW = torch.tensor([1, 2, 3, 5])


@dataclass(frozen=True)
class Case:
    """A function of scores (rows, labels), and of one tensor per row that goes with them (a target, a k)."""

    call: Callable[[Tensor, Tensor], Tensor]
    other: Tensor = INDEX

    def __call__(self, scores: Tensor) -> Tensor:
        return self.call(scores, self.other)


CASES = {
    "lml": Case(lambda s, _: F.lml(s, K)),
    "lml, temperature": Case(lambda s, _: F.lml(s, K, temperature=0.5)),
    "lml, mask": Case(lambda s, m: F.lml(s, K, mask=m), MASK),
    "lml, k per row": Case(lambda s, k: F.lml(s, k), K_PER_ROW),
    "log_subset_sum": Case(lambda s, _: F.log_subset_sum(s, K)),
    "log_subset_sum, mask": Case(lambda s, m: F.log_subset_sum(s, K, mask=m), MASK),
    "subset_marginals": Case(lambda s, _: F.subset_marginals(s, K)),
    "lml_loss": Case(lambda s, t: F.lml_loss(s, t, K, reduction="none")),
    "lml_loss, matrix": Case(lambda s, t: F.lml_loss(s, t, K, temperature=2.0, reduction="none"), MATRIX),
    "smooth_topk_loss": Case(lambda s, t: F.smooth_topk_loss(s, t, K, tau=0.7, reduction="none")),
    "smooth_topk_loss, k=1": Case(lambda s, t: F.smooth_topk_loss(s, t, 1, alpha=0.0, reduction="none")),
    "topk_hinge_loss": Case(lambda s, t: F.topk_hinge_loss(s, t, K, reduction="none")),
    "truncated_entropy_loss": Case(lambda s, t: F.truncated_entropy_loss(s, t, K, reduction="none")),
    "truncated_entropy_loss, matrix": Case(lambda s, t: F.truncated_entropy_loss(s, t, 3, reduction="none"), MATRIX),
    "noised_topk_loss": Case(lambda s, t: _noised(s, t, K, reduction="none")),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def scores(dtype: torch.dtype = torch.float64) -> Tensor:
    """Distinct scores, well away from the kinks of the piecewise losses."""
    values = torch.arange(ROWS * LABELS, dtype=torch.float64) * 7 % 23
    return (values.reshape(ROWS, LABELS) / 6 - 2).to(dtype)


@every_case
def test_gradcheck(case: Case, path: str) -> None:
    assert torch.autograd.gradcheck(case, (scores().requires_grad_(),), atol=1e-8)


@every_case
def test_gradgradcheck(case: Case, path: str) -> None:
    assert torch.autograd.gradgradcheck(case, (scores().requires_grad_(),), atol=1e-7, fast_mode=True)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_double_backward_through_a_reduced_loss(reduction: str, path: str) -> None:
    """As gradient penalties use it."""
    leaf = scores().requires_grad_()
    for function in (F.smooth_topk_loss, F.lml_loss, F.truncated_entropy_loss):
        reduced = partial(function, target=INDEX, k=K, reduction=reduction)
        assert torch.autograd.gradgradcheck(reduced, (leaf,), atol=1e-7, fast_mode=True)


@every_case
def test_vmap_over_rows_is_the_batch(case: Case, path: str) -> None:
    mapped = vmap(case.call, randomness="different")(scores(), case.other)
    torch.testing.assert_close(mapped, case(scores()), rtol=1e-12, atol=1e-14)


@every_case
def test_vmap_over_an_inner_dimension(case: Case, path: str) -> None:
    """Scores (labels, batch, rows), the batch in the middle."""
    stack = torch.stack([scores(), scores().flip(0) * 0.5, scores() - 1])
    mapped = vmap(case, in_dims=1, randomness="different")(stack.transpose(0, 1))
    torch.testing.assert_close(mapped, torch.stack([case(s) for s in stack]), rtol=1e-12, atol=1e-14)


@every_case
def test_vmap_of_grad_gives_the_gradient_of_every_row(case: Case, path: str) -> None:
    per_row = vmap(grad(lambda s, o: (case.call(s, o) ** 2).sum()), randomness="different")(scores(), case.other)
    leaf = scores().requires_grad_()
    (batch,) = torch.autograd.grad((case(leaf) ** 2).sum(), leaf)
    torch.testing.assert_close(per_row, batch, rtol=1e-10, atol=1e-13)


@every_case
def test_jacrev_is_the_jacobian(case: Case, path: str) -> None:
    if case.call is CASES["noised_topk_loss"].call:
        pytest.skip("jacrev maps over the outputs: randomness is drawn once, outside")
    expected = torch.autograd.functional.jacobian(case, scores())
    torch.testing.assert_close(jacrev(case)(scores()), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["lml", "smooth_topk_loss", "lml_loss"])
def test_jacrev_of_jacrev_is_the_hessian(name: str, path: str) -> None:
    """As the guide says, in place of torch.func.hessian, which wants forward-mode derivatives."""
    expected = torch.autograd.functional.hessian(lambda s: CASES[name](s).sum(), scores())
    found = jacrev(jacrev(lambda s: CASES[name](s).sum()))(scores())
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in CASES if "," not in name])  # one per function: tracing is slow
def test_compiles_to_one_graph(name: str, path: str) -> None:
    """aot_eager: the whole of tracing, autograd included, without a C++ compiler behind it."""
    torch._dynamo.reset()
    case = CASES[name]
    compiled = torch.compile(case.call, fullgraph=True, backend="aot_eager")
    leaf, twin = scores().requires_grad_(), scores().requires_grad_()
    value, expected = compiled(leaf, case.other), case(twin)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-13)
    (gradient,) = torch.autograd.grad((value**2).sum(), leaf)
    (slope,) = torch.autograd.grad((expected**2).sum(), twin)
    torch.testing.assert_close(gradient, slope, rtol=1e-10, atol=1e-13)


def test_compiles_with_the_default_backend() -> None:
    """Inductor, through a model and back."""
    torch._dynamo.reset()
    weight = torch.randn(5, LABELS, generator=torch.Generator().manual_seed(0))

    def step(x: Tensor) -> Tensor:
        s = x @ weight
        return F.smooth_topk_loss(s, INDEX, K) + F.lml_loss(s, INDEX, K) + (F.lml(s, K) ** 2).sum()

    x = random_scores(ROWS, 5)
    leaf, twin = x.clone().requires_grad_(), x.clone().requires_grad_()
    loss = torch.compile(step, fullgraph=True)(leaf)
    loss.backward()
    step(twin).backward()
    torch.testing.assert_close(loss, step(x), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(leaf.grad, twin.grad, rtol=1e-4, atol=1e-6)


def test_compiles_once_for_batches_of_any_size() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda s, t: F.smooth_topk_loss(s, t, K), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    for rows in (4, 7, 12):
        s, t = random_scores(rows, LABELS), torch.arange(rows) % LABELS
        torch.testing.assert_close(compiled(s.requires_grad_(), t), F.smooth_topk_loss(s, t, K))


@pytest.mark.parametrize("loss", [F.asymmetric_loss, partial(F.partial_selective_loss, clip=0.05)])
def test_a_twin_compiles_for_batches_of_another_size(loss: Callable[..., Tensor]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    with kernels.use("torch"):
        for rows in (4, 2):
            s, t = random_scores(rows, LABELS).requires_grad_(), MATRIX[:rows]
            value = compiled(s, t)
            torch.testing.assert_close(value, loss(s, t))
            torch.testing.assert_close(*(torch.autograd.grad(one, s)[0] for one in (value, loss(s, t))))


@pytest.mark.parametrize("name", [name for name in CASES if "," not in name])
def test_compiles_without_gradients(name: str, path: str) -> None:
    """As validation does."""
    torch._dynamo.reset()
    case = CASES[name]
    value = torch.compile(case.call, fullgraph=True, backend="aot_eager")(scores(), case.other)
    torch.testing.assert_close(value, case(scores()), rtol=1e-10, atol=1e-13)
