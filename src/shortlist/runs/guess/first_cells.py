"""The first cells of the columns of a table, from which their use is guessed."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

_LOOKED_AT = 1000  # cells of a column


class FirstCells:
    """The first cells of each column of a table, those that are not blank; ``names`` are the columns that no other use
    is known of."""

    def __init__(self, path: Path, table: Any, names: Sequence[str]) -> None:
        self.path, self.table, self.names = path, table, names
        self._found: dict[str, list[Any]] = {}

    def of(self, name: str) -> list[Any]:
        """Of any column; the cells may be lists."""
        if name not in self._found:
            found = self.table.array(name)[:_LOOKED_AT].tolist()
            self._found[name] = [cell for cell in found if cell is not None and cell == cell and cell != ""]
        return self._found[name]

    def flat(self, name: str) -> list[Any]:
        """Of a column of numbers or texts; none of a column of lists."""
        return self.of(name) if self.table.is_flat(name) else []

    def written(self, name: str) -> list[Any]:
        """Of a column of texts alone."""
        return self.flat(name) if not self.has_numbers(name) else []

    def kinds(self, name: str) -> set[str]:
        """The texts that occur, in small letters."""
        return {str(cell).strip().lower() for cell in self.flat(name)}

    def has_numbers(self, name: str) -> bool:
        """Whether some cell of the whole column is a number."""
        return bool(self.table.has_numbers(name))

    def is_number(self, name: str) -> bool:
        """Whether all cells that were looked at are numbers."""
        return all(isinstance(cell, int | float) for cell in self.flat(name)) and self.has_numbers(name)

    @cached_property
    def rows(self) -> int:
        """How many cells of a column were looked at, blank or not."""
        return min(_LOOKED_AT, len(self.table.array(self.table.names[0])))

    def are_full(self, name: str) -> bool:
        """Whether none that was looked at is blank."""
        return len(self.of(name)) == self.rows
