"""Pretrained backbones that make features of images before training, and the same features of other images later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from shortlist.data import Dataset, Encoder
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.models import build_backbone
from shortlist.named import Named
from shortlist.training.features_cache import cached_features, weights_digest


def encode(
    dataset: Dataset,
    backbone: Named,
    cache: PathLike,
    *,
    allow_import: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    broken: dict[str, str] | None = None,
) -> Dataset:
    """The data set with a backbone's features as inputs, computed once and kept in the folder ``cache``; where they are
    of images it knows its `Encoder`. ``broken`` is as in `cached_features`.

    >>> import tempfile, numpy as np
    >>> from shortlist.data import Images
    >>> images = Images(np.zeros((2, 4, 4, 3), dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = encode(Dataset(images, torch.tensor([0, 1]), ("cat", "dog")), Named.of("identity"), folder)
    >>> found, found.encoder.name, found.encoder.size
    (Dataset('data': 2 examples, 48 features, one of 2 labels each), 'identity', (4, 4))
    """
    network = build_backbone(
        backbone.name, in_shape=dataset.in_shape, allow_import=allow_import, **backbone.options
    )
    identity = ":".join([backbone.name, *(f"{key}={value}" for key, value in backbone.options.items())])
    seen = dataset.normalised_for(network)
    found = cached_features(seen, network, cache, identity=identity, batch_size=32, progress=progress, broken=broken)
    if seen.kind != "images":
        return found
    images = seen.inputs
    made_by = Encoder(
        backbone.name, backbone.options, weights_digest(network), images.size, images.crop, images.mean, images.std
    )
    return replace(found, encoder=made_by)


def load_encoder(encoder: Encoder, *, allow_import: Sequence[str] = ()) -> nn.Module:
    """The backbone that made some features, ready to make more; a ShortlistError where its weights are others now."""
    in_shape = (len(encoder.mean), *encoder.size)
    network = build_backbone(encoder.name, in_shape=in_shape, allow_import=allow_import, **encoder.options)
    found = weights_digest(network)
    if found != encoder.digest:
        raise ShortlistError(
            f"the features were made by the backbone {encoder.name!r} with other weights than it has here "
            f"({encoder.digest} and {found}): install the version of its package that made them, or give features"
        )
    return network.eval()


@torch.no_grad()
def features_by(encoder: nn.Module, dataset: Dataset, batch_size: int = 32) -> Tensor:
    """The features of images, float32 (N, D) on the CPU."""
    device = next((weight.device for weight in encoder.parameters()), torch.device("cpu"))
    dataset = dataset.normalised_for(encoder)
    batches = torch.arange(len(dataset)).split(batch_size)
    return torch.cat([encoder(dataset.batch(rows)[0].to(device)).float().cpu() for rows in batches])
