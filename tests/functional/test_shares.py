"""Soft targets: the expected loss of a label drawn by its share, against the same written out label by label."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
import shortlist.nn
from shortlist import device_flags, kernels
from shortlist.errors import ShortlistError
from shortlist.labels import from_votes
from shortlist.objectives import OBJECTIVES
from shortlist.objectives.loss_functions import cross_entropy_loss
from tests.functional.harness import random_scores, value_and_gradient
from tests.kernels.triton.no_waiting import NoWaiting

ROWS, LABELS = 6, 7
Function = Callable[..., Tensor]

# each takes class indices, and says by row what it costs
BY_ROW: dict[str, Function] = {
    "smooth_topk": lambda s, t, **o: F.smooth_topk_loss(s, t, 3, tau=0.7, **o),
    "topk_hinge": lambda s, t, **o: F.topk_hinge_loss(s, t, 2, **o),
    "truncated_entropy": lambda s, t, **o: F.truncated_entropy_loss(s, t, 2, **o),
    "lml": lambda s, t, **o: F.lml_loss(s, t, 2, **o),
    "noised_topk": lambda s, t, **o: F.noised_topk_loss(s, t, 2, n_samples=0, **o),
    "assume_negative": F.assume_negative_loss,
}
of_rows = pytest.mark.parametrize("name", BY_ROW)


def some_shares(rows: int = ROWS, seed: int = 3) -> Tensor:
    """Of one to three labels per row, an unknown row among them."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.zeros(rows, LABELS, dtype=torch.float64)
    drawn = torch.randint(LABELS, (rows, 3), generator=generator)
    counts.scatter_add_(1, drawn, torch.ones(rows, 3, dtype=torch.float64))
    counts[rows // 2] = 0
    return from_votes(counts)


def expected(loss: Function, scores: Tensor, shares: Tensor) -> Tensor:
    """sum over labels of share * loss of that label, a mean over the known rows: one call for every label."""
    total = scores.new_zeros(())
    for row in range(len(scores)):
        for label in range(scores.shape[1]):
            if shares[row, label] > 0:
                total = total + shares[row, label] * loss(scores[row : row + 1], torch.tensor([label]))
    return total / int((shares[:, 0] >= 0).sum())


@of_rows
def test_shares_give_the_expected_loss_and_its_gradient(name: str) -> None:
    scores, shares = random_scores(ROWS, LABELS, dtype=torch.float64), some_shares()
    found = value_and_gradient(BY_ROW[name], scores, shares)
    wanted = value_and_gradient(lambda s: expected(BY_ROW[name], s, shares), scores)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@of_rows
def test_a_share_of_1_is_the_label_itself(name: str) -> None:
    scores, target = random_scores(ROWS, LABELS), torch.tensor([0, 6, 2, -1, 3, 3])
    one_hot = from_votes(torch.nn.functional.one_hot(target.clamp(min=0), LABELS) * (target >= 0).unsqueeze(-1))
    for reduction in ("mean", "sum", "none"):
        found = BY_ROW[name](scores, one_hot, reduction=reduction)
        torch.testing.assert_close(found, BY_ROW[name](scores, target, reduction=reduction))


@of_rows
def test_shares_keep_reductions_weights_masks_and_leading_dimensions(name: str) -> None:
    loss = BY_ROW[name]
    scores, shares = random_scores(2, 3, LABELS, dtype=torch.float64), some_shares().reshape(2, 3, LABELS)
    weight = torch.linspace(0.5, 2, 6, dtype=torch.float64).reshape(2, 3)
    rows = loss(scores, shares, reduction="none")
    assert rows.shape == (2, 3)
    known = shares[..., 0] >= 0
    torch.testing.assert_close(loss(scores, shares), rows.sum() / known.sum())
    torch.testing.assert_close(
        loss(scores, shares, sample_weight=weight), (rows * weight).sum() / weight[known].sum(), check_dtype=False
    )
    mask = torch.ones(LABELS, dtype=torch.bool)
    mask[int(shares.sum((0, 1)).argmin())] = False
    kept = torch.where(mask, shares, 0.0).clamp(min=0)
    of_kept = sum(
        kept[i, j, y] * loss(scores[i, j][None], torch.tensor([y]), mask=mask)
        for i, j, y in product(range(2), range(3), range(LABELS))
        if kept[i, j, y] > 0
    )
    torch.testing.assert_close(loss(scores, shares, mask=mask, reduction="sum"), of_kept)


@of_rows
def test_shares_have_second_derivatives_and_can_be_learned(name: str) -> None:
    scores = random_scores(2, LABELS, dtype=torch.float64).requires_grad_()
    shares = some_shares()[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: BY_ROW[name](s, shares.detach()), [scores])
    if name != "topk_hinge":
        assert torch.autograd.gradgradcheck(lambda s: BY_ROW[name](s, shares.detach()), [scores])
    (of_shares,) = torch.autograd.grad(BY_ROW[name](scores, shares, reduction="sum"), shares)
    for label in (shares[0] > 0).nonzero().flatten().tolist():
        alone = BY_ROW[name](scores[:1], torch.tensor([label]))
        torch.testing.assert_close(of_shares[0, label], alone)


# those that also take a label matrix: only values, or who calls, can tell which it is
EITHER: dict[str, Function] = {
    **{name: BY_ROW[name] for name in ("truncated_entropy", "lml", "assume_negative")},
    "expected_positive": lambda s, t, **o: F.expected_positive_loss(s, t, 1.7, **o),
    "average_k": lambda s, t, **o: F.average_k_loss(s, s.flip(-1), t, 2, **o),
}
of_either = pytest.mark.parametrize("name", EITHER)


@of_either
def test_floats_on_a_device_are_labels_that_nobody_waits_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, index = random_scores(ROWS, LABELS, dtype=torch.float64), torch.arange(ROWS) % LABELS
    wanted = value_and_gradient(EITHER[name], scores, index)
    labels = torch.nn.functional.one_hot(index, LABELS).double()
    monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
    with NoWaiting(), kernels.use("torch"):
        found = value_and_gradient(EITHER[name], scores, labels)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)


@of_either
def test_fractions_on_a_device_are_told_and_soft_says_that_they_are_shares(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, shares = random_scores(ROWS, LABELS, dtype=torch.float64), some_shares()
    wanted = value_and_gradient(EITHER[name], scores, shares)
    with kernels.use("torch"):
        monkeypatch.setattr(device_flags, "waits", lambda tensor: True)
        EITHER[name](scores, shares)
        with pytest.raises(ShortlistError, match=r"a target value that is not allowed.*give soft=True"):
            kernels.check()
        found = value_and_gradient(EITHER[name], scores, shares, soft=True)
        kernels.check()
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)


@of_either
def test_soft_says_what_floats_are_where_their_values_could(name: str) -> None:
    scores, shares = random_scores(ROWS, LABELS, dtype=torch.float64), some_shares()
    torch.testing.assert_close(EITHER[name](scores, shares, soft=True), EITHER[name](scores, shares))
    with pytest.raises(ShortlistError, match="label matrix"):
        EITHER[name](scores, shares, soft=False)
    index = torch.arange(ROWS) % LABELS
    one_hot = torch.nn.functional.one_hot(index, LABELS).double()
    for soft in (True, False):
        torch.testing.assert_close(EITHER[name](scores, one_hot, soft=soft), EITHER[name](scores, index))


@pytest.mark.parametrize("name", ["truncated_entropy", "lml", "assume_negative"])
def test_declared_shares_compile(name: str) -> None:
    scores, shares = random_scores(ROWS, LABELS), some_shares().float()
    compiled = torch.compile(lambda s, t: BY_ROW[name](s, t, soft=True), fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores, shares), BY_ROW[name](scores, shares))


def test_shares_compile_and_batch_where_they_need_no_other_reading() -> None:
    def loss(s: Tensor, t: Tensor) -> Tensor:
        return F.smooth_topk_loss(s, t, 3)

    scores, shares = random_scores(2, ROWS, LABELS), some_shares().float()
    batched = torch.func.vmap(loss)(scores, torch.stack([shares, shares.flip(0)]))
    torch.testing.assert_close(batched, torch.stack([loss(scores[0], shares), loss(scores[1], shares.flip(0))]))
    torch.testing.assert_close(torch.compile(loss, fullgraph=True, backend="eager")(scores[0], shares), batched[0])


def test_the_batch_of_expected_positive_is_judged_in_expectation() -> None:
    """Its regulariser has no label in it: over all ways to draw the labels, the mean is the loss of the shares."""
    scores = random_scores(3, 4, dtype=torch.float64)
    shares = torch.tensor([[0.5, 0.5, 0, 0], [0, 0.25, 0, 0.75], [0, 0, 1.0, 0]], dtype=torch.float64)
    drawn = 0.0
    for labels in product(range(4), repeat=3):
        chance = math.prod(shares[row, label].item() for row, label in enumerate(labels))
        if chance:
            drawn = drawn + chance * F.expected_positive_loss(scores, torch.tensor(labels), 1.7)
    torch.testing.assert_close(F.expected_positive_loss(scores, shares, 1.7), drawn)


# ---- average-K


def average_k_of_shares(z: Tensor, proposals: Tensor, shares: Tensor, k: float, alpha: float) -> Tensor:
    """Every way to draw the labels, with one choice of candidates: the expected sums, divided by what is expected."""
    log_share = proposals.log_softmax(-1)
    rows, labels = z.shape
    entries = sorted(product(range(rows), range(labels)), key=lambda e: -log_share[e].item())
    wanted, reached, candidates = math.floor((k - 1) * rows + 0.5), 0.0, set()
    for entry in entries:
        reached += 1 - shares[entry].item()
        if reached > wanted + 1e-9:
            break
        candidates.add(entry)
    sums = {"proposed": 0.0, "own": 0.0, "candidates": 0.0, "negatives": 0.0}
    counts = dict.fromkeys(sums, 0.0)
    for drawn in product(range(labels), repeat=rows):
        chance = math.prod(shares[row, label].item() for row, label in enumerate(drawn))
        for i, j in product(range(rows), range(labels)) if chance else ():
            if drawn[i] == j:
                terms = {"proposed": -log_share[i, j], "own": torch.nn.functional.softplus(-z[i, j])}
            elif (i, j) in candidates:
                terms = {"candidates": torch.nn.functional.softplus(-z[i, j])}
            else:
                terms = {"negatives": torch.nn.functional.softplus(z[i, j])}
            for name, term in terms.items():
                sums[name], counts[name] = sums[name] + chance * term, counts[name] + chance
    factor = {"proposed": 1.0, "own": 1.0, "candidates": alpha, "negatives": alpha}
    return sum(factor[name] * sums[name] / counts[name] for name in sums if counts[name])  # type: ignore[return-value]


@pytest.mark.parametrize("k", [1.0, 1.6, 2.4])
def test_average_k_of_shares_is_the_expectation_over_all_draws(k: float) -> None:
    z, proposals = random_scores(3, 4, dtype=torch.float64), random_scores(3, 4, dtype=torch.float64, seed=5)
    shares = torch.tensor([[0.5, 0.5, 0, 0], [0, 0.25, 0.5, 0.25], [0, 0, 1.0, 0]], dtype=torch.float64)
    for leaf in (0, 1):
        heads = [z, proposals]

        def of(function: Function, x: Tensor, *rest: Any, leaf: int = leaf, heads: list[Tensor] = heads) -> Tensor:
            return function(*(x if i == leaf else head for i, head in enumerate(heads)), *rest)

        found = value_and_gradient(lambda x, of=of: of(F.average_k_loss, x, shares, k), heads[leaf])
        wanted = value_and_gradient(lambda x, of=of: of(average_k_of_shares, x, shares, k, 1.0), heads[leaf])
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_average_k_with_shares_of_1_chooses_as_with_labels() -> None:
    z, proposals = random_scores(40, 9), random_scores(40, 9, seed=5)
    target = torch.arange(40) % 9
    shares = torch.nn.functional.one_hot(target, 9).float()
    shares[0] = torch.tensor([0.999999, 1e-6, 0, 0, 0, 0, 0, 0, 0])  # a fraction: read as shares
    torch.testing.assert_close(F.average_k_loss(z, proposals, shares, 2.5), F.average_k_loss(z, proposals, target, 2.5))


# ---- label by label


def test_binary_takes_probabilities_and_smoothing() -> None:
    scores, shares = random_scores(ROWS, LABELS, dtype=torch.float64), some_shares()
    known = shares >= 0

    def by_hand(s: Tensor, smoothing: float = 0.0) -> Tensor:
        chance = shares * (1 - smoothing) + smoothing / 2
        entries = 3.0 * chance * torch.nn.functional.softplus(-s) + (1 - chance) * torch.nn.functional.softplus(s)
        return entries[known].mean()

    for smoothing in (0.0, 0.2):
        found = value_and_gradient(
            lambda s, e=smoothing: F.binary_loss(s, shares, pos_weight=3.0, label_smoothing=e), scores
        )
        wanted = value_and_gradient(lambda s, e=smoothing: by_hand(s, e), scores)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)
    matrix = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    smoothed = F.binary_loss(torch.zeros(1, 3), matrix, label_smoothing=0.5, reduction="none")
    torch.testing.assert_close(smoothed, torch.tensor([[math.log(2), math.log(2), 0.0]]))


def test_cross_entropy_takes_shares() -> None:
    scores, shares = random_scores(ROWS, LABELS, dtype=torch.float64), some_shares()
    torch.testing.assert_close(cross_entropy_loss(scores, shares), expected(cross_entropy_loss, scores, shares))
    smooth = expected(lambda s, t: cross_entropy_loss(s, t, label_smoothing=0.1), scores, shares)
    torch.testing.assert_close(cross_entropy_loss(scores, shares, label_smoothing=0.1), smooth)
    assert cross_entropy_loss(scores, torch.full_like(shares, -1.0)) == 0


@pytest.mark.parametrize("name", ["cross-entropy", "smooth-topk", "average-k", "binary", "lml"])
def test_objectives_train_on_shares(name: str) -> None:
    objective = OBJECTIVES[name](8, LABELS, OBJECTIVES[name].Config(**({"k": 2} if name not in _WITHOUT_K else {})))
    loss = objective.loss(random_scores(ROWS, 8), some_shares().float())
    loss.backward()
    assert loss > 0


_WITHOUT_K = ("cross-entropy", "binary")


def test_a_head_by_blocks_takes_shares_where_rows_stand_alone() -> None:
    features, weight, shares = random_scores(ROWS, 5), random_scores(LABELS, 5, seed=2), some_shares().float()
    found = F.linear_loss(F.smooth_topk_loss, features, weight, shares, k=2, memory=2**10)
    torch.testing.assert_close(found, F.smooth_topk_loss(features @ weight.T, shares, 2))
    with pytest.raises(ValueError, match="not shares of labels: make the scores"):
        F.linear_loss(F.average_k_loss, features, (weight, weight), shares, k=2)


# ---- what is refused


@pytest.mark.parametrize("name", ["two_way_loss", "asymmetric_loss", "lsep_loss", "warp_loss", "rml_loss"])
def test_losses_without_a_meaning_for_shares_say_so(name: str) -> None:
    with pytest.raises(ValueError, match=r"is 0\.\d+: a label matrix holds .* only some losses take them"):
        getattr(F, name)(torch.zeros(ROWS, LABELS), some_shares())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([0.5, 0.2, 0.0], r"target\[1\] sums to 0\.7"),
        ([1.5, -0.5, 0.0], r"target\[1\] has 1\.5 for label 0"),
        ([0.5, 0.5, float("nan")], r"target\[1\] has nan for label 2"),
        ([-1.0, 1.0, 1.0], r"target\[1\] has -1\.0 for label 0"),
    ],
)
def test_rows_that_are_no_shares_are_named(row: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        F.smooth_topk_loss(torch.zeros(2, 3), torch.tensor([[0.5, 0.5, 0.0], row]), 1)


def test_modules_take_shares() -> None:
    scores, shares = random_scores(ROWS, LABELS), some_shares().float()
    assert shortlist.nn.SmoothTopKLoss(k=2)(scores, shares) == F.smooth_topk_loss(scores, shares, 2)
    found = shortlist.nn.AverageKLoss(k=2)(scores, scores, shares)
    assert found == F.average_k_loss(scores, scores, shares, 2)
