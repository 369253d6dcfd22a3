"""Features as a file has them -> what a data set takes: finite numbers, dense, sparse or left on disk."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from shortlist.data.mapped_rows import MappedRows
from shortlist.data.readers.arrays import ArrayFile
from shortlist.data.readers.findings import Findings, is_thorough
from shortlist.data.table_rows import TableRows


def checked_inputs(inputs: Any, file: ArrayFile, columns: Sequence[str] | None, findings: Findings) -> Any:
    """A tensor, memory map or CSR matrix of finite numbers; the rows of a table as they are."""
    if isinstance(inputs, TableRows):
        return inputs
    if inputs.ndim == 1 and inputs.dtype.kind == "O" and any(isinstance(cell, list) for cell in inputs):
        sizes = [len(cell) if isinstance(cell, list) else 0 for cell in inputs]
        row = next((row for row, size in enumerate(sizes) if size != sizes[0]), 0)
        findings.add(file.path, f"the features are {sizes[row]} values in row {row} and {sizes[0]} in row 0")
        findings.stop_if_any()
    if inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
        findings.add(file.path, f"features must be numbers (N, D), got shape {inputs.shape} of {inputs.dtype}")
        findings.stop_if_any()
    if hasattr(inputs, "tocsr"):
        bad = np.unique(np.searchsorted(inputs.indptr, np.flatnonzero(~np.isfinite(inputs.data)), side="right") - 1)
        inputs = inputs.astype(np.float32)
    elif isinstance(inputs, np.memmap):
        # reading all of it is what a memory map is there to avoid
        bad = _rows_not_finite(inputs) if is_thorough() else np.empty(0, dtype=np.int64)
        inputs = MappedRows(inputs)
    else:
        bad = _rows_not_finite(inputs)
        kept = inputs.dtype if inputs.dtype in (np.float16, np.float32) else np.float32
        inputs = torch.from_numpy(np.require(inputs, dtype=kept, requirements="W"))

    blank = "; data.preprocess=auto fills blanks" if file.is_table else ""

    def message(row: int) -> str:
        if columns is None:
            return "a feature is not a finite number"
        column = columns[int(np.argmin(np.isfinite(np.asarray(inputs[row]))))]
        return f"the column {column!r} is blank or not finite: a feature must be a finite number{blank}"

    findings.rows(file.path, bad.tolist(), message)
    return inputs


def _rows_not_finite(inputs: Any) -> Any:
    step = 65536
    pieces = [np.isfinite(inputs[begin : begin + step]).all(1) for begin in range(0, len(inputs), step)]
    return np.flatnonzero(~np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)
