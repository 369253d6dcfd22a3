"""Texts: what people wrote, one for each example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from shortlist.data.inputs import OwnTarget
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import as_positions


@dataclass(frozen=True, eq=False)
class Texts(OwnTarget):
    """N texts. They become numbers by tf-idf before training (`TfIdf`), or by a network that reads their tokens.

    Args:
        source: the texts.
        tokens: what a network reads of a batch of texts, a tensor (B, T); see ``Dataset.normalised_for``.
        known: what a network found out about them: how many tokens it reads, and the share of texts that have more.

    >>> texts = Texts(("so happy", "so sad", "happy"))
    >>> len(texts), texts.subset([2, 0]).source
    (3, ('happy', 'so happy'))
    """

    kind: ClassVar[str] = "texts"
    rows_each: ClassVar[int] = 16
    in_memory: ClassVar[bool] = False  # tokens are made while the batch before computes

    source: Sequence[str]
    tokens: Callable[[Sequence[str]], Tensor] | None = None
    known: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            raise ShortlistError(f"source must be a sequence of texts, got the single text {self.source[:40]!r}")
        wrong = next((row for row, text in enumerate(self.source) if not isinstance(text, str)), None)
        if wrong is not None:
            raise ShortlistError(f"text {wrong} must be a text, got {type(self.source[wrong]).__name__}")

    def __len__(self) -> int:
        return len(self.source)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one text: nothing is known before it is read."""
        return ()

    def with_target(self, index: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if self.tokens is None:
            raise ShortlistError(
                "texts are no numbers yet: data.encoder=tf-idf makes some of them, or data.encoder=hf:NAME, or a "
                "backbone that reads texts, hf:NAME"
            )
        rows = as_positions(index, len(self), "example").tolist()
        return self.tokens([self.source[row] for row in rows]), target[index]

    def subset(self, index: Any) -> Texts:
        rows = as_positions(index, len(self), "example").tolist()
        return replace(self, source=tuple(self.source[row] for row in rows))

    def facts(self) -> dict[str, Any]:
        return dict(self.known)

    def each_in_words(self) -> str:
        return "a text each"
