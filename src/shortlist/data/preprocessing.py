"""Preprocessing: columns of numbers and categories become features that a model can learn from.

scikit-learn's transformers are fitted on the training rows; what they learnt is kept as plain numbers and names, so a
model's file can hold it as JSON and nothing has to be unpickled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import NA_VALUES
from shortlist.errors import ShortlistError, ShortlistWarning

MISSING = "(missing)"  # the category of a blank
_FORMAT = 1
_MOST_CATEGORIES = 256  # of one column; the rest, the rarest ones, share one
_TEXT = 50  # a column of names with more different ones than this, most of them seen once, is text or an id


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers: blanks filled, then (x - centre) / scale; a further 1 marks the blanks of some columns."""

    columns: tuple[int, ...]
    fill: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    marked: tuple[int, ...]  # places in ``columns``

    @property
    def width(self) -> int:
        return len(self.columns) + len(self.marked)

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        blank = np.isnan(values)
        filled = np.where(blank, self.fill, values) if blank.any() else values
        scaled = ((filled - self.centre) / self.scale).astype(np.float32)
        marks = blank[:, list(self.marked)].astype(np.float32)
        return np.concatenate([scaled, marks], axis=1) if self.marked else scaled


@dataclass(frozen=True)
class Categories:
    """One column of names: a 1 for the name it holds; rare and unseen ones share the last place, where there is one."""

    column: int
    names: tuple[str, ...]
    has_rare: bool

    @property
    def width(self) -> int:
        return len(self.names) + self.has_rare

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        place = {name: number for number, name in enumerate(self.names)}
        at = np.array([place.get(value, len(self.names)) for value in values.tolist()], dtype=np.int64)
        return np.eye(len(self.names) + 1, dtype=np.float32)[at][:, : self.width]


class Preprocessor:
    """What to do with each column, learnt by ``fit`` from the training rows.

    - Dense numbers (numpy) are standardised; blanks (NaN) are filled with the column's median, and a further column
      says where they were. A column that never changes is left out.
    - A pandas frame has its columns read by type: numbers as above, names as categories (rare ones together, unseen
      ones with them; a blank is a category of its own). Text, ids and dates are left out, with a warning. Columns are
      found by name.
    - A scipy sparse matrix stays sparse: a column is divided by the geometric mean of its largest absolute value and
      its standard deviation, halfway between MaxAbsScaler and StandardScaler, so that rare columns count for more, but
      not for much more. Rows of length 1, as tf-idf has them, are weighted already and left alone.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 40, None], "city": ["Oslo", "Rome", "Oslo"], "unit": ["cm", "cm", "cm"]})
    >>> prepared = Preprocessor.fit(table)
    >>> print(prepared.describe())
    standardised numbers (1): age
    categories (1): city (Oslo and rare or unseen ones)
    blanks marked (1): age
    left out (1): unit (always the same)
    >>> prepared.transform(table[["city", "unit", "age"]]).tolist()
    [[-1.224..., 0.0, 1.0, 0.0], [1.224..., 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    >>> Preprocessor.from_json(prepared.to_json()) == prepared
    True
    """

    def __init__(
        self,
        kind: str,
        num_columns: int,
        column_names: tuple[str, ...] | None,
        numbers: Numbers | None = None,
        categories: Sequence[Categories] = (),
        sparse_scale: NDArray[np.float64] | None = None,
        left_out: dict[int, str] | None = None,
        na_values: tuple[str, ...] = NA_VALUES,
    ) -> None:
        self.kind = kind  # "dense", "frame" or "sparse"
        self.num_columns = num_columns
        self.column_names = column_names
        self.numbers = numbers
        self.categories = tuple(categories)
        self.sparse_scale = sparse_scale
        self.left_out = dict(left_out or {})
        self.na_values = na_values

    @property
    def columns_left_out(self) -> dict[str, str]:
        """The columns of a frame that no feature is made of, and why."""
        return {} if self.column_names is None else {self.column_names[at]: why for at, why in self.left_out.items()}

    # ---- learning

    @classmethod
    def fit(cls, X: Any, *, na_values: Sequence[str] = NA_VALUES) -> Preprocessor:
        """Learn from these rows. ``na_values``: texts of a frame's cells that mean that nothing is known."""
        if hasattr(X, "tocsr"):
            return cls("sparse", int(X.shape[1]), None, sparse_scale=_sparse_scale(X))
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            return cls._fit_frame(X, tuple(na_values))
        values = np.asarray(X)
        numbers, left_out = _fit_numbers(values, tuple(range(values.shape[1])))
        return cls("dense", values.shape[1], None, numbers, left_out=left_out)

    @classmethod
    def _fit_frame(cls, frame: Any, na_values: tuple[str, ...]) -> Preprocessor:
        names = _column_names(frame)
        at, numbers, categories, left_out = [], [], [], {}
        for column in range(len(names)):
            values, why_not = _read_column(frame.iloc[:, column], na_values)
            if why_not:
                left_out[column] = why_not
            elif values.dtype == object:
                found = _fit_categories(values, column)
                if isinstance(found, str):
                    left_out[column] = found
                else:
                    categories.append(found)
            else:
                at.append(column)
                numbers.append(values)
        fitted = None
        if numbers:
            fitted, constant = _fit_numbers(np.stack(numbers, axis=1), tuple(at))
            left_out |= constant
        dropped = [f"{names[column]!r} ({why})" for column, why in left_out.items() if why != CONSTANT]
        if dropped:
            remedy = "make numbers of what is in them, or leave them out yourself (of a table: other_columns)"
            warnings.warn(f"columns left out: {_listed(dropped)}: {remedy}", ShortlistWarning, stacklevel=4)
        if not categories and (fitted is None or all(map(_is_constant, numbers))):
            if fitted is not None:
                left_out |= dict.fromkeys(fitted.columns, CONSTANT)
            why_each = _listed(f"{names[column]!r} ({why})" for column, why in left_out.items())
            raise ShortlistError(f"no column is left to learn from: {why_each}")
        return cls("frame", len(names), names, fitted, categories, left_out=left_out, na_values=na_values)

    # ---- using

    @property
    def width(self) -> int:
        """How many features come out."""
        if self.kind == "sparse":
            return self.num_columns
        return (self.numbers.width if self.numbers else 0) + sum(one.width for one in self.categories)

    def transform(self, X: Any) -> Any:
        """Features, float32 (N, width); a CSR matrix where the input is sparse."""
        if self.kind == "frame":
            return self._transform_frame(X)
        if X.shape[1] != self.num_columns:
            raise ShortlistError(f"there are {X.shape[1]} columns, fitted were {self.num_columns}")
        if hasattr(X, "tocsr"):
            return self._transform_sparse(X)
        if self.kind == "sparse":
            from scipy.sparse import csr_matrix

            return self._transform_sparse(csr_matrix(X))
        return self._numbers_of(np.asarray(X)[:, list(self._numbers.columns)])

    def _transform_sparse(self, X: Any) -> Any:
        if self.kind == "dense":
            return self.transform(X.toarray())  # centred numbers have no zeros to save
        X = X.tocsr().astype(np.float32)
        if self.sparse_scale is not None:
            X = X.copy()
            X.data /= self.sparse_scale[X.indices].astype(np.float32)
        return X

    def _transform_frame(self, frame: Any) -> NDArray[np.float32]:
        if not hasattr(frame, "columns"):
            if frame.shape[1] != self.num_columns:
                raise ShortlistError(f"there are {frame.shape[1]} unnamed columns, fitted were {self.num_columns}")
            import pandas as pd

            frame = pd.DataFrame(np.asarray(frame), columns=list(self._names))
        frame = self.aligned(frame)
        parts = []
        if self.numbers is not None:
            columns = [self._read_number(frame.iloc[:, column], column) for column in self.numbers.columns]
            parts.append(self._numbers_of(np.stack(columns, axis=1)))
        for one in self.categories:
            parts.append(one.transform(_as_names(frame.iloc[:, one.column], self.na_values)))
        return np.concatenate(parts, axis=1)

    def aligned(self, frame: Any) -> Any:
        """The fitted columns of a frame, by name and in their order; missing ones are an error, others a warning."""
        names, here = self._names, _column_names(frame)
        if here == names:
            return frame
        needed = [name for column, name in enumerate(names) if column not in self.left_out]
        missing = [name for name in needed if name not in here]
        if missing:
            raise ShortlistError(f"columns that it was fitted with are missing: {_listed(map(repr, missing))}")
        known = set(names)
        extra = [name for name in here if name not in known]
        if extra:
            warnings.warn(f"columns it was not fitted with are ignored: {_listed(map(repr, extra))}", stacklevel=2)
        frame = frame.set_axis(list(here), axis=1)
        return frame.reindex(columns=list(names))

    def _read_number(self, series: Any, column: int) -> NDArray[np.float64]:
        values, why_not = _read_column(series, self.na_values)
        if why_not or values.dtype == object:
            shown = _listed(map(repr, series.dropna().unique()[:3].tolist()))
            raise ShortlistError(f"the column {self._names[column]!r} was fitted with numbers, now it holds {shown}")
        return values

    def _numbers_of(self, values: NDArray[Any]) -> NDArray[np.float32]:
        return self._numbers.transform(values)

    @property
    def _numbers(self) -> Numbers:
        assert self.numbers is not None
        return self.numbers

    @property
    def _names(self) -> tuple[str, ...]:
        assert self.column_names is not None
        return self.column_names

    def common_scale(self) -> NDArray[np.float32] | None:
        """What the features are to be multiplied by for their columns to share one scale, as they did to begin with.

        Columns of one kind, such as a network's features, say by their spread how much they matter. None where that
        can tell nothing: the spreads are alike (within a factor of 2), or of different units (beyond one of 100).
        """
        if self.numbers is None or len(self.numbers.columns) < 2:
            return None
        scale = self.numbers.scale
        small, large = np.quantile(scale, [0.01, 0.99])
        if not 2 <= large / small <= 100:
            return None
        factors = np.ones(self.width, dtype=np.float32)
        factors[: len(scale)] = scale / np.sqrt(np.mean(scale**2))
        return factors

    # ---- showing and keeping

    def describe(self, left_out: bool = True) -> str:
        """Which columns became what, in lines to read; also those that are left out, unless ``left_out`` is False."""

        def name(column: int) -> str:
            return self.column_names[column] if self.column_names else str(column)

        if self.kind == "sparse":
            how = "as they are" if self.sparse_scale is None else "each divided by a scale of its own"
            return f"sparse columns ({self.num_columns}): {how}"
        lines = []
        if self.numbers is not None and self.numbers.columns:
            shown = [name(column) for column in self.numbers.columns]
            lines.append(f"standardised numbers ({len(shown)}): {_listed(shown)}")
        if self.categories:
            rest = {True: " and rare or unseen ones", False: ""}
            shown = [f"{name(one.column)} ({_listed(one.names, 5)}{rest[one.has_rare]})" for one in self.categories]
            lines.append(f"categories ({len(shown)}): {_listed(shown)}")
        if self.numbers is not None and self.numbers.marked:
            marked = [name(self.numbers.columns[place]) for place in self.numbers.marked]
            lines.append(f"blanks marked ({len(marked)}): {_listed(marked)}")
        if self.left_out and left_out:
            shown = [f"{name(column)} ({why})" for column, why in sorted(self.left_out.items())]
            lines.append(f"left out ({len(shown)}): {_listed(shown)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Everything learnt, as numbers, texts, lists and dicts."""
        numbers = self.numbers
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "num_columns": self.num_columns,
            "column_names": None if self.column_names is None else list(self.column_names),
            "na_values": list(self.na_values),
            "numbers": None if numbers is None else {
                "columns": list(numbers.columns), "fill": numbers.fill.tolist(), "centre": numbers.centre.tolist(),
                "scale": numbers.scale.tolist(), "marked": list(numbers.marked),
            },
            "categories": [
                {"column": one.column, "names": list(one.names), "has_rare": one.has_rare} for one in self.categories
            ],
            "sparse_scale": None if self.sparse_scale is None else self.sparse_scale.tolist(),
            "left_out": {str(column): why for column, why in self.left_out.items()},
        }  # fmt: skip

    @classmethod
    def from_json(cls, facts: Any) -> Preprocessor:
        """What ``to_json`` wrote, with every size and number checked."""
        try:
            return cls._from_json(facts)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ShortlistError(f"this is no preprocessing that to_json wrote: {error!r}") from error

    @classmethod
    def _from_json(cls, facts: Any) -> Preprocessor:
        if facts["format"] != _FORMAT or facts["kind"] not in ("dense", "frame", "sparse"):
            raise ShortlistError(f"preprocessing of format {facts['format']!r} and kind {facts['kind']!r} is not known")
        total = _count(facts["num_columns"])
        names = None if facts["column_names"] is None else tuple(_texts(facts["column_names"], total))
        if (names is None) == (facts["kind"] == "frame"):
            raise ShortlistError("the preprocessing of a frame, and only that, has column_names")
        numbers = None
        if facts["numbers"] is not None:
            given = facts["numbers"]
            columns = _places(given["columns"], total)
            fill, centre, scale = (_reals(given[key], len(columns)) for key in ("fill", "centre", "scale"))
            numbers = Numbers(columns, fill, centre, scale, _places(given["marked"], len(columns)))
            if not (numbers.scale > 0).all():
                raise ShortlistError("every scale of the preprocessing must be above 0")
        elif facts["kind"] == "dense":
            raise ShortlistError("the preprocessing of dense numbers lacks them")
        categories = [
            Categories(_places([one["column"]], total)[0], tuple(_texts(one["names"])), bool(one["has_rare"]))
            for one in facts["categories"]
        ]
        sparse_scale = None if facts["sparse_scale"] is None else _reals(facts["sparse_scale"], total)
        if sparse_scale is not None and not (sparse_scale > 0).all():
            raise ShortlistError("every scale of the preprocessing must be above 0")
        left_out = {_places([int(column)], total)[0]: str(why) for column, why in facts["left_out"].items()}
        na_values = tuple(_texts(facts["na_values"]))
        return cls(facts["kind"], total, names, numbers, categories, sparse_scale, left_out, na_values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preprocessor) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]


# ---- fitting, by scikit-learn

CONSTANT = "always the same"


def _fit_numbers(values: NDArray[Any], at: tuple[int, ...]) -> tuple[Numbers, dict[int, str]]:
    """The columns that change, and why the others are left out; where none changes, the first one stays."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    blank = np.isnan(values)
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(values)
    fill = np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))
    scaler = StandardScaler().fit(np.where(blank, fill, values) if blank.any() else values)
    constant = np.nanmax(np.where(blank, -np.inf, values), axis=0) <= np.nanmin(np.where(blank, np.inf, values), axis=0)
    marked = blank.any(0) & ~blank.all(0)
    kept = np.flatnonzero(~constant | marked)
    if not len(kept):
        kept = np.arange(1)
    numbers = Numbers(
        tuple(at[column] for column in kept),
        fill[kept],
        np.asarray(scaler.mean_, dtype=np.float64)[kept],
        np.asarray(scaler.scale_, dtype=np.float64)[kept],
        tuple(np.flatnonzero(marked[kept]).tolist()),
    )
    empty = blank.all(0)
    left = sorted(set(range(len(at))) - set(kept.tolist()))
    return numbers, {at[column]: "always blank" if empty[column] else CONSTANT for column in left}


def _is_constant(values: NDArray[Any]) -> bool:
    return len(np.unique(values)) == 1  # NaN is a value of its own


def _fit_categories(values: NDArray[Any], column: int) -> Categories | str:
    """The encoding of a column of names; or why it has none."""
    from sklearn.preprocessing import OneHotEncoder

    distinct, counts = np.unique(values.astype(str), return_counts=True)
    if len(distinct) == 1:
        return CONSTANT if distinct[0] != MISSING else "always blank"
    if len(distinct) > _TEXT and (counts == 1).sum() > 0.5 * len(values):
        return f"{len(distinct)} different values in {len(values)} rows: text or an id"
    rare_below = max(2, math.ceil(len(values) / 1000))
    encoder = OneHotEncoder(
        min_frequency=rare_below, max_categories=_MOST_CATEGORIES, handle_unknown="infrequent_if_exist"
    ).fit(values[:, None])
    rare = encoder.infrequent_categories_[0]
    hidden = set() if rare is None else set(rare.tolist())
    names = tuple(name for name in encoder.categories_[0].tolist() if name not in hidden)
    if not names:
        return f"{len(distinct)} different values in {len(values)} rows: text or an id"
    return Categories(column, names, bool(hidden))


def _sparse_scale(X: Any) -> NDArray[np.float64] | None:
    """Between each column's largest absolute value and its standard deviation; None where rows have length 1."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X = X.tocsr()
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if bool((squares > 0).any()) and bool(np.allclose(squares[squares > 0], 1, atol=1e-3)):
        return None
    largest = np.asarray(MaxAbsScaler().fit(X).scale_, dtype=np.float64)
    spread = np.asarray(StandardScaler(with_mean=False).fit(X).scale_, dtype=np.float64)
    return np.sqrt(largest * spread)


# ---- reading frames


def _column_names(frame: Any) -> tuple[str, ...]:
    names = tuple(map(str, frame.columns))
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ShortlistError(f"columns must have different names, there are several called {_listed(map(repr, twice))}")
    return names


def _read_column(series: Any, na_values: tuple[str, ...]) -> tuple[NDArray[Any], str]:
    """Numbers with NaN for blanks, or names as objects; and why it cannot be used, if so."""
    import pandas as pd
    from pandas.api import types

    if types.is_datetime64_any_dtype(series) or types.is_timedelta64_dtype(series):
        return np.empty(0), "a date: give its year, month or age as a number"
    if types.is_complex_dtype(series):
        return np.empty(0), "complex numbers"
    if types.is_numeric_dtype(series) or types.is_bool_dtype(series):
        values = series.astype("Float64") if types.is_extension_array_dtype(series) else series
        found = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        names = _as_names(series, na_values)
        present = names != MISSING
        parsed = pd.to_numeric(pd.Series(names[present]), errors="coerce").to_numpy(dtype=np.float64)
        if not present.any() or np.isnan(parsed).any():
            return names, ""
        found = np.full(len(names), np.nan)
        found[present] = parsed
    if np.isinf(found).any():
        raise ShortlistError(f"the column {series.name!r} holds infinity, first in row {int(np.isinf(found).argmax())}")
    return found, ""


def _as_names(series: Any, na_values: tuple[str, ...]) -> NDArray[Any]:
    blank = series.isna().to_numpy()
    names = series.astype(object).map(lambda value: str(value).strip()).to_numpy(dtype=object)
    unknown = set(na_values)
    names[blank] = MISSING
    return np.array([MISSING if name in unknown else name for name in names.tolist()], dtype=object)


# ---- checks of a file's facts


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ShortlistError(f"the preprocessing's num_columns must be a whole number above 0, got {value!r}")
    return value


def _places(values: Any, below: int) -> tuple[int, ...]:
    found = tuple(values)
    bad = [value for value in found if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below]
    if bad or len(set(found)) < len(found):
        raise ShortlistError(f"the preprocessing names columns that cannot be: {_listed(map(repr, bad or found))}")
    return found


def _reals(values: Any, size: int) -> NDArray[np.float64]:
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values) or len(values) != size:
        raise ShortlistError(f"the preprocessing needs {size} finite numbers, got {len(values)} values")
    return np.array(values, dtype=np.float64)


def _texts(values: Any, size: int | None = None) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ShortlistError("the preprocessing's names must be texts")
    if size not in (None, len(values)):
        raise ShortlistError(f"the preprocessing has {len(values)} names for {size} columns")
    return values


def _listed(texts: Any, most: int = 12) -> str:
    shown = list(texts)
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
