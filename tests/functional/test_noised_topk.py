"""The noise-smoothed top-k hinge (Garcin et al. 2022), against the law of the (k+1)-th largest of noisy scores."""

import math

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
    random_scores,
    random_target,
    value_and_gradient,
)

ROW = (0.3, 1.0, -0.2, 0.8, 0.1)
DRAWS = 1500


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_averages_the_noisy_kth_score_and_who_it_is(k: int, epsilon: float, kernel: str) -> None:
    mean, deviation, who = oracles.noised_kth(ROW, k + 1, epsilon)
    scores, target = torch.tensor([ROW], dtype=torch.float64), torch.tensor([2])
    loss, gradient = value_and_gradient(
        F.noised_topk_loss, scores, target, k, epsilon=epsilon, n_samples=DRAWS, generator=seeded()
    )
    assert mean > ROW[2] - 1  # the hinge is active
    assert float(loss) == pytest.approx(1 + mean - ROW[2], abs=5 * deviation / math.sqrt(DRAWS) + 1e-3 * epsilon)
    expected = torch.tensor(who) - torch.nn.functional.one_hot(target[0], 5)
    assert float((gradient[0] - expected).abs().max()) <= 5 * 0.5 / math.sqrt(DRAWS) + 1e-3


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (9, 3), (9, 8), (300, 5)])
def test_is_the_plain_hinge_without_noise(n: int, k: int, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(8, n, dtype=dtype, scale=2.0), random_target(8, n)
    exact = exactly(LOSSES["noised_topk_loss"], scores, target, k)
    for quiet in ({"epsilon": 0.0}, {"n_samples": 0}):
        loss, gradient = value_and_gradient(F.noised_topk_loss, scores, target, k, reduction="none", **quiet)
        assert_losses(loss, exact[0], floor=0.1)
        assert_gradients(gradient, exact[1])


@pytest.mark.parametrize("n_samples", [0, 3])
def test_fewer_than_k_plus_1_labels_teach_nothing(n_samples: int, kernel: str) -> None:
    scores, mask = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]), torch.tensor([[False, True, True], [True] * 3])
    loss, gradient = value_and_gradient(
        F.noised_topk_loss, scores, torch.tensor([1, 1]), 2, n_samples=n_samples, epsilon=1e-3, mask=mask,
        reduction="none",
    )
    assert loss[0] == 0
    assert loss[1] == pytest.approx(1, abs=0.01)  # the label itself is the third best
    assert not gradient[0].any()


def test_noise_beyond_the_range_of_options_is_refused(kernel: str) -> None:
    scores, target = random_scores(2, 300, dtype=torch.float32), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="epsilon must be a finite number that is not negative"):
        F.noised_topk_loss(scores, target, 100, epsilon=1e39)


def test_more_draws_than_could_ever_be_made_are_refused(kernel: str) -> None:
    with pytest.raises(ValueError, match="n_samples must be at most 1,000,000"):
        F.noised_topk_loss(torch.zeros(1, 5), torch.tensor([0]), 2, n_samples=2**62)


def test_infinitely_many_examples_of_a_class_are_refused(kernel: str) -> None:
    counts = torch.tensor([1.0, torch.inf, 2.0])
    with pytest.raises(ValueError, match=r"class_counts\[1\] is inf: a finite number"):
        F.noised_topk_loss(torch.zeros(1, 3), torch.tensor([1]), 1, class_counts=counts)


@pytest.mark.parametrize("k", [2, 100])
def test_noise_of_any_size_leaves_every_label_in_its_row(k: int, kernel: str) -> None:
    scores, target = random_scores(2, 300, dtype=torch.float32), torch.tensor([0, 1])
    for epsilon in (1e10, 1e15):
        loss, gradient = value_and_gradient(
            F.noised_topk_loss, scores, target, k, epsilon=epsilon, generator=seeded()
        )
        assert 0 < float(loss) < math.inf
        assert float(gradient.sum()) == pytest.approx(0, abs=1e-6)


def test_huge_scores_do_not_add_up_to_infinity(kernel: str) -> None:
    scores = torch.tensor([[torch.inf, torch.inf, torch.inf, 0.0]])
    loss, _ = value_and_gradient(F.noised_topk_loss, scores, torch.tensor([0]), 2, n_samples=50)
    assert float(loss) == 1


def test_every_draw_gives_its_indicator_an_equal_share(kernel: str) -> None:
    scores, target = random_scores(6, 9), torch.tensor([0, -1, 2, 3, 4, 5])
    loss, gradient = value_and_gradient(
        F.noised_topk_loss, scores, target, 3, n_samples=8, generator=seeded(), reduction="none"
    )
    shares = gradient * 8
    torch.testing.assert_close(shares, shares.round(), rtol=0, atol=1e-5)
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(6), rtol=0, atol=1e-6)
    active = loss > 0
    assert active.any()
    assert not gradient[~active].any()
    assert bool((gradient[active].gather(-1, target[active, None]) < 0).all())


def test_the_loss_is_zero_where_the_margin_is_met(kernel: str) -> None:
    scores = torch.tensor([[50.0, 0.0, 0.0, 0.0]])
    loss, gradient = value_and_gradient(F.noised_topk_loss, scores, torch.tensor([0]), 2, generator=seeded())
    assert float(loss) == 0
    assert not gradient.any()


def test_the_same_generator_gives_the_same_draws(kernel: str) -> None:
    scores, target = random_scores(6, 30), random_target(6, 30)
    first = value_and_gradient(F.noised_topk_loss, scores, target, 3, generator=seeded(5))
    again = value_and_gradient(F.noised_topk_loss, scores, target, 3, generator=seeded(5))
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    other = F.noised_topk_loss(scores, target, 3, generator=seeded(6))
    assert other != first[0]


def test_a_second_way_back_has_the_draws_of_the_first(kernel: str) -> None:
    scores, target = random_scores(6, 30).requires_grad_(), random_target(6, 30)
    loss = F.noised_topk_loss(scores, target, 3)
    first, second = (torch.autograd.grad(loss, scores, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_without_a_generator_the_global_seed_decides(kernel: str) -> None:
    scores, target = random_scores(6, 30), random_target(6, 30)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(float(F.noised_topk_loss(scores, target, 3)))
    assert losses[0] == losses[1] != losses[2]


def test_a_generator_leaves_the_global_stream_alone(kernel: str) -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    F.noised_topk_loss(random_scores(4, 9), random_target(4, 9), 3, generator=seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


COUNTS = torch.tensor([1000, 10, 100, 1, 500, 50])


def margins(max_margin: float) -> Tensor:
    """m_y = C n_y^(-1/4), the largest equal to max_margin."""
    m = COUNTS.double() ** -0.25
    return m / m.max() * max_margin


@pytest.mark.parametrize("max_margin", [0.3, 1.5])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_imbalanced_form_gives_rare_classes_a_larger_margin(max_margin: float, scale: float, kernel: str) -> None:
    scores, target = random_scores(6, 6, dtype=torch.float64), torch.arange(6)
    loss, gradient = value_and_gradient(
        F.noised_topk_loss,
        scores,
        target,
        2,
        epsilon=0.0,
        class_counts=COUNTS,
        max_margin=max_margin,
        scale=scale,
        reduction="none",
    )
    m = margins(max_margin)
    exact = oracles.over_rows(
        lambda row, y, usable: oracles.topk_hinge_without_noise(row, y, 2, usable, float(m[y]), scale),
        scores,
        target.tolist(),
    )
    assert_losses(loss, exact[0], floor=0.1)
    assert_gradients(gradient, exact[1])


def test_noise_is_on_the_unscaled_scores(kernel: str) -> None:
    """With scale the loss is scale times larger, draw for draw."""
    scores, target = random_scores(4, 6, dtype=torch.float64), torch.tensor([3, 2, 1, 5])
    one, ten = (
        F.noised_topk_loss(scores, target, 2, class_counts=COUNTS, scale=s, generator=seeded(), reduction="none")
        for s in (1.0, 10.0)
    )
    assert one.any()
    torch.testing.assert_close(ten, one * 10, rtol=1e-12, atol=0)
