"""Text files line by line, with what is wrong in them noted by file and line."""

from __future__ import annotations

from collections.abc import Iterator

from shortlist.data.readers.findings import Findings
from shortlist.files import PathLike


def text_lines(path: PathLike, findings: Findings) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers; nothing, and noted, if the file cannot be read."""
    if not findings.file(path):
        return
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.strip()
    except UnicodeDecodeError as error:
        findings.add(path, f"is not text in UTF-8: {error}")


def numbered_names(path: PathLike, findings: Findings) -> dict[int, tuple[int, str]]:
    """A file of lines ``number name``: the name of each number, with the line where it stands."""
    found: dict[int, tuple[int, str]] = {}
    for line, text in text_lines(path, findings):
        number, _, name = text.partition(" ")
        if not number.isdecimal() or not name.strip():
            findings.add(path, f"a line must be a number and a name, got {text!r}", line, "line")
        elif int(number) in found:
            findings.add(path, f"the number {number} is a duplicate of line {found[int(number)][0]}", line, "line")
        else:
            found[int(number)] = line, name.strip()
    return found
