"""Every key of a run's config: its type, default and meaning."""

import types
import typing
from collections.abc import Iterator
from typing import Any

from docstring_parts import flat, table, written_by
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from shortlist.runs.config import RunConfig

INTRODUCTION = f"""\
# Config

{written_by("the typed config")}

This page lists every key of the YAML file that `shortlist train` reads. `key=value` after the file changes a key,
with dots for keys within keys: `optimizer.lr=0.01`, `rules.0.k=3`. An unknown key or a value of the wrong type is an
error that names the place. `shortlist train CONFIG --print-config` prints the complete config. This is a small one:

```yaml
data:
  train: {{reader: features, path: train.npz, vocabulary_key: names}}
objective: {{name: smooth-topk, k: 5}}
```

Where a name is asked for (`objective`, `backbone`, `rules`, `data.corruptions`, `optimizer`, `schedule`) its options
stand beside it, and a name without options may stand alone (`schedule: cosine`):
[objectives](objectives.md), [backbones](backbones.md), [set rules](rules.md),
[readers and corruptions](readers.md).
"""


def page() -> str:
    parts = [INTRODUCTION]
    for title, section in _sections(RunConfig, ""):
        says = flat(section.__doc__ or "").split(" >>> ")[0] if title and section.__doc__ else ""
        rows = [
            [f"`{name}`", _kind(field.annotation), _default(field), flat(field.description or "")]
            for name, field in section.model_fields.items()
        ]
        heading = f"## {title}\n" if title else "## The top\n"
        parts += [heading, *([says + "\n"] if says else []), table(["key", "type", "default", "meaning"], rows)]
    return "\n".join(parts)


def _sections(section: type[BaseModel], title: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """The section and those within it, under their dotted keys; a name with its options has none of its own."""
    yield title, section
    for name, field in section.model_fields.items():
        inner = next((kind for kind in typing.get_args(field.annotation) if kind is not type(None)), field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel) and inner.model_config.get("extra") == "forbid":
            yield from _sections(inner, f"{title}.{name}".lstrip("."))


def _kind(annotation: Any) -> str:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(kind) for kind in inner)
    if origin is tuple:
        return (
            f"list of {_kind(inner[0])}".replace("of a name", "of names")
            .replace("number", "numbers")
            .replace(" text", " texts")
        )
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        words = {"Named": "a name with options", "Source": "a reader with options", "Corruption": "a name with options"}
        return words.get(annotation.__name__, "keys, see below")
    return {"NoneType": "none", "str": "text", "bool": "true or false", "int": "whole number", "float": "number"}[
        annotation.__name__
    ]


def _default(field: Any) -> str:
    default = field.default
    if default is PydanticUndefined:
        return "must be given"
    if isinstance(default, BaseModel):
        return f"`{default.name}`" if hasattr(default, "options") else ""
    if default in (None, ()):
        return "none"
    text = ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"`{text.lower() if isinstance(default, bool) else text}`"
