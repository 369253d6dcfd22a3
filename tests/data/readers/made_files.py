"""Small files in the formats that the readers read, right and broken."""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from shortlist.data import problems

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[4] / "shared")) / "data"


def image(path: Path, colour=None, size=(12, 8)) -> Path:
    """An image file of one colour; without one, every path gets its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if colour is None:
        colour = tuple(np.random.default_rng(list(str(path.name).encode())).integers(0, 256, 3).tolist())
    Image.new("RGB", size, colour).save(path)
    return path


def truncated(path: Path) -> Path:
    """An image file of which the second half is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def found(reader: str, **options) -> list[tuple[str, int | None, str]]:
    """The problems as (file name, row, message)."""
    return [(Path(p.file).name, p.row, p.message) for p in problems(reader, **options)]


def assert_found(reader: str, expected: list[tuple[str, int | None, str]], **options) -> None:
    """Exactly these problems, in any order: (file name, row, part of the message)."""
    left = found(reader, **options)
    for file, row, message in expected:
        match = next((p for p in left if p[:2] == (file, row) and message in p[2]), None)
        assert match, f"not found: {(file, row, message)} in {left}"
        left.remove(match)
    assert left == []
