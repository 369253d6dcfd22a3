"""Augmentation of image batches: every image changed as its own draws say."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.data.colour import jittered, lit
from shortlist.data.draws import Draws
from shortlist.data.images import PHOTO_MEAN, PHOTO_STD
from shortlist.data.randaugment import randaugment
from shortlist.errors import ShortlistError


def augment(
    images: Tensor,
    draws: Draws,
    *,
    size: tuple[int, int] | None = None,
    area: tuple[float, float] | None = None,
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    padding: int = 0,
    flip: bool = False,
    rand_operations: int = 0,
    rand_magnitude: float = 9.0,
    jitter: Mapping[str, float] | None = None,
    lighting: float = 0.0,
    mean: Sequence[float] = PHOTO_MEAN,
    std: Sequence[float] = PHOTO_STD,
) -> Tensor:
    """Normalised images changed at random, each by itself: cropped, mirrored, then their colours.

    Args:
        images: (B, C, H, W), on any device.
        draws: what is drawn for each image.
        size: the height and width of the result; those of the images where not given. Smaller ones are cropped from
            the image at a random place.
        area, ratio: crop a box of such a share of the image and such a ratio of width to height, and resize it
            (Szegedy et al. 2015: (0.08, 1), (3/4, 4/3)).
        padding: how far an image may move beyond its edges; what comes in is zero, the mean colour.
        flip: mirror half of the images; not where left and right matter, such as in writing.
        rand_operations, rand_magnitude: RandAugment, so many operations of this magnitude (0 to 30).
        jitter: how much ``brightness``, ``contrast``, ``saturation`` (0.4: factors from 0.6 to 1.4) and ``hue`` (0.1:
            a tenth of the circle either way) may change.
        lighting: standard deviation of the noise along the principal colours of photographs (Krizhevsky et al. 2012).
        mean, std: how the images were normalised.

    >>> images = torch.arange(32.0).view(2, 1, 4, 4)
    >>> draws = Draws(0, 0, torch.tensor([5, 8]))
    >>> augment(images, draws, padding=1, flip=True).shape, augment(images, draws, size=(3, 2)).shape
    (torch.Size([2, 1, 4, 4]), torch.Size([2, 1, 3, 2]))
    >>> torch.equal(augment(images, draws), images)
    True
    """
    if images.ndim != 4 or len(images) != len(draws.rows):
        raise ShortlistError(
            f"images must have the shape (B, C, H, W), with draws for each of them, got {tuple(images.shape)} and "
            f"draws for {len(draws.rows)}"
        )
    if padding < 0:
        raise ShortlistError(f"padding must be 0 or more, got {padding}")
    height, width = images.shape[2:] if size is None else size
    if area is not None:
        images = _resized_crops(images, draws, (height, width), area, ratio)
    else:
        images = _crops(images, draws, (height, width), padding)
    if flip:
        mirrored = (draws.uniform("flip") < 0.5).to(images.device)
        images = torch.where(mirrored[:, None, None, None], images.flip(3), images)
    if not rand_operations and not jitter and not lighting:
        return images
    if images.shape[1] != 3:
        raise ShortlistError(f"changes of colour need images of 3 channels, these have {images.shape[1]}")
    middle, spread = (torch.tensor(values, device=images.device).view(3, 1, 1) for values in (mean, std))
    colours = (images * spread + middle).clamp_(0, 1)
    if rand_operations:
        colours = randaugment(colours, draws, rand_operations, rand_magnitude, fill=mean)
    if jitter:
        colours = jittered(colours, draws, **jitter)
    if lighting:
        colours = lit(colours, draws, lighting)
    return (colours - middle) / spread


def _crops(images: Tensor, draws: Draws, size: tuple[int, int], padding: int) -> Tensor:
    """Boxes of this size at a random place of the padded images, pixel by pixel."""
    count, channels, height, width = images.shape
    room = [whole + 2 * padding - wanted for whole, wanted in zip((height, width), size, strict=True)]
    if min(room) < 0:
        raise ShortlistError(f"a crop of {size} does not fit into images of {(height, width)} padded by {padding}")
    if not any(room):
        return images
    device = images.device
    top, left = (draws.whole(f"crop {side}", free + 1).to(device) for side, free in enumerate(room))
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    rows = (torch.arange(size[0], device=device) + top[:, None])[:, None, :, None]
    columns = (torch.arange(size[1], device=device) + left[:, None])[:, None, None, :]
    which = torch.arange(count, device=device)[:, None, None, None]
    return padded[which, torch.arange(channels, device=device)[None, :, None, None], rows, columns]


def _resized_crops(
    images: Tensor, draws: Draws, size: tuple[int, int], area: tuple[float, float], ratio: tuple[float, float]
) -> Tensor:
    """A box of a random area and ratio at a random place of each image, resized; where a box of this ratio would be
    larger than the image, the largest that is not."""
    height, width = images.shape[2:]
    share = draws.uniform("area", *area)
    wide = torch.exp(draws.uniform("ratio", *torch.tensor(ratio).log().tolist()))
    box_width = (share * height * width * wide).sqrt()
    box_height = box_width / wide
    fits = torch.stack([width / box_width, height / box_height, torch.ones_like(wide)]).amin(0)
    box_width, box_height = box_width * fits, box_height * fits
    left = draws.uniform("left") * (width - box_width)
    top = draws.uniform("top") * (height - box_height)
    # where each pixel of the result lies, from -1 to 1: number by number, so that no batch changes another's rounding
    across = (torch.arange(size[1]) + 0.5) / size[1] * box_width[:, None] + left[:, None]
    down = (torch.arange(size[0]) + 0.5) / size[0] * box_height[:, None] + top[:, None]
    x, y = torch.broadcast_tensors((across / width * 2 - 1)[:, None, :], (down / height * 2 - 1)[:, :, None])
    places = torch.stack([x, y], dim=3).to(images.device, images.dtype)
    return torch.nn.functional.grid_sample(images, places, padding_mode="border", align_corners=False)


def enlarged(images: Any, size: int) -> Any:
    """`Images` decoded larger than they are trained on, so that there is something to crop from: stretched or with
    their proportions, as they are."""
    if images.in_memory:
        raise ShortlistError("augment.resize is for image files; these images are pixels of one size: use padding")
    if size < max(images.size):
        raise ShortlistError(f"augment.resize must be at least the size of the images, {max(images.size)}, got {size}")
    return images.resized(size)
