"""Binary cross-entropy over the labels that were observed."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import (
    check_number,
    check_scores,
    check_weight_values,
    compute_type,
    is_learned,
    number_tensor,
    values_visible,
)
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, observed, slope, softplus
from shortlist.functional._row_loss import RowLoss
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target, dense_labels


def _binary_twin(scores: Tensor, target: Tensor, pos_weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The expected losses of entries, each present with the probability that the target holds, and which are known."""
    known = target >= 0
    scores = torch.where(known, bounded(scores), 0.0)  # an ignored NaN stays ignored
    chance = torch.where(known, target, 0).to(scores.dtype)
    present = -F.logsigmoid(scores) if pos_weight is None else -F.logsigmoid(scores) * pos_weight
    return torch.where(known, chance * present - (1 - chance) * F.logsigmoid(-scores), 0.0), known


def _binary_lean(
    scores: Tensor, target: Tensor, pos_weight: Tensor | None = None
) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    """The losses of entries and which of them are known, in one tensor, and the gradient."""
    unknown, both = target < 0, scores.new_empty(2, *scores.shape)
    wrong = scores.clamp(-huge(scores), huge(scores))
    wrong.addcmul_(wrong, target, value=-2)  # the other way round where present
    wrong.masked_fill_(unknown, float("-inf"))  # an ignored NaN stays ignored
    cost, _ = softplus(wrong, out=both[0]), observed(unknown, out=both[1])
    times = None if pos_weight is None else torch.where(target > 0, pos_weight, 1.0)
    if times is not None:
        cost.mul_(times)

    def gradient(factor: Tensor) -> Tensor:
        each = factor.reshape(-1, 1) if times is None else factor * times  # a number would take a half target's type
        return slope(torch.addcmul(each, target, each, value=-2), wrong)

    return both, 1, gradient


def _chances_lean(
    scores: Tensor, target: Tensor, pos_weight: Tensor | None = None
) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    """The same of probabilities: chance softplus(-x) + (1 - chance) softplus(x), each without loss of digits."""
    unknown, both = target < 0, scores.new_empty(2, *scores.shape)
    chance = target.clamp(min=0).to(scores.dtype)
    x = scores.clamp(-huge(scores), huge(scores)).masked_fill_(unknown, -huge(scores))  # costs nothing, nor any NaN
    up = chance if pos_weight is None else chance * pos_weight
    if pos_weight is None:
        minus_log, linear = softplus(torch.abs(x, out=both[1]), -1, out=both[0]), torch.clamp(x, min=0, out=both[1])
        torch.sub(linear.addcmul_(up, x, value=-1), minus_log, out=both[0])  # of a certain label the first is exact
    else:  # a heavy one would leave nothing of what is taken away from it: each side on its own
        absent, present = softplus(x, out=both[0]), softplus(x, -1, out=both[1])  # the second is less than 0
        absent.mul_(torch.sub(1, chance)).addcmul_(up, present, value=-1)
    observed(unknown, out=both[1])

    def gradient(factor: Tensor) -> Tensor:
        each = factor.reshape(-1, 1)
        down = torch.addcmul(each, chance, each, value=-1)
        rising = up * each
        return slope(down, x, out=down).sub_(slope(rising, x, -1, out=rising))

    return both, 1, gradient


_entries: dict[str, Any] = {"of": "entries", "spreads_nan": False, "per_label": True}
_LOSS = RowLoss(ops.binary, _binary_twin, _targets.label_matrix, lean=_binary_lean, **_entries)
_OF_CHANCES = RowLoss(  # of the kernels, only Triton's reads probabilities
    ops.binary._replace(native=False), _binary_twin, _targets.chances, lean=_chances_lean, **_entries
)


def binary_loss(
    scores: Tensor,
    target: Target,
    *,
    pos_weight: Tensor | float | None = None,
    label_smoothing: float = 0.0,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Binary cross-entropy of every observed label, averaged over the observed labels.

    Formula:
        -[y w log p + (1 - y) log(1 - p)],  p = sigmoid(s),  w = pos_weight
        mean over the observed entries

    Use it when:
        you want calibrated, independent probabilities per label, or a plain baseline. With few present labels per row,
        `two_way_loss` and `asymmetric_loss` usually rank better.

    Needs:
        label matrix, unknowns, shares
        Unknown labels are left out of the sum and of the count. Floats between 0 and 1 are the probabilities (or the
        shares of votes) by which a label is present: y in the formula.

    Reference:
        The logistic likelihood; no single source.

    Options:
        pos_weight: weight of present labels, a number or one per label; it does not enter the count.
        label_smoothing: e moves every label's y to 1 - e/2 and e/2.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per entry).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> binary_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.2990)
    """
    check_scores(scores)
    weight = None if pos_weight is None else _pos_weight(scores, pos_weight)
    check_number(label_smoothing, 0, 1, "label_smoothing must be between 0 and 1")
    if label_smoothing > 0:
        target = _smoothed(scores, target, label_smoothing)
    options = (weight,), mask, None, sample_weight, reduction, sync
    if isinstance(target, Tensor) and target.is_floating_point() and _not_asked(target, label_smoothing):
        return _OF_CHANCES(scores, target, *options)
    try:  # a label matrix of floats is not looked through for fractions first
        return _LOSS(scores, target, *options)
    except ShortlistError:
        if not _targets.holds_chances(target):
            raise
    return _OF_CHANCES(scores, target, *options)


def _not_asked(target: Tensor, label_smoothing: float) -> bool:
    """Whether floats are taken as probabilities without a look at them: as labels they would give the same."""
    return label_smoothing > 0 or is_learned(target) or not values_visible(target) or device_flags.waits(target)


def _smoothed(scores: Tensor, given: Target, label_smoothing: float) -> Tensor:
    """Known labels moved towards 1/2."""
    target = dense_labels(_targets.at_the_door(scores, given))
    _targets.check_chances(scores, target)
    chance = target.to(torch.int16 if target.dtype == torch.uint8 else target.dtype).to(compute_type(scores.dtype))
    return torch.where(chance == -1, -1.0, torch.lerp(chance, torch.full_like(chance, 0.5), label_smoothing))


def _pos_weight(scores: Tensor, pos_weight: Tensor | float) -> Tensor:
    like = scores.new_empty((), dtype=compute_type(scores.dtype))  # of scores in half precision no copy is made
    weight = pos_weight if isinstance(pos_weight, Tensor) else number_tensor(pos_weight, "pos_weight", like)
    if weight.shape not in ((), scores.shape[-1:]):
        raise ShortlistError(
            f"pos_weight must be a number or one weight per label, shape {tuple(scores.shape[-1:])}; "
            f"got shape {tuple(weight.shape)}"
        )
    check_weight_values(scores, weight, "pos_weight")
    return weight.to(like.dtype).expand(scores.shape[-1:])
