"""The noise-smoothed top-k hinge loss, balanced and for imbalanced classes."""

import torch
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import (
    check_k,
    check_not_negative,
    check_positive,
    check_scores,
    check_tensor,
    in_compute_type,
    number_tensor,
    refuse,
    transforms_active,
    values_visible,
    whole,
)
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import huge, place, wide
from shortlist.functional._row_loss import piecewise_linear
from shortlist.kernels import native_serves, ops

_MOST_DRAWS = 1_000_000
DRAWN_AT_ONCE = {"cpu": 2**16, "elsewhere": 2**22}  # numbers: as many as the cache of a CPU holds


def _kth_largest(scores: Tensor, noise: Tensor | None, epsilon: float, k: int) -> tuple[Tensor, Tensor]:
    """Value and label of the k-th largest of scores + epsilon noise in each row (R, n), -inf if there are fewer labels;
    no gradient. The memory of the noise is used up."""
    if native_serves(scores):
        return ops.kth_largest(scores, noise, epsilon, k)
    if noise is not None:
        scores = torch.add(scores, noise, alpha=epsilon, out=None if transforms_active() else noise)
    top = scores.topk(k, dim=-1)
    return top.values[..., -1], top.indices[..., -1]


def rows_of_a_draw(num_labels: int, device: torch.device) -> int:
    """How many rows draw their noise together: the same however a batch is cut."""
    return max(1, DRAWN_AT_ONCE.get(device.type, DRAWN_AT_ONCE["elsewhere"]) // num_labels)


def _draws(
    scores: Tensor, k: int, epsilon: float, n_samples: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """The k-th largest noisy score of each draw and its label, (rows, draws); -inf where a row has fewer labels.
    Epsilon is at most 1e15: beside the largest scores noise is nothing, and no sum becomes infinite."""
    scores, found = scores.detach(), []
    if not native_serves(scores):
        scores = scores.clamp(max=huge(scores))
    for some in scores.split(rows_of_a_draw(scores.shape[-1], scores.device)) or (scores,):
        draws = []
        noise = torch.empty_like(some, memory_format=torch.contiguous_format) if n_samples and epsilon > 0 else None
        for _ in range(max(n_samples, 1)):
            if noise is not None:
                noise.normal_(generator=generator)
            draws.append(_kth_largest(some, noise, epsilon, k))
        del noise
        found.append([torch.stack(parts, dim=-1) for parts in zip(*draws, strict=True)])
    values, labels = (parts[0] if len(parts) == 1 else torch.cat(parts) for parts in zip(*found, strict=True))
    return values, labels


def _noised_topk_lean(
    scores: Tensor,
    target: Tensor,
    margins: Tensor | None,
    k: int,
    epsilon: float,
    n_samples: int,
    scale: float,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of all rows, which have a label, and the gradient: each draw gives an equal share of it to the label that
    it has found. ``margins``: one per class, or None for 1."""
    label, ignored = place(target, scores), target < 0
    held = _without_ignored(scores, ignored)
    own, is_nan = held.gather(-1, label).clamp(max=huge(scores)), held.amax(-1, keepdim=True).isnan()
    values, labels = _draws(held, k + 1, epsilon, n_samples, generator)
    del held
    out = (values[:, :1] == float("-inf")) | ignored.unsqueeze(-1)  # fewer than k + 1 labels: always among them
    # in float64: a sum of huge scores is no infinity
    kth = wide(values.clamp(min=-huge(scores))).mean(-1, keepdim=True).to(scores.dtype)
    z = (kth - own + (1.0 if margins is None else margins[label])).masked_fill_(out, 0.0).clamp(min=0)
    slope = z.sign()
    if scale != 1:
        z, slope = z.mul_(scale), slope.mul_(scale)
    gradient = slope.new_zeros(scores.shape)
    gradient.scatter_add_(-1, labels, (slope / labels.shape[-1]).expand(labels.shape))
    gradient.scatter_add_(-1, label, slope.neg_()).masked_fill_(is_nan, torch.nan)
    return z.masked_fill_(is_nan, torch.nan).squeeze(-1), ~ignored, gradient


def _without_ignored(scores: Tensor, ignored: Tensor) -> Tensor:
    """Rows without a label may hold anything."""
    if values_visible(ignored) and not device_flags.waits(ignored) and not bool(ignored.any()):
        return scores
    return scores.masked_fill(ignored.unsqueeze(-1), 0.0)


_LOSS = piecewise_linear(None, _noised_topk_lean, _targets.indices, per_label=True, by_chance=True)


def noised_topk_loss(
    scores: Tensor,
    target: Tensor,
    k: int,
    *,
    epsilon: float = 1.0,
    n_samples: int = 5,
    class_counts: Tensor | None = None,
    max_margin: float = 0.3,
    scale: float | None = None,
    generator: torch.Generator | None = None,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Noise-smoothed top-k hinge: the label should beat the (k+1)-th largest score, averaged over Gaussian noise.

    Formula:
        L = max(0, scale (m_y + q - s_y)),   q = mean over Z of the (k+1)-th largest of s + epsilon Z
        m = 1;  with class_counts: m_y = C n_y^(-1/4), the largest equal to max_margin

    Use it when:
        an answer counts as right if the label is among the k, and classes are many and imbalanced (class_counts): a
        rare class gets a larger margin.

    Needs:
        indices, shares
        1 <= k <= L - 1. A row with fewer than k + 1 usable labels (mask, -inf) has loss 0.

    Reference:
        Garcin, Servajean, Joly, Salmon, "Stochastic Smoothing of the Top-K Calibrated Hinge Loss for Deep Imbalanced
        Classification", ICML 2022.

    Options:
        epsilon: size of the noise. n_samples: draws, at most a million; 0 for none (evaluation).
        class_counts: training examples per class, for the imbalanced form. max_margin: its largest margin.
        scale: multiplies the hinge's argument; None means 1.
        generator: where the noise comes from.
        mask, weight, sample_weight, reduction, sync: as in ``smooth_topk_loss``.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
        >>> noised_topk_loss(scores, torch.tensor([3]), k=1, n_samples=0)  # 1 + 1.0 - (-1.0)
        tensor(3.)
    """
    check_scores(scores)
    k = check_k(k, scores.shape[-1] - 1, "the number of labels less one")
    check_not_negative(epsilon, "epsilon")
    n_samples = whole(n_samples, "n_samples", 0)
    if n_samples > _MOST_DRAWS:
        raise ShortlistError(f"n_samples must be at most {_MOST_DRAWS:,}, got {n_samples}")
    if scale is not None:
        check_positive(scale, "scale")
    margins = None if class_counts is None else _class_margins(class_counts, in_compute_type(scores), max_margin)
    args = (margins, k, epsilon, n_samples, 1.0 if scale is None else scale, generator)
    return _LOSS(scores, target, args, mask, weight, sample_weight, reduction, sync)


def _class_margins(class_counts: Tensor, scores: Tensor, max_margin: float) -> Tensor:
    """m_y = C n_y^(-1/4) with the largest equal to max_margin, in the scores' type."""
    check_positive(max_margin, "max_margin")
    n = scores.shape[-1]
    class_counts = number_tensor(class_counts, "class_counts")
    check_tensor(scores, class_counts, "class_counts")
    if class_counts.shape != (n,):
        raise ShortlistError(
            f"class_counts must have one number per label, shape {(n,)}, got {tuple(class_counts.shape)}"
        )
    fits = (class_counts > 0) & (class_counts < torch.inf)
    needed = "a finite number of examples is needed of every class, at least one"
    refuse(
        ~fits,
        device_flags.COUNTS,
        lambda bad: ShortlistError(f"class_counts[{bad}] is {class_counts[bad].item()}: {needed}"),
    )
    margins = class_counts.double().pow(-0.25)
    return (margins * (max_margin / margins.max())).to(scores.dtype)
