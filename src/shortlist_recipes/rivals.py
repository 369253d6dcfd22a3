"""What is measured beside our losses: the published algorithms, written from their papers, and the peers from PyPI."""

import contextlib
import io
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor

from shortlist_recipes.published.bracketing import lml_by_bracketing
from shortlist_recipes.published.divide_and_conquer import divide_and_conquer
from shortlist_recipes.published.smooth_topk import smooth_topk_loss
from shortlist_recipes.published.summation import summation

Loss = Callable[[Tensor, Tensor], Tensor]
PEERS = ("difftopk", "pytopk")


def published(algorithm: str, k: int, tau: float = 1.0) -> Loss:
    """SA or DC, differentiated by autograd (AD) or by the paper's own backward (CB); or LML by bracketing."""
    if algorithm == "LML bracketing":

        def lml(scores: Tensor, target: Tensor) -> Tensor:
            chances = lml_by_bracketing(scores, k, points=10)  # what its paper takes on a CPU
            return -torch.log(chances.gather(1, target[:, None]) + 1e-8).mean()

        return lml
    name, _, backward = algorithm.partition(" ")
    sums = {"SA": summation, "DC": divide_and_conquer}[name]
    return lambda scores, target: smooth_topk_loss(
        scores, target, k, algorithm=sums, custom_backward=backward == "(CB)", tau=tau
    )


def installed_peers() -> list[str]:
    return [name for name in PEERS if find_spec(name) is not None]


def peer(package: str, n: int, k: int) -> Loss:
    """difftopk's smooth top-k loss, or pytopk's noised one with five draws."""
    made: Loss
    if package == "difftopk":
        with contextlib.redirect_stdout(io.StringIO()):  # it prints that an optional package is missing
            from difftopk import SmoothTopKLoss
        made = SmoothTopKLoss(n, k)
    else:
        from pytopk import BalNoisedTopK

        made = BalNoisedTopK(k, epsilon=1.0, n_sample=5)
    return made
