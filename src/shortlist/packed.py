"""Arrays as text, for JSON: little-endian, compressed, base64."""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import ShortlistError


def pack(array: NDArray[Any], dtype: str) -> str:
    """An array as text: little-endian, compressed, base64."""
    return base64.b64encode(zlib.compress(array.astype(dtype).tobytes())).decode()


def unpack(text: str, dtype: str, limit: int) -> NDArray[Any]:
    """The array that ``pack`` wrote; one of more than ``limit`` bytes is refused before it is unfolded.

    >>> unpack(pack(np.array([1, 2]), "<i8"), "<i8", limit=16)
    array([1, 2])
    """
    kind = np.dtype(dtype)
    unfolding = zlib.decompressobj()
    content = unfolding.decompress(base64.b64decode(text), limit + 1)
    if len(content) > limit:
        raise ShortlistError(f"{len(text):,} signs of text unfold to more than the {limit:,} bytes allowed")
    if not unfolding.eof:
        raise ShortlistError("an array in it is cut short")
    return np.frombuffer(content, dtype=kind).astype(kind.newbyteorder("="))
