"""A published protocol field by field, with its source, and what ours does at each scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shortlist_recipes.layout import Texts

AS_PUBLISHED = "as published"


@dataclass(frozen=True)
class Field:
    """One thing that a protocol says.

    Args:
        name: what it is about.
        published: what the paper or its program does.
        ours: what a scale does instead; a scale that is not named does as published.
        config: where that stands in the configs of paper scale, a path with dots -> its value, which a test compares.
            ``seeds`` is the number of seeds, ``parameters`` the number of weights with 100 labels and 32 pixels.
        where: only the cells with these values of these keys.
        source: where it is written, if not where the rest of the protocol is.
    """

    name: str
    published: str
    ours: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Protocol:
    """The protocol of one experiment: of the cells with these values of these keys. ``source``: where most of it is
    written, the paper's section, or a file of the authors' program."""

    title: str
    source: str
    fields: Sequence[Field]
    where: Mapping[str, Any] = field(default_factory=dict)

    def other_fields(self, scale: str) -> list[str]:
        """The names of the fields in which a scale does not do as published."""
        return [one.name for one in self.fields if scale in one.ours]

    def texts(self, scale: str) -> Texts:
        """
        >>> noise = Protocol("Noise", "section 5.1", [Field("batch size", "64", {"cpu": "256"})])
        >>> noise.texts("cpu").rows, noise.texts("paper").rows
        ([['batch size', '64', 'section 5.1', '256']], [['batch size', '64', 'section 5.1', 'as published']])
        """
        rows = [
            [one.name, one.published, one.source or self.source, one.ours.get(scale, AS_PUBLISHED)]
            for one in self.fields
        ]
        return Texts(["", "published", "source", f"ours at {scale} scale"], rows, 4, self.title)
