"""What the cells of a table hold."""

import re
from collections.abc import Collection

# texts that mean that nothing is known
NA_VALUES = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "?", "-", "#N/A")
LONG = 40  # letters: text, if most cells are longer
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
# with points or commas between thousands: of the two, the other one stands before the digits of a fraction
THOUSANDS = {",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?"), ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")}
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")

# letters of scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_SENTENCE = re.compile(f"[{UNSPACED}]{{6}}")

YES = frozenset({"true", "yes", "t", "y", "ja", "oui", "si", "sí", "wahr", "vrai"})
NO = frozenset({"false", "no", "f", "n", "nein", "non", "falsch", "faux"})
# words for a label of which nothing is known
UNKNOWN = frozenset(
    {"unknown", "not known", "unlabelled", "unlabeled", "missing", "unbekannt", "inconnu", "desconocido"}
)


def are_codes(cells: Collection[str]) -> bool:
    """Whether these are whole numbers, one of which is written with a 0 before: names, such as zip codes.

    >>> are_codes(["01001", "94105"]), are_codes(["0.5", "01"]), are_codes(["0", "10"])
    (True, False, False)
    """
    return all(map(str.isdecimal, cells)) and any(len(cell) > 1 and cell[0] == "0" for cell in cells)


def has_words(cells: Collection[str]) -> bool:
    """Whether most cells are of several words, or long, and few come twice: texts, no names.

    >>> has_words(["what a day", "so sad"]), has_words(["a b", "a b"]), has_words(["a17", "b2"])
    (True, False, False)
    >>> has_words(["素晴らしい映画", "時間の無駄でした"]), has_words(["東京", "大阪"])
    (True, False)
    """
    several = sum(" " in cell.strip() or len(cell) > LONG or _SENTENCE.search(cell) is not None for cell in cells)
    return 2 * several > len(cells) and 2 * len(set(cells)) > len(cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
