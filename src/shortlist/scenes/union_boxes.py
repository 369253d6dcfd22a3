"""The box around a subject and its object, and where both lie in it."""

import torch
from torch import Tensor

MASK_SIDE = 27  # of Neural Motifs' masks: two strides of 2 bring it to 7, the side of a pooled region


def union_boxes(boxes: Tensor, subjects: Tensor, objects: Tensor) -> Tensor:
    """The smallest box around both objects of each pair, (pairs, 4): xmin, ymin, xmax, ymax.

    >>> boxes = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 1.0, 0.4]])
    >>> union_boxes(boxes, torch.tensor([0]), torch.tensor([1]))
    tensor([[0.0000, 0.0000, 1.0000, 0.5000]])
    """
    first, second = boxes[subjects], boxes[objects]
    return torch.cat([torch.minimum(first[:, :2], second[:, :2]), torch.maximum(first[:, 2:], second[:, 2:])], 1)


def union_masks(boxes: Tensor, subjects: Tensor, objects: Tensor, side: int = MASK_SIDE) -> Tensor:
    """Subject and object drawn as rectangles into their union box, (pairs, 2, side, side), from -0.5 outside of a
    rectangle to 0.5 inside of it.

    A cell in which a rectangle begins counts by the share of the cell behind its edge, one in which it ends by the
    share before it, and one with both by the product of the two, along each axis (Zellers et al. 2018).

    >>> boxes = torch.tensor([[0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 1.0, 0.25]])
    >>> union_masks(boxes, torch.tensor([0]), torch.tensor([1]), side=2) + 0.5
    tensor([[[[1.0000, 0.0000],
              [1.0000, 0.0000]],
    <BLANKLINE>
             [[0.5000, 0.5000],
              [0.0000, 0.0000]]]])
    """
    around = union_boxes(boxes, subjects, objects)
    corner, extent = around[:, None, :2], (around[:, 2:] - around[:, :2])[:, None]
    both = torch.stack([boxes[subjects], boxes[objects]], 1)  # (pairs, 2, 4)
    begin, end = ((both[..., at : at + 2] - corner) * (side / extent) for at in (0, 2))
    cell = torch.arange(side, dtype=boxes.dtype, device=boxes.device)
    covered = (cell + 1 - begin[..., None]).clamp(0, 1) * (end[..., None] - cell).clamp(0, 1)  # (pairs, 2, 2, side)
    across, down = covered.unbind(2)
    return down[..., :, None] * across[..., None, :] - 0.5
