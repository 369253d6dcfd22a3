"""The two-head average-K loss (seed 004, eq. 15): candidates over the whole batch."""

import pytest
import torch

import shortlist.functional as F
from shortlist import kernels
from shortlist.functional.average_k import largest_entries
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient
from tests.kernels_here import PATHS

SETS, PROPOSALS = some_scores(9, 6), some_scores(9, 6, seed=4)
TARGET = some_target("average_k", 9, 6)


@pytest.mark.parametrize("k", [1, 1.05, 1.5, 2, 2.3, 5.99, 6])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 5.0])
def test_both_heads_have_the_gradient_of_the_formula(k: float, alpha: float, kernel: str) -> None:
    both = torch.stack((SETS, PROPOSALS))
    actual = value_and_gradient(lambda heads: F.average_k_loss(*heads, TARGET, k, alpha=alpha), both)
    exact = value_and_gradient(lambda heads: oracles.average_k(*heads, TARGET, k, alpha=alpha), both)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-16)


def test_with_alpha_0_it_is_cross_entropy_and_the_positive_term(path: str) -> None:
    target = TARGET.clamp(min=0)
    loss = F.average_k_loss(SETS, PROPOSALS, target, 3, alpha=0.0)
    positive = -torch.nn.functional.logsigmoid(SETS[torch.arange(9), target]).mean()
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(PROPOSALS, target) + positive)


def test_equal_proposals_are_chosen_in_row_then_label_order(path: str) -> None:
    sets = torch.zeros(4, 5, dtype=torch.float64)
    _, gradient = value_and_gradient(lambda s: F.average_k_loss(s, sets, torch.tensor([0, 1, 4, 2]), 2.5), sets)
    pulled_up = (gradient < 0).int()  # own labels, and floor(1.5 * 4 + 0.5) = 6 candidates
    assert pulled_up.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]


def test_candidates_are_shared_out_by_ambiguity_not_by_row(path: str) -> None:
    proposals = torch.tensor([[9.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.9, -9.0]])
    target = torch.tensor([0, 0])
    _, gradient = value_and_gradient(lambda s: F.average_k_loss(s, proposals, target, 2), torch.zeros(2, 4))
    assert (gradient < 0).tolist() == [[True, False, False, False], [True, True, True, False]]


def test_a_row_of_weight_0_is_out_of_the_choice_too(path: str) -> None:
    weight = torch.ones(9, dtype=torch.float64)
    weight[2] = 0
    kept = weight > 0
    loss = F.average_k_loss(SETS, PROPOSALS, TARGET, 2.3, sample_weight=weight)
    torch.testing.assert_close(loss, F.average_k_loss(SETS[kept], PROPOSALS[kept], TARGET[kept], 2.3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_selection_takes_exactly_the_largest_entries(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(40, 25, dtype=torch.float64, generator=generator).to(dtype)
    values = torch.where(values > 1, (values * 2).round() / 2, values)  # with ties
    values[0, :5] = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), 1e-42])
    eligible = torch.rand(40, 25, generator=generator) > 0.2
    order = sorted(eligible.flatten().nonzero().flatten().tolist(), key=lambda i: (-values.flatten()[i].item(), i))
    for count in (0, 1, 50, 100, 333, len(order)):
        chosen = largest_entries(values, eligible, torch.tensor(count), 1)
        assert chosen.flatten().nonzero().flatten().tolist() == sorted(order[:count])


@pytest.mark.parametrize(
    ("k", "alpha", "message"),
    [(0.5, 1.0, "k must be between 1 and 6"), (7, 1.0, "k must be between 1 and 6"), (2, -1.0, "alpha must be")],
)
def test_options_out_of_range_are_refused(k: float, alpha: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.average_k_loss(SETS, PROPOSALS, TARGET, k, alpha=alpha)


def test_heads_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape, got \(9, 6\) and \(9, 5\)"):
        F.average_k_loss(SETS, PROPOSALS[:, :5], TARGET, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "labels", "k"), [(40, 900, 1.5), (40, 900, 300), (200, 150, 5)])
def test_candidates_of_large_batches_are_the_twins(rows: int, labels: int, k: float, dtype: torch.dtype) -> None:
    """Too many to list: the kernel guesses a bar from a sample first. Proposals are rounded, so that there are ties."""
    sets = some_scores(rows, labels, dtype=dtype)
    proposals = (some_scores(rows, labels, dtype=dtype, seed=4) * 4).round() / 4
    proposals = proposals.sort(-1).values.roll(3, 0)  # rows hold the same values: equal sums whatever the order
    target = some_target("average_k", rows, labels)
    results = []
    for use in PATHS:
        with kernels.use(use):
            results.append(value_and_gradient(lambda s: F.average_k_loss(s, proposals, target, k), sets))
    for value, gradient in results[1:]:
        torch.testing.assert_close(value, results[0][0], rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0)
        assert torch.equal(gradient < 0, results[0][1] < 0)  # own labels and candidates


def test_proposals_of_minus_infinity_come_last(path: str) -> None:
    proposals = torch.tensor([[0.0, -float("inf"), -float("inf")], [0.0, 1.0, -float("inf")]])
    target, sets = torch.tensor([0, 0]), torch.zeros(2, 3)
    for k, chosen in ((1.5, [[1, 0, 0], [1, 1, 0]]), (2.0, [[1, 1, 0], [1, 1, 0]]), (2.5, [[1, 1, 1], [1, 1, 0]])):
        _, gradient = value_and_gradient(lambda s, k=k: F.average_k_loss(s, proposals, target, k), sets)
        assert (gradient < 0).int().tolist() == chosen


def test_compiles_to_one_graph_without_gradients(path: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(F.average_k_loss, fullgraph=True, backend="aot_eager")
    expected = F.average_k_loss(SETS, PROPOSALS, TARGET, 2)
    torch.testing.assert_close(compiled(SETS, PROPOSALS, TARGET, 2), expected)
