"""Random changes of colour. Pixels are between 0 and 1, (B, 3, H, W)."""

from math import pi

import torch
from torch import Tensor

from shortlist.data.draws import Draws
from shortlist.optional import require

# of the colours of photographs (ImageNet), as published with AlexNet: standard deviations along the principal axes
_DEVIATIONS = (0.2175, 0.0188, 0.0045)
_AXES = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))


def jittered(
    images: Tensor,
    draws: Draws,
    *,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    hue: float = 0.0,
) -> Tensor:
    """Brightness, contrast, saturation and hue changed at random, in this order."""
    enhance = require("kornia.enhance", extra="augment")

    def factor(what: str, most: float) -> Tensor:
        return draws.uniform(what, max(0.0, 1 - most), 1 + most).to(images.device, images.dtype)

    if brightness:
        images = enhance.adjust_brightness_accumulative(images, factor("brightness", brightness))
    if contrast:
        images = with_contrast(images, factor("contrast", contrast))
    if saturation:
        images = enhance.adjust_saturation_with_gray_subtraction(images, factor("saturation", saturation))
    if hue:
        turn = draws.uniform("hue", -hue, hue).to(images.device, images.dtype)
        images = enhance.adjust_hue(images, turn * 2 * pi)
    return images


def with_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Between the mean grey of each image (factor 0) and the image (1), and beyond."""
    gray = require("kornia.color", extra="augment").rgb_to_grayscale(images)
    # a sum over a batch would be rounded otherwise than a sum over one image
    mean = torch.stack([one.mean() for one in gray])[:, None, None, None]
    return (mean + (images - mean) * factor[:, None, None, None]).clamp_(0, 1)


def lit(images: Tensor, draws: Draws, deviation: float) -> Tensor:
    """Noise along the principal colours of photographs, the same for all pixels of an image."""
    shift = torch.zeros(len(images), 3, dtype=torch.float64)
    for axis, (spread, direction) in enumerate(zip(_DEVIATIONS, zip(*_AXES, strict=True), strict=True)):
        along = draws.normal(f"lighting {axis}") * (deviation * spread)
        shift += along[:, None] * torch.tensor(direction, dtype=torch.float64)
    return (images + shift.to(images.device, images.dtype)[:, :, None, None]).clamp_(0, 1)
