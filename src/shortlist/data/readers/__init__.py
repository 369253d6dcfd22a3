"""Readers: one file per format, all of them by name in ``READERS``."""

from shortlist.data.readers.findings import DataError, Problem
from shortlist.data.readers.registry import READERS, problems, read, reader_for

__all__ = ["READERS", "DataError", "Problem", "problems", "read", "reader_for"]
