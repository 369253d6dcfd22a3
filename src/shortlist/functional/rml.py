"""RML: WARP's rank weights on a ramp that stops growing, so that a wrong label in the data cannot dominate."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import LARGEST, check_not_negative, check_number
from shortlist.functional import _targets
from shortlist.functional._frame import huge, wide
from shortlist.functional._row_loss import piecewise_linear
from shortlist.functional.warp import Ordered, centred, ranked_pairs
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _rml_lean(scores: Tensor, target: Tensor, ramp: float, label_weight: float) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of all rows, the ranked pairs and the ramp of each known label's signed score; whether one is present; and
    the gradient."""
    unknown, far = target < 0, 3.0 - ramp
    ordered = Ordered(centred(scores, unknown).masked_fill_(unknown, 0.0), target)
    x = ordered.x
    # moved together: distances below ``far`` stay, larger ones become ``far``. No pair on the ramp's slope is further
    # apart than that, and sums of moderate numbers cancel without loss
    moved = F.pad(x.diff().clamp(max=far).cumsum(-1), (1, 0))
    spread = (x[:, :1] < -1e6 * far) | (x[:, -1:] > 1e6 * far)
    ordered.x = torch.where(spread, moved, x)
    del x
    losses, gradient = ranked_pairs(ordered, ramp, moved)
    del moved
    y = wide(scores.gather(-1, ordered.order)).clamp(-huge(scores), huge(scores))
    signed = torch.where(ordered.present, y, torch.where(ordered.absent, -y, torch.inf))
    held = signed.clamp(ramp, 1.0)
    inside = (held == signed) & ordered.present.any(-1, keepdim=True)
    losses.add_((1.0 - held).sum(-1), alpha=label_weight)
    gradient.add_(inside & ordered.absent, alpha=label_weight).add_(inside & ordered.present, alpha=-label_weight)
    return ordered.finished(losses, gradient, scores)


_LOSS = piecewise_linear(ops.rml, _rml_lean, _targets.label_matrix, spreads_nan=False, lean_at_once=1 << 18)


def rml_loss(
    scores: Tensor,
    target: Target,
    *,
    ramp: float = -0.8,
    label_weight: float = 1.0,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Robust multi-label ranking loss (RML): exact-rank WARP on a bounded ramp, plus the same ramp per label.

    Formula:
        R(t) = min(1 - ramp, max(0, 1 - t))
        sum_{p in P} L(r_p) / r_p sum_{n in N} R(s_p - s_n)  +  label_weight sum_{j in P or N} R(+-s_j)
        r_p = number of n in N with s_p - s_n < 1;  L(r) = 1 + 1/2 + ... + 1/r;  + for present, - for absent labels
        mean over the rows that have a present label

    Use it when:
        some labels in the data are wrong: a pair or label that is hopelessly wrong stops pulling.

    Needs:
        label matrix, unknowns
        Unknown labels are in neither set. Rows without a present label are left out, as in `warp_loss`.

    Reference:
        Cevikalp et al., "Semi-supervised Robust Deep Neural Networks for Multi-label Classification", CVPR Workshops
        2019.

    Options:
        ramp: where the ramp becomes flat, below 1.
        label_weight: weight of the per-label term; 0 leaves the ranking alone.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 1.5], [-1.0, 3.0, 0.0]])
        >>> rml_loss(scores, torch.tensor([[1, 0, 0], [0, 1, 1]]))
        tensor(1.6500)
    """
    check_number(ramp, -LARGEST, math.nextafter(1, 0), "ramp must be below 1 (the ramp falls from 1 - ramp to 0)")
    check_not_negative(label_weight, "label_weight")
    return _LOSS(scores, target, (ramp, label_weight), mask, None, sample_weight, reduction, sync)
