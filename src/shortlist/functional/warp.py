"""WARP: a hinge on present-absent pairs, weighted by the rank of the present label; sampled, or with exact ranks."""

import torch
from torch import Tensor

from shortlist.checks import check_reduction, check_scores
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, wide
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.reduction import spread_nan
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def harmonic_numbers(n: int, like: Tensor) -> Tensor:
    """L(0), L(1), ..., L(n) with L(r) = 1 + 1/2 + ... + 1/r."""
    steps = torch.arange(n + 1, dtype=like.dtype, device=like.device)
    return torch.where(steps > 0, 1.0 / steps.clamp(min=1.0), 0.0).cumsum(0)


def centred(scores: Tensor, known: Tensor) -> Tensor:
    """Scores less the row's known one of least magnitude, in float64: an offset costs no digits, no sum overflows."""
    x = bounded(wide(bounded(scores)), 1e300)
    held = x.detach().masked_fill(~known | x.isnan(), float("inf"))
    least = held.abs().amin(-1, keepdim=True)
    centre = torch.where((held == least).any(-1, keepdim=True), least, -least)
    return x - centre.masked_fill(centre.isinf(), 0.0)


class AbsentScores:
    """The absent labels' scores of each row, largest first: counts and sums over "all above a bar" by bisection.

    One sort instead of all pairs: memory and time grow with the labels, not with their square.
    """

    def __init__(self, scores: Tensor, absent: Tensor) -> None:
        # ascending order of the negated scores; labels that are not absent come last, at +inf
        self.negated = (-scores).masked_fill(~absent, float("inf")).sort(-1).values
        ordered = (-self.negated).masked_fill(self.negated.isinf(), 0.0)
        self.ordered = ordered
        self.running = torch.cat([torch.zeros_like(ordered[..., :1]), ordered.cumsum(-1)], -1)

    def count_above(self, bar: Tensor) -> Tensor:
        """How many absent scores are strictly above each bar."""
        return torch.searchsorted(self.negated.detach().contiguous(), -bar.detach().contiguous())

    def sum_of_largest(self, count: Tensor) -> Tensor:
        return self.running.gather(-1, count)

    def nth_largest(self, position: Tensor) -> Tensor:
        return self.ordered.gather(-1, position)


def _exact_rows(scores: Tensor, present: Tensor, absent: Tensor) -> Tensor:
    """sum over p of L(r)/r * (the sum of the r violators' hinges 1 - s_p + s_n)."""
    x = centred(scores, present | absent)
    ordered = AbsentScores(x, absent)
    rank = ordered.count_above(x - 1.0)
    hinges = rank * (1.0 - x) + ordered.sum_of_largest(rank)
    weight = harmonic_numbers(scores.shape[-1], x)[rank] / rank.clamp(min=1)
    return torch.where(present, weight * hinges, 0.0).sum(-1).to(scores.dtype)


def _uniform(seeds: Tensor, num_labels: int) -> Tensor:
    """Two numbers in [0, 1) for every seed (row) and label, shape (2, rows, labels), float64: splitmix64.

    The native kernel draws the same ones, of the present labels alone; so both give the same loss for the same seeds.
    """

    def shifted(z: Tensor, by: int) -> Tensor:
        return (z >> by) & ((1 << (64 - by)) - 1)  # of unsigned numbers, held in int64

    step = torch.arange(1, 2 * num_labels + 1, device=seeds.device)
    z = seeds.unsqueeze(-1) + step * -0x61C8864680B583EB  # 0x9E3779B97F4A7C15, products modulo 2^64
    z = (z ^ shifted(z, 30)) * -0x40A7B892E31B1A47  # 0xBF58476D1CE4E5B9
    z = (z ^ shifted(z, 27)) * -0x6B2FB644ECCEEE15  # 0x94D049BB133111EB
    z = shifted(z ^ shifted(z, 31), 11)
    return (wide(z) * 2.0**-53).unflatten(-1, (-1, 2)).movedim(-1, 0)


def _sampled_rows(scores: Tensor, present: Tensor, absent: Tensor, seeds: Tensor) -> Tensor:
    """One draw of the sampled loss.

    Drawing absent labels with replacement until one violates the margin takes a geometric number of draws, and the
    violator found is uniform among the violators: both are drawn directly, given the exact number of violators.
    """
    x = centred(scores, present | absent)
    ordered = AbsentScores(x, absent)
    violators = ordered.count_above(x - 1.0)
    candidates = absent.sum(-1, keepdim=True)
    uniform = _uniform(seeds, scores.shape[-1])
    chance = violators.to(x.dtype) / candidates.clamp(min=1)
    # P(draws > d) = (1 - chance)^d; log1p(-1) = -inf makes the first draw certain
    patience = torch.log1p(-chance).clamp(max=-torch.finfo(x.dtype).tiny)
    draws = ((1.0 - uniform[0]).log() / patience).ceil().clamp(min=1.0)
    found = (violators > 0) & (draws <= candidates)
    rank = torch.where(found, (candidates / draws).floor(), 0.0).long()
    pick = torch.minimum((uniform[1] * violators).long(), violators - 1).clamp(min=0)
    hinges = 1.0 - x + ordered.nth_largest(pick)
    weight = harmonic_numbers(scores.shape[-1], x)[rank]
    return torch.where(present & found, weight * hinges, 0.0).sum(-1).to(scores.dtype)


def _warp_twin(scores: Tensor, target: Tensor, seeds: Tensor | None) -> tuple[Tensor, Tensor]:
    present, absent, observed = target == 1, target == 0, (target == 1).any(-1)
    if seeds is None:
        rows = _exact_rows(scores, present, absent)
    else:
        rows = _sampled_rows(scores, present, absent, seeds)
    return spread_nan(rows, torch.where(target == -1, 0.0, scores), observed), observed


_LOSS = RowLoss(ops.warp, _warp_twin, _targets.label_matrix, linear=True, spreads_nan=False)


def warp_loss(
    scores: Tensor,
    target: Target,
    *,
    exact: bool = False,
    generator: torch.Generator | None = None,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """WARP: hinge between present and absent labels, weighted so that the top of the ranking counts most.

    Formula:
        sampled: for each p in P, draw n from N (with replacement) until 1 - s_p + s_n > 0;
            rank = floor(|N| / draws),  loss L(rank) (1 - s_p + s_n);  0 after |N| draws in vain
        exact: for each p in P with violators V = {n in N: 1 - s_p + s_n > 0}, r = |V|:
            loss L(r) / r * sum_{n in V} (1 - s_p + s_n)
        L(r) = 1 + 1/2 + ... + 1/r;  sum over P, mean over the rows that have a present label

    Use it when:
        precision at the top of each row's ranking matters and labels are many.

    Needs:
        label matrix, unknowns
        Unknown labels are in neither set. The sampled form draws random numbers.

    Reference:
        Weston, Bengio, Usunier, "WSABIE: Scaling Up To Large Vocabulary Image Annotation", IJCAI 2011;
        Gong et al., "Deep Convolutional Ranking for Multilabel Image Annotation", ICLR 2014.

    Options:
        exact: use the exact rank and all violators in place of a sample.
        generator: source of the random draws; None uses PyTorch's global one. Under ``torch.func.vmap`` the sampled
            form needs ``randomness="different"``.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, 1.8, 1.5], [-1.0, 3.0, 0.0]])
        >>> target = torch.tensor([[1, 0, 0], [0, 1, 1]])
        >>> warp_loss(scores, target, exact=True)
        tensor(0.4875)
        >>> warp_loss(scores, target, generator=torch.Generator().manual_seed(0))
        tensor(0.6000)
    """
    check_reduction(reduction)
    check_scores(scores)
    seeds = None
    if not exact:
        seeds = torch.randint(2**62, scores.shape[:-1], generator=generator, device=scores.device)
    return _LOSS(scores, target, (seeds,), mask, None, sample_weight, reduction, sync)
