"""The two-head average-K loss: one head proposes candidate labels over the whole batch, the other learns the sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_not_negative, check_number, check_scores, check_tensor, in_compute_type
from shortlist.distributed import sum_over_earlier_processes, sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, wide
from shortlist.functional._native import Native
from shortlist.functional.label_matrix import check_couples_batch, is_label
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target

_DIGIT = 8  # bits settled per pass of the selection


def largest_entries(values: Tensor, eligible: Tensor, count: Tensor, world: int) -> Tensor:
    """Exactly ``count`` eligible entries of the whole batch, the largest; ties go to the earlier entry.

    Radix selection: each pass counts the values by their next 8 bits and settles 8 bits of the smallest value chosen.
    Work is linear in the entries, ``count`` may be a tensor, and between processes only the 256 counts travel.
    """
    order_type = torch.int64 if values.dtype == torch.float64 else torch.int32
    bits = torch.iinfo(order_type).bits
    keys = (values.detach() + 0.0).flatten().view(order_type)  # + 0.0: no negative zero
    keys = keys ^ ((keys >> (bits - 1)) & torch.iinfo(order_type).max)  # integers in the order of the floats
    keys = keys ^ torch.iinfo(order_type).min  # read as unsigned digits from here on
    tied = eligible.flatten()
    chosen = torch.zeros_like(tied)
    missing = count
    for shift in range(bits - _DIGIT, -1, -_DIGIT):
        digit = (keys >> shift) & (2**_DIGIT - 1)
        counts = torch.zeros(2**_DIGIT, dtype=torch.int64, device=keys.device)
        counts = sum_over_processes(counts.scatter_add(0, digit.long(), tied.long()), world)
        at_least = F.pad(counts.flip(0).cumsum(0), (1, 0))  # entries with one of the i largest digits
        passed = (at_least[1:] < missing).sum()
        cut = 2**_DIGIT - 1 - passed
        chosen = chosen | (tied & (digit > cut))
        tied = tied & (digit == cut)
        missing = missing - at_least.gather(0, passed[None])[0]
    place = tied.cumsum(0) + sum_over_earlier_processes(tied.sum(), world)
    return (chosen | (tied & (place <= missing))).reshape(eligible.shape)


def _terms(
    set_scores: Tensor, proposals: Tensor, index: Tensor, mask: Tensor | None, counts: Tensor, k: float, world: int
) -> tuple[list[tuple[Tensor, Tensor]], list[tuple[Tensor, Tensor]]]:
    """(losses, weights) of the observed labels' two terms, and of the candidates' and the negatives' terms."""
    observed = counts > 0
    usable = observed.unsqueeze(-1) if mask is None else observed.unsqueeze(-1) & mask
    usable = usable.expand(set_scores.shape)
    own = index.clamp(min=0).unsqueeze(-1)
    scores = torch.where(usable, bounded(set_scores), 0.0)
    proposals = torch.where(usable, bounded(proposals), float("-inf")).masked_fill(~observed.unsqueeze(-1), 0.0)
    log_share = proposals.log_softmax(-1)

    others = usable & ~is_label(index, scores.shape[-1])
    eligible = others & ~log_share.isnan()  # a row with a NaN proposes nothing
    rows = sum_over_processes(observed.sum(), world)
    count = torch.minimum(
        (wide(rows) * (k - 1.0) + 0.5).floor().long(),  # M = floor((K-1)|B| + 1/2)
        sum_over_processes(eligible.sum(), world),
    )
    candidate = largest_entries(log_share, eligible, count, world)
    entry_weight = counts.unsqueeze(-1).expand(scores.shape)
    settled = -F.logsigmoid(torch.where(candidate, scores, -scores))
    observed_terms = [
        (-log_share.gather(-1, own).squeeze(-1), counts),
        (-F.logsigmoid(scores.gather(-1, own).squeeze(-1)), counts),
    ]
    set_terms = [
        (settled, torch.where(candidate, entry_weight, 0.0)),
        (settled, torch.where(others & ~candidate, entry_weight, 0.0)),
    ]
    return observed_terms, set_terms


def _average_k_twin(
    scores: Tensor,
    proposals: Tensor,
    index: Tensor,
    counts: Tensor,
    k: float,
    alpha: float,
    mean: bool,
    mask: Tensor | None = None,
    world: int = 1,
) -> Tensor:
    observed_terms, set_terms = _terms(scores, proposals, index, mask, counts, k, world)
    terms = [(1.0, *term) for term in observed_terms] + [(alpha, *term) for term in set_terms]
    totals = sum_over_processes(torch.stack([total.sum().detach() for _, _, total in terms]), world)
    loss = scores.new_zeros(())
    for (factor, losses, weights), total in zip(terms, totals, strict=True):
        share = weights * (factor * world / torch.where(total > 0, total, 1.0))  # first: a sum of losses may overflow
        loss = loss + torch.where(weights > 0, losses * share, 0.0).sum()
    return loss if mean else loss * totals[0]


@dataclass(eq=False, slots=True)
class _AverageK(Native):
    """A function of both heads' scores, the index and the weight of each row; shape (1,).

    The kernel computes both heads' gradients with the loss.
    """

    k: float
    alpha: float
    mean: bool
    gives_away: ClassVar[bool] = True

    def forward(self, *tensors: Any) -> tuple[Tensor, ...]:
        results: tuple[Tensor, ...] = ops.average_k(*tensors, self.k, self.alpha, self.mean, 1)
        return results

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        return tuple(gradient.mul_(upstream) if in_place else gradient * upstream for gradient in kept)

    def formula(self, upstream: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
        scores, proposals, *rows = tensors
        return torch.func.vjp(lambda s, p: self.twin(s, p, *rows), scores, proposals)[1](upstream)

    def twin(self, scores: Tensor, proposals: Tensor, index: Tensor, counts: Tensor) -> Tensor:
        return _average_k_twin(scores, proposals, index, counts, self.k, self.alpha, self.mean).unsqueeze(0)


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
        indices or label matrix, unknowns
        A label matrix has at most one present label per row; absent and unknown labels alike may become candidates, by
        definition. Batches of a few dozen rows or more; two score matrices.

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
    proposals = in_compute_type(proposal_scores)
    scores, index, counts = _targets.single_positive(
        in_compute_type(set_scores), target, mask, weight, sample_weight, native=False
    )
    flat = (scores.reshape(-1, labels), proposals.reshape(-1, labels), index.reshape(-1), counts.reshape(-1))
    call = _AverageK(float(k), float(alpha), reduction == "mean")
    if world == 1 and mask is None and scores.dtype == proposals.dtype and not counts.requires_grad:
        loss = call(*flat).squeeze(0)
    else:  # the choice of candidates is one over all processes
        mask = None if mask is None else mask.expand(scores.shape).reshape(-1, labels)
        loss = _average_k_twin(*flat, call.k, call.alpha, call.mean, mask, world)
    return loss if loss.dtype == set_scores.dtype else loss.to(set_scores.dtype)
