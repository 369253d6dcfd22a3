"""The scores of a data set, batch by batch, as often as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Images

KEPT_BYTES = 1 << 28  # scores up to this size are held whole; larger ones are computed again for each pass over them


class Scored:
    """Scores (N, L) that are held whole where they are small, and never where they are not.

    Args:
        compute: gives the scores, float32 on the CPU, batch by batch and in order, each time it is called.
        rows, num_labels: their shape.
        images: the files that they are of, some of which may turn out to be broken: those rows are left out.

    >>> scored = Scored(lambda: iter([torch.eye(3), torch.eye(3)]), rows=6, num_labels=3)
    >>> [(at, part.shape) for at, part in scored.batches()]
    [(slice(0, 6, None), torch.Size([6, 3]))]
    """

    def __init__(
        self, compute: Callable[[], Iterator[Tensor]], rows: int, num_labels: int, images: Images | None = None
    ) -> None:
        self._compute, self._images = compute, images
        self._whole: Tensor | None = None
        self.rows, self.num_labels = rows, num_labels
        self.is_small = 4 * rows * num_labels <= KEPT_BYTES

    @classmethod
    def of(cls, scores: Tensor) -> Scored:
        """Scores that are there already."""
        made = cls(lambda: iter([scores]), *scores.shape)
        made._whole, made.is_small = scores, True
        return made

    def batches(self) -> Iterator[tuple[slice | Tensor, Tensor]]:
        """Which rows of the data, and their scores; all in one where they are small."""
        first = 0
        for scores in self._parts():
            at = slice(first, first + len(scores))
            first += len(scores)
            found: tuple[slice | Tensor, Tensor] = (at, scores)
            if self._images is not None and self._images.broken:
                broken = self._images.broken
                kept = torch.tensor([path not in broken for path in self._images.source[at]], dtype=torch.bool)
                if not bool(kept.all()):
                    found = kept.nonzero()[:, 0] + at.start, scores[kept]
            yield found

    def whole(self) -> Tensor:
        """All scores together, for those who must have them."""
        parts = [scores for _, scores in self.batches()]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _parts(self) -> Iterator[Tensor]:
        if not self.is_small:
            return self._compute()
        if self._whole is None:
            parts = list(self._compute())
            self._whole = torch.cat(parts) if parts else torch.empty(0, self.num_labels)
        return iter([self._whole])


def pick(values: Any, at: slice | Tensor) -> Any:
    """Some rows of a target, of sets, of ids or of anything that has one value for each row; None stays None."""
    if values is None or isinstance(at, slice):
        return None if values is None else values[at]
    if isinstance(values, tuple):
        return tuple(values[row] for row in at.tolist())
    return values[at] if isinstance(values, Tensor) else values[at.numpy()]
