"""Augmentation of image batches in plain torch."""

import torch
from torch import Tensor

from shortlist.errors import ShortlistError


def augment(images: Tensor, *, padding: int = 4, flip: bool = True, generator: torch.Generator | None = None) -> Tensor:
    """Each image moved by up to ``padding`` pixels in both directions and, half of the time, mirrored.

    The usual augmentation of small images: pad with zeros (the mean colour of normalised images), crop at random to
    the old size, mirror left and right.

    Args:
        images: (B, C, H, W), on any device.
        padding: how far an image may move.
        flip: whether to mirror; not where left and right matter, such as in writing.
        generator: where the randomness comes from, on the CPU.

    >>> image = torch.arange(4.0).view(1, 1, 2, 2)
    >>> augment(image, padding=1, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([1, 1, 2, 2])
    >>> torch.equal(augment(image, padding=0, flip=False), image)
    True
    """
    if images.ndim != 4:
        raise ShortlistError(f"images must have the shape (B, C, H, W), got {tuple(images.shape)}")
    if padding < 0:
        raise ShortlistError(f"padding must be 0 or more, got {padding}")
    count, _, height, width = images.shape
    moves = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=generator)
    mirrored = torch.randint(0, 2, (count, 1), generator=generator) == 1
    rows = torch.arange(height) + moves[0]
    columns = torch.arange(width).expand(count, width)
    if flip:
        columns = torch.where(mirrored, columns.flip(1), columns)
    columns = columns + moves[1]
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    device = images.device
    which = torch.arange(count, device=device)[:, None, None, None]
    channels = torch.arange(images.shape[1], device=device)[None, :, None, None]
    return padded[which, channels, rows.to(device)[:, None, :, None], columns.to(device)[:, None, None, :]]
