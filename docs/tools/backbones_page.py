"""Backbones: what a config's ``backbone`` can name, with options and defaults."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from docstring_parts import readable, summary, table, written_by

from shortlist.models import BACKBONES, build_backbone
from shortlist.registry import imported

INTRODUCTION = f"""\
# Backbones

{written_by("the registry and the docstrings")}

A *backbone* makes a vector of features of each input; the head of the [objective](objectives.md) makes scores of them.
A [config](config.md) names it, alone or with options (`backbone: {{name: mlp, hidden: [512]}}`), or
`shortlist.models.build_backbone("mlp", in_shape=(128,), hidden=[512])` makes it. Where none is named it is `identity`:
right for features that another network made, but on images a linear model of the pixels. `module:callable` names
[one of your own](extend.md#your-own-backbone).

For images, in a folder that has a folder for each label:

```yaml
data:
  train: {{reader: image-folder, path: images/train, size: 64}}
  test: {{reader: image-folder, path: images/test, size: 64}}
backbone: {{name: convnet, widths: [32, 64, 128]}}   # or resnet18 with weights: FILE, and size: 224 above
objective: {{name: smooth-topk, k: 3}}
optimizer: {{name: adamw, lr: 1e-3}}
augment: {{flip: true}}
epochs: 20
```

With few images, or without a graphics card, run a pretrained backbone over them once and train on its features. A
config does so with one key, and `shortlist fit images/train` writes such a config:

```yaml
data:
  train: {{reader: image-folder, path: images/train}}
  test: {{reader: image-folder, path: images/test}}
  encoder: efficientnet-lite0   # its features are kept in .features; the run knows it, and predicts from images
optimizer: adamw
```

Features can be made by a command of their own, too:

```bash
shortlist data features image-folder path=images/train --backbone efficientnet-lite0 --out train.npz
shortlist data features image-folder path=images/test --backbone efficientnet-lite0 --out test.npz
```

The command says with which options the reader [`features`](readers.md#features) reads what it wrote.
"""

SIZES = "Parameters and features are those of the default options."
IMAGE = (3, 64, 64)


def page() -> str:
    names = [name for name in BACKBONES if name != "relations"]  # an old name of relations-light
    parts = [
        INTRODUCTION,
        table(["backbone", "what it is", "takes", "parameters", "features"], [*map(_row, names), *_other_rows()]),
        f"{SIZES}\n",
    ]
    makers = {name: BACKBONES[name] for name in names} | _families()
    for name, maker in makers.items():
        parts.append(f"## {name}\n\n{_options(maker)}\n\n{readable(_docstring(maker)).rstrip()}\n")
    return "\n".join(parts)


def _families() -> dict[str, Callable[..., Any]]:
    """Names that begin alike -> what makes them."""
    return {f"{family}:NAME": imported(path) for family, path in BACKBONES.families.items()}


def _row(name: str) -> list[str]:
    row = [f"[`{name}`](#{name})", summary(BACKBONES[name])]
    any_rows = dict.fromkeys(("identity", "auto", "mlp", "similarities"), "features or images")
    takes = {**any_rows, "tf-idf": "texts"}
    if name in (*takes, "relations-light", "motifnet"):  # sizes that depend on the inputs
        return [*row, takes.get(name, "scenes"), "", ""]
    with torch.device("meta"):  # counted, not filled
        made = build_backbone(name, in_shape=IMAGE, **({"pretrained": False} if name == "efficientnet-lite0" else {}))
    parameters = sum(value.numel() for value in made.parameters())
    return [*row, "images", f"{parameters / 1e6:.1f} million", f"{made.out_features:,}"]


def _other_rows() -> list[list[str]]:
    takes = {"hf:NAME": "texts or images", "timm:NAME": "images"}
    return [
        [f"[`{name}`](#{name.lower().replace(':', '')})", summary(maker), takes[name], "", ""]
        for name, maker in _families().items()
    ]


def _options(maker: Callable[..., Any]) -> str:
    known = inspect.signature(maker).parameters.values()
    options = [option for option in known if option.name not in ("model", "in_shape")]
    if not options:
        return "No options."
    return "Options: " + ", ".join(f"`{option.name}={_written(option.default)}`" for option in options) + "."


def _written(default: object) -> str:
    """As in YAML."""
    if default is None:
        return "null"
    if isinstance(default, bool):
        return str(default).lower()
    return str(list(default)) if isinstance(default, tuple) else str(default)


def _docstring(maker: Callable[..., Any]) -> str:
    docstring = inspect.cleandoc(maker.__doc__ or "")
    return "\n".join(
        line for line in docstring.split("\n>>> ")[0].rstrip().splitlines() if not line.startswith("    in_shape: ")
    )
