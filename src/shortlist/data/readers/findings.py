"""What is wrong with files: problems are collected while a reader reads, and reported all at once."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shortlist.data.column_use import as_option
from shortlist.errors import ShortlistError, nearest
from shortlist.files import PathLike

if TYPE_CHECKING:
    from shortlist.data.images import Pixels

Unit = Literal["row", "line"]  # what a position in a file counts

# set by ``problems``: look inside every image too, which costs as much as decoding the whole data set
_THOROUGH: ContextVar[bool] = ContextVar("thorough", default=False)
# set by ``labels_by_name``
BY_NAME: ContextVar[bool] = ContextVar("by name", default=False)
# set by ``ids_may_repeat``
REPEATED: ContextVar[bool] = ContextVar("repeated", default=False)
# set by ``labels_are_lists``
LISTS: ContextVar[bool | None] = ContextVar("lists", default=None)
# set by ``may_be_empty``
EMPTY: ContextVar[bool] = ContextVar("empty", default=False)

_LONG = 1000  # letters of a message
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[\d/\\]\S*")  # what differs between problems of one cause


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

    @property
    def place(self) -> str:
        return self.file if self.row is None else f"{self.file}, {self.unit} {self.row}"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def grouped(problems: Sequence[Problem], examples: int = 3) -> list[str]:
    """Lines to read: problems of one file, or of whole files such as images, that differ only in numbers and names are
    one cause, with a count and the first few of them.

    >>> for line in grouped([Problem("a.csv", row, f"the label '{row}' is unknown") for row in range(2, 167)]):
    ...     print(line)
    a.csv: 165 times alike, such as
      a.csv, row 2: the label '2' is unknown
      a.csv, row 3: the label '3' is unknown
      a.csv, row 4: the label '4' is unknown
    """
    causes: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        of_file = "" if problem.row is None else f"{problem.file}: "
        message = problem.message.replace(problem.file, "*")
        causes.setdefault((of_file, _DETAILS.sub("*", message)), []).append(problem)
    lines: list[str] = []
    for (of_file, _), alike in causes.items():
        if len(alike) <= examples:
            lines += map(str, alike)
        else:
            lines += [f"{of_file}{len(alike)} times alike, such as", *(f"  {problem}" for problem in alike[:examples])]
    return lines


class DataError(ShortlistError):
    """Files that cannot be read as asked; ``problems`` lists everything that is wrong with them."""

    __module__ = "shortlist.data"  # where it is public: tracebacks name it so

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
        self._seen: dict[str, Problem] = {}  # path or content of an image -> where it was first
        self._unopened: list[tuple[Path, Problem]] = []  # images to look into, and where they are named
        self._lines: dict[str, Callable[[], Sequence[int]]] = {}  # text file -> the line of each row

    def add(self, file: PathLike, message: str, row: int | None = None, unit: Unit = "row") -> None:
        if row is not None and unit == "row" and os.fspath(file) in self._lines:
            row, unit = self._lines[os.fspath(file)]()[row], "line"
        if len(message) > _LONG:  # it quotes a huge cell
            message = f"{message[: _LONG // 2]} ... {message[-_LONG // 2 :]}"
        self.problems.append(Problem(os.fspath(file), row, message, unit))

    def number_lines(self, file: PathLike, lines: Callable[[], Sequence[int]]) -> None:
        """Say from now on in which line of this file a row stands; they are counted when the first one is asked for."""
        self._lines[os.fspath(file)] = cache(lines)

    def place(self, file: PathLike, row: int) -> str:
        lines = self._lines.get(os.fspath(file))
        return f"row {row}" if lines is None else f"line {lines()[row]}"

    def outside(self, file: PathLike, rows: Mapping[str, Sequence[int]], known: Sequence[str]) -> None:
        """Labels that are not among the known ones, each with the rows that have it."""
        for name, places in rows.items():
            others = len(places) - 1
            more = f", here and in {others} more row{'s' * (others > 1)}" if others else ""
            close = nearest(name, known)
            few = ", ".join(map(repr, known[:5])) + ", ..." * (len(known) > 5)
            unknown = f"give unknown_names={as_option(sorted(rows))} to take it as unknown" if len(rows) <= 5 else ""
            unknown = unknown or "name all such labels in unknown_names to take them as unknown"
            allowed = close or f": correct it, or {unknown}; the {len(known)} labels are {few}"
            self.add(file, f"label {name!r} is outside the vocabulary{more}{allowed}", places[0])

    def rows(self, file: PathLike, rows: Sequence[int], message: Callable[[int], str], most: int = 1000) -> None:
        """The same kind of problem in several rows; a file that is wrong throughout need not be listed throughout."""
        for row in rows[:most]:
            self.add(file, message(row), row)
        if len(rows) > most:
            self.add(file, f"{len(rows) - most} more rows have the same problem as row {rows[most - 1]}")

    def together(self, file: PathLike, rows: Sequence[int], values: Any, what: str, remedy: str) -> None:
        """One cause in several rows, as one problem, at the first: how many there are, and three different values."""
        first = {str(values[row]): row for row in reversed(rows)}  # of each value
        places = sorted(first.items(), key=lambda item: item[1])[:3]
        shown = ", ".join([places[0][0], *(f"{value} ({self.place(file, row)})" for value, row in places[1:])])
        more = ", ..." if len(first) > len(places) else ""
        self.add(file, f"{what} in {len(rows)} row{'s' * (len(rows) > 1)}, {shown}{more}: {remedy}", rows[0])

    def file(self, path: PathLike) -> bool:
        """Whether this file is there; noted if not."""
        if os.path.isfile(path):
            return True
        self.add(path, missing(path, "file"))
        return False

    def folder(self, path: PathLike) -> bool:
        """Whether this folder is there; noted if not."""
        if os.path.isdir(path):
            return True
        self.add(path, missing(path, "folder"))
        return False

    def image(self, image: Path, file: PathLike, row: int | None, unit: Unit = "row") -> None:
        """Note if this image, named by ``file`` at ``row``, is missing, occurred before or (in a check) is broken."""
        if not os.path.isfile(image):
            self.add(file, f"no such image: {image}", row, unit)
            return
        here = Problem(os.fspath(file), row, "", unit)
        how = ": delete it, or give each image one row, with all its labels in one cell (cat|dog)"
        once = "" if row is None else how
        if not self._repeats(str(image), here, f"the image {image}", once) and _THOROUGH.get():
            self._unopened.append((image, here))

    def pixels(self, image: Pixels, file: PathLike, row: int) -> None:
        """Note an image of an array that occurred before (only in a check)."""
        if _THOROUGH.get():
            content = hashlib.sha256(image.tobytes()).hexdigest()
            self._repeats(content, Problem(os.fspath(file), row, ""), "this image")

    def stop_if_any(self) -> None:
        """Raise what was found. Readers call this before they use what may be broken."""
        if self._unopened:
            self._look_inside()
        if self.problems:
            raise DataError(self.problems)

    def _look_inside(self) -> None:
        unopened, self._unopened = self._unopened, []
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # Pillow decodes without the interpreter's lock
            opened = pool.map(_content_or_error, [image for image, _ in unopened])
            for (image, here), (content, error) in zip(unopened, opened, strict=True):
                if error:
                    self.add(here.file, error, here.row, here.unit)
                else:
                    self._repeats(content, here, f"the content of {image}")

    def _repeats(self, key: str, here: Problem, what: str, remedy: str = "") -> bool:
        if key not in self._seen:
            self._seen[key] = here
            return False
        first = self._seen[key]
        of_row = first.row is not None and first.unit == "row"
        at = f"{first.file}, {self.place(first.file, first.row or 0)}" if of_row else first.place
        self.add(here.file, f"{what} is a duplicate, seen before at {at}{remedy}", here.row, here.unit)
        return True


def missing(path: PathLike, wanted: Literal["file", "folder"]) -> str:
    """What is wrong with a path that is not what was wanted; of a relative one, where it was looked for."""
    other = "folder" if wanted == "file" else "file"
    where = "" if os.path.isabs(path) else f" in {os.getcwd()}"
    return f"is a {other}, not a {wanted}" if os.path.exists(path) else f"no such {wanted}{where}"


def _content_or_error(image: Path) -> tuple[str, str]:
    from shortlist.data.images import decode

    try:
        decode(image)
    except ValueError as error:
        return "", str(error)
    return hashlib.sha256(image.read_bytes()).hexdigest(), ""


def is_thorough() -> bool:
    """Whether a reader should look at everything, however long it takes."""
    return _THOROUGH.get()


@contextmanager
def _set(flag: ContextVar[Any], value: bool | None = True) -> Iterator[None]:
    token = flag.set(value)
    try:
        yield
    finally:
        flag.reset(token)


def thorough() -> AbstractContextManager[None]:
    """Within this block, readers look inside every image too."""
    return _set(_THOROUGH)


def labels_by_name() -> AbstractContextManager[None]:
    """Within this block, whole numbers are names of labels: 0 is no place among given names such as 'fraud', 'ok'."""
    return _set(BY_NAME)


def ids_may_repeat() -> AbstractContextManager[None]:
    """Within this block, several examples may have one id: data that only judges may have an example twice."""
    return _set(REPEATED)


def labels_are_lists(decided: bool | None) -> AbstractContextManager[None]:
    """Within this block, the cells of labels are lists, or are none, whatever most of them are: they are some of those
    of a table, which decides as a whole. None: their own cells decide."""
    return _set(LISTS, decided)


def may_be_empty() -> AbstractContextManager[None]:
    """Within this block, a table may have no rows: of new data there may be none today."""
    return _set(EMPTY)
