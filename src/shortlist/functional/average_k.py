"""The two-head average-K loss: one head proposes candidate labels over the whole batch, the other learns the sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import (
    check_not_negative,
    check_number,
    check_scores,
    check_tensor,
    holds_shares,
    in_compute_type,
    values_visible,
)
from shortlist.distributed import sum_over_earlier_processes, sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, softplus, wide
from shortlist.functional._native import Native
from shortlist.functional.label_matrix import check_couples_batch, is_label
from shortlist.kernels import native_serves, ops, triton_serves
from shortlist.labels.sparse_labels import Target

_DIGIT = 8  # bits settled per pass of the selection
_WHOLE = 2**16  # parts of an entry: what share of it counts is a whole number of them


def largest_entries(values: Tensor, eligible: Tensor, count: Tensor, world: int) -> Tensor:
    """Exactly ``count`` eligible entries of the whole batch, the largest; ties go to the earlier entry. Where
    ``eligible`` says how much each entry counts (whole numbers), the first of them that count at most ``count``.

    Radix selection: each pass counts the values by their next 8 bits and settles 8 bits of the smallest value chosen.
    Work is linear in the entries, ``count`` may be a tensor, and between processes only the 256 counts travel.
    """
    order_type = torch.int64 if values.dtype == torch.float64 else torch.int32
    bits = torch.iinfo(order_type).bits
    keys = (values.detach() + 0.0).flatten().view(order_type)  # + 0.0: no negative zero
    keys = keys ^ ((keys >> (bits - 1)) & torch.iinfo(order_type).max)  # integers in the order of the floats
    keys = keys ^ torch.iinfo(order_type).min  # read as unsigned digits from here on
    tied = eligible.flatten().long()
    chosen = torch.zeros_like(tied, dtype=torch.bool)
    missing = count
    for shift in range(bits - _DIGIT, -1, -_DIGIT):
        digit = (keys >> shift) & (2**_DIGIT - 1)
        counts = torch.zeros(2**_DIGIT, dtype=torch.int64, device=keys.device)
        counts = sum_over_processes(counts.scatter_add(0, digit.long(), tied), world)
        at_least = F.pad(counts.flip(0).cumsum(0), (1, 0))  # entries with one of the i largest digits
        passed = (at_least[1:] < missing).sum()
        cut = 2**_DIGIT - 1 - passed
        chosen = chosen | ((tied > 0) & (digit > cut))
        tied = torch.where(digit == cut, tied, 0)
        missing = missing - at_least.gather(0, passed[None])[0]
    place = tied.cumsum(0) + sum_over_earlier_processes(tied.sum(), world)
    return (chosen | ((tied > 0) & (place <= missing))).reshape(eligible.shape)


def _average_k_twin(
    scores: Tensor,
    proposals: Tensor,
    own: Tensor,
    weight: Tensor,
    k: float,
    alpha: float,
    mean: bool,
    mask: Tensor | None = None,
    world: int = 1,
) -> Tensor:
    """``own``: the share that each entry has in its row's label; ``weight``: what that share weighs. Every entry is
    somebody else's by the rest of its share: by as much it may be a candidate, or is a negative."""
    counts = weight.sum(-1)
    observed = counts > 0
    usable = observed.unsqueeze(-1) if mask is None else observed.unsqueeze(-1) & mask
    usable = usable.expand(scores.shape)
    scores = torch.where(usable, bounded(scores), 0.0)
    proposals = torch.where(usable, bounded(proposals), float("-inf")).masked_fill(~observed.unsqueeze(-1), 0.0)
    log_share = proposals.log_softmax(-1)

    rest = torch.where(usable, ((1 - own) * _WHOLE).round(), 0.0).long()
    eligible = torch.where(log_share.isnan(), 0, rest)  # a row with a NaN proposes nothing
    rows = sum_over_processes(observed.sum(), world)
    count = torch.minimum(
        (wide(rows) * (k - 1.0) + 0.5).floor().long() * _WHOLE,  # M = floor((K-1)|B| + 1/2)
        sum_over_processes(eligible.sum(), world),
    )
    candidate = largest_entries(log_share, eligible, count, world)
    of_others = torch.where(usable, (counts.unsqueeze(-1) - weight).clamp(min=0), 0.0)
    settled = -F.logsigmoid(torch.where(candidate, scores, -scores))
    terms = [
        (1.0, torch.where(weight > 0, -log_share, 0.0), weight),
        (1.0, -F.logsigmoid(scores), weight),
        (alpha, settled, torch.where(candidate, of_others, 0.0)),
        (alpha, settled, torch.where(candidate, 0.0, of_others)),
    ]
    totals = sum_over_processes(torch.stack([total.sum().detach() for _, _, total in terms]), world)
    loss = scores.new_zeros(())
    for (factor, losses, weights), total in zip(terms, totals, strict=True):
        share = weights * (factor * world / torch.where(total > 0, total, 1.0))  # first: a sum of losses may overflow
        loss = loss + torch.where(weights > 0, losses * share, 0.0).sum()
    return loss if mean else loss * totals[0]


def _average_k_lean(
    scores: Tensor, proposals: Tensor, index: Tensor, counts: Tensor, k: float, alpha: float, mean: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Of class indices, with the gradients of both heads."""
    (rows, n), least, most = scores.shape, torch.finfo(scores.dtype).tiny, huge(scores)
    label, weight, out = index.clamp(0, n - 1).unsqueeze(-1), counts.unsqueeze(-1), (counts == 0).unsqueeze(-1)
    log_share = proposals.clamp(-most, most).masked_fill_(out, 0.0).log_softmax(-1)
    own_share = log_share.gather(-1, label)
    log_share.scatter_(-1, label, float("-inf")).masked_fill_(out, float("-inf"))

    # as many candidates as the rows that count have, of as many as all of them could have
    wanted = wide(counts.count_nonzero()).mul_(k - 1.0).add_(0.5).long()
    best = log_share.nan_to_num(nan=float("-inf")).flatten().topk(min(int(rows * (k - 1.0) + 0.5), rows * n)).values
    cut = F.pad(best, (1, 0), value=torch.inf).gather(0, wanted.unsqueeze(0)).clamp_(min=-4 * most)
    candidate, tied = log_share > cut, log_share == cut
    place = tied.flatten().cumsum(0, dtype=torch.int32).view(rows, n)
    candidate = torch.where(tied, place <= wanted - candidate.sum(), candidate)
    del place, tied

    count, total = candidate.sum(-1, keepdim=True), counts.sum()
    totals = (weight * torch.cat((count, n - 1 - count), dim=-1)).sum(0).clamp_(min=least)
    if mean:
        own = weight / total.clamp(min=least)
    else:  # the mean times the total
        own, totals = weight, totals / total
    shares = (weight if alpha == 1 else weight * alpha) / totals  # of a candidate, of a negative
    push = torch.where(candidate, shares[:, :1], shares[:, 1:]).scatter_(-1, label, own)
    candidate.scatter_(-1, label, True)  # the label is pushed as candidates are
    wrong = scores.clamp(-most, most).masked_fill_(out, 0.0)
    wrong.addcmul_(wrong, candidate, value=-2)
    push.addcmul_(push, candidate, value=-2)  # upwards
    del candidate
    loss = softplus(wrong).scatter_add_(-1, label, -own_share).mul_(push).abs_().flatten().sum(0, keepdim=True)
    of_scores = wrong.sigmoid_().mul_(push)
    of_proposals = log_share.exp_().scatter_(-1, label, own_share.expm1_()).mul_(own)
    return loss, of_scores, of_proposals


@dataclass(eq=False, slots=True)
class _AverageK(Native):
    """A function of both heads' scores, the index and the weight of each row; shape (1,).

    Both heads' gradients are computed with the loss.
    """

    k: float
    alpha: float
    mean: bool
    dtype: torch.dtype  # of both heads' scores
    gives_away: ClassVar[bool] = True
    lean: ClassVar[bool] = True
    operator: ClassVar[str] = "average_k"

    def options(self) -> tuple[Any, ...]:
        return self.k, self.alpha, self.mean, 1

    def forward(self, *tensors: Any) -> tuple[Tensor, ...]:
        if native_serves(tensors[0]) or triton_serves(self.operator, *tensors, *self.options()):
            return ops.average_k(*tensors, *self.options())
        scores, proposals, index, counts = tensors
        return _average_k_lean(scores, proposals, index, counts, self.k, self.alpha, self.mean)

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        if in_place:
            return tuple(ops.finish_gradient(gradient, upstream) for gradient in kept)
        return tuple((gradient * upstream).to(self.dtype) for gradient in kept)

    def formula(self, upstream: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
        scores, proposals, *rows = tensors
        return torch.func.vjp(lambda s, p: self.twin(s, p, *rows), scores, proposals)[1](upstream)

    def twin(self, scores: Tensor, proposals: Tensor, index: Tensor, counts: Tensor) -> Tensor:
        scores, proposals = in_compute_type(scores), in_compute_type(proposals)
        own = is_label(index, scores.shape[-1]).to(scores.dtype)
        weight = own * counts.unsqueeze(-1)
        return _average_k_twin(scores, proposals, own, weight, self.k, self.alpha, self.mean).unsqueeze(0)


class _Again(_AverageK):
    """The same of float16 scores, which have no room for small gradients: backward computes them, times `upstream`."""

    __slots__ = ()
    gives_away: ClassVar[bool] = False

    def forward(self, *tensors: Any) -> tuple[Tensor, ...]:
        return (ops.average_k_value(*tensors, *self.options()),)

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        gradients: tuple[Tensor, ...] = ops.average_k_gradient(*tensors, *self.options(), upstream)
        return gradients


def average_k_loss(
    set_scores: Tensor,
    proposal_scores: Tensor,
    target: Target,
    k: float,
    *,
    alpha: float = 1.0,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
    soft: bool | None = None,
) -> Tensor:
    """Average-K loss: a softmax head proposes candidates over the batch, a sigmoid head learns sets of mean size k.

    Formula:
        mean_i(-log softmax_{y_i}(z'_i)) + mean_i(-log p_{i,y_i})
            + alpha mean_{(i,j) in C}(-log p_ij) + alpha mean_{(i,j) in N}(-log(1 - p_ij)),  p = sigmoid(z)
        C = the floor((k-1)|B| + 1/2) entries of the whole batch with the largest softmax_j(z'_i), j != y_i
        N = the other entries with j != y_i;  an empty mean is 0;  z = set_scores, z' = proposal_scores

    Use it when:
        one label per example was recorded, classes are easily confused, and predictions should be sets of k labels on
        average: small where the image is clear, large where it is not. `shortlist.nn.AverageKHead` makes both scores.

    Needs:
        indices or label matrix, unknowns, shares
        A label matrix has at most one present label per row; absent and unknown labels alike may become candidates, by
        definition. With shares of votes, the means are those expected of labels drawn by them: an entry counts by its
        share as the label and by the rest as another, and C is the first of the entries of which as many are expected
        to be others. Batches of a few dozen rows or more; two score matrices.

    Reference:
        Garcin et al., "A two-head loss function for deep Average-K classification", 2023, eq. 15.

    Options:
        k: mean set size, at least 1, not necessarily whole; 1 has no candidates.
        alpha: weight of candidates and negatives (the paper searches 0.1 to 10).
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        weight: one weight per class, of the rows with that label. sample_weight: one weight per row. They enter the
            means, not the choice of candidates (a row of weight 0 is out of both).
        reduction: "mean" or "sum" (the mean times the number of observed rows): the choice couples the batch.
        sync: act on the global batch of all processes; None means yes when ``torch.distributed`` is initialised.
        soft: whether floats of the scores' shape are shares of labels. None: their values tell; where nobody looks at
            them, on a GPU or under ``torch.compile``, they are a label matrix.

    No gradient flows through the choice of candidates; ties go to the earlier row, then to the lower label.

    Example:
        >>> set_scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> proposals = torch.tensor([[1.0, 0.9, -2.0], [0.0, 3.0, 0.0]])
        >>> average_k_loss(set_scores, proposals, torch.tensor([0, 1]), k=1.5)
        tensor(2.4437)
    """
    check_couples_batch(reduction, "average_k_loss")
    check_scores(set_scores, "set_scores")
    check_scores(proposal_scores, "proposal_scores")
    if proposal_scores.shape != set_scores.shape:
        raise ShortlistError(
            f"set_scores and proposal_scores must have one shape, got {tuple(set_scores.shape)} "
            f"and {tuple(proposal_scores.shape)}"
        )
    check_tensor(set_scores, proposal_scores, "proposal_scores")
    labels = set_scores.shape[-1]
    check_number(k, 1, labels, f"k must be between 1 and {labels} (the number of labels)")
    check_not_negative(alpha, "alpha")
    world = world_size(sync)
    scores, proposals = set_scores, proposal_scores
    numbers = float(k), float(alpha), reduction == "mean"
    if not (world == 1 and mask is None and triton_serves("average_k", scores, *numbers, 1)):
        scores, proposals = in_compute_type(set_scores), in_compute_type(proposal_scores)
    call = (_Again if scores.dtype == torch.float16 else _AverageK)(*numbers, scores.dtype)
    heads = (scores.reshape(-1, labels), proposals.reshape(-1, labels))
    of_shape = isinstance(target, Tensor) and target.is_floating_point() and target.shape == scores.shape
    later = not scores.is_cpu and values_visible(scores)  # are wrong values told
    if later:
        device_flags.begin("average_k", scores.device)
    loss = own = weights = None
    try:
        if of_shape and soft:
            raise ShortlistError("shares")
        _, index, counts = _targets.single_positive(scores, target, (mask, weight, sample_weight), native=False)
        assert counts is not None
        if world == 1 and mask is None and scores.dtype == proposals.dtype and not counts.requires_grad:
            loss = call(*heads, index.reshape(-1), counts.reshape(-1)).squeeze(0)
        else:
            own = is_label(index, labels).to(counts.dtype)
            weights = own * counts.unsqueeze(-1)
    except ShortlistError:
        if not of_shape or soft is False or not isinstance(target, Tensor) or not (soft or holds_shares(target)):
            raise
        own, weights = _targets.shares(in_compute_type(scores), target, (mask, weight, sample_weight))
    if own is not None and weights is not None:
        heads = (in_compute_type(heads[0]), in_compute_type(heads[1]))
        mask = None if mask is None else mask.expand(scores.shape).reshape(-1, labels)
        rows = (own.reshape(-1, labels), weights.reshape(-1, labels))
        loss = _average_k_twin(*heads, *rows, call.k, call.alpha, call.mean, mask, world)  # one choice for all
    assert loss is not None
    if later:
        device_flags.end(scores.device)
    return loss if loss.dtype == set_scores.dtype else loss.to(set_scores.dtype)
