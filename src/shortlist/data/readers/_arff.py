"""Tables in ARFF, as Weka, Mulan and MEKA write them: dense or sparse; and Mulan's XML with the names of the labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import is_number
from shortlist.data.column_use import listed
from shortlist.data.readers._columns import Columns, TypedColumns
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""  # in quotes
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)\s*(.+)", re.IGNORECASE)
_VALUES = re.compile(rf"\{{((?:{_WORD}|[^}}'\"])*)\}}\s*(?:%.*)?")  # a comment may follow
_CELLS = re.compile(rf"\s*({_WORD}|[^,]*)\s*(?:,|$)")
_PAIR = re.compile(rf"\s*(\d{{1,18}})\s+({_WORD}|[^,]*?)\s*(?:,|$)")
_MEKA = re.compile(r"-C\s+(-?\d+)")


@dataclass(frozen=True)
class Attribute:
    name: str
    values: tuple[str, ...] | None = None  # of a nominal one
    is_text: bool = False

    @property
    def is_number(self) -> bool:
        return not self.is_text and (self.values is None or all(map(is_number, self.values)))

    @property
    def left_out(self) -> str:
        """What a sparse row means that does not mention it."""
        return "0" if self.values is None else self.values[0]


class SparseColumns:
    """The columns of a sparse table of numbers; ``matrix`` takes many of them without unpacking them."""

    def __init__(self, names: Sequence[str], matrix: Any, label_names: Sequence[str] | None = None) -> None:
        self.names, self.label_names = names, label_names
        self._matrix = matrix.tocsc()
        self._place = {name: place for place, name in enumerate(names)}

    def matrix(self, names: Sequence[str]) -> Any:
        return self._matrix[:, [self._place[name] for name in names]].tocsr()

    def array(self, name: str) -> NDArray[Any]:
        return np.asarray(self._matrix[:, [self._place[name]]].toarray()[:, 0])

    numbers = texts = values = array

    def has_numbers(self, name: str) -> bool:
        return True

    def is_flat(self, name: str) -> bool:
        return True

    is_feature = is_flat

    def is_blank(self, name: str) -> bool:
        return False

    def has_decimal_commas(self, name: str) -> bool:
        return False


def read_arff(path: Path, findings: Findings, decimal: str | None = None) -> Columns | None:
    """The columns of the file; None, and noted, where it cannot be read. MEKA's ``-C`` in the relation says which are
    labels."""
    attributes: list[Attribute] = []
    relation, rows, lines, noted = "", [], [], len(findings.problems)
    try:
        content = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.add(path, f"is not text in UTF-8: {error}")
        return None
    in_data = False
    for number, line in enumerate(content.split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            rows.append(text)
            lines.append(number)
        elif text.lower().startswith("@relation"):
            relation = text
        elif text.lower().startswith("@data"):
            in_data = True
        else:
            found = _ATTRIBUTE.fullmatch(text)
            if found is None:
                findings.add(path, f"expected @attribute NAME KIND or @data, got {text[:60]!r}", number, "line")
            else:
                attributes.append(_attribute(_unquoted(found[1]), found[2].strip()))
    findings.number_lines(path, lambda: lines)
    _check(path, attributes, rows, findings)
    if len(findings.problems) > noted:
        return None
    names = [attribute.name for attribute in attributes]
    meka = _MEKA.search(relation)
    count = int(meka[1]) if meka else 0
    labels = (names[:count] if count > 0 else names[count:]) if count else None
    columns: Columns | None
    if rows[0].startswith("{"):
        columns = _sparse(path, attributes, rows, labels, findings)
    else:
        table = _dense(path, attributes, rows, findings)
        columns = None if table is None else TypedColumns(table, labels, decimal)
    return None if len(findings.problems) > noted else columns


def names_in_xml(path: PathLike) -> list[str]:
    """The labels that Mulan's XML file lists.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pets.xml")
    ...     _ = file.write_text('<labels xmlns="http://mulan.sourceforge.net/labels"><label name="cat"/></labels>')
    ...     names_in_xml(file)
    ['cat']
    """
    if not Path(path).is_file():
        raise ShortlistError(f"{path}: no such file")
    try:
        tree = ElementTree.parse(path)
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: of an encoding
        raise ShortlistError(f"{path}: is not XML: {error}") from error
    names = [element.get("name") for element in tree.iter() if element.tag.rpartition("}")[2] == "label"]
    found = [name for name in names if name]
    if not found:
        raise ShortlistError(f"{path}: it names no labels; Mulan writes <labels><label name=...></label>...</labels>")
    return found


def _attribute(name: str, kind: str) -> Attribute:
    if kind.startswith("{"):
        found = _VALUES.fullmatch(kind)
        return Attribute(name, tuple(_unquoted(value) for value in _cells(found[1] if found else kind.strip("{}"))))
    return Attribute(name, is_text=kind.split()[0].lower() not in ("numeric", "real", "integer"))


def _check(path: Path, attributes: list[Attribute], rows: list[str], findings: Findings) -> None:
    names = [attribute.name for attribute in attributes]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if not attributes:
        findings.add(path, "the file is empty" if not rows else "there is no line @attribute NAME KIND")
    elif twice is not None:
        findings.add(path, f"{names.count(twice)} attributes are called {twice!r}")
    elif not rows:
        findings.add(path, f"no rows: the file only names the attributes {', '.join(map(repr, names[:12]))}")


def _cells(text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    found, place = [], 0
    while place < len(text):
        cell = _CELLS.match(text, place)
        if cell is None:
            return []
        found.append(cell[1].strip())
        place = cell.end()
    return found


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _dense(path: Path, attributes: list[Attribute], rows: list[str], findings: Findings) -> Any:
    """A pyarrow table; None, and noted, where rows are too long or too short."""
    pyarrow = require("pyarrow")
    split = [_cells(row) for row in rows]
    bad = [row for row, cells in enumerate(split) if len(cells) != len(attributes)]
    findings.rows(path, bad, lambda row: f"has {len(split[row])} values, but there are {len(attributes)} attributes")
    if bad:
        return None
    columns = []
    for place, attribute in enumerate(attributes):
        cells = [None if cells[place] == "?" else _unquoted(cells[place]) for cells in split]
        if attribute.values is not None and not attribute.is_number:
            allowed = {*attribute.values, None}
            wrong = {row: _not_declared(attribute, str(cell)) for row, cell in enumerate(cells) if cell not in allowed}
            findings.rows(path, list(wrong), wrong.__getitem__)
        if not attribute.is_number:
            columns.append(pyarrow.array(cells, pyarrow.string()))
            continue
        numbers = [
            None if cell is None else _number(cell, row, attribute, path, findings) for row, cell in enumerate(cells)
        ]
        columns.append(pyarrow.array(numbers, pyarrow.float64()))
    return pyarrow.table(columns, names=[attribute.name for attribute in attributes])


def _not_declared(attribute: Attribute, value: str) -> str:
    return f"the attribute {attribute.name!r} is {value!r}: allowed are {listed(attribute.values or ())}"


def _number(cell: str, row: int, attribute: Attribute, path: Path, findings: Findings) -> float:
    if is_number(cell):
        return float(cell)
    findings.add(path, f"the attribute {attribute.name!r} is {cell!r}, not a number", row)
    return 0.0


def _sparse(
    path: Path, attributes: list[Attribute], rows: list[str], labels: list[str] | None, findings: Findings
) -> SparseColumns | None:
    """Numbers as they are. A name is a column of its own, ``attribute=value``, but for the first, the usual one."""
    texts = [attribute.name for attribute in attributes if attribute.is_text]
    if texts:
        findings.add(path, f"a sparse file must hold numbers and names, but {texts[0]!r} is a text or a date")
        return None
    names: list[str] = []
    first = []  # of each attribute, the column where it begins
    for attribute in attributes:
        first.append(len(names))
        plain = attribute.is_number and float(attribute.left_out) == 0
        names += [attribute.name] if plain else [f"{attribute.name}={value}" for value in (attribute.values or ())[1:]]
    at, columns, data = [0], [], []
    for row, text in enumerate(rows):
        content = text.strip("{} \t")
        pairs = list(_PAIR.finditer(content))
        covered = sum(len(pair[0]) for pair in pairs)
        if not text.startswith("{") or not text.endswith("}") or (content and covered != len(content)):
            findings.add(path, f"a sparse row is {{place value, ...}}, got {text[:60]!r}", row)
            continue
        places = [int(pair[1]) for pair in pairs]
        if len(set(places)) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            findings.add(path, f"place {twice} has several values", row)
        for pair in pairs:
            place, value = int(pair[1]), _unquoted(pair[2])
            if place >= len(attributes):
                findings.add(path, f"place {place} is outside: allowed are 0..{len(attributes) - 1}", row)
                continue
            attribute = attributes[place]
            if attribute.is_number and float(attribute.left_out) == 0:
                columns.append(first[place])
                data.append(_number(value, row, attribute, path, findings) if value != "?" else np.nan)
            elif value not in (attribute.values or ()):
                findings.add(path, _not_declared(attribute, value), row)
            elif value != attribute.left_out:
                columns.append(first[place] + (attribute.values or ()).index(value) - 1)
                data.append(1.0)
        at.append(len(columns))
    if len(at) != len(rows) + 1:
        return None
    matrix = require("scipy.sparse").csr_matrix((data, columns, at), shape=(len(rows), len(names)), dtype=np.float64)
    matrix.sum_duplicates()
    return SparseColumns(names, matrix, labels)
