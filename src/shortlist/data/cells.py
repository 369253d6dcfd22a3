"""What the cells of a table hold."""

import re
from collections.abc import Iterable

# texts that mean that nothing is known
NA_VALUES = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "?", "-", "#N/A")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def have_decimal_commas(cells: Iterable[str]) -> bool:
    """Whether most of them would be numbers, were commas points.

    >>> have_decimal_commas(["1,5", "2,25"]), have_decimal_commas(["Oslo", "Rome"])
    (True, False)
    """
    found = [DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells]
    return any(found) and 2 * sum(found) >= len(found)
