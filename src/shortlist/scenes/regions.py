"""What an image backbone sees in boxes: RoI align over its feature maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.scenes.union_boxes import union_boxes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIDE = 7  # of a pooled region, as for VGG and ResNet detectors
_SAMPLES = 2  # points along each side of a pooled cell


class RegionFeatures(NamedTuple):
    """What was seen in every box, and in the box around every pair."""

    boxes: Tensor  # (objects, channels), or (objects, channels, side, side)
    unions: Tensor  # (pairs, ...)


def roi_align(
    maps: Tensor, boxes: Tensor, counts: Sequence[int], *, side: int = SIDE, samples: int = _SAMPLES
) -> Tensor:
    """The maps within boxes, brought to one size, (boxes, channels, side, side) (RoI align, He et al. 2017).

    A box is cut into side x side cells; a cell is the mean of samples x samples points spread evenly in it, each
    interpolated between the four nearest pixels. Nothing is rounded: pixel (i, j) of a map of height H stands for the
    point (i + 0.5) / H of the image's height. What lies beyond the outermost pixels is as they are.

    Args:
        maps: (images, channels, height, width).
        boxes: (boxes, 4), image after image: xmin, ymin, xmax, ymax as shares of the image's width and height.
        counts: how many boxes each image has.
        side: cells along each side.
        samples: points along each side of a cell.

    >>> ramp = torch.arange(8.0).expand(1, 1, 8, 8)  # the value is the column
    >>> roi_align(ramp, torch.tensor([[0.25, 0.0, 0.75, 1.0]]), [1], side=2)[0, 0]
    tensor([[2.5000, 4.5000],
            [2.5000, 4.5000]])
    """
    if maps.ndim != 4 or len(counts) != len(maps) or sum(counts) != len(boxes):
        raise ShortlistError(
            f"maps must be (images, channels, height, width) with a count of boxes for each image, got maps of shape "
            f"{tuple(maps.shape)}, {len(counts)} counts and {len(boxes)} boxes of which the counts name {sum(counts)}"
        )
    points = (torch.arange(side * samples, dtype=maps.dtype, device=maps.device) + 0.5) / (side * samples)
    corner, far = boxes.to(maps.dtype).split(2, 1)
    at = corner[:, None] + points[:, None] * (far - corner)[:, None]  # (boxes, points, 2)
    at = 2 * at - 1  # grid_sample's: -1 and 1 are the image's edges
    x, y = at.unbind(2)
    grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), -1)  # (boxes, rows, columns, 2)
    pooled = [maps.new_zeros(0, maps.shape[1], side, side)]
    for own, places in zip(maps.split(1), grid.split(list(counts)), strict=True):
        if not len(places):
            continue
        seen = F.grid_sample(own, places.flatten(0, 1)[None], padding_mode="border", align_corners=False)
        seen = F.avg_pool2d(seen[0], samples)  # (channels, boxes * side, side)
        pooled.append(seen.unflatten(1, (len(places), side)).transpose(0, 1))
    return torch.cat(pooled)


def region_features(
    backbone: nn.Module,
    images: Tensor,
    boxes: Tensor,
    counts: Sequence[int],
    subjects: Tensor,
    objects: Tensor,
    *,
    side: int = SIDE,
    pooled: bool = True,
) -> RegionFeatures:
    """What a backbone sees in every box and around every pair of objects; the maps are computed once.

    Args:
        backbone: a network with ``maps``.
        images: (images, channels, height, width), as the backbone wants them.
        boxes: (objects, 4) as shares of the image's sides, image after image.
        counts: objects of each image.
        subjects: (pairs,), rows of ``boxes``, image after image.
        objects: (pairs,).
        side: of a region.
        pooled: the mean of each region, (rows, channels); otherwise the region itself.

    >>> from shortlist.models import build_backbone
    >>> network = build_backbone("convnet", in_shape=(3, 32, 32), widths=(4, 8)).eval()
    >>> boxes = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.2, 0.2, 1.0, 1.0]])
    >>> pair = torch.tensor([0, 1]), torch.tensor([1, 0])
    >>> seen = region_features(network, torch.rand(1, 3, 32, 32), boxes, [2], *pair)
    >>> seen.boxes.shape, seen.unions.shape
    (torch.Size([2, 8]), torch.Size([2, 8]))
    """
    maps = maps_of(backbone)(images)
    first = torch.tensor(counts).cumsum(0)
    image = torch.searchsorted(first, subjects.cpu(), right=True)
    pairs = torch.bincount(image, minlength=len(counts)).tolist()
    found = (
        roi_align(maps, boxes, counts, side=side),
        roi_align(maps, union_boxes(boxes, subjects, objects), pairs, side=side),
    )
    return RegionFeatures(*(regions.mean((2, 3)) if pooled else regions for regions in found))


def maps_of(backbone: nn.Module) -> Callable[[Tensor], Tensor]:
    """The backbone's ``maps``; a ShortlistError where it has none."""
    maps: Callable[[Tensor], Tensor] | None = getattr(backbone, "maps", None)
    if maps is None:
        raise ShortlistError(
            f"{type(backbone).__name__} has no feature maps: use convnet, densenet, resnet18, resnet50, "
            f"resnet101, vgg16, efficientnet-lite0, or a network of your own with a method maps(images)"
        )
    return maps
