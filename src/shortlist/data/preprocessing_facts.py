"""What a `Preprocessor` has learnt as numbers, texts, lists and dicts, for a file; and back, with all of it checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shortlist.checks import whole
from shortlist.data.choices import Choices
from shortlist.data.column_features import Categories, Numbers
from shortlist.data.column_use import listed
from shortlist.data.dates import DAY_FIRST, MONTH_FIRST, YEAR_FIRST
from shortlist.data.text_columns import CountedTexts
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError

if TYPE_CHECKING:
    from shortlist.data.preprocessing import Preprocessor

_FORMAT = 1


def facts_of(prepared: Preprocessor) -> dict[str, Any]:
    """Everything learnt."""
    numbers = prepared.numbers
    return {
        "format": _FORMAT,
        "kind": prepared.kind,
        "num_columns": prepared.num_columns,
        "column_names": None if prepared.column_names is None else list(prepared.column_names),
        "na_values": list(prepared.na_values),
        "numbers": None if numbers is None else {
            "columns": list(numbers.columns), "fill": numbers.fill.tolist(), "centre": numbers.centre.tolist(),
            "scale": numbers.scale.tolist(), "marked": list(numbers.marked),
            "cut": {str(place): list(between) for place, between in numbers.cut.items()},
            "reach": {str(place): list(between) for place, between in numbers.reach.items()},
        },
        "categories": [
            {"column": one.column, "names": list(one.names), "has_rare": one.has_rare, "rare_share": one.rare_share}
            | ({"separator": one.separator} if isinstance(one, Choices) else {})
            for one in prepared.categories
        ],
        "texts": [{"columns": list(one.columns), "counted": one.counted.to_json()} for one in prepared.texts],
        "sparse_scale": None if prepared.sparse_scale is None else prepared.sparse_scale.tolist(),
        "left_out": {str(column): why for column, why in prepared.left_out.items()},
        "units": prepared.units,
        "decimal": prepared.decimal,
        "dates": prepared.dates,
    }  # fmt: skip


def fields_of(facts: Any) -> dict[str, Any]:
    """What the facts of a file make: the arguments of a `Preprocessor`."""
    try:
        return _checked(facts)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ShortlistError(f"this is no preprocessing that to_json wrote: {error!r}") from error


def _checked(facts: Any) -> dict[str, Any]:
    if facts["format"] != _FORMAT or facts["kind"] not in ("dense", "frame", "sparse"):
        raise ShortlistError(f"preprocessing of format {facts['format']!r} and kind {facts['kind']!r} is not known")
    total = whole(facts["num_columns"], "the preprocessing's num_columns", 1)
    names = None if facts["column_names"] is None else tuple(_texts(facts["column_names"], total))
    if (names is None) == (facts["kind"] == "frame"):
        raise ShortlistError("the preprocessing of a frame, and only that, has column_names")
    numbers = None
    if facts["numbers"] is not None:
        given = facts["numbers"]
        columns = _places(given["columns"], total)
        fill, centre, scale = (_reals(given[key], len(columns)) for key in ("fill", "centre", "scale"))
        cut, reach = (  # files of earlier versions have none
            {_places([int(place)], len(columns))[0]: _ends(ends) for place, ends in given.get(key, {}).items()}
            for key in ("cut", "reach")
        )
        numbers = Numbers(columns, fill, centre, scale, _places(given["marked"], len(columns)), cut, reach)
        if any(low >= high for low, high in (*cut.values(), *reach.values())):
            raise ShortlistError("numbers must be cut off below and above different ones")
        if not (numbers.scale > 0).all():
            raise ShortlistError("every scale of the preprocessing must be above 0")
    elif facts["kind"] == "dense":
        raise ShortlistError("the preprocessing of dense numbers lacks them")
    categories = [_categories(one, total) for one in facts["categories"]]
    texts = [  # files of earlier versions have none
        CountedTexts(_places(one["columns"], total), TfIdf.from_json(one["counted"])) for one in facts.get("texts", ())
    ]
    sparse_scale = None if facts["sparse_scale"] is None else _reals(facts["sparse_scale"], total)
    if sparse_scale is not None and not (sparse_scale > 0).all():
        raise ShortlistError("every scale of the preprocessing must be above 0")
    left_out = {_places([int(column)], total)[0]: str(why) for column, why in facts["left_out"].items()}
    na_values = tuple(_texts(facts["na_values"]))
    units = facts.get("units")  # files of earlier versions have none
    units = None if units is None else dict(zip(_texts(list(units)), _texts(list(units.values())), strict=True))
    decimal = facts.get("decimal")  # likewise
    if decimal not in (None, ".", ","):
        raise ShortlistError(f"the preprocessing's decimal must be '.' or ',', got {decimal!r}")
    dates = facts.get("dates", {})  # likewise
    if not set(dates.values()) <= {YEAR_FIRST, DAY_FIRST, MONTH_FIRST} or not dates.keys() <= set(names or ()):
        raise ShortlistError(f"the preprocessing's dates must be columns and where day and month stand, got {dates!r}")
    return {
        "kind": facts["kind"],
        "num_columns": total,
        "column_names": names,
        "numbers": numbers,
        "categories": categories,
        "texts": texts,
        "sparse_scale": sparse_scale,
        "left_out": left_out,
        "na_values": na_values,
        "units": units,
        "decimal": decimal,
        "dates": dict(dates),
    }


def _categories(facts: Any, total: int) -> Categories:
    share = facts.get("rare_share", float(facts["has_rare"]))  # files of earlier versions have none
    names, has_rare = tuple(_texts(facts["names"])), bool(facts["has_rare"])
    known = _places([facts["column"]], total)[0], names, has_rare, float(_reals([share], 1)[0])
    if facts.get("separator") is None:
        return Categories(*known)
    if not _texts([facts["separator"]])[0]:
        raise ShortlistError("the preprocessing's separator of choices must be a text")
    return Choices(*known, facts["separator"])


def _places(values: Any, below: int) -> tuple[int, ...]:
    found = tuple(values)
    bad = [value for value in found if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below]
    if bad or len(set(found)) < len(found):
        raise ShortlistError(f"the preprocessing names columns that cannot be: {listed(list(map(repr, bad or found)))}")
    return found


def _reals(values: Any, size: int) -> NDArray[np.float64]:
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values) or len(values) != size:
        raise ShortlistError(f"the preprocessing needs {size} finite numbers, got {len(values)} values")
    return np.array(values, dtype=np.float64)


def _ends(values: Any) -> tuple[float, float]:
    low, high = _reals(values, 2).tolist()
    return low, high


def _texts(values: Any, size: int | None = None) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ShortlistError("the preprocessing's names must be texts")
    if size not in (None, len(values)):
        raise ShortlistError(f"the preprocessing has {len(values)} names for {size} columns")
    return values
