"""The Limited Multi-Label projection: sigmoid(s + nu) with nu chosen so that the row sums to k; and its likelihood.

Ways back: `_Projection` by the kernel, `_Plain` with little around it for the usual call, `_Lean` where there is no
kernel, `_Shift` for derivatives of any order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import (
    apply_mask,
    check_positive,
    check_scores,
    check_tensor,
    in_compute_type,
    is_exporting,
    refuse,
    transforms_active,
    whole,
)
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import balance, bounded, finite, huge, place, softplus, split, wide
from shortlist.functional._native import Native, is_plain
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import is_present
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target

_STEPS = 5  # of Newton: 4 are to rounding on every row tried


class _Shift(torch.autograd.Function):
    """t = s + nu, never through nu itself, and log h = log p (1 - p) up to a constant of the row.

    dt = ds - (h.ds)/sum h. Both are written relative to the nearer pivot, so that a saturated row, however far apart
    its scores, keeps the digits that decide its gradient; backward is written in t and log h, so it differentiates to
    any order. A row with nothing to choose has t = +inf for every usable label.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, k: int | Tensor) -> tuple[Tensor, Tensor]:
        parts = split(scores, k)
        v = wide(parts.high - parts.top).exp()
        gap = wide(parts.high - parts.low)
        delta = balance((parts.rest - parts.low).exp(), v, gap, _STEPS)
        half, delta = (gap / 2).to(scores.dtype), delta.to(scores.dtype)
        scores = finite(scores)
        above = scores > parts.low
        local = torch.where(above, scores - parts.high, scores - parts.low) + delta
        t = torch.where(above, local + half, local - half)
        # log h = -|t| - 2 log(1 + e^-|t|), with |t| - half formed from local alone
        sign = torch.where(t >= 0, 1.0, -1.0).to(t.dtype)
        distance = sign * local - torch.where((t >= 0) == above, 0.0, 2 * half)
        log_h = -distance - 2 * torch.log1p((-t.abs()).exp())
        certain = torch.where(scores > float("-inf"), torch.inf, -torch.inf).to(t.dtype)
        idle = (parts.spare <= 0) & ~scores.isnan().any(-1, keepdim=True)
        return torch.where(idle, certain, t), log_h

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int | Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*output)

    @staticmethod
    def backward(ctx: Any, up_t: Tensor, up_log_h: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        t, log_h = ctx.saved_tensors
        upstream = up_t + up_log_h * (1 - 2 * torch.sigmoid(t))
        return _centred(upstream, t, log_h), None


def _centred(upstream: Tensor, t: Tensor, log_h: Tensor) -> Tensor:
    """upstream - (h / sum h) * its sum: what flows back through t = s + nu. A row of certain labels has no slope."""
    certain = t.detach().isinf()
    idle = certain.all(-1, keepdim=True)
    upstream = upstream.masked_fill(idle, 0.0)
    share = torch.softmax(log_h.masked_fill(certain & ~idle, float("-inf")).masked_fill(idle, 0.0), -1)
    return upstream - share * upstream.sum(-1, keepdim=True)


@dataclass(eq=False, slots=True)
class _Projection(Native):
    """The layer by its kernel, whose frame lets backward recover the digits that p near 1 has lost."""

    k: int
    operator: ClassVar[str] = "lml"
    saves_out: ClassVar[bool] = True

    def options(self) -> tuple[Any, ...]:
        return (self.k,)

    def forward(self, scores: Tensor, k_rows: Tensor | None) -> tuple[Tensor, ...]:
        return ops.lml(scores, k_rows, self.k)

    def backward(
        self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, scores: Tensor, k_rows: Tensor | None
    ) -> tuple[Tensor, ...]:
        return (ops.lml_backward(scores, *kept, upstream),)

    def formula(self, upstream: Tensor, scores: Tensor, k_rows: Tensor | None) -> tuple[Tensor, ...]:
        t, log_h = _Shift.apply(in_compute_type(scores), self.k if k_rows is None else k_rows)
        return (_centred(upstream * torch.sigmoid(t) * torch.sigmoid(-t), t, log_h),)

    def twin(self, scores: Tensor, k_rows: Tensor | None) -> Tensor:
        formula = transforms_active() or is_exporting()  # PyTorch takes it apart and differentiates it
        if k_rows is None and self.k < scores.shape[-1] and not formula:
            return _Lean(self.k)(scores, None)
        # not sigmoid(t), whose derivative p (1 - p) has no digits left where p is near 1
        p = F.logsigmoid(_Shift.apply(scores, self.k if k_rows is None else k_rows)[0]).exp()
        return torch.where(scores.isnan().any(-1, keepdim=True), torch.nan, p)


class _Plain(torch.autograd.Function):
    """The same of plain scores (`is_plain`) and one k for all: of a small call, `Native` for all kinds is a quarter."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, k: int) -> Tensor:
        p, frame = ops.plain_lml(scores, k)
        ctx.k = k
        ctx.save_for_backward(scores, p, frame)
        return p

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        scores, p, frame = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _Projection(ctx.k).formula(upstream, scores, None)[0], None
        return ops.plain_lml_backward(scores, p, frame, upstream), None


_project: Callable[[Tensor, int], Tensor] = super(torch.autograd.Function, _Plain).apply


@dataclass(eq=False, slots=True)
class _Lean(_Projection):
    """The twin for a number k below that of the labels: few passes over the row, and p (1 - p) kept for backward."""

    has_twin: ClassVar[bool] = False
    saves_out: ClassVar[bool] = False

    def forward(self, scores: Tensor, k_rows: Tensor | None) -> tuple[Tensor, ...]:
        logits, beyond, labels, _ = _solve(scores.clamp(torch.finfo(scores.dtype).min, huge(scores)), self.k)
        logits.sub_(beyond, alpha=0.5)
        share, usable = _slopes(logits, labels), scores > float("-inf")
        slope = share.sum(-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).tiny)
        wrong = _wrong(logits, labels)
        del logits
        # not sigmoid(), which gives equal numbers other last bits at the end of a tensor
        return usable / wrong.exp_().add_(1), share.div_(slope).mul_(usable), slope

    def backward(
        self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, scores: Tensor, k_rows: Tensor | None
    ) -> tuple[Tensor, ...]:
        share, slope = kept  # what flows back through a softmax, as steep as the sigmoids together
        return (torch.ops.aten._softmax_backward_data(upstream, share, -1, share.dtype).mul_(slope),)


class _Solved(NamedTuple):
    """Rows in the frame of `_frame`: the k largest and then the row, the k at -inf."""

    logits: Tensor  # (rows, k + n) of the chance of each of the k largest to leave, and of each of the rest to enter:
    beyond: Tensor  # (rows, 1) all too large by half of this, so far that no denominator 1 + e^-t sees it
    labels: Tensor  # (rows, k) of the k largest
    low: Tensor  # (rows, 1) the largest of the rest


_FAR = 140.0  # a gap beyond which no denominator 1 + e^-half differs from 1


def _solve(held: Tensor, k: int) -> _Solved:
    """Newton's method for log(sum of the rest's shares) = log(sum of the top's); k below the number of labels. The
    memory of the scores, which are finite, is used up."""
    largest, labels = held.topk(k + 1, dim=-1)
    high, low, labels = largest[:, k - 1 : k], largest[:, k:], labels[:, :k]
    logits = torch.cat((high - largest[:, :k], held.sub_(low).scatter_(-1, labels, float("-inf"))), dim=-1)
    del held
    sign = logits.new_full((logits.shape[-1],), 0.5)  # what the shift, taken twice, adds to them
    sign[:k] = -0.5
    q = logits.exp()
    shift = (q[:, :k].sum(-1, keepdim=True) / q[:, k:].sum(-1, keepdim=True)).log_()
    gap = high - low
    near = gap.clamp(max=_FAR)
    logits.sub_(near, alpha=0.5)
    del q
    q = logits.new_empty(2, *logits.shape)  # the chances, and chance (1 - chance)
    for steps_left in (2, 1, 0) if logits.dtype == torch.float32 else (3, 2, 1, 0):
        torch.addcmul(logits, sign, shift, out=q[0]).sigmoid_()
        torch.addcmul(q[0], q[0], q[0], value=-1, out=q[1])
        out, into = q[..., :k].sum(-1, keepdim=True), q[..., k:].sum(-1, keepdim=True)
        if steps_left:
            slope = (out[1] / out[0]).addcdiv_(into[1], into[0])
            shift.addcdiv_((into[0] / out[0]).log_(), slope, value=-2)
        else:  # so near that logarithms are not needed: the error becomes at most half its square
            shift.addcdiv_(into[0] - out[0], into[1] + out[1], value=-2)
    return _Solved(logits.addcmul_(sign, shift), gap.sub_(near), labels, low)


def _slopes(logits: Tensor, labels: Tensor) -> Tensor:
    """p (1 - p) of all labels: 1 - p of the k largest has its digits in the chance to leave, not in p."""
    h = logits.sigmoid()
    h.addcmul_(h, h, value=-1)
    return h[:, labels.shape[-1] :].scatter(-1, labels, h[:, : labels.shape[-1]])


def _wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits of 1 - p of all labels."""
    return logits[:, labels.shape[-1] :].neg().scatter_(-1, labels, logits[:, : labels.shape[-1]])


def _lml_loss_lean(scores: Tensor, target: Tensor, k_rows: None, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each row, whether it has a present label, and the gradient."""
    indexed = target.ndim < scores.ndim
    label, present = (place(target, scores), target.unsqueeze(-1) >= 0) if indexed else (None, target == 1)
    observed = present if indexed else present.any(-1, keepdim=True)
    if k >= scores.shape[-1]:  # all are chosen
        is_nan = scores.isnan().any(-1, keepdim=True) & observed
        gradient = torch.zeros_like(scores).masked_fill_(is_nan, torch.nan)
        return gradient[:, 0].clone(), observed.squeeze(-1), gradient
    least = torch.finfo(scores.dtype).min
    logits, beyond, labels, low = _solve(scores.masked_fill(~observed, 0.0).clamp_(least, huge(scores)), k)
    share, many = _slopes(logits, labels), low > least  # many: more than k usable labels
    slope = share.sum(-1, keepdim=True)
    share.div_(slope)
    wrong = _wrong(logits.sub_(beyond, alpha=0.5), labels)
    del logits
    if label is not None:
        wrong, scores = wrong.gather(-1, label), scores.gather(-1, label)
    wrong.masked_fill_((scores == float("-inf")) & many, torch.inf)
    many = torch.add(many, slope, alpha=0)  # NaN where the row has one
    wrong.masked_fill_(~present, float("-inf"))
    losses = softplus(wrong)
    pull = wrong.sigmoid_()
    share.mul_(pull.sum(-1, keepdim=True))
    gradient = share.sub_(pull) if label is None else share.scatter_add_(-1, label, pull.neg_())
    return losses.sum(-1).mul_(many.squeeze(-1)), observed.squeeze(-1), gradient.mul_(many)


def _lml_loss_twin(scores: Tensor, target: Tensor, k_rows: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    """-sum over the present labels of log p; each row's loss and whether it has a present label."""
    present = is_present(target, scores)
    observed = present.any(-1)
    t, _ = _Shift.apply(torch.where(observed.unsqueeze(-1), scores, 0.0), k if k_rows is None else k_rows)
    rows = torch.where(present, -F.logsigmoid(t), 0.0).sum(-1)
    return torch.where(t.detach().isinf().all(-1), 0.0, rows), observed


_LOSS = RowLoss(ops.lml_loss, _lml_loss_twin, _targets.indices_or_matrix, lean=_lml_loss_lean)


def _check_k(k: int | Tensor, scores: Tensor) -> tuple[int, Tensor | None]:
    """k as a number, or as one number per row; a row may ask for more labels than it has."""
    if not isinstance(k, Tensor):
        return min(whole(k, "k", 1), scores.shape[-1]), None
    rows = scores.shape[:-1]
    check_tensor(scores, k, "k")
    if k.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8) or k.shape != rows:
        raise ShortlistError(
            f"k must be a whole number or an integer tensor with one per row, of shape {tuple(rows)}; "
            f"got {k.dtype} of shape {tuple(k.shape)}"
        )
    refuse(k < 1, device_flags.K, lambda _: ShortlistError(f"k must be at least 1 in every row, got {int(k.min())}"))
    return 1, k.long()


def _over_temperature(scores: Tensor, temperature: float, k: int | Tensor, mask: Tensor | None = None) -> Tensor:
    """Less the k-th largest of its row, which the projection does not notice: so an offset costs no digits."""
    check_positive(temperature, "temperature")
    if temperature == 1 or not scores.numel():
        return scores
    scores = in_compute_type(scores)
    usable = apply_mask(scores, mask).detach()
    if isinstance(k, int):  # only this of the split, which takes several times as long
        high = finite(usable).topk(k, sorted=False).values.amin(-1, keepdim=True)
        high = high.masked_fill(high == float("-inf"), 0.0)
    else:
        high = split(usable, k).high
    x = (finite(scores) - high) / temperature
    # a quotient that overflows is a score as low as can be: -inf would take the label out of its row
    return torch.where(scores == float("-inf"), x, bounded(x))


def lml(
    scores: Tensor,
    k: int | Tensor,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """Limited Multi-Label projection: scores to probabilities that sum to exactly k along ``dim``.

    Formula:
        p = argmin over {0 <= p <= 1, sum p = k} of -s.p - H(p),   H the sum of binary entropies
          = sigmoid(s + nu), nu the number that makes the sum k

    Differentiable to any order. k is a number or a tensor with one per row. A row with no more than k usable labels
    (mask, -inf) gives each of them 1. Unlike softmax, k = 1 is not a softmax (the regulariser is the binary entropy);
    `subset_marginals` is the generalisation that is.

    Reference:
        Amos, Koltun, Kolter, "The Limited Multi-Label Projection Layer", 2019.

    Example:
        >>> p = lml(torch.tensor([2.0, 1.0, 0.0, -1.0]), k=2)
        >>> p, f"{p.sum():.4f}"
        (tensor([0.8176, 0.6225, 0.3775, 0.1824]), '2.0000')
    """
    usual = dim == -1 and mask is None and type(temperature) is float and temperature == 1
    if usual and type(k) is int and is_plain(scores) and 0 < k <= scores.shape[1] and scores.numel():
        return _project(scores, k)
    check_scores(scores)
    x = apply_mask(scores, mask)
    dims = x.ndim
    if not -dims <= dim < dims:
        raise ShortlistError(f"dim must be between {-dims} and {dims - 1} for scores {tuple(x.shape)}, got {dim}")
    is_last = dim in (-1, dims - 1)
    x = x if is_last else x.movedim(dim, -1)
    number, k_rows = _check_k(k, x)
    x = _over_temperature(x, temperature, number if k_rows is None else k_rows)
    if x.numel() == 0:
        return scores.clone()
    flat = x if dims == 2 else x.reshape(-1, x.shape[-1])
    k_rows = None if k_rows is None else k_rows.reshape(-1)
    p = _Projection(number)(flat, k_rows)
    p = p if dims == 2 else p.reshape(x.shape)
    p = p if is_last else p.movedim(-1, dim)
    return p if p.dtype == scores.dtype else p.to(scores.dtype)


def lml_loss(
    scores: Tensor,
    target: Target,
    k: int | Tensor,
    *,
    mask: Tensor | None = None,
    temperature: float = 1.0,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
    soft: bool | None = None,
) -> Tensor:
    """Negative log-likelihood of the present labels under the LML projection.

    Formula:
        L = -sum_{j in Y} log p_j,   p = lml(s / temperature, k)

    Use it when:
        k labels are to be predicted together, and one or several are observed: top-k training with noisy labels, or the
        relations of an image (scene graphs).

    Needs:
        indices or label matrix, unknowns, shares
        Absent and unknown labels count alike: only present ones enter the likelihood. A row with no more than k usable
        labels has loss 0.

    Reference:
        Amos, Koltun, Kolter, "The Limited Multi-Label Projection Layer", 2019, algorithm 2.

    Options:
        k: a number, or a tensor with one per row.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        temperature: the scores are divided by it.
        weight: one per class (index targets only). sample_weight: one per row.
        reduction: "mean" (over rows with a present label), "sum" or "none".
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.
        soft: whether floats of the scores' shape are shares of labels. None: their values tell; where nobody looks at
            them, on a GPU or under ``torch.compile``, they are a label matrix.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
        >>> lml_loss(scores, torch.tensor([1]), k=2), lml_loss(scores, torch.tensor([[1, 0, -1, 1]]), k=2)
        (tensor(0.4741), tensor(1.9028))
    """
    check_scores(scores)
    number, k_rows = _check_k(k, scores)
    x = _over_temperature(scores, temperature, number if k_rows is None else k_rows, mask)
    loss = _LOSS(x, target, (k_rows, number), mask, weight, sample_weight, reduction, sync, soft)
    return loss if loss.dtype == scores.dtype else loss.to(scores.dtype)
