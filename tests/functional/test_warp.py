"""WARP: the sampled form has the distribution of the definition; the exact form its weights."""

import math

import pytest
import torch

import shortlist.functional as F
from shortlist import kernels
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, value_and_gradient
from tests.kernels_here import PATHS

ROW = torch.tensor([[0.5, 0.2, -0.8, 0.9, -3.0, -2.0, 0.1]], dtype=torch.float64)
PRESENT = torch.tensor([[1, 0, 0, 0, 0, 0, -1]])


def expected_sampled_loss() -> float:
    """The mean over all outcomes of drawing with replacement: d - 1 misses, then a uniform violator."""
    positive, absent = ROW[0, 0].item(), ROW[0, 1:6].tolist()
    hinges = [1 - positive + s for s in absent if 1 - positive + s > 0]
    chance = len(hinges) / len(absent)
    weight = sum(
        (1 - chance) ** (d - 1) * chance * oracles.harmonic(len(absent) // d) for d in range(1, len(absent) + 1)
    )
    return weight * math.fsum(hinges) / len(hinges)


def test_the_mean_of_many_samples_is_the_mean_of_the_definition(path: str) -> None:
    draws = 200_000
    generator = torch.Generator().manual_seed(0)
    losses = F.warp_loss(ROW.expand(draws, 7), PRESENT.expand(draws, 7), generator=generator, reduction="none")
    error = 5 * losses.std().item() / math.sqrt(draws)
    assert abs(losses.mean().item() - expected_sampled_loss()) < error
    assert error < 0.02


def test_every_sample_is_a_weight_of_a_possible_rank_times_a_violators_hinge(path: str) -> None:
    losses = F.warp_loss(
        ROW.expand(5000, 7), PRESENT.expand(5000, 7), generator=torch.Generator().manual_seed(1), reduction="none"
    )
    hinges = [1 - 0.5 + s for s in (0.2, 0.9)]
    possible = {0.0} | {round(oracles.harmonic(5 // d) * h, 6) for d in range(1, 6) for h in hinges}
    assert {round(value, 6) for value in losses.tolist()} == possible


def test_the_gradient_of_a_sample_is_its_weight_on_one_pair(path: str) -> None:
    loss, gradient = value_and_gradient(
        lambda s: F.warp_loss(s, PRESENT, generator=torch.Generator().manual_seed(3)), ROW
    )
    assert loss > 0
    assert gradient[0, 0] < 0
    torch.testing.assert_close(gradient.sum(), torch.tensor(0.0, dtype=torch.float64))
    assert (gradient != 0).sum() == 2


def test_the_same_seed_gives_the_same_loss(path: str) -> None:
    scores, target = some_scores(20, 30), (some_scores(20, 30, seed=9) > 0).long()
    first, again, other = (
        F.warp_loss(scores, target, generator=torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_with_every_absent_label_violating_the_first_draw_settles_the_rank(path: str) -> None:
    scores, target = torch.zeros(3, 6), torch.tensor([[1, 0, 0, 0, 0, 0]]).expand(3, 6)
    torch.testing.assert_close(F.warp_loss(scores, target), torch.tensor(oracles.harmonic(5)))
    torch.testing.assert_close(F.warp_loss(scores, target, exact=True), torch.tensor(oracles.harmonic(5)))


@pytest.mark.parametrize("exact", [False, True])
def test_a_margin_of_1_everywhere_costs_nothing(exact: bool, path: str) -> None:
    scores, target = torch.tensor([[2.0, 1.0, 1.0]]), torch.tensor([[1, 0, 0]])
    loss, gradient = value_and_gradient(F.warp_loss, scores, target, exact=exact)
    assert loss == 0
    assert not gradient.any()


def test_single_precision_is_exact_for_many_labels_far_from_zero(path: str) -> None:
    scores, target = some_scores(2, 5000, dtype=torch.float32) + 1e4, (some_scores(2, 5000, seed=1) > 2).long()
    loss = F.warp_loss(scores, target, exact=True)
    torch.testing.assert_close(loss, oracles.warp_exact_pairs(scores.double(), target).float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("rows", "labels", "share"), [(20, 30, 0.1), (5, 700, 0.02), (3, 1200, 0.5), (4, 60, 0.95)])
def test_a_sample_is_the_same_with_every_kernel(rows: int, labels: int, share: float) -> None:
    """From few present labels to many, and with many equal scores."""
    scores = some_scores(rows, labels)
    target = torch.where(torch.rand(rows, labels, generator=torch.Generator().manual_seed(4)) < share, 1, 0)
    for values in (scores, scores.float(), scores.round()):
        results = []
        for use in PATHS:
            with kernels.use(use):
                results.append(F.warp_loss(values, target, generator=torch.Generator().manual_seed(6)))
        assert results[0] > 0
        tolerance = 1e-6 if values.dtype == torch.float32 else 1e-12
        torch.testing.assert_close(results[-1], results[0], rtol=tolerance, atol=0)


@pytest.mark.parametrize("exact", [False, True])
def test_a_nan_stays_in_its_row_where_weights_are_learned(exact: bool, path: str) -> None:
    scores, target = some_scores(3, 7), PRESENT.expand(3, 7)
    scores[1, 2] = torch.nan
    weight = torch.ones(3, dtype=torch.float64, requires_grad=True)  # the twin's part
    losses, gradient = value_and_gradient(
        F.warp_loss, scores, target, exact=exact, sample_weight=weight, reduction="none"
    )
    assert losses.isnan().tolist() == gradient.isnan().all(-1).tolist() == [False, True, False]
