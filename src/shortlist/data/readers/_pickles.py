"""Reading a pickle without running anything: only plain values, and arrays of bytes."""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.errors import ShortlistError

# opcodes whose result may be named again by a later one. Whatever holds other values may stand only once: a few bytes
# that name a list, which names a list twice, ... unfold to more than any memory
_LEAVES = {
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "GLOBAL", "STACK_GLOBAL", "REDUCE",
}  # fmt: skip
_TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GETS = {"GET", "BINGET", "LONG_BINGET"}
_ALLOWED = _LEAVES | _TUPLES | _PUTS | _GETS | {
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1",
    "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "EMPTY_TUPLE", "EMPTY_LIST", "LIST", "APPEND", "APPENDS",
    "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "BUILD",
}  # fmt: skip
_MOST_TUPLES = 1000  # an array takes four; hashing those within one another is a recursion


def load_plain(path: Path) -> Any:
    """Dictionaries, lists, text, numbers and uint8 arrays from a pickle; keys written as bytes become text.

    Everything else in it is a ShortlistError, and no function that the file names is called. What is made of the file
    is never larger than the file.
    """
    content = path.read_bytes()
    try:
        _check_opcodes(content)
        return _as_text_and_arrays(_PlainUnpickler(content).load())
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise ShortlistError(f"cannot be read as a pickle of plain data: {error}") from error


def _check_opcodes(content: bytes) -> None:
    """Refuse what only a pickle made to harm would hold, and lengths that are more than the file has."""
    memo: dict[int | None, bool] = {}  # place -> whether what is there holds no other values
    tuples, before = 0, ""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        name = opcode.name
        if name not in _ALLOWED:
            raise pickle.UnpicklingError(f"it holds {name}, which plain data does not need")
        if name in _PUTS:
            place = len(memo) if argument is None else int(argument)
            if place > number:
                raise pickle.UnpicklingError(f"it numbers a value {place}, but holds only {number} before it")
            memo[place] = before in _LEAVES
        elif name in _GETS and not memo.get(argument, False):
            raise pickle.UnpicklingError("it names a list, a dictionary or a tuple in more than one place")
        tuples += name in _TUPLES
        if tuples > _MOST_TUPLES:
            raise pickle.UnpicklingError(f"it holds more than {_MOST_TUPLES} tuples")
        before = name


class _PlainUnpickler(pickle.Unpickler):
    """With stand-ins for what a pickled array names, made for this one file: nothing outlives it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._stand_ins = _stand_ins(len(content))

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._stand_ins[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"asks for {module}.{name}, which is not loaded from data files") from None


class _Bytes:
    """Stands in for a numpy array."""

    array: np.ndarray[Any, np.dtype[np.uint8]]


class _Kind:
    """Stands in for a numpy dtype."""

    name: str


def _stand_ins(size: int) -> dict[tuple[str, str], Callable[..., Any]]:
    """By module and name; together they make no more bytes than ``size``, that of the file."""
    left = size

    def encode(text: str, encoding: str = "latin1") -> bytes:
        """How Python 3 writes bytes for old readers."""
        nonlocal left
        left -= len(text)  # one text can be named many times
        if left < 0:
            raise pickle.UnpicklingError("its texts unfold to more than the file holds")
        return text.encode("latin1" if encoding == "latin1" else "ascii")

    class Kind(_Kind):
        def __init__(self, name: str, *_: Any) -> None:
            self.name = name

        def __setstate__(self, state: Any) -> None:
            pass

    class Bytes(_Bytes):
        def __setstate__(self, state: Any) -> None:
            _, shape, kind, by_columns, content = state
            if not isinstance(kind, _Kind) or kind.name not in ("u1", "|u1", "uint8"):
                raise pickle.UnpicklingError("holds an array that is not of bytes (uint8)")
            raw = encode(content) if isinstance(content, str) else content
            if not isinstance(raw, bytes) or not all(isinstance(n, int) for n in shape):
                raise pickle.UnpicklingError("holds an array without its bytes")
            self.array = np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if by_columns else "C")

    def new_bytes(*_: Any) -> Bytes:
        return Bytes()

    return {
        ("numpy.core.multiarray", "_reconstruct"): new_bytes,
        ("numpy._core.multiarray", "_reconstruct"): new_bytes,
        ("numpy", "ndarray"): Bytes,
        ("numpy", "dtype"): Kind,
        ("_codecs", "encode"): encode,
    }


def _as_text_and_arrays(value: Any) -> Any:
    if isinstance(value, _Bytes):
        return value.array
    if isinstance(value, dict):
        return {_text(key): _as_text_and_arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value
