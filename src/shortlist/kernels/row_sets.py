"""The native functions that find the set of one row (``csrc/row_sets.h``), and whether they serve here."""

from typing import Any

from shortlist.kernels import dispatch

_THERE = hasattr(dispatch.native, "row_reaching")  # not in a build of before


def rows_served() -> Any:
    """The native module, where it finds the sets of single rows and this thread uses it; None: blocks of rows do."""
    return dispatch.native if _THERE and dispatch.in_use() != "torch" else None
