"""The likelihood of observed labels under the LML projection (Algorithm 2 of seed 000)."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    LOSSES,
    assert_gradients,
    assert_losses,
    exactly,
    present_labels,
    random_matrix,
    random_scores,
    random_target,
    value_and_gradient,
)

LOSS = LOSSES["lml_loss"]


def check(scores: Tensor, target: Tensor, k: int, mask: Tensor | None = None) -> None:
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, k, mask=mask, reduction="none")
    exact = exactly(LOSS, scores, target, k, mask)
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 1), (7, 3), (7, 6), (150, 5)])
def test_equals_the_likelihood_of_an_index(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    check(random_scores(4, n, scale=scale).to(dtype), random_target(4, n), k)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 10.0, 1e3])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (9, 3), (9, 8)])
def test_equals_the_likelihood_of_a_label_matrix(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(5, n, scale=scale).to(dtype), random_matrix(5, n)
    check(scores, target, k)
    check(scores, target.to(dtype), k)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_saturated_row_has_its_true_loss(dtype: torch.dtype, kernel: str) -> None:
    """A rule that watches |sum y - k| gives 25.80 here."""
    scores = torch.tensor([[40.0, 0.0, 0.0]], dtype=dtype)
    assert float(F.lml_loss(scores, torch.tensor([2]), 1)) == pytest.approx(20.35, abs=5e-3)
    for target in range(3):
        check(scores, torch.tensor([target]), 1)
        check(scores, torch.tensor([target]), 2)


@pytest.mark.parametrize("gap", [1.0, 30.0, 99.0, 101.0, 500.0, 2e4])
@pytest.mark.parametrize("dtype", FLOATS)
def test_is_exact_while_a_gap_grows(gap: float, dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(2, 10).to(dtype)
    scores[:, :3] += gap
    check(scores, torch.tensor([1, 7]), 3)


def test_index_and_one_hot_row_say_the_same(kernel: str) -> None:
    scores, target = random_scores(6, 9), random_target(6, 9)
    by_index = value_and_gradient(F.lml_loss, scores, target, 3, reduction="none")
    by_matrix = value_and_gradient(F.lml_loss, scores, torch.nn.functional.one_hot(target, 9), 3, reduction="none")
    torch.testing.assert_close(by_index, by_matrix, rtol=1e-6, atol=1e-7)


def test_is_the_log_of_the_layer(kernel: str) -> None:
    scores, target = random_scores(6, 9, dtype=torch.float64), random_matrix(6, 9)
    for temperature in (0.5, 1.0, 4.0):
        ours = value_and_gradient(F.lml_loss, scores, target, 3, temperature=temperature, reduction="none")
        log = value_and_gradient(
            lambda s, t=temperature: -(F.lml(s, 3, temperature=t).log() * (target == 1)).sum(-1), scores
        )
        torch.testing.assert_close(ours, log, rtol=1e-10, atol=1e-12)


def test_temperature_reaches_the_gradient(kernel: str) -> None:
    scores, target = random_scores(4, 9, dtype=torch.float64), random_target(4, 9)
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 3, temperature=0.3, reduction="none")
    exact = oracles.over_rows(
        lambda row, y, usable: oracles.lml(row, 3, usable, 0.3).loss(y), scores, present_labels(target)
    )
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


def test_unknown_and_absent_labels_add_nothing(kernel: str) -> None:
    scores = random_scores(2, 5)
    unknown, absent = torch.tensor([[1, -1, 0, -1, 1]] * 2), torch.tensor([[1, 0, 0, 0, 1]] * 2)
    assert torch.equal(F.lml_loss(scores, unknown, 2), F.lml_loss(scores, absent, 2))


def test_a_mask_takes_labels_out_of_the_row(kernel: str) -> None:
    scores, target = random_scores(6, 9, dtype=torch.float64), random_target(6, 9)
    mask = (random_scores(6, 9, seed=3) > -0.5) | (torch.nn.functional.one_hot(target, 9) == 1)
    check(scores, target, 3, mask)
    check(scores.float(), target, 3, mask)


@pytest.mark.parametrize("kind", ["index", "matrix"])
def test_a_row_with_no_more_usable_labels_than_k_costs_nothing(kind: str, kernel: str) -> None:
    scores = random_scores(2, 6)
    target = torch.tensor([1, 1]) if kind == "index" else torch.tensor([[0, 1, 1, 0, 0, 0]] * 2)
    mask = torch.tensor([[True] * 3 + [False] * 3, [True] * 6])
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 3, mask=mask, reduction="none")
    assert loss[0] == 0
    assert loss[1] > 0
    assert not gradient[0].any()
    assert bool(gradient.isfinite().all())


def test_k_may_differ_between_rows(kernel: str) -> None:
    scores, target, k = random_scores(4, 8, dtype=torch.float64), random_target(4, 8), torch.tensor([1, 3, 7, 3])
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, k, reduction="none")
    for i in range(4):
        exact = exactly(LOSS, scores[i : i + 1], target[i : i + 1], int(k[i]))
        assert_losses(loss[i : i + 1], exact[0])
        assert_gradients(gradient[i : i + 1], exact[1])


def test_a_hundred_thousand_labels_keep_the_gradient_of_the_label(kernel: str) -> None:
    scores, target = random_scores(1, 100_000, scale=2.0), torch.tensor([17])
    scores[0, 17] = -40.0
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 5)
    assert float(loss) == pytest.approx(-float(F.lml(scores.double(), 5)[0, 17].log()), rel=1e-5)
    assert float(gradient[0, 17]) == pytest.approx(-1.0, abs=1e-4)


# ---- proposition 2 and corollary 2 of seed 000: what the likelihood of observed labels does to the others


TRUTH = torch.tensor([[0, 1, 0, 0, 1, 0, 1, 0], [1, 1, 0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 0, 1, 0, 0]])  # three of eight


def observed_labels() -> tuple[Tensor, Tensor]:
    """Inputs, numbered, and for each the labels that were observed: one or two of its three, at random."""
    generator = torch.Generator().manual_seed(0)
    rows, seen = [], []
    for row, truth in enumerate(TRUTH):
        labels = truth.nonzero().flatten()
        for _ in range(20):
            count = int(torch.randint(1, 3, (), generator=generator))
            chosen = labels[torch.randperm(3, generator=generator)[:count]]
            rows.append(row)
            seen.append(torch.zeros(8, dtype=torch.int64).index_fill(0, chosen, 1))
    return torch.tensor(rows), torch.stack(seen)


def trained_scores() -> Tensor:
    rows, seen = observed_labels()
    scores = torch.zeros(3, 8, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.2)
    for _ in range(300):
        optimizer.zero_grad()
        F.lml_loss(scores[rows], seen, 3).backward()
        optimizer.step()
    return scores.detach()


def test_the_likelihood_of_observed_labels_raises_that_of_all_true_ones() -> None:
    """Proposition 2: unobserved true labels become likely and false ones unlikely; nobody said which is which."""
    chances = F.lml(trained_scores(), 3)
    assert bool((chances[TRUTH == 1] > 0.95).all())
    assert bool((chances[TRUTH == 0] < 0.05).all())


def test_on_the_polytope_only_the_truth_has_the_whole_likelihood_and_in_the_cube_everything_has() -> None:
    rows, seen = observed_labels()
    vertices = torch.combinations(torch.arange(8), 3)
    for row, truth in enumerate(TRUTH):
        of_row = seen[rows == row]
        sets = torch.zeros(len(vertices), 8, dtype=torch.int64).scatter_(1, vertices, 1)
        whole = [bool(((chances == 1) | (of_row == 0)).all()) for chances in sets]
        assert [sets[place].tolist() for place, found in enumerate(whole) if found] == [truth.tolist()]
    assert bool(((torch.ones(8) == 1) | (seen == 0)).all())  # the collapse: every label present, likelihood 1


def test_the_likelihood_of_observed_labels_maximises_their_recall_and_not_their_exact_sets() -> None:
    """Corollary 2: the k best hold everything observed; they are wrong about it as sets, and right about the truth."""
    rows, seen = observed_labels()
    found = torch.zeros(3, 8, dtype=torch.int64).scatter_(1, trained_scores().topk(3).indices, 1)
    recall = (found[rows] * seen).sum(1) / seen.sum(1)
    assert bool((recall == 1).all())
    assert torch.equal(found, TRUTH)
    assert not bool((found[rows] == seen).all(1).any())


def test_float64_keeps_its_digits_where_the_solver_takes_a_middling_step(kernel: str) -> None:
    scores = [3.0297537604103564, 2.316703666158601, -2.405950820238874, 2.1855125763244816, 1.38896036712945]
    exact = [0.2814065617059662, 0.0081655377504415, 5.846460196753627e-8, -0.5041491708737893, 0.2145770129527796]
    x, target = torch.tensor([scores], dtype=torch.float64), torch.tensor([[0, 1, 0, 1, 0]])
    _, gradient = value_and_gradient(F.lml_loss, x, target, 2, temperature=0.25)
    torch.testing.assert_close(gradient, torch.tensor([exact], dtype=torch.float64), rtol=0, atol=2e-15)


def test_scores_too_far_apart_for_a_temperature_keep_their_gradient(kernel: str) -> None:
    scores = torch.tensor([[-6e37, 6e37]])
    _, gradient = value_and_gradient(F.lml_loss, scores, torch.tensor([0]), 1, temperature=0.25)
    torch.testing.assert_close(gradient, torch.tensor([[-2.0, 2.0]]))
