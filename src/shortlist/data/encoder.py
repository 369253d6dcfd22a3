"""Which backbone made features of images, and of which pixels; or of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shortlist.data.images import Images
from shortlist.errors import ShortlistError


@dataclass(frozen=True)
class Encoder:
    """What has to be repeated to make the same features of other images: the backbone's name and options, a digest of
    its weights, and how images become pixels.

    >>> encoder = Encoder("efficientnet-lite0", {}, "9f2c", (224, 224), False, (0.5,) * 3, (0.5,) * 3)
    >>> encoder.images(["a.jpg"]).shape, Encoder.from_json(encoder.to_json()) == encoder
    ((3, 224, 224), True)
    """

    name: str
    options: Mapping[str, Any]
    digest: str
    size: tuple[int, int]
    crop: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def images(self, source: Any, broken: dict[str, str] | None = None) -> Images:
        """Images as the backbone saw them; arguments as of `Images`."""
        return Images(source, self.size, self.crop, mean=self.mean, std=self.std, broken=broken)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "options": dict(self.options)}

    @classmethod
    def from_json(cls, content: Any) -> Encoder:
        """What ``to_json`` wrote."""
        try:
            mean, std = (tuple(map(float, content[key])) for key in ("mean", "std"))
            height, width = map(int, content["size"])
            name, digest = content["name"], content["digest"]
            if not isinstance(name, str) or not isinstance(digest, str):
                raise ShortlistError(f"its name and digest are texts, got {name!r} and {digest!r}")
            return cls(name, dict(content["options"]), digest, (height, width), bool(content["crop"]), mean, std)
        except (KeyError, TypeError, ValueError) as error:
            raise ShortlistError(f"this does not say which encoder made the features: {error!r}") from error


@dataclass(frozen=True)
class TextEncoder:
    """What has to be repeated to make the same features of other texts: the backbone's name and options, and a digest
    of its weights.

    ``files`` are what a run keeps of it, name -> content: its tokenizer. ``folder`` is where the run has them.
    """

    name: str
    options: Mapping[str, Any]
    digest: str
    files: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    folder: str | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        return {"of": "texts", "name": self.name, "options": dict(self.options), "digest": self.digest}


def read_encoder(content: Any) -> Encoder | TextEncoder:
    """What ``to_json`` of either wrote.

    >>> read_encoder(TextEncoder("hf:minilm", {}, "9f2c").to_json())
    TextEncoder(name='hf:minilm', options={}, digest='9f2c', folder=None)
    """
    if not isinstance(content, dict) or content.get("of") != "texts":
        return Encoder.from_json(content)
    name, options, digest = (content.get(key) for key in ("name", "options", "digest"))
    if not isinstance(name, str) or not isinstance(digest, str) or not isinstance(options, dict):
        raise ShortlistError(f"this does not say which encoder made the features: {content!r}")
    return TextEncoder(name, options, digest)
