"""Which recorded relations an answer finds: the usual matching of PredCls, SGCls and SGDet."""

from __future__ import annotations

import torch
from torch import Tensor


def box_overlaps(first: Tensor, second: Tensor, *, whole_pixels: bool = False) -> Tensor:
    """Overlap over union of all boxes (xmin, ymin, xmax, ymax), (first, second).

    Args:
        first, second: (boxes, 4).
        whole_pixels: a box contains the pixels of both its edges, as in the public evaluators.

    >>> box_overlaps(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 0, 3, 2], [2, 2, 3, 3]]))
    tensor([[0.3333, 0.0000]])
    """
    more = 1 if whole_pixels else 0
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = (high - low + more).clamp(min=0).prod(2)
    areas = [(boxes[:, 2:] - boxes[:, :2] + more).prod(1) for boxes in (first, second)]
    return shared / (areas[0][:, None] + areas[1][None] - shared)
