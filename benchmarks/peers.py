"""The peers that PyPI offers, set up as their users would.

What each computes, next to ours:

- `difftopk.SmoothTopKLoss`: the smooth top-k loss with margin 1, the same number as `F.smooth_topk_loss`, by the
  published divide and conquer with its approximate gradient.
- `pytopk.BalNoisedTopK`, `ImbalNoisedTopK`: the noise-smoothed top-k hinge, the same as `F.noised_topk_loss` up to the
  random draws.
- `entmax.budget_bisect`: a projection onto the same polytope as `F.lml` (entries in [0, 1], sum k), but the Euclidean
  one, whose answer is sparse; ours is the entropic one. The nearest thing there is, not the same function.
"""

import contextlib
import io

import torch
from entmax import budget_bisect
from pytopk import BalNoisedTopK, ImbalNoisedTopK
from torch import Tensor

with contextlib.redirect_stdout(io.StringIO()):  # it prints that an optional package is missing
    from difftopk import SmoothTopKLoss

BISECTIONS = 24  # what entmax's documentation says float32 needs; its default is 50


def smooth_topk(labels: int, k: int) -> torch.nn.Module:
    """difftopk's smooth top-k loss, temperature 1."""
    return SmoothTopKLoss(labels, k)


def noised_topk(labels: int, k: int, draws: int, imbalanced: bool = False) -> torch.nn.Module:
    """pytopk's noised loss; the imbalanced one has 1, 2, 3, ... examples of its classes."""
    if not imbalanced:
        return BalNoisedTopK(k, epsilon=1.0, n_sample=draws)
    return ImbalNoisedTopK(k, 1.0, max_m=0.3, cls_num_list=range(1, labels + 1), scale=50, n_sample=draws)


def budget_sparsemax(scores: Tensor, k: int) -> Tensor:
    """entmax's sparse projection with entries that sum to k."""
    return budget_bisect(scores, budget=k, n_iter=BISECTIONS)
