"""Reading a pickle without running anything: only plain values, and arrays of bytes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.errors import ShortlistError


class _Bytes:
    """Stands in for a numpy array: takes the array's pickled state and accepts only uint8."""

    array: np.ndarray[Any, np.dtype[np.uint8]]

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, content = state
        if not isinstance(kind, _Kind) or kind.name not in ("u1", "|u1", "uint8"):
            raise pickle.UnpicklingError("holds an array that is not of bytes (uint8)")
        raw = content.encode("latin1") if isinstance(content, str) else content
        if not isinstance(raw, bytes) or not all(isinstance(n, int) for n in shape):
            raise pickle.UnpicklingError("holds an array without its bytes")
        self.array = np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if by_columns else "C")


class _Kind:
    """Stands in for a numpy dtype."""

    def __init__(self, name: str, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        pass


def _new_bytes(*_: Any) -> _Bytes:
    return _Bytes()


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """How Python 3 writes bytes for old readers."""
    return text.encode("latin1" if encoding == "latin1" else "ascii")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _new_bytes,
    ("numpy._core.multiarray", "_reconstruct"): _new_bytes,
    ("numpy", "ndarray"): _Bytes,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encode,
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"asks for {module}.{name}, which is not loaded from data files") from None


def load_plain(path: Path) -> Any:
    """Dictionaries, lists, text, numbers and uint8 arrays from a pickle; keys written as bytes become text.

    Everything else in it is a ValueError, and no function that the file names is called.
    """
    try:
        with open(path, "rb") as file:
            return _plain(_PlainUnpickler(file, encoding="latin1").load())
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise ShortlistError(f"cannot be read as a pickle of plain data: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, _Bytes):
        return value.array
    if isinstance(value, dict):
        return {_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value
