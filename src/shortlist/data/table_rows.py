"""Rows of a table as they are written: numbers, names and blanks."""

from __future__ import annotations

from typing import Any


class TableRows:
    """The feature columns of a table in a pandas frame: inputs that a `Preprocessor` has yet to make numbers of."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.frame.shape
        return int(rows), int(columns)

    def subset(self, rows: Any) -> TableRows:
        return TableRows(self.frame.iloc[rows])
