"""The objective for a target, where nothing is asked for."""

import warnings

import torch
from torch import Tensor

from shortlist.errors import ShortlistWarning


def usual_objective(target: Tensor) -> tuple[str, bool]:
    """The objective for this target, and whether unknown labels are to be taken as absent.

    >>> usual_objective(torch.tensor([0, 2, 1])), usual_objective(torch.tensor([[1, 0], [-1, 1]]))
    (('cross-entropy', False), ('binary', False))
    """
    if target.ndim == 1:
        return "cross-entropy", False
    if bool((target == 0).any()) or not bool((target == -1).any()):
        return "binary", False
    name = "assume-negative" if bool(((target == 1).sum(1) <= 1).all()) else "binary"
    warnings.warn(
        f"no label is known to be absent (the target holds no 0): unknown ones are taken as absent, by the objective "
        f"{name!r}; see the guide to partial labels for objectives made for this",
        ShortlistWarning,
        stacklevel=4,
    )
    return name, True


def unknown_as_absent(target: Tensor) -> Tensor:
    """Unknown labels become absent ones, in the rows that have a present one; other rows say nothing.

    >>> unknown_as_absent(torch.tensor([[1, -1], [-1, -1]]))
    tensor([[ 1,  0],
            [-1, -1]])
    """
    return torch.where((target == -1) & (target == 1).any(1, keepdim=True), 0, target)
