"""What boxes say: of an object by itself, and of a subject, an object and the box around both."""

import torch
from torch import Tensor

from shortlist.scenes.union_boxes import union_boxes

OBJECT_NUMBERS = 7
PAIR_NUMBERS = 16
_SMALLEST = 1e-3  # of a side, as a share of the image: logarithms of smaller ones say nothing more


def object_geometry(boxes: Tensor) -> Tensor:
    """Corners (xmin, ymin, xmax, ymax as shares of the image), width, height and area of each box, (objects, 7).

    >>> object_geometry(torch.tensor([[0.0, 0.0, 0.5, 1.0]]))
    tensor([[0.0000, 0.0000, 0.5000, 1.0000, 0.5000, 1.0000, 0.5000]])
    """
    sides = boxes[:, 2:] - boxes[:, :2]
    return torch.cat([boxes, sides, sides.prod(1, keepdim=True)], 1)


def pair_geometry(boxes: Tensor, subjects: Tensor, objects: Tensor) -> Tensor:
    """Where the object is, seen from the subject, and the box around both, (pairs, 16).

    Per pair: the way from subject to object in subject sides and in object sides, the ratio of their sides (log), the
    shares of each that the other covers, overlap over union, the logarithms of both areas and of the union box's, and
    the union box's corners.

    >>> pair_geometry(torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0]]), torch.tensor([0]), torch.tensor([1]))
    tensor([[ 1.0000,  1.0000,  1.0000,  1.0000,  0.0000,  0.0000,  0.0000,  0.0000,
              0.0000, -1.3863, -1.3863,  0.0000,  0.0000,  0.0000,  1.0000,  1.0000]])
    """
    first, second = boxes[subjects], boxes[objects]
    size, other = ((box[:, 2:] - box[:, :2]).clamp(min=_SMALLEST) for box in (first, second))
    way = (second[:, :2] + second[:, 2:] - first[:, :2] - first[:, 2:]) / 2
    inner = (torch.minimum(first[:, 2:], second[:, 2:]) - torch.maximum(first[:, :2], second[:, :2])).clamp(min=0)
    shared = inner.prod(1, keepdim=True)
    area, other_area = size.prod(1, keepdim=True), other.prod(1, keepdim=True)
    around = union_boxes(boxes, subjects, objects)
    sides = (around[:, 2:] - around[:, :2]).clamp(min=_SMALLEST)
    far = 4.0  # beyond a few sides, further away makes no difference
    return torch.cat(
        [
            (way / size).clamp(-far, far),
            (way / other).clamp(-far, far),
            (other / size).log(),
            shared / area,
            shared / other_area,
            shared / (area + other_area - shared),
            area.log(),
            other_area.log(),
            sides.prod(1, keepdim=True).log(),
            around,
        ],
        1,
    )
