"""Features of a backbone, kept on disk so that the backbone runs once per data set."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shortlist.data import Dataset, Images, Texts
from shortlist.data.column_use import listed
from shortlist.errors import ShortlistError
from shortlist.files import PathLike, written_whole
from shortlist.models.similarities import Similarities

_TEXT_BATCHES = 64  # that are sorted by length


def cached_features(
    dataset: Dataset,
    backbone: nn.Module,
    folder: PathLike,
    *,
    identity: str = "",
    batch_size: int = 256,
    progress: Callable[[int, int], None] | None = None,
    broken: dict[str, str] | None = None,
) -> Dataset:
    """The data set with a backbone's features as inputs; they are computed once and then read from ``folder``.

    The file is found by a hash of the inputs' content and of the backbone's class, weights and ``identity``: a changed
    image or weight gives new features. It appears whole or not at all.

    Args:
        dataset: images, texts or features.
        backbone: takes a batch of inputs and returns (B, D). It is run in evaluation mode and left as it was;
            images are scaled by its ``pixel_mean`` and ``pixel_std`` if it has them.
        folder: where the files go; made if it is not there.
        identity: what else tells this backbone from another one, such as its name and options.
        batch_size: inputs that the backbone sees together.
        progress: called after each batch with the number of examples done and their total.
        broken: where images that cannot be decoded are noted, path -> reason; their features are NaN, and
            ``Dataset.without_broken`` leaves them out. Without it they are an error that names all of them.

    >>> import tempfile
    >>> data = Dataset(torch.eye(3), torch.tensor([0, 1, 0]), ("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cached_features(data, torch.nn.Linear(3, 2), folder)
    Dataset('data': 3 examples, 2 features, one of 2 labels each)
    """
    if isinstance(backbone, Similarities):
        raise ShortlistError("similarities are to the training rows of a run: name them as its backbone, not before it")
    dataset = dataset.normalised_for(backbone)
    path = Path(folder) / f"{dataset.name}-{_key(dataset, backbone, identity)}.npy"
    if not path.is_file():
        Path(folder).mkdir(parents=True, exist_ok=True)
        _compute(dataset, backbone, path, batch_size, progress)
    features, images = torch.from_numpy(np.load(path, allow_pickle=False)), dataset.images
    if images is not None:
        found = _broken(images, features)
        if found and broken is None:
            raise ShortlistError(
                f"{len(found)} of {len(dataset)} images cannot be used: mend them, or take them out of the data: "
                f"{listed(list(found.values()))}"
            )
        if broken is not None:
            broken |= found
            images = replace(images, broken=broken)
    return replace(dataset, inputs=features, pictures=images)


def _broken(images: Images, features: Tensor) -> dict[str, str]:
    """The files that could not be decoded, path -> reason: their features are NaN."""
    if images.in_memory:
        return {}
    again = replace(images, broken={})
    again.pixels(features.isnan().all(1).numpy())
    return again.broken or {}


def _compute(
    dataset: Dataset,
    backbone: nn.Module,
    path: Path,
    batch_size: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    training = backbone.training
    broken: dict[str, str] = {}
    files: Sequence[str] = ()
    if isinstance(dataset.inputs, Images) and not isinstance(dataset.inputs.source, np.ndarray):
        files = dataset.inputs.source
        dataset = replace(dataset, inputs=replace(dataset.inputs, broken=broken))
    backbone.eval()
    try:
        with torch.inference_mode(), written_whole(path) as file:
            step = batch_size * (_TEXT_BATCHES if isinstance(dataset.inputs, Texts) else 1)
            for begin in range(0, len(dataset), step):
                index = torch.arange(begin, min(begin + step, len(dataset)))
                order = _by_length(dataset.inputs, index)
                parts = [backbone(dataset.batch(rows)[0]) for rows in index[order].split(batch_size)]
                found = torch.cat(parts).float().cpu()
                if found.ndim != 2 or len(found) != len(index):
                    shape = tuple(found.shape)
                    raise ShortlistError(f"the backbone must return features ({len(index)}, D), got shape {shape}")
                found = found[order.argsort()]
                if broken:
                    found[[files[row] in broken for row in index.tolist()]] = torch.nan
                if begin == 0:
                    np.lib.format.write_array_header_1_0(file, _header(len(dataset), found.shape[1]))
                file.write(found.contiguous().numpy().tobytes())
                if progress is not None:
                    progress(begin + len(index), len(dataset))
    finally:
        backbone.train(training)


def _by_length(inputs: Any, index: Tensor) -> Tensor:
    """An order in which texts of like length come together: a batch is as long as its longest one."""
    if not isinstance(inputs, Texts):
        return torch.arange(len(index))
    return torch.tensor([len(inputs.source[row]) for row in index.tolist()]).argsort()


def _header(rows: int, columns: int) -> dict[str, Any]:
    return {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": (rows, columns)}


def _key(dataset: Dataset, backbone: nn.Module, identity: str) -> str:
    digest = hashlib.sha256()
    digest.update(f"{identity}\n{type(backbone).__module__}.{type(backbone).__qualname__}\n{backbone!r}\n".encode())
    _add_weights(digest, backbone)
    _add_inputs(digest, dataset.inputs)
    return digest.hexdigest()[:32]


def weights_digest(backbone: nn.Module) -> str:
    """Tells the weights of this backbone from any others.

    >>> weights_digest(nn.Identity())[:8], weights_digest(nn.Linear(2, 2)) == weights_digest(nn.Linear(2, 2))
    ('e3b0c442', False)
    """
    digest = hashlib.sha256()
    _add_weights(digest, backbone)
    return digest.hexdigest()[:32]


def _add_weights(digest: Any, backbone: nn.Module) -> None:
    for name, value in backbone.state_dict().items():
        digest.update(f"{name} {getattr(value, 'dtype', type(value))} {tuple(getattr(value, 'shape', ()))}\n".encode())
        digest.update(_bytes(value) if isinstance(value, Tensor) else repr(value).encode())


def _add_inputs(digest: Any, inputs: Any) -> None:
    if isinstance(inputs, Texts):
        for text in inputs.source:
            digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        return
    if isinstance(inputs, Images):
        digest.update(f"images {inputs.size} {inputs.crop} {inputs.mean} {inputs.std} {len(inputs)}\n".encode())
        if not isinstance(inputs.source, np.ndarray):
            for path in inputs.source:  # one that is not there is found when it is decoded
                digest.update(hashlib.sha256(Path(path).read_bytes() if os.path.isfile(path) else b"").digest())
            return
        inputs = inputs.source
    if hasattr(inputs, "tocsr"):
        for piece in (inputs.data, inputs.indices, inputs.indptr):
            _add_inputs(digest, piece)
        digest.update(f"csr {inputs.shape}\n".encode())
        return
    digest.update(f"array {inputs.dtype} {tuple(inputs.shape)}\n".encode())
    for begin in range(0, len(inputs), 4096):  # piece by piece: a memory map may be larger than memory
        rows = inputs[begin : begin + 4096]
        digest.update(_bytes(rows) if isinstance(rows, Tensor) else np.ascontiguousarray(rows).tobytes())


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
