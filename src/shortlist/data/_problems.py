"""What is wrong with files: problems are collected while a reader reads, and reported all at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shortlist.data.images import Pixels

Unit = Literal["row", "line"]  # what a position in a file counts

# set by ``problems``: look inside every image too, which costs as much as decoding the whole data set
_THOROUGH: ContextVar[bool] = ContextVar("thorough", default=False)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: in which file, where in it, and what.

    ``row`` counts the examples of an array or table from 0; in text files (``unit="line"``) it is the line number
    that an editor shows. None means the file as a whole.

    >>> print(Problem("labels.csv", 3, "no such image: cat.jpg", unit="line"))
    labels.csv, line 3: no such image: cat.jpg
    """

    file: str
    row: int | None
    message: str
    unit: Unit = "row"

    def __str__(self) -> str:
        where = "" if self.row is None else f", {self.unit} {self.row}"
        return f"{self.file}{where}: {self.message}"


class DataError(ValueError):
    """Files that cannot be read as asked; ``problems`` lists everything that is wrong with them."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        more = len(problems) - 1
        others = f" (and {more} more problem{'s' * (more > 1)}: see `shortlist data check`)" if more else ""
        super().__init__(f"{problems[0]}{others}")

    def __reduce__(self) -> tuple[type[DataError], tuple[list[Problem]]]:
        return DataError, (self.problems,)


class Findings:
    """The problems that a reader has found so far."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._images: dict[str, str] = {}  # path or content -> where it was seen first

    def add(
        self, file: str | os.PathLike[str], message: str, row: int | None = None, unit: Unit = "row"
    ) -> None:
        self.problems.append(Problem(os.fspath(file), row, message, unit))

    def file(self, path: str | os.PathLike[str]) -> bool:
        """Whether this file is there; noted if not."""
        if os.path.isfile(path):
            return True
        self.add(path, "no such file")
        return False

    def folder(self, path: str | os.PathLike[str]) -> bool:
        if os.path.isdir(path):
            return True
        self.add(path, "no such folder")
        return False

    def image(
        self, image: Path, file: str | os.PathLike[str], row: int | None, unit: Unit = "row"
    ) -> bool:
        """Whether this image, named by ``file`` at ``row``, is there and for the first time."""
        here = str(Problem(os.fspath(file), row, "", unit)).removesuffix(": ") if row is not None else str(image)
        if not image.is_file():
            self.add(file, f"no such image: {image}", row, unit)
            return False
        if self._repeats(str(image), here, f"the image {image}", file, row, unit):
            return False
        if _THOROUGH.get():
            return self._look_inside(image, here, file, row, unit)
        return True

    def pixels(self, content: Pixels, file: str | os.PathLike[str], row: int) -> None:
        """Note an image of an array that occurred before (only in a thorough check)."""
        if _THOROUGH.get():
            here = f"{os.fspath(file)}, row {row}"
            self._repeats(hashlib.sha256(content.tobytes()).hexdigest(), here, "this image", file, row, "row")

    def _look_inside(
        self, image: Path, here: str, file: str | os.PathLike[str], row: int | None, unit: Unit
    ) -> bool:
        from shortlist.data.images import decode

        try:
            decode(image)
        except ValueError as error:
            self.add(file, str(error), row, unit)
            return False
        content = hashlib.sha256(image.read_bytes()).hexdigest()
        return not self._repeats(content, here, f"the content of {image}", file, row, unit)

    def _repeats(
        self,
        key: str,
        here: str,
        what: str,
        file: str | os.PathLike[str],
        row: int | None,
        unit: Unit,
    ) -> bool:
        first = self._images.setdefault(key, here)
        if first is not here:
            self.add(file, f"{what} is a duplicate, seen before at {first}", row, unit)
            return True
        return False

    def stop_if_any(self) -> None:
        """Raise what was found. Readers call this before they use what may be broken."""
        if self.problems:
            raise DataError(self.problems)


@contextmanager
def thorough() -> Iterator[None]:
    """Within this block, readers look inside every image too."""
    token = _THOROUGH.set(True)
    try:
        yield
    finally:
        _THOROUGH.reset(token)
