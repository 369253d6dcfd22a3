"""Columns of numbers and of names as features: what scikit-learn's transformers learn of them, as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import is_number
from shortlist.data.frame_columns import MISSING

CONSTANT = "always the same"
_MOST_CATEGORIES = 256  # of one column; the rest, the rarest ones, share one
_FAR, _CUT = 20, 3  # times the width of a column's middle nine tenths: what is far beyond them, and where it is cut
_ENOUGH, _SAMPLE = 20, 10_000  # rows that are needed to know what is far, and rows that are looked at
_TEXT = 50  # a column of names with more different ones than this, most of them seen once, is text or an id


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers: blanks filled, what is far from all others cut off, then (x - centre) / scale; a further 1
    marks the blanks of some columns."""

    columns: tuple[int, ...]
    fill: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    marked: tuple[int, ...]  # places in ``columns``
    cut: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # place in ``columns`` -> between what

    @property
    def width(self) -> int:
        return len(self.columns) + len(self.marked)

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        blank = np.isnan(values)
        filled = np.where(blank, self.fill, values) if blank.any() else values
        filled = np.clip(filled, *self.bounds()) if self.cut else filled
        with np.errstate(over="ignore"):  # beyond float32 is infinite: the scores will not be finite either
            scaled = ((filled - self.centre) / self.scale).astype(np.float32)
        marks = blank[:, list(self.marked)].astype(np.float32)
        return np.concatenate([scaled, marks], axis=1) if self.marked else scaled

    def bounds(self) -> NDArray[np.float64]:
        """The lowest and the highest number of each column that stays as it is, (2, columns)."""
        found = np.array([[-np.inf], [np.inf]]) * np.ones(len(self.columns))
        for place, between in self.cut.items():
            found[:, place] = between
        return found


@dataclass(frozen=True)
class Categories:
    """One column of names: a 1 for the name it holds; rare and unseen ones share the last place, where there is one."""

    column: int
    names: tuple[str, ...]
    has_rare: bool

    @property
    def width(self) -> int:
        return len(self.names) + self.has_rare

    def unseen(self, values: NDArray[Any]) -> list[str]:
        """The names that have no place at all: no 1 stands for them. Blanks are not told."""
        names = sorted(set(values.tolist()) - {MISSING, *self.names})
        return [name for name, row in zip(names, self.transform(np.array(names, object)), strict=True) if not row.any()]

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        place = {name: number for number, name in enumerate(self.names)}
        # a column of which all other rows hold numbers is read as numbers: 1.0 is the name 1 again
        by_number = {float(name): number for name, number in reversed(place.items()) if is_number(name)}

        def place_of(name: str) -> int:
            other = by_number.get(float(name)) if name not in place and is_number(name) else None
            return place.get(name, len(self.names)) if other is None else other

        found = {value: place_of(value) for value in set(values.tolist())}
        at = np.array([found[value] for value in values.tolist()], dtype=np.int64)
        return np.eye(len(self.names) + 1, dtype=np.float32)[at][:, : self.width]


def fit_numbers(values: NDArray[Any], at: tuple[int, ...]) -> tuple[Numbers, dict[int, str]]:
    """The columns that change, and why the others are left out; where none changes, the first one stays."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    blank = np.isnan(values)
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(values)
    fill = np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))
    low, high = np.where(blank, np.inf, values).min(0), np.where(blank, -np.inf, values).max(0)
    cut = _far(values, low, high)
    filled = np.where(blank, fill, values) if blank.any() else values
    if cut:
        filled = filled.copy()
        for column, between in cut.items():
            filled[:, column] = filled[:, column].clip(*between)
    scaler = StandardScaler().fit(filled)
    constant = high <= low
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
        {place: cut[column] for place, column in enumerate(kept.tolist()) if column in cut},
    )
    empty = blank.all(0)
    left = sorted(set(range(len(at))) - set(kept.tolist()))
    return numbers, {at[column]: "always blank" if empty[column] else CONSTANT for column in left}


def _far(values: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> dict[int, tuple[float, float]]:
    """The columns that hold numbers far from all others (a slip, or -9999 for blank), and where to cut them off: they
    would leave nothing of what the others tell apart."""
    sample = values[:: max(1, len(values) // _SAMPLE)].astype(np.float64)
    blank: NDArray[np.bool_] = np.logical_or.reduce(np.isnan(sample), axis=0)
    found = {}
    bounds = np.quantile(sample, [0.05, 0.95], axis=0).T if len(sample) else np.zeros((values.shape[1], 2))
    for column in range(values.shape[1]):
        first, last = bounds[column].tolist()
        known = sample[:, column][~np.isnan(sample[:, column])] if blank[column] else sample[:, column]
        if len(known) < _ENOUGH:
            continue
        if blank[column]:
            first, last = np.quantile(known, [0.05, 0.95]).tolist()
        far, cut = _FAR * (last - first), _CUT * (last - first)
        if far > 0 and (low[column] < first - far or high[column] > last + far):
            found[column] = (first - cut, last + cut)
    return found


def is_constant(values: NDArray[Any]) -> bool:
    return len(np.unique(values)) == 1  # NaN is a value of its own


def fit_categories(values: NDArray[Any], column: int) -> Categories | str:
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


def fit_sparse_scale(X: Any) -> NDArray[np.float64] | None:
    """Between each column's largest absolute value and its standard deviation; None where rows have length 1."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X = X.tocsr()
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if bool((squares > 0).any()) and bool(np.allclose(squares[squares > 0], 1, atol=1e-3)):
        return None
    largest = np.asarray(MaxAbsScaler().fit(X).scale_, dtype=np.float64)
    spread = np.asarray(StandardScaler(with_mean=False).fit(X).scale_, dtype=np.float64)
    return np.sqrt(largest * spread)
