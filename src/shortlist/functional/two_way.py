"""The two-way loss: present labels above absent ones, along each row and along each label."""

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_finite, check_positive
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import check_couples_batch, masked_logsumexp
from shortlist.functional.reduction import reduce_loss, reduce_over_processes
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _pair_loss(
    scores: Tensor,
    present: Tensor,
    absent: Tensor,
    positive_temperature: float,
    negative_temperature: float,
    margin: float,
    *,
    dim: int = -1,
    weight: Tensor | None = None,
    world: int = 1,
) -> tuple[Tensor, Tensor]:
    """Losses of all rows (``dim=-1``) or labels (``dim=0``), and whether each has a present entry.

    softplus(T_N log sum_{n in N} e^(x_n/T_N) + T_P log sum_{p in P} e^(-x_p/T_P) + margin), 0 where P or N is empty.
    """
    dim, scores = dim % scores.ndim, bounded(scores)
    absent_peak, absent_rest, has_absent = masked_logsumexp(scores, absent, dim, weight, world, negative_temperature)
    present_peak, present_rest, has_present = masked_logsumexp(
        -scores, present, dim, weight, world, positive_temperature
    )
    gap = (absent_peak + present_peak) + (absent_rest + present_rest + margin)
    # -logsigmoid(-gap) is softplus without F.softplus's cut-off at 20
    return torch.where((has_present & has_absent) | gap.isnan(), -F.logsigmoid(-gap), 0.0), has_present


def _pair_rows_twin(scores: Tensor, target: Tensor, *options: float) -> tuple[Tensor, Tensor]:
    return _pair_loss(scores, target == 1, target == 0, *options)


def _two_way_twin(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    positive_temperature: float,
    negative_temperature: float,
    margin: float,
    sample_way: bool,
    world: int = 1,
) -> Tensor:
    """The class way, and the sample way with it."""
    present, absent = target == 1, target == 0
    weight = scores.new_ones(scores.shape[:-1]) if weight is None else weight
    options = (positive_temperature, negative_temperature, margin)
    columns, has_present = _pair_loss(
        scores, present, absent, *options, dim=0, weight=weight.unsqueeze(-1), world=world
    )
    loss = reduce_loss(columns, has_present.to(scores.dtype), reduction)
    if not sample_way:
        return loss
    rows, has_present = _pair_loss(scores, present, absent, *options)
    return loss + reduce_over_processes(rows, torch.where(has_present, weight, 0.0), reduction, world)


PAIR_ROWS = RowLoss(ops.pair_rows, _pair_rows_twin, _targets.label_matrix, spreads_nan=False)
_TWO_WAY = RowLoss(ops.two_way, _two_way_twin, _targets.label_matrix, of="batch")


def two_way_loss(
    scores: Tensor,
    target: Target,
    *,
    positive_temperature: float = 4.0,
    negative_temperature: float = 1.0,
    margin: float = 0.0,
    way: str = "both",
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Two-way loss: every present label above every absent one, within each row and within each label's column.

    Formula:
        l(P, N) = softplus(T_N log sum_{n in N} e^(s_n / T_N) + T_P log sum_{p in P} e^(-s_p / T_P) + margin)
        sample way: mean of l over the rows that have a present label
        class way:  mean of l over the labels (columns) that have a present row
        both:       their sum

    Use it when:
        several labels are present per example, and both the ranking of labels for one example and the ranking of
        examples for one label matter (mean average precision by sample and by class). The usual first choice for
        multi-label training.

    Needs:
        label matrix, unknowns
        Unknown labels are in neither set. The class way wants batches in which a label is both present and absent.

    Reference:
        Kobayashi, "Two-way Multi-Label Loss", CVPR 2023.

    Options:
        positive_temperature, negative_temperature: T_P, T_N; a larger T_P spreads the gradient over all present labels.
        margin: how far above; added inside the softplus.
        way: "both", "sample" (rows alone) or "class" (columns alone).
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row; a weight of 2 counts the row twice, in its column's sums too.
        reduction: "mean" or "sum"; also "none" for ``way="sample"``, the only way in which rows are independent.
        sync: act on the global batch of all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> target = torch.tensor([[1, 0, -1], [0, 1, 1]])
        >>> two_way_loss(scores, target)
        tensor(0.5485)
    """
    if way not in ("both", "sample", "class"):
        raise ShortlistError(f"way must be 'both', 'sample' or 'class', got {way!r}")
    if way != "sample":
        check_couples_batch(reduction, f"two_way_loss with way={way!r}")
    check_positive(positive_temperature, "positive_temperature")
    check_positive(negative_temperature, "negative_temperature")
    check_finite(margin, "margin")
    loss, both = (PAIR_ROWS, ()) if way == "sample" else (_TWO_WAY, (way == "both",))
    return loss(
        scores,
        target,
        positive_temperature,
        negative_temperature,
        margin,
        *both,
        mask=mask,
        sample_weight=sample_weight,
        reduction=reduction,
        sync=sync,
    )
