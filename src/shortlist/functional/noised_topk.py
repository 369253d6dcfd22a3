"""The noise-smoothed top-k hinge loss, balanced and for imbalanced classes."""

import torch
import torch.nn.functional as F
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
    values_visible,
    whole,
)
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import finite, huge, wide
from shortlist.functional._row_loss import RowLoss
from shortlist.kernels import native_serves, ops

_MOST_DRAWS = 1_000_000


def _kth_largest(scores: Tensor, noise: Tensor | None, epsilon: float, k: int) -> tuple[Tensor, Tensor]:
    """Value and label of the k-th largest of scores + epsilon noise in each row (R, n); no gradient."""
    scores = scores.detach()
    if native_serves(scores):
        return ops.kth_largest(scores, noise, epsilon, k)
    noisy = scores
    if noise is not None:  # a label that takes part keeps a finite score
        noisy = torch.add(scores, noise, alpha=epsilon).clamp(-huge(scores), huge(scores))
        noisy = noisy.masked_fill(scores == float("-inf"), float("-inf"))
    top = noisy.topk(k, dim=-1)
    return top.values[..., -1], top.indices[..., -1]


def rows_of_a_draw(num_labels: int) -> int:
    """How many rows draw their noise together: few enough for the cache, and the same however a batch is cut."""
    return max(1, 2**16 // num_labels)


def _smoothed_kth(
    scores: Tensor, k: int, epsilon: float, n_samples: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Mean over the draws of the k-th largest noisy score; its gradient is the mean indicator of where it stands.

    And whether a row has fewer than k usable labels: then the mean is 0, without a gradient.
    """
    found = []
    for some in scores.split(rows_of_a_draw(scores.shape[-1])) or (scores,):
        draws = []
        for _ in range(max(n_samples, 1)):
            noise = _normal(some, generator) if n_samples and epsilon > 0 else None
            draws.append(_kth_largest(some, noise, epsilon, k))
        found.append([torch.stack(parts, dim=-1) for parts in zip(*draws, strict=True)])
    values, labels = (torch.cat(parts) for parts in zip(*found, strict=True))
    few = values == float("-inf")
    there = wide(torch.where(few, 0.0, finite(scores.gather(-1, labels))))
    drawn = wide(torch.where(few, 0.0, finite(values)))
    kth = (there + (drawn - there).detach()).mean(-1)  # in float64: a sum of huge scores is no infinity
    return kth.to(scores.dtype), few[..., 0]


def _normal(like: Tensor, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return torch.randn_like(like)
    return torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator)


def _noised_topk_twin(
    scores: Tensor,
    target: Tensor,
    margins: Tensor | None,
    k: int,
    epsilon: float,
    n_samples: int,
    scale: float,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor]:
    """Losses of all rows, and which have a label; ``margins``: one per class, or None for 1."""
    observed = target >= 0
    if not values_visible(observed) or device_flags.waits(observed) or not bool(observed.all()):
        scores = torch.where(observed.unsqueeze(-1), scores, 0.0)  # an ignored row may hold anything
    label = target.clamp(min=0)
    own = finite(scores.gather(-1, label.unsqueeze(-1)).squeeze(-1))
    kth, few = _smoothed_kth(scores, k + 1, epsilon, n_samples, generator)
    margin = 1.0 if margins is None else margins[label]
    losses = F.relu(scale * (margin + (kth - own)))
    return torch.where(few, 0.0, losses), observed  # fewer than k + 1 labels: always among them


_LOSS = RowLoss(None, _noised_topk_twin, _targets.indices, per_label=True)


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
