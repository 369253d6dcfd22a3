"""In which order and in which batches an epoch sees the examples, and how they are augmented."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset, Draws, Images, augment, enlarged
from shortlist.errors import ShortlistError
from shortlist.optional import require
from shortlist.training.settings import AugmentSettings, TrainSettings


def mixed_seed(seed: int, *parts: int) -> int:
    """One 63-bit seed from several numbers; different ones for neighbouring numbers."""
    for part in parts:
        seed = (seed * 6364136223846793005 + part + 1442695040888963407) % (1 << 64)
        seed ^= seed >> 29
    return seed % (1 << 63)


def order_of(count: int, seed: int, epoch: int) -> Tensor:
    """The order in which an epoch sees the examples: the same on every process, and after resuming."""
    generator = torch.Generator().manual_seed(mixed_seed(seed, epoch, 1 << 20))
    return torch.randperm(count, generator=generator)


def batches(order: Tensor, size: int, world: int = 1) -> list[Tensor]:
    """The order cut into batches that every process can take an equal share of.

    A last batch of less than two examples per process joins the one before (batch norm cannot use a single one); up to
    ``world - 1`` examples per batch are left out where the processes could not share them equally.

    >>> [len(b) for b in batches(torch.arange(9), 4)], [len(b) for b in batches(torch.arange(11), 4, world=2)]
    ([4, 5], [4, 6])
    """
    parts = list(order.split(size))
    if len(parts) > 1 and len(parts[-1]) < 2 * world:
        parts[-2:] = [torch.cat(parts[-2:])]
    parts = [part[: len(part) - len(part) % world] for part in parts]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise ShortlistError(f"{len(order)} training examples cannot be shared by {world} processes")
    return parts


def grouped(parts: list[Tensor], size: int) -> list[list[Tensor]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]


def augmentation(
    settings: TrainSettings, dataset: Dataset, epoch: int = 0
) -> tuple[Dataset, Callable[[Tensor, Tensor], Tensor]]:
    """The data as it is to be loaded (images may be larger), and the change of a batch of inputs and its rows."""
    wanted = settings.augment
    if wanted == AugmentSettings():
        return dataset, lambda inputs, rows: inputs
    if dataset.kind != "images":
        raise ShortlistError(
            f"augment is for images, the training data has {dataset.kind}: remove augment from the config"
        )
    images: Images = dataset.inputs
    jitter = {name: value for name, value in wanted.jitter.model_dump().items() if value}
    if jitter or wanted.randaugment is not None:
        require("kornia", extra="augment")  # before any work
    options: dict[str, Any] = {
        "size": images.size,
        "area": wanted.area,
        "ratio": wanted.ratio,
        "padding": wanted.padding,
        "flip": wanted.flip,
        "rand_operations": wanted.randaugment.operations if wanted.randaugment else 0,
        "rand_magnitude": wanted.randaugment.magnitude if wanted.randaugment else 0.0,
        "jitter": jitter,
        "lighting": wanted.lighting,
        "mean": images.mean,
        "std": images.std,
    }
    if wanted.resize is not None:
        dataset = replace(dataset, inputs=enlarged(images, wanted.resize))
    return dataset, lambda inputs, rows: augment(inputs, Draws(settings.seed, epoch, rows), **options)
