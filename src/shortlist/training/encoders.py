"""Pretrained backbones that make features of images or texts before training, and the same of others later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.data import Dataset, Encoder, TextEncoder
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.models import build_backbone
from shortlist.models.huggingface import TextNetwork
from shortlist.named import Named
from shortlist.training.features_cache import cached_features, weights_digest

_BATCH = 32  # of images or texts, which a network sees together


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
    of images or texts it knows its encoder. ``broken`` is as in `cached_features`.

    >>> import tempfile, numpy as np
    >>> from shortlist.data import Images
    >>> images = Images(np.zeros((2, 4, 4, 3), dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = encode(Dataset(images, torch.tensor([0, 1]), ("cat", "dog")), Named.of("identity"), folder)
    >>> found, found.encoder.name, found.encoder.size
    (Dataset('data': 2 examples, 48 features, one of 2 labels each), 'identity', (4, 4))
    """
    network = build_backbone(backbone.name, in_shape=dataset.in_shape, allow_import=allow_import, **backbone.options)
    identity = ":".join([backbone.name, *(f"{key}={value}" for key, value in backbone.options.items())])
    seen = dataset.normalised_for(network)
    found = cached_features(
        seen, network, cache, identity=identity, batch_size=_BATCH, progress=progress, broken=broken
    )
    if found.texts is not None and seen.kind == "texts":
        read = reading(network, found)
        kept = network.files() if isinstance(network, TextNetwork) else {}
        by = TextEncoder(backbone.name, backbone.options, weights_digest(network), kept)
        notes = (*found.notes, *reading_in_words(read))
        return replace(found, encoder=by, texts=replace(found.texts, known=read, tokens=None), notes=notes)
    if seen.kind != "images":
        return found
    images = seen.inputs
    made_by = Encoder(
        backbone.name, backbone.options, weights_digest(network), images.size, images.crop, images.mean, images.std
    )
    return replace(found, encoder=made_by)


def reading(network: Any, dataset: Dataset) -> dict[str, float]:
    """How many tokens of a text a network reads, and the share of these texts that have more; nothing of a network that
    does not say so."""
    if dataset.texts is None or not hasattr(network, "longer"):
        return {}
    longer = network.longer(dataset.texts.source) / max(1, len(dataset))
    return {"max_length": int(network.max_length), "longer": longer}


def reading_in_words(read: Mapping[str, float]) -> tuple[str, ...]:
    """What there is to say of it: a line, or none.

    >>> reading_in_words({"max_length": 256, "longer": 0.0123})
    ('of each text the first 256 tokens are read: 1.2 % of the texts have more (max_length)',)
    """
    if not read:
        return ()
    length, share = read["max_length"], f"{read['longer']:.1%}".replace("%", " %")
    return (f"of each text the first {length} tokens are read: {share} of the texts have more (max_length)",)


def load_encoder(encoder: Encoder | TextEncoder, *, allow_import: Sequence[str] = ()) -> nn.Module:
    """The backbone that made some features, ready to make more; a ShortlistError where its weights are others now. That
    of texts has the tokenizer that the run kept."""
    if isinstance(encoder, TextEncoder):
        in_shape: tuple[int, ...] = ()
        options = {**encoder.options, **({} if encoder.folder is None else {"tokenizer": encoder.folder})}
    else:
        in_shape, options = (len(encoder.mean), *encoder.size), dict(encoder.options)
    network = build_backbone(encoder.name, in_shape=in_shape, allow_import=allow_import, **options)
    found = weights_digest(network)
    if found != encoder.digest:
        raise ShortlistError(
            f"the features were made by the backbone {encoder.name!r} with other weights than it has here "
            f"({encoder.digest} and {found}): install the version of its package that made them, or give features"
        )
    return network.eval()


@torch.no_grad()
def features_by(encoder: nn.Module, dataset: Dataset) -> Tensor:
    """The features of images or texts, float32 (N, D) on the CPU."""
    device = next((weight.device for weight in encoder.parameters()), torch.device("cpu"))
    dataset = dataset.normalised_for(encoder)
    batches = torch.arange(len(dataset)).split(_BATCH)
    if not len(dataset):
        return torch.empty(0, int(encoder.out_features))  # type: ignore[arg-type]
    return torch.cat([encoder(dataset.batch(rows)[0].to(device)).float().cpu() for rows in batches])
