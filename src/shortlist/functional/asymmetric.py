"""The asymmetric loss (ASL): binary cross-entropy that looks away from easy absent labels."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_not_negative, check_number
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, slope, softplus, where_above
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
        log_right = torch.where(present, log_right, torch.log1p(-wrong))
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
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each row the sum of its losses; which entries count; and the gradient.

    With v the probability of the wrong answer and c = -log(1 - v) the loss is v^gamma c, and its slope in the logit of
    v is v^gamma (v + gamma (1 - v) c).
    """
    absent, ignores = target == 0, unknown_rule == IGNORE
    logit = scores.clamp(-huge(scores), huge(scores))
    unknown, out = _kinds(logit, target, frequent, unknown_rule, likelihood_topk)
    present = target if ignores else target == 1  # what is out costs nothing, whatever it is multiplied by
    logit.addcmul_(logit, present, value=-2).masked_fill_(out, float("-inf"))
    clipped = None if clip == 0 else absent if ignores else absent | unknown
    if clipped is not None:  # of an absent label max(p - clip, 0), from here on by its logit
        logit = torch.where(clipped, F.softshrink(logit.sigmoid(), clip).logit_(), logit)
    v, loss = logit.sigmoid(), softplus(logit)
    del logit
    power = torch.full_like(v, gamma_pos).masked_fill_(absent, gamma_neg)
    if not ignores:
        power.masked_fill_(unknown, gamma_unknown)
    loss.mul_(torch.pow(v, power, out=power))
    losses, slopes = loss.sum(-1), power.mul_(v)
    if not detach_focus:
        loss.addcmul_(loss, v, value=-1)
        for gamma, of in ((gamma_pos, present), (gamma_neg, absent), (0 if ignores else gamma_unknown, unknown)):
            if gamma > 0:
                slopes.addcmul_(loss, of, value=gamma)
    if clipped is not None:  # p (1 - p) / (v (1 - v)) is what the logit of v rises by
        rise = torch.ops.aten.logit_backward(slopes, v, grad_input=loss)
        slope(slope(rise, scores, out=rise), scores, -1, out=rise)
        torch.where(clipped, where_above(rise, v, 0.0, out=rise), slopes, out=slopes)
    return losses, out.logical_not_(), slopes.addcmul_(slopes, present, value=-2)


_LOSS = RowLoss(
    ops.asymmetric, _asymmetric_twin, _targets.label_matrix, of="entries", spreads_nan=False, lean=_asymmetric_lean
)
SELECTIVE_LOSS = replace(_LOSS, per_label=True, minds_mask=True)


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
    return _LOSS(scores, target, args, mask, None, sample_weight, reduction, sync)


def check_focus(**gammas: float) -> None:
    for name, gamma in gammas.items():
        check_not_negative(gamma, name)


def check_clip(clip: float) -> None:
    check_number(clip, 0, math.nextafter(1, 0), "clip must be at least 0 and below 1 (a shift of probabilities)")
