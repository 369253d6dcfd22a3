"""RandAugment: a few operations out of a fixed list, all of one magnitude. Pixels are between 0 and 1, (B, 3, H, W)."""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import torch
from torch import Tensor

from shortlist.data.colour import with_contrast
from shortlist.data.draws import Draws
from shortlist.optional import require

MOST = 30.0  # the largest magnitude


def randaugment(images: Tensor, draws: Draws, operations: int, magnitude: float, fill: Sequence[float]) -> Tensor:
    """So many operations on each image, one after the other, drawn from `OPERATIONS`.

    How far a magnitude goes is what torchvision's RandAugment made of the paper's: at the largest, 30, images are
    rotated by 30 degrees, sheared by 0.3, moved by 45 % of their size, blended by 0.9, keep 4 bits, and all pixels are
    inverted. Half of the time the direction is the other one. ``fill`` is the colour of what comes in from outside.

    Reference:
        Cubuk, Zoph, Shlens, Le, "RandAugment: Practical automated data augmentation with a reduced search space",
        NeurIPS 2020.
    """
    names = list(OPERATIONS)
    colour = torch.tensor(tuple(fill), device=images.device, dtype=images.dtype).view(3, 1, 1)
    for number in range(operations):
        chosen = draws.whole(f"operation {number}", len(names))
        sign = torch.where(draws.uniform(f"direction {number}") < 0.5, -1.0, 1.0)
        changed = images.clone()
        for place in chosen.unique().tolist():
            rows = (chosen == place).nonzero()[:, 0]
            strength = (sign[rows] * (magnitude / MOST)).to(images.device, images.dtype)
            at = rows.to(images.device)
            changed[at] = OPERATIONS[names[place]](images[at], strength, colour)
        images = changed
    return images


# ---- operations: images, a signed strength from -1 to 1 for each, the colour of what is outside

Operation = Callable[[Tensor, Tensor, Tensor], Tensor]


def _warp(origin: Callable[[Tensor, Tensor, Tensor, Any], tuple[Tensor, Tensor]]) -> Operation:
    """Pixels from elsewhere: ``origin`` says of how far across and down from the middle each one comes, given where it
    goes, the strength, and height and width."""

    def operation(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
        height, width = images.shape[2:]
        across = torch.arange(width, device=images.device, dtype=images.dtype) + (0.5 - width / 2)
        down = torch.arange(height, device=images.device, dtype=images.dtype) + (0.5 - height / 2)
        x, y = torch.broadcast_tensors(*origin(across, down[:, None], strength[:, None, None], (height, width)))
        places = torch.stack([x * (2 / width), y * (2 / height)], dim=3)
        found: Tensor = torch.nn.functional.grid_sample(images - fill, places, align_corners=False)
        return (found + fill).clamp_(0, 1)

    return operation


def _turned(x: Tensor, y: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    return angle.cos() * x - angle.sin() * y, angle.sin() * x + angle.cos() * y


def _sharpness(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    """Between the image smoothed (the pixel counts 5, its neighbours 1 each) and the image, or beyond; not the edge."""
    height, width = images.shape[2:]
    if min(height, width) < 3:
        return images
    total = 4 * images[:, :, 1:-1, 1:-1]
    for row in range(3):
        for column in range(3):
            total = total + images[:, :, row : row + height - 2, column : column + width - 2]
    smooth = images.clone()
    smooth[:, :, 1:-1, 1:-1] = total / 13
    return (smooth + (images - smooth) * (1 + 0.9 * strength)[:, None, None, None]).clamp_(0, 1)


def _autocontrast(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    """Every channel from 0 to 1; one without any contrast stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp(min=1e-6), images)


def _enhance() -> Any:
    return require("kornia.enhance", extra="augment")


OPERATIONS: dict[str, Operation] = {
    "identity": lambda images, strength, fill: images,
    "shear-x": _warp(lambda x, y, strength, size: (x - 0.3 * strength * y, y)),
    "shear-y": _warp(lambda x, y, strength, size: (x, y - 0.3 * strength * x)),
    "translate-x": _warp(lambda x, y, strength, size: (x - (strength * (150 / 331 * size[1])).round(), y)),
    "translate-y": _warp(lambda x, y, strength, size: (x, y - (strength * (150 / 331 * size[0])).round())),
    "rotate": _warp(lambda x, y, strength, size: _turned(x, y, strength * (pi / 6))),
    "brightness": lambda images, strength, fill: _enhance().adjust_brightness_accumulative(images, 1 + 0.9 * strength),
    "colour": lambda images, strength, fill: _enhance().adjust_saturation_with_gray_subtraction(
        images, 1 + 0.9 * strength
    ),
    "contrast": lambda images, strength, fill: with_contrast(images, 1 + 0.9 * strength),
    "sharpness": _sharpness,
    "posterize": lambda images, strength, fill: _enhance().posterize(
        images, 8 - (strength.abs() * 4).round().to(torch.int32)
    ),
    "solarize": lambda images, strength, fill: _enhance().solarize(images, (1 - strength.abs()).clamp(0, 1)),
    "autocontrast": _autocontrast,
    "equalize": lambda images, strength, fill: _enhance().equalize(images),
}
