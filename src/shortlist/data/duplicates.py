"""The same example in two parts of the data: what was trained on would be measured again."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from shortlist.data.column_use import listed
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.table_rows import TableRows


class Shared(NamedTuple):
    """How many examples of ``part`` are also in ``other``, with the first three of them: here and there."""

    part: str
    other: str
    total: int
    examples: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        pairs = ", ".join(f"{here} = {there}" for here, there in self.examples)
        more = ", ..." if self.total > len(self.examples) else ""
        return f"{self.total} of the examples in {self.part} are in {self.other} too ({pairs}{more})"


def shared_examples(parts: Mapping[str, Dataset]) -> list[Shared]:
    """Examples whose inputs are the same, byte for byte, in two parts, whatever their labels.

    Features, texts and pixels are compared by their content, image files by the file's; only files of the same length
    are read. Scenes and features that stay on disk are left out: it would take reading all of them.

    >>> import torch
    >>> one = Dataset(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1]), ("cat", "dog"))
    >>> two = Dataset(torch.tensor([[5.0, 6.0], [1.0, 2.0]]), torch.tensor([0, 1]), ("cat", "dog"), ids=("a", "b"))
    >>> print(shared_examples({"train": one, "test": two})[0])
    1 of the examples in test are in train too (b = row 0)
    """
    lengths = Counter(length for data in parts.values() for length in _lengths(data).values())
    seen: dict[str, dict[bytes, int]] = {}
    found = []
    for name, dataset in parts.items():
        marks = dict(_marks(dataset, lengths))
        for other, first in seen.items():
            rows = [(row, first[mark]) for row, mark in marks.items() if mark in first]
            pairs = tuple((_called(dataset, row), _called(parts[other], before)) for row, before in rows[:3])
            if rows:
                found.append(Shared(name, other, len(rows), pairs))
        seen[name] = {mark: row for row, mark in reversed(marks.items())}  # of equal ones the first
    return found


def labelled_otherwise(parts: Mapping[str, Dataset]) -> list[str]:
    """What to say of images that are there again, in the same part or in another one, with another label."""
    lengths = Counter(length for data in parts.values() for length in _lengths(data).values())
    seen: dict[bytes, tuple[str, int]] = {}
    pairs = []
    for dataset in parts.values():
        if dataset.images is None or not dataset.is_single:
            continue
        target = dataset.target.tolist()
        for row, mark in _marks(dataset, lengths):
            here = _called(dataset, row)
            there, label = seen.setdefault(mark, (here, target[row]))
            if label != target[row] and -1 not in (label, target[row]):
                pairs.append(f"{here} = {there}")
    if not pairs:
        return []
    are = "image is" if len(pairs) == 1 else "images are"
    return [
        f"{len(pairs)} {are} there again with another label ({listed(pairs, 3)}): mend them, or, if an image may have "
        f"several labels, give a table with a row for each image, and all its labels in one cell (cat|dog)"
    ]


def _called(dataset: Dataset, row: int) -> str:
    return f"row {row}" if dataset.ids is None else dataset.ids[row]


def _lengths(dataset: Dataset) -> dict[str, int]:
    """The length of each image file; a file that is not there is found when it is read."""
    if not isinstance(dataset.inputs, Images) or dataset.inputs.in_memory:
        return {}
    return {path: os.path.getsize(path) for path in map(str, dataset.inputs.source) if os.path.isfile(path)}


def _marks(dataset: Dataset, lengths: Counter[int]) -> Iterator[tuple[int, bytes]]:
    """A mark of each example that may occur twice: equal marks, equal content."""
    inputs: Any = dataset.inputs
    if isinstance(inputs, Images):
        if inputs.in_memory:
            yield from ((row, _mark(inputs[row].tobytes())) for row in range(len(inputs)))
            return
        known = _lengths(dataset)
        for row, path in enumerate(map(str, inputs.source)):
            if path in known and lengths[known[path]] > 1:
                with open(path, "rb") as file:
                    yield row, _mark(file.read())
    elif dataset.texts is not None:  # features of texts may be alike where the texts are not
        for row, text in enumerate(dataset.texts.source):
            yield row, _mark(text.encode("utf-8", "surrogatepass"))
    elif hasattr(inputs, "tocsr"):
        ends = inputs.indptr
        for row in range(inputs.shape[0]):
            here = slice(ends[row], ends[row + 1])
            yield row, _mark(inputs.indices[here].tobytes() + inputs.data[here].tobytes())
    elif isinstance(inputs, TableRows):
        yield from enumerate(map(np.uint64.tobytes, inputs.marks()))
    elif isinstance(inputs, Tensor):
        array = np.ascontiguousarray(inputs.numpy())
        yield from ((row, _mark(array[row].tobytes())) for row in range(len(array)))


def _mark(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
