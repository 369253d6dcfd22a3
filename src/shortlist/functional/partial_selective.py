"""The partial selective loss: unknown labels count as absent, except those likely to be present."""

import torch
from torch import Tensor

from shortlist.checks import check_finite, check_scores, check_tensor, whole
from shortlist.errors import ShortlistError
from shortlist.functional.asymmetric import (
    IGNORE,
    NEGATIVE,
    SELECTIVE,
    SELECTIVE_LOSS,
    check_clip,
    check_focus,
    for_clip,
)
from shortlist.labels.sparse_labels import Target

_RULES = {"selective": SELECTIVE, "ignore": IGNORE, "negative": NEGATIVE}


def partial_selective_loss(
    scores: Tensor,
    target: Target,
    *,
    prior: Tensor | None = None,
    prior_threshold: float = 0.05,
    likelihood_topk: int = 5,
    mode: str = "selective",
    gamma_neg: float = 1.0,
    gamma_pos: float = 0.0,
    gamma_unknown: float = 2.0,
    clip: float = 0.0,
    detach_focus: bool = False,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Partial selective loss: asymmetric loss on known labels; unknown ones are absent unless likely to be present.

    Formula:
        known labels: the terms of asymmetric_loss with gamma_pos, gamma_neg
        unknown label j of a row: ignored if prior_j > prior_threshold, or if s_j is among the likelihood_topk largest
            unknown scores of the row; else the absent term with gamma_unknown
        mean over the entries that are not ignored

    Use it when:
        most labels are unknown, and most unknown labels are absent (photo collections with thousands of tags).

    Needs:
        label matrix, unknowns
        Unknown labels are used: that is the method. A class prior (share of examples with the label) helps.

    Reference:
        Ben-Baruch et al., "Multi-label Classification with Partial Annotations using Class-aware Selective Loss",
        CVPR 2022.

    Options:
        prior: one probability per label; None leaves the prior rule out.
        prior_threshold, likelihood_topk: which unknown labels are ignored (ties go to the lower label).
        mode: "selective", or "ignore" (all unknown labels) or "negative" (none) as baselines.
        gamma_neg, gamma_pos, gamma_unknown, clip, detach_focus: as in `asymmetric_loss`, with one more focus.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per entry).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5, -2.0], [-1.0, 3.0, 0.0, 1.0]])
        >>> target = torch.tensor([[1, 0, -1, -1], [0, -1, 1, -1]])
        >>> partial_selective_loss(scores, target, likelihood_topk=1)
        tensor(0.2820)
    """
    check_focus(gamma_pos=gamma_pos, gamma_neg=gamma_neg, gamma_unknown=gamma_unknown)
    check_clip(clip)
    if mode not in _RULES:
        raise ShortlistError(f"mode must be 'selective', 'ignore' or 'negative', got {mode!r}")
    likelihood_topk = whole(likelihood_topk, "likelihood_topk", 0)
    check_scores(scores)
    likelihood_topk = min(likelihood_topk, scores.shape[-1])
    frequent = None
    check_finite(prior_threshold, "prior_threshold")
    if prior is not None:
        if not isinstance(prior, Tensor):
            raise ShortlistError(f"prior must be a torch.Tensor, one number per label, got {type(prior).__name__}")
        check_tensor(scores, prior, "prior")
        if prior.shape != scores.shape[-1:]:
            raise ShortlistError(
                f"prior must be of shape ({scores.shape[-1]},), one per label, got {tuple(prior.shape)}"
            )
        frequent = (prior > prior_threshold).to(torch.uint8)
    args = (frequent, gamma_pos, gamma_neg, gamma_unknown, clip, detach_focus, _RULES[mode], likelihood_topk)
    return for_clip(SELECTIVE_LOSS, clip)(scores, target, args, mask, None, sample_weight, reduction, sync)
