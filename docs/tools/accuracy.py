"""Print the table of Why exact: how far the gradient of the smooth top-k loss is from 50-digit arithmetic.

``python docs/tools/accuracy.py``; takes about a minute. Ours beside the published method as PyPI has it (difftopk).
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers import SmoothTopKLoss
from docstring_parts import table
from tests import oracles

import shortlist.functional as F

# labels, k, tau
CASES = [
    (100, 1, 1.0),
    (1000, 5, 1.0),
    (1000, 5, 0.1),
    (1000, 5, 0.01),
    (1000, 20, 1.0),
    (1000, 100, 1.0),
    (100, 99, 1.0),
]
ROWS, SCALE, LABEL = 10, 3.0, 7


def main() -> None:
    print(table(["n", "k", "τ", "ours, float32", "difftopk, float32", "ours, float64", "difftopk, float64"], _rows()))


def _rows() -> list[list[str]]:
    rows = []
    for n, k, tau in CASES:
        scores = SCALE * torch.randn(ROWS, n, generator=torch.Generator().manual_seed(n + k))
        exact = np.stack(
            [
                oracles.smooth_topk(tuple(row.double().tolist()), LABEL, k, tau, 1.0, tuple(range(n)))[1]
                for row in scores
            ]
        )
        cells = [_error(loss, scores.to(dtype), k, tau, exact) for dtype in _TYPES for loss in (_ours, _peer)]
        rows.append([str(n), str(k), f"{tau:g}", *cells])
    return rows


def _error(loss: Callable[..., torch.Tensor], scores: torch.Tensor, k: int, tau: float, exact: np.ndarray) -> str:
    """The worst row's worst entry, relative to that row's largest."""
    leaf = scores.requires_grad_()
    try:
        (gradient,) = torch.autograd.grad(loss(leaf, torch.full((ROWS,), LABEL), k, tau).sum(), leaf)
    except AssertionError:
        return "refused"
    error = np.abs(gradient.double().numpy() - exact).max(1) / np.abs(exact).max(1)
    return f"{error.max():.0e}"


def _ours(scores: torch.Tensor, target: torch.Tensor, k: int, tau: float) -> torch.Tensor:
    return F.smooth_topk_loss(scores, target, k, tau=tau, reduction="none")


def _peer(scores: torch.Tensor, target: torch.Tensor, k: int, tau: float) -> torch.Tensor:
    loss: torch.Tensor = SmoothTopKLoss(scores.shape[1], k, tau=tau)(scores, target)
    return loss if loss.ndim else loss * len(scores)


_TYPES = (torch.float32, torch.float64)


if __name__ == "__main__":
    main()
