"""What the cells of a table hold."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

BLANK = ("", r"\N")  # what a text file holds where there is nothing: MySQL and Hive write \N
# texts that mean that nothing is known
NA_VALUES = (
    *BLANK, "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "?", "-", "#N/A", "<NA>", "NaT",
    "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!",
)  # fmt: skip
MOST_NAMES = 255  # that a column of categories keeps apart; the rest, the rarest ones, share one
LONG = 40  # letters: text, if most cells are longer
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
# with points or commas between thousands: of the two, the other one stands before the digits of a fraction
THOUSANDS = {
    ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?"),
    ".": re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})+,\d{3})(\.\d+)?"),  # or as in India, 5,25,000
}
CURRENCIES = "$\u00a2-\u00a5\u20a0-\u20bf\ufdfc\uff04\uffe0\uffe1\uffe5\u5186\u5143\uc6d0"  # signs
SPACES = " '\u00a0\u202f"  # that may stand between thousands
SPACED = re.compile(rf"[+-]?\d{{1,3}}([{SPACES}]\d{{3}})+([.,]\d+)?")
# a number with a currency before it, or a unit behind: US$ 1,234.50, CHF 5, 12 €, 7 %, 3kg
_AMOUNT = re.compile(
    rf"[+-]?\s?((?:[A-Za-z]{{0,3}}[{CURRENCIES}]|[A-Z]{{3}}(?=\s))?)\s?[+-]?[.,]?(?:[1-9][\d.,{SPACES}]*\d|\d|0[.,]\d+)\s?"
    rf"([%\u2030\u00b0]?(?:[^\W\d_]{{0,3}}[{CURRENCIES}]?))"
)
_ORDINAL = re.compile(r"\d*(?:(?<!1)(?:1st|2nd|3rd)|(?:[04-9]|1[123])th)", re.IGNORECASE)  # 11st is a weight
ORDINAL = "th"  # stands for the ends of all
_VECTOR = re.compile(r"(?:array\()?\[\s*[+-]?[\d.][\d.eE+\-,\s]*\]\)?")  # [0.5, -1.2], as Python and numpy write them

# letters of scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# of one cell: a sentence of such a script, or words with hyphens between, arrow-down
_WORDS = re.compile(rf"[{UNSPACED}]{{6}}|^[^\W\d_]{{2,}}(-[^\W\d_]{{2,}})+$")

YES = frozenset({"true", "yes", "t", "y", "ja", "oui", "si", "sí", "wahr", "vrai"})
NO = frozenset({"false", "no", "f", "n", "nein", "non", "falsch", "faux"})
# words for a label of which nothing is known
UNKNOWN = frozenset(
    {"unknown", "not known", "unlabelled", "unlabeled", "missing", "unbekannt", "inconnu", "desconocido"}
)
# beside yes and no they say the same; of a class they may be the name
UNSURE = frozenset(
    {"uncertain", "unsure", "not sure", "unclear", "unsicher", "unklar", "incertain", "incierto", "don't know",
     "don\u2019t know", "dont know", "weiß nicht", "ne sait pas", "no sabe"}
)  # fmt: skip


def are_codes(cells: Collection[str]) -> bool:
    """Whether these are whole numbers, one of which is written with a 0 before: names, such as zip codes.

    >>> are_codes(["01001", "94105"]), are_codes(["0.5", "01"]), are_codes(["0", "10"])
    (True, False, False)
    """
    return all(map(str.isdecimal, cells)) and any(len(cell) > 1 and cell[0] == "0" for cell in cells)


def are_vectors(cells: Collection[str]) -> bool:
    """Whether most cells are lists of numbers.

    >>> are_vectors(["[0.5, -1.2]", "[1. 2.]"]), are_vectors(["[joy, love]", "5"])
    (True, False)
    """
    return 2 * sum(cell[:1] in "[a" and _VECTOR.fullmatch(cell) is not None for cell in cells) > len(cells)


def written_list_of(names: Sequence[Any]) -> str:
    """A cell that is a list, as Python writes it.

    >>> written_list_of(("R", "SQL"))
    "['R', 'SQL']"
    """
    return str([name for name in names if name is not None])


def has_words(cells: Collection[str]) -> bool:
    """Whether most cells are of several words, or long, and few come twice, or they are more than categories hold and
    one in ten is new: texts, no names.

    >>> has_words(["what a day", "so sad"]), has_words(["a b", "a b"]), has_words(["a17", "b2"])
    (True, False, False)
    >>> has_words(["素晴らしい映画", "時間の無駄でした"]), has_words(["東京", "大阪"])
    (True, False)
    >>> has_words(["arrow-down", "arrow-up-left"]), has_words(["leaf-12", "9f8b-4ac1"])
    (True, False)
    """
    kinds = len(set(cells))
    if not (2 * kinds > len(cells) or (kinds > MOST_NAMES and 10 * kinds > len(cells))) or are_vectors(cells):
        return False
    several = sum(" " in cell.strip() or len(cell) > LONG or _WORDS.search(cell) is not None for cell in cells)
    return 2 * several > len(cells)


def unit_of(cells: Collection[str]) -> tuple[str, str] | None:
    """What stands before and behind the numbers in most cells, if it is the same: a currency, per cent or a unit; all
    ends of ordinals, 1st and 2nd, are "th".

    >>> unit_of(["$1,234.50", "$7", "NA"]), unit_of(["7 %", "-12,5 %"]), unit_of(["5 kg", "300 g"]), unit_of(["7", "8"])
    (('$', ''), ('', '%'), None, None)
    >>> unit_of(["1st", "22nd", "3RD", "11th"]), unit_of(["11st", "12st"])
    (('', 'th'), ('', 'st'))
    """
    of_each = (("", ORDINAL) if _ORDINAL.fullmatch(cell) else _AMOUNT.fullmatch(cell) for cell in cells)
    found = Counter(one if isinstance(one, tuple) else one.groups() for one in of_each if one)
    (unit, times), *_ = found.most_common(1) or [(("", ""), 0)]
    return (unit[0], unit[1]) if any(unit) and 2 * times > len(cells) else None


def without_unit(cell: str) -> str:
    """An amount without its sign or unit and the spaces between thousands; another cell as it is.

    >>> without_unit("-1 234,50 €"), without_unit("1 234")
    ('-1234,50', '1 234')
    """
    if _ORDINAL.fullmatch(cell):
        return cell[:-2]
    before, behind = unit_of([cell]) or ("", "")
    return re.sub(f"[{SPACES}]", "", cell.replace(before, "").removesuffix(behind)) if before or behind else cell


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
