"""WARP: a hinge on present-absent pairs, weighted by the rank of the present label; sampled, or with exact ranks."""

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_reduction, check_scores, transforms_active
from shortlist.functional import _targets
from shortlist.functional._frame import huge, wide
from shortlist.functional._row_loss import piecewise_linear
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def harmonic_numbers(n: int, like: Tensor) -> Tensor:
    """L(0), L(1), ..., L(n) with L(r) = 1 + 1/2 + ... + 1/r."""
    steps = torch.arange(1, n + 1, dtype=like.dtype, device=like.device)
    return F.pad(steps.reciprocal_().cumsum_(0), (1, 0))


def centred(scores: Tensor, unknown: Tensor) -> Tensor:
    """Scores less the row's known one of least magnitude, in float64: an offset costs no digits, no sum overflows."""
    most = min(huge(scores), 1e300)
    x = wide(scores).clamp(-most, most).masked_fill(unknown, 2 * most)
    least = x.abs().amin(-1, keepdim=True)
    return x - torch.where((x == least).any(-1, keepdim=True), least, -least)


class Ordered:
    """All labels of each row, the lowest first, and how many absent ones there are among the first i.

    One sort instead of all pairs: memory and time grow with the labels, not with their square.
    """

    def __init__(self, x: Tensor, target: Tensor) -> None:
        self.x, self.order = x.sort(-1)
        codes = target.gather(-1, self.order)
        self.present, absent = codes == 1, codes == 0
        self.absent, self.before = absent, F.pad(absent.cumsum(-1, dtype=torch.int32), (1, 0))

    def above(self, bar: Tensor) -> tuple[Tensor, Tensor]:
        """Where the labels above each bar begin, and how many absent ones they are."""
        start = torch.searchsorted(self.x, bar, right=True)
        return start, self.before[:, -1:] - self.before.gather(-1, start)

    def finished(self, losses: Tensor, gradient: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Losses, whether each row has a present label, and the gradient in the places of the labels."""
        observed = self.present.any(-1)
        losses = losses.to(scores.dtype).masked_fill_(~observed, 0.0)
        gradient = gradient.to(scores.dtype)
        gradient = gradient.scatter(-1, self.order, gradient)
        return losses, observed, gradient.masked_fill_(losses.isnan().unsqueeze(-1), torch.nan)


def ranked_pairs(ordered: Ordered, ramp: float | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of pairs weighted by the rank of the present label, and their gradient in the order of the labels: hinges,
    or ramps. A loss is its gradient times ``x``, and what its pairs cost at a distance of 0."""
    rank_table = harmonic_numbers(x.shape[-1], x)
    start, rank = ordered.above(ordered.x - 1.0)
    each = rank_table[rank].div_(rank.clamp(min=1)).mul_(ordered.present)
    push = each.new_zeros(len(x), x.shape[-1] + 1).scatter_add_(-1, start, each)  # on all absent labels from there on
    del start
    hopeless = None
    if ramp is not None:  # no longer from where pairs cost 1 - ramp, whatever the scores are
        start, flat = ordered.above(ordered.x - ramp)
        push.scatter_add_(-1, start, each.neg())
        del start
        rank, hopeless = rank - flat, (each * flat).sum(-1).mul_(1.0 - ramp)
    pull = each.mul_(rank)
    summed = push.cumsum(-1) if transforms_active() else push.cumsum_(-1)  # vmap has no rule for it in place
    gradient = summed[:, :-1].mul_(ordered.absent).sub_(pull)
    losses = torch.linalg.vecdot(gradient, x) + pull.sum(-1)
    return losses if hopeless is None else losses.add_(hopeless), gradient


def _uniform(seeds: Tensor, labels: Tensor) -> Tensor:
    """Two numbers in [0, 1) for every seed (row) and label, shape (2, rows, labels), float64: splitmix64.

    The native kernel draws the same ones, of the present labels alone; so both give the same loss for the same seeds.
    """

    def shifted(z: Tensor, by: int) -> Tensor:
        return (z >> by).bitwise_and_((1 << (64 - by)) - 1)  # of unsigned numbers, held in int64

    step, two_steps = -0x61C8864680B583EB, 0x3C6EF372FE94F82A  # 0x9E3779B97F4A7C15 and its double, modulo 2^64
    z = torch.add(torch.stack((seeds + step, seeds + two_steps)).unsqueeze(-1), labels, alpha=two_steps)
    z = shifted(z, 30).bitwise_xor_(z).mul_(-0x40A7B892E31B1A47)  # 0xBF58476D1CE4E5B9
    z = shifted(z, 27).bitwise_xor_(z).mul_(-0x6B2FB644ECCEEE15)  # 0x94D049BB133111EB
    z = shifted(shifted(z, 31).bitwise_xor_(z), 11)
    return wide(z).mul_(2.0**-53)


def _drawn(violators: Tensor, candidates: Tensor, present: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The weight of the rank that was drawn, 0 where no violator was found; which of the violators that is."""
    chance = violators / candidates.clamp(min=1).to(uniform.dtype)
    # P(draws > d) = (1 - chance)^d; log1p(-1) = -inf makes the first draw certain
    patience = torch.log1p(chance.neg_()).clamp_(max=-torch.finfo(uniform.dtype).tiny)
    draws = (1.0 - uniform[0]).log_().div_(patience).ceil_().clamp_(min=1.0)
    rank = (candidates / draws).long()  # 0 after as many draws in vain
    weight = harmonic_numbers(present.shape[-1], uniform)[rank] * (present & (violators > 0))
    return weight, torch.minimum((uniform[1] * violators).long(), violators - 1).clamp_(min=0)


def _sampled_pairs(ordered: Ordered, seeds: Tensor) -> tuple[Tensor, Tensor]:
    """One draw of the sampled loss, and its gradient in the order of the labels.

    Drawing absent labels with replacement until one violates the margin takes a geometric number of draws, and the
    violator found is uniform among the violators: both are drawn directly, given the exact number of violators.
    """
    violators, before = ordered.above(ordered.x - 1.0)[1], ordered.before
    weight, pick = _drawn(violators, before[:, -1:], ordered.present, _uniform(seeds, ordered.order))
    place = torch.searchsorted(before, (before[:, -1:] - pick).int()).sub_(1).clamp_(min=0)
    gradient = weight.neg().scatter_add_(-1, place, weight)
    return torch.linalg.vecdot(gradient, ordered.x) + weight.sum(-1), gradient


def _warp_lean(scores: Tensor, target: Tensor, seeds: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    ordered = Ordered(centred(scores, target < 0), target)
    result = ranked_pairs(ordered, None, ordered.x) if seeds is None else _sampled_pairs(ordered, seeds)
    return ordered.finished(*result, scores)


_LOSS = piecewise_linear(ops.warp, _warp_lean, _targets.label_matrix, spreads_nan=False, lean_at_once=1 << 18)


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
