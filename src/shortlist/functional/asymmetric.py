"""The asymmetric loss (ASL): binary cross-entropy that looks away from easy absent labels."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_not_negative, check_number
from shortlist.functional import _targets
from shortlist.functional._frame import (
    bounded,
    huge,
    logit_slope,
    observed,
    selector,
    slope,
    softplus,
    turned,
    where_above,
)
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import largest_members
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target

IGNORE, NEGATIVE, SELECTIVE = range(3)  # what becomes of unknown labels; `partial_selective_loss` has all three


def _asymmetric_twin(
    scores: Tensor,
    target: Tensor,
    frequent: Tensor | None,
    gamma_pos: float,
    gamma_neg: float,
    gamma_unknown: float,
    clip: float,
    detach_focus: bool,
    unknown_rule: int,
    likelihood_topk: int,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Losses of all entries, 0 where one does not count, and which do. ``frequent``: one flag per label, or None."""
    scores = bounded(scores)
    present, (unknown, out) = target == 1, _kinds(scores, target, frequent, unknown_rule, likelihood_topk, mask)
    scores = torch.where(out, 0.0, scores)  # an ignored NaN stays ignored
    gamma = torch.full_like(scores, gamma_neg).masked_fill_(present, gamma_pos).masked_fill_(unknown, gamma_unknown)
    right = torch.where(present, scores, -scores)  # p and 1 - p are sigmoid(right) where present, where absent
    log_right = F.logsigmoid(right)
    # 0 where it is, to the last bit: the chain rule would multiply a slope of 0 by gamma times a huge loss
    log_wrong = F.logsigmoid(torch.where(right < -1000, torch.inf, -right))
    focus = (gamma * log_wrong).exp()
    if clip > 0:
        wrong = F.relu(right.neg().sigmoid() - clip)  # pm, of an absent label
        kept = torch.where(wrong > 0, right.sigmoid() + clip, 1.0)  # 1 - pm, to its last digit
        log_right = torch.where(present, log_right, kept.log())
        # 0 ** gamma has an infinite slope for gamma < 1; log(1 - pm) is 0 there, so any finite focus will do
        powered = torch.where(wrong > 0, wrong, 1.0) ** gamma
        focus = torch.where(present, focus, torch.where(wrong > 0, powered, 0.0))
    if detach_focus:
        focus = focus.detach()
    return torch.where(out, 0.0, -focus * log_right), ~out


def _kinds(
    scores: Tensor, target: Tensor, frequent: Tensor | None, rule: int, likelihood_topk: int, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Which labels are unknown and which of these count nothing: by SELECTIVE the likeliest of their row and the
    frequent ones, the others count as absent."""
    unknown = target == -1
    if rule == IGNORE:
        return unknown, unknown
    if rule == NEGATIVE:
        return unknown, torch.zeros_like(unknown) if mask is None else unknown & ~mask
    out = largest_members(scores, unknown if mask is None else unknown & mask, likelihood_topk)
    if frequent is not None:
        out = out | (unknown & (frequent != 0))
    return unknown, out if mask is None else out | (unknown & ~mask)


def _asymmetric_lean(
    scores: Tensor,
    target: Tensor,
    frequent: Tensor | None,
    gamma_pos: float,
    gamma_neg: float,
    gamma_unknown: float,
    clip: float,
    detach_focus: bool,
    unknown_rule: int,
    likelihood_topk: int,
) -> tuple[Tensor, int, Tensor]:
    """Of entries, or of rows, the losses and what counts, and the gradient.

    With v the probability of the wrong answer and c = -log(1 - v) the loss is v^gamma c, and its slope in the logit of
    v is v^gamma (v + gamma (1 - v) c): from gamma times the loss to v^gamma, v of the way.
    """
    target, ignores = selector(target, scores), unknown_rule == IGNORE
    logit = _wrong_logits(scores, target, frequent, unknown_rule, likelihood_topk, clip)
    power = torch.add(torch.tensor(gamma_neg, dtype=scores.dtype), target, alpha=gamma_pos - gamma_neg)
    if not ignores and gamma_unknown != 2 * gamma_neg - gamma_pos:
        power.masked_fill_(target < 0, gamma_unknown)
    elif gamma_pos > 2 * gamma_neg:  # of unknown labels it is less than 0
        power.clamp_(min=0)
    rows, least = scores.new_empty(2, len(scores)), -0.5 if ignores else -1.5  # a target above it may count
    if clip > 0:  # of an absent label max(p - clip, 0), from here on by its logit
        p = logit.sigmoid()
        if not ignores:
            torch.sum(observed(p == 0, out=torch.empty_like(p)), -1, out=rows[1])
        torch.ops.aten.softshrink.out(p, clip, out=p)
        where_above(p, target, least, out=p).logit_()
        logit = torch.where(target > 0, logit, p, out=p)
        del p
    both = scores.new_empty(2, *scores.shape)
    loss, room = softplus(logit, out=both[0]), both[1]
    v = logit.sigmoid_()
    del logit
    loss.mul_(torch.pow(v, power, out=room))
    if detach_focus:
        slopes = torch.mul(room, v, out=power)
    else:
        slopes = power.mul_(loss)
        if max(gamma_pos, gamma_neg, gamma_unknown) > 4:  # what is huge stays a number
            slopes.clamp_(max=torch.finfo(v.dtype).max)
        slopes.lerp_(room, v)
    if clip == 0:
        if not ignores and frequent is None and likelihood_topk < scores.shape[-1]:  # no row is left out
            torch.ne(v, 0, out=room)
        else:
            observed(v == 0, out=room)
        return both, 1, turned(slopes, target, out=slopes)
    # p (1 - p) / (v (1 - v)) is what the logit of v rises by
    rise = logit_slope(slopes, v, out=room)
    slope(slope(rise, scores, out=rise), scores, -1, out=rise)
    if not ignores:
        where_above(rise, v, 0.0, out=rise)
    torch.ops.aten.hardtanh_backward(rise, target, least, 0.5, grad_input=rise)  # of absent ones
    torch.addcmul(rise, slopes, target if ignores else target > 0, value=-1, out=slopes)
    del v
    if ignores:
        del rise
        observed(target < 0, out=room)
        return both, 1, slopes
    torch.sum(loss, -1, out=rows[0])
    return rows, 1, slopes


def _wrong_logits(
    scores: Tensor, target: Tensor, frequent: Tensor | None, rule: int, likelihood_topk: int, clip: float
) -> Tensor:
    """The logit of the wrong answer, -inf where a label is left out, and where it counts so much that its chance is
    above 0. Labels that are out as unknown are left to the clip, if there is one."""
    out, topk = float("-inf"), likelihood_topk if rule == SELECTIVE else 0
    ends = math.log(torch.finfo(scores.dtype).tiny) + 1, huge(scores)
    if torch.compiler.is_compiling():  # which does not write into parts of rows, and counts no launches
        kinds = _kinds(scores.clamp(-huge(scores), huge(scores)), target, frequent, rule, likelihood_topk)
        return turned(scores, target).clamp_(*ends).masked_fill_(kinds[1], out)
    places = _places_of_likeliest(scores, target, topk) if topk else None
    room = scores.new_empty(len(scores), topk + scores.shape[-1])
    logit = turned(scores, target, out=room[:, topk:]).clamp_(*ends)
    if places is not None:
        room.scatter_(-1, places, out)  # an ignored NaN stays ignored
    if rule == SELECTIVE and frequent is not None:
        logit.masked_fill_((target == -1) & (frequent != 0), out)
    if rule == IGNORE and clip == 0:
        logit.masked_fill_(target == -1, out)
    return logit


def _places_of_likeliest(scores: Tensor, target: Tensor, k: int) -> Tensor:
    """Where the k largest unknown labels are (ties: the lower ones) in rows that begin with k more places, which a row
    with fewer has instead. By few operations, one of them a sort: for where launches count."""
    out, low = float("-inf"), torch.finfo(scores.dtype).min
    keys = scores.new_empty(len(scores), k + scores.shape[-1])
    keys[:, :k].fill_(out)
    # a NaN is the last; finite scores beyond what an infinite one counts as are in their own order
    torch.ops.aten.nan_to_num.out(scores, low, huge(scores), -huge(scores), out=keys[:, k:])
    keys[:, k:].masked_fill_(target >= 0, out)
    return keys.sort(dim=-1, descending=True, stable=True).indices[:, :k]


_LOSS = RowLoss(
    ops.asymmetric, _asymmetric_twin, _targets.label_matrix, of="entries", spreads_nan=False, lean=_asymmetric_lean
)
SELECTIVE_LOSS = replace(_LOSS, per_label=True, minds_mask=True)
_EXACT_CLIP = 0.01  # the gradient in closed form loses the digits that a smaller clip asks for


def asymmetric_loss(
    scores: Tensor,
    target: Target,
    *,
    gamma_neg: float = 4.0,
    gamma_pos: float = 1.0,
    clip: float = 0.05,
    detach_focus: bool = False,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Asymmetric loss (ASL): binary cross-entropy with separate focusing of present and absent labels.

    Formula:
        -[y (1 - p)^gamma_pos log p + (1 - y) pm^gamma_neg log(1 - pm)],  p = sigmoid(s),  pm = max(p - clip, 0)
        mean over the observed entries

    Use it when:
        present labels are rare (large label sets), so that easy absent labels would dominate binary cross-entropy.

    Needs:
        label matrix, unknowns
        Unknown labels are left out of the sum and of the count; `partial_selective_loss` makes use of them.

    Reference:
        Ben-Baruch et al., "Asymmetric Loss for Multi-Label Classification", ICCV 2021.

    Options:
        gamma_neg, gamma_pos: focusing powers; 0 and 0 with ``clip=0`` is `binary_loss`.
        clip: absent labels with probability below it cost nothing.
        detach_focus: treat the focusing weight as a constant, as the authors' code does; the default is the true
            gradient of the formula.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" (the authors' choice) or "none" (one loss per entry).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> asymmetric_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.0730)
    """
    check_focus(gamma_pos=gamma_pos, gamma_neg=gamma_neg)
    check_clip(clip)
    args = (None, gamma_pos, gamma_neg, 0.0, clip, detach_focus, IGNORE, 0)
    return for_clip(_LOSS, clip)(scores, target, args, mask, None, sample_weight, reduction, sync)


def for_clip(loss: RowLoss, clip: float) -> RowLoss:
    return replace(loss, lean=None) if 0 < clip < _EXACT_CLIP else loss


def check_focus(**gammas: float) -> None:
    for name, gamma in gammas.items():
        check_not_negative(gamma, name)


def check_clip(clip: float) -> None:
    check_number(clip, 0, math.nextafter(1, 0), "clip must be at least 0 and below 1 (a shift of probabilities)")
