"""How much memory a file may ask for. A small file can promise or unfold to far more than it holds, so what it asks for
is compared with these limits before anything is allocated:

- an image of more than 50 million pixels is not decoded (a JPEG counts as what is left after it was shrunk on the way
  to ``size``); the environment variable ``SHORTLIST_MAX_PIXELS`` sets another number;
- arrays of one .npz, .npy, .parquet or HDF5 file may always unpack to 2 GB, and beyond that to 50 times what the file
  takes on disk; ``SHORTLIST_MAX_UNPACKED`` sets another number of bytes than these 2 GB;
- a pickle of CIFAR may refer back to a text but not to a list, and may not unfold to more than the file holds.
"""

import os
from pathlib import Path

from shortlist.errors import ShortlistError
from shortlist.files import PathLike

_DEFAULTS = {"SHORTLIST_MAX_PIXELS": 50_000_000, "SHORTLIST_MAX_UNPACKED": 2_000_000_000}
_TIMES = 50  # how much more than the bytes on disk a large file may unpack to; noise does not compress at all


def limit(name: str) -> int:
    """The limit of this name: what the environment says, or the default.

    >>> limit("SHORTLIST_MAX_PIXELS")
    50000000
    """
    written = os.environ.get(name, "")
    if not written:
        return _DEFAULTS[name]
    if not written.isdecimal() or int(written) == 0:
        raise ShortlistError(f"{name} must be a whole number of at least 1, got {written!r}")
    return int(written)


def check_pixels(width: int, height: int) -> None:
    """Raise a ShortlistError where an image would have too many pixels."""
    most = limit("SHORTLIST_MAX_PIXELS")
    if width * height > most:
        raise ShortlistError(
            f"{width} x {height} pixels are more than {most}; if this is right, set SHORTLIST_MAX_PIXELS"
        )


def check_unpacked(path: PathLike, size: int) -> None:
    """Raise a ShortlistError where what is read from this file would take too many bytes."""
    most = max(limit("SHORTLIST_MAX_UNPACKED"), _TIMES * Path(path).stat().st_size)
    if size > most:
        raise ShortlistError(
            f"it would unpack to {size} bytes, more than {most}; if this is right, set SHORTLIST_MAX_UNPACKED"
        )
