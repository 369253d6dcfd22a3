"""The smooth top-k loss on top of any algorithm for the symmetric sums (Berrada et al. 2018, equation 10)."""

import torch
import torch.nn.functional as torch_functional
from torch import Tensor

from shortlist_recipes.published.recursive_backward import Algorithm, LogSums


def smooth_topk_loss(
    scores: Tensor,
    target: Tensor,
    k: int,
    *,
    algorithm: Algorithm,
    custom_backward: bool,
    tau: float = 1.0,
    alpha: float = 1.0,
) -> Tensor:
    """The mean smooth top-k loss, differentiated by autograd or by the paper's own backward.

    >>> from shortlist_recipes.published.divide_and_conquer import divide_and_conquer
    >>> scores, target = torch.zeros(2, 10), torch.tensor([3, 7])
    >>> smooth_topk_loss(scores, target, 5, algorithm=divide_and_conquer, custom_backward=True)
    tensor(1.3133)
    """
    rows, labels = scores.shape
    others = torch.ones_like(scores, dtype=torch.bool).scatter_(1, target[:, None], False)
    log_e = scores[others].view(rows, labels - 1) / (k * tau)
    own = scores.gather(1, target[:, None])[:, 0] / (k * tau)
    if custom_backward:
        below, at = LogSums.apply(log_e, k, algorithm)
    else:
        below, at = algorithm(log_e, k)[k - 1 : k + 1]
    # equation 10 divided through by exp(s_y / k tau) sigma_(k-1)
    return tau * torch_functional.softplus(alpha / tau + at - below - own).mean()
