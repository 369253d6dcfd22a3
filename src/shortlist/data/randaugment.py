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


def _moved(images: Tensor, across: Tensor, down: Tensor, fill: Tensor) -> Tensor:
    """The pixels at these places (B, H, W), counted from the middle of the image; ``fill`` where it has none."""
    height, width = images.shape[2:]
    places = torch.stack([across * (2 / width), down * (2 / height)], dim=3)
    found: Tensor = torch.nn.functional.grid_sample(images - fill, places, align_corners=False)
    return (found + fill).clamp_(0, 1)


def _grid(images: Tensor) -> tuple[Tensor, Tensor]:
    height, width = images.shape[2:]
    across = torch.arange(width, device=images.device, dtype=images.dtype) + (0.5 - width / 2)
    down = torch.arange(height, device=images.device, dtype=images.dtype) + (0.5 - height / 2)
    return across[None, None, :].expand(1, height, width), down[None, :, None].expand(1, height, width)


def _rotate(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    across, down = _grid(images)
    angle = (strength * (pi / 6))[:, None, None]
    return _moved(images, angle.cos() * across - angle.sin() * down, angle.sin() * across + angle.cos() * down, fill)


def _shear_x(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    across, down = _grid(images)
    return _moved(images, across - 0.3 * strength[:, None, None] * down, down.expand(len(images), -1, -1), fill)


def _shear_y(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    across, down = _grid(images)
    return _moved(images, across.expand(len(images), -1, -1), down - 0.3 * strength[:, None, None] * across, fill)


def _translate_x(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    across, down = _grid(images)
    far = (strength * (150 / 331 * images.shape[3])).round()[:, None, None]
    return _moved(images, across - far, down.expand(len(images), -1, -1), fill)


def _translate_y(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    across, down = _grid(images)
    far = (strength * (150 / 331 * images.shape[2])).round()[:, None, None]
    return _moved(images, across.expand(len(images), -1, -1), down - far, fill)


def _brightness(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    changed: Tensor = _enhance().adjust_brightness_accumulative(images, 1 + 0.9 * strength)
    return changed


def _colour(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    changed: Tensor = _enhance().adjust_saturation_with_gray_subtraction(images, 1 + 0.9 * strength)
    return changed


def _contrast(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    return with_contrast(images, 1 + 0.9 * strength)


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


def _posterize(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    changed: Tensor = _enhance().posterize(images, 8 - (strength.abs() * 4).round().to(torch.int32))
    return changed


def _solarize(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    changed: Tensor = _enhance().solarize(images, (1 - strength.abs()).clamp(0, 1))
    return changed


def _equalize(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    changed: Tensor = _enhance().equalize(images)
    return changed


def _autocontrast(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    """Every channel from 0 to 1; one without any contrast stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp(min=1e-6), images)


def _identity(images: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    return images


def _enhance() -> Any:
    return require("kornia.enhance", extra="augment")


OPERATIONS: dict[str, Operation] = {
    "identity": _identity,
    "shear-x": _shear_x,
    "shear-y": _shear_y,
    "translate-x": _translate_x,
    "translate-y": _translate_y,
    "rotate": _rotate,
    "brightness": _brightness,
    "colour": _colour,
    "contrast": _contrast,
    "sharpness": _sharpness,
    "posterize": _posterize,
    "solarize": _solarize,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
}
