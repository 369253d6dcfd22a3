"""Images: files that are decoded when asked for, or pixels already in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.data.inputs import OwnTarget
from shortlist.data.limits import check_pixels, limit
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.labels.label_set_inputs import as_positions
from shortlist.optional import require

Pixels = NDArray[np.uint8]

# means and standard deviations of the channels of photographs (ImageNet), the convention of most backbones
ZOOM = 8 / 7  # 256 / 224, the convention of the same
_LOOKED_AT = 64  # files at once, where only whether they can be decoded matters
_MISSING = "no such image: "
PHOTO_MEAN, PHOTO_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True, eq=False)
class Images(OwnTarget):
    """N images of one size, from files or from an array.

    Args:
        source: paths of image files, decoded by Pillow when asked for; or pixels, uint8 of shape (N, H, W, C).
        size: what files are resized to, (height, width).
        crop: keep the proportions: resize so that the image covers ``zoom`` times ``size`` and keep the middle. Without
            it the image is stretched to ``size``, so that no label is cut off.
        zoom: with ``crop``, how much larger than ``size`` the image is made before it is cut.
        mean, std: per channel, of values between 0 and 1: ``batch`` gives ``(pixels / 255 - mean) / std``.
        broken: where files that cannot be decoded are noted, path -> reason, and then seen as black; without it the
            first one is an error.

    >>> images = Images(np.zeros((5, 8, 8, 1), dtype=np.uint8), mean=(0.5,), std=(0.5,))
    >>> len(images), images.shape, images.batch([0, 3]).shape, images[4].shape
    (5, (1, 8, 8), torch.Size([2, 1, 8, 8]), (8, 8, 1))
    """

    kind: ClassVar[str] = "images"

    source: Sequence[str] | Pixels
    size: tuple[int, int] = (224, 224)
    crop: bool = False
    zoom: float = ZOOM
    mean: tuple[float, ...] = PHOTO_MEAN
    std: tuple[float, ...] = PHOTO_STD
    broken: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, np.ndarray):
            if self.source.ndim != 4 or self.source.dtype != np.uint8:
                raise ShortlistError(
                    f"pixels must be uint8 of shape (N, H, W, C), got {self.source.shape} of {self.source.dtype}"
                )
            object.__setattr__(self, "size", self.source.shape[1:3])
        elif isinstance(self.source, str):
            raise ShortlistError(f"source must be a sequence of paths, got the single string {self.source!r}")
        if min(self.size) < 1:
            raise ShortlistError(f"size must be at least 1 in each direction, got {self.size}")
        channels = self.source.shape[3] if isinstance(self.source, np.ndarray) else 3
        if len(self.mean) != channels or len(self.std) != channels or min(self.std) <= 0:
            raise ShortlistError(
                f"mean and std must have one value for each of {channels} channels, std above 0, "
                f"got {self.mean} and {self.std}"
            )

    @classmethod
    def from_files(cls, paths: Iterable[PathLike], size: int, crop: bool) -> Images:
        """Square images of these files."""
        return cls(tuple(os.fspath(path) for path in paths), (size, size), crop)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return len(self.mean), *self.size

    @property
    def in_memory(self) -> bool:
        """Whether the pixels are there already, so that nothing has to be decoded."""
        return isinstance(self.source, np.ndarray)

    def with_target(self, index: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return self.batch(index), target[index]

    def facts(self) -> dict[str, Any]:
        return {"mean": list(self.mean), "std": list(self.std), "crop": self.crop}

    def each_in_words(self) -> str:
        return f"images of {' x '.join(map(str, self.shape))}"

    def __getitem__(self, row: int) -> Pixels:
        """One image as it is seen: uint8 (H, W, C)."""
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[row])
        try:
            return decode(self.source[row], self.size, self.crop, self.zoom)
        except ShortlistError as error:
            if self.broken is None:
                raise
            self.broken[self.source[row]] = str(error)
            return np.zeros((*self.size, 3), dtype=np.uint8)

    def thumbnail(self, row: int) -> Pixels | None:
        """One image to look at, whole and in its proportions; None where its file is gone or cannot be decoded."""
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[row])
        try:
            return decode(self.source[row])
        except ShortlistError:
            return None

    def pixels(self, index: Any) -> Pixels:
        """These images, uint8 of shape (B, H, W, C); files are decoded by several threads."""
        rows = as_positions(index, len(self), "example")
        if isinstance(self.source, np.ndarray):
            return np.ascontiguousarray(self.source[rows])
        out = np.empty((len(rows), *self.size, 3), dtype=np.uint8)
        workers = min(torch.get_num_threads(), len(rows))
        if workers > 1:  # Pillow decodes without the interpreter's lock
            with ThreadPoolExecutor(workers) as pool:
                for place, image in enumerate(pool.map(self.__getitem__, rows.tolist())):
                    out[place] = image
        else:
            for place, row in enumerate(rows.tolist()):
                out[place] = self[row]
        return out

    def look_at_all(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Decode every file once, so that those that cannot be are known in ``broken``."""
        for begin in range(0, len(self), _LOOKED_AT):
            end = min(begin + _LOOKED_AT, len(self))
            self.pixels(np.arange(begin, end))
            if progress is not None:
                progress(end, len(self))

    def batch(self, index: Any) -> Tensor:
        """These images as a network takes them: float32 (B, C, H, W), normalised."""
        pixels = torch.from_numpy(self.pixels(index)).permute(0, 3, 1, 2).to(torch.float32).contiguous()
        mean = torch.tensor(self.mean).mul_(255).view(-1, 1, 1)
        std = torch.tensor(self.std).mul_(255).view(-1, 1, 1)
        return pixels.sub_(mean).div_(std)

    def subset(self, index: Any) -> Images:
        rows = as_positions(index, len(self), "example")
        if isinstance(self.source, np.ndarray):
            return replace(self, source=self.source[rows])
        return replace(self, source=tuple(self.source[row] for row in rows.tolist()))

    def resized(self, size: int) -> Images:
        """The same files at another size, whole: stretched to a square, or the largest square in the middle."""
        return replace(self, size=(size, size), zoom=1.0)

    def normalised(self, mean: Sequence[float], std: Sequence[float]) -> Images:
        """The same images for a network that wants them scaled otherwise.

        >>> images = Images(np.full((1, 1, 1, 1), 255, dtype=np.uint8), mean=(0.5,), std=(0.5,))
        >>> images.batch([0]).item(), images.normalised([0.0], [1.0]).batch([0]).item()
        (1.0, 1.0)
        """
        return replace(self, mean=tuple(mean), std=tuple(std))


def decode(path: PathLike, size: tuple[int, int] | None = None, crop: bool = False, zoom: float = ZOOM) -> Pixels:
    """The pixels of an image file, uint8 (H, W, 3), upright, resized to ``size`` if given.

    A ValueError names the file when it is missing, truncated or no image.
    """
    pil = require("PIL.Image")
    # who allows more here allows it to Pillow too
    if limit("SHORTLIST_MAX_PIXELS") > (pil.MAX_IMAGE_PIXELS or math.inf):
        pil.MAX_IMAGE_PIXELS = limit("SHORTLIST_MAX_PIXELS")
    try:
        with pil.open(path) as image:
            if size is not None:
                image.draft("RGB", (2 * max(size), 2 * max(size)))  # lets JPEG skip detail that resizing would lose
            check_pixels(image.width, image.height)
            return as_pixels(image, size, crop, zoom)
    except FileNotFoundError:
        raise ShortlistError(f"{_MISSING}{os.fspath(path)}") from None
    except (OSError, SyntaxError, ValueError, pil.DecompressionBombError) as error:
        reason = why_not_decoded(error).replace(repr(os.fspath(path)), "it")
        raise ShortlistError(f"cannot decode the image {os.fspath(path)}: {reason}") from error


def is_missing(reason: str) -> bool:
    """Whether `decode` says with this that there is no such file."""
    return reason.startswith(_MISSING)


def left_out_in_words(reasons: Sequence[str]) -> str:
    """How many images are left out for such reasons.

    >>> left_out_in_words(["cannot decode the image a.png: cut off", "no such image: b.png", "no such image: c.png"])
    '1 image that cannot be decoded, 2 images that are not there'
    """
    missing = sum(map(is_missing, reasons))
    counts = {"that cannot be decoded": len(reasons) - missing}
    counts[f"that {'is' if missing == 1 else 'are'} not there"] = missing
    return ", ".join(f"{count} image{'s' * (count > 1)} {what}" for what, count in counts.items() if count)


def why_not_decoded(error: Exception) -> str:
    """What Pillow says, in words that name no object of its own."""
    no_image = isinstance(error, require("PIL.Image").UnidentifiedImageError)
    return "it is no image that Pillow reads, or damaged at its beginning" if no_image else str(error)


def as_pixels(image: Any, size: tuple[int, int] | None = None, crop: bool = False, zoom: float = ZOOM) -> Pixels:
    """The pixels of an open Pillow image, as `decode` gives those of a file."""
    pil = require("PIL.Image")
    found = require("PIL.ImageOps").exif_transpose(image)
    if found.mode in ("P", "LA", "PA", "RGBA"):  # what shines through is white
        found = pil.alpha_composite(pil.new("RGBA", found.size, "white"), found.convert("RGBA"))
    if found.mode.startswith("I;16"):  # Pillow would make everything above 255 white
        found = pil.fromarray((np.asarray(found) / 257).round().astype(np.uint8))
    elif found.mode in ("I", "F"):
        low, high = found.getextrema()
        if low < 0 or high > 255 or (found.mode == "F" and 0 < high <= 1):
            raise ShortlistError(f"its pixels are from {low:g} to {high:g}: save it with 8 or 16 bits for each")
    found = found.convert("RGB")
    if size is not None:
        found = _resized(pil, found, size, crop, zoom)
    return np.asarray(found)


def _resized(pil: Any, image: Any, size: tuple[int, int], crop: bool, zoom: float) -> Any:
    height, width = size
    if (image.width, image.height) == (width, height):
        return image
    if not crop:
        return image.resize((width, height), pil.Resampling.BICUBIC)
    scale = max(width / image.width, height / image.height) * zoom
    box_width, box_height = width / scale, height / scale
    left, top = (image.width - box_width) / 2, (image.height - box_height) / 2
    return image.resize((width, height), pil.Resampling.BICUBIC, box=(left, top, left + box_width, top + box_height))
