"""Completed labels: what is known stays as it is, what is unknown is the classifier's squashed score."""

import torch
from torch import Tensor

from shortlist.checks import check_positive
from shortlist.errors import ShortlistError


def squash(scores: Tensor, c: float = 2.0) -> Tensor:
    """psi_c(x) = (1 + 1/c) sigmoid(2x - log c) - 1/c: increasing, from -1/c to 1, and 0 at 0; c = 1 is tanh.

    A present label counts 1 and an absent one -1/c: with c above 1 the many absent labels weigh less than the few
    present ones.

    >>> squash(torch.tensor([-100.0, 0.0, 100.0]), c=2)
    tensor([-0.5000,  0.0000,  1.0000])
    """
    check_positive(c, "c")
    t = torch.tanh(scores)
    return 2.0 * t / (1.0 + c + (1.0 - c) * t)  # the same function, exact at 0


def complete(target: Tensor, values: Tensor, c: float = 2.0) -> Tensor:
    """The label vectors of a label matrix: 1 where known present, -1/c where known absent, ``values`` where unknown.

    >>> complete(torch.tensor([[1, 0, -1]]), torch.tensor([[0.3, 0.3, 0.3]]))
    tensor([[ 1.0000, -0.5000, 0.3000]])
    """
    check_positive(c, "c")
    if target.shape != values.shape:
        raise ShortlistError(
            f"target has shape {tuple(target.shape)}, values have {tuple(values.shape)}: must be the same"
        )
    known = torch.where(target == 1, 1.0, -1.0 / c).to(values.dtype)
    return torch.where(target == -1, values, known)
