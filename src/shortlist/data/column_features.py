"""Columns of numbers and of names as features: what scikit-learn's transformers learn of them, as plain numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import MOST_NAMES, is_number
from shortlist.data.column_use import listed
from shortlist.data.frame_columns import MISSING
from shortlist.errors import ShortlistError

CONSTANT, BLANKS, TEXT_OR_ID = "always the same", "always blank", "text or an id"
_FAR, _CUT = 20, 3  # times the width of a column's middle nine tenths: what is far beyond them, and where it is cut
_ENOUGH, _SAMPLE = 20, 10_000  # rows that are needed to know what is far, and rows that are looked at
_REACH = 10  # standard deviations beyond what training saw: what is farther is no number like those
_TOGETHER = 16  # columns that are turned over at once: few enough for the processor's cache
_ROWS = 512  # rows that are scaled at once, likewise
_FEW_NEW, _NEW = 3, 0.05  # rows with names that were not learnt, and their share, to be told
_TEXT = 50  # a column of names with more different ones than this, most of them seen once, is text or an id


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers: blanks filled, what is far from all others, or from all that was seen, cut off, then
    (x - centre) / scale; a further 1 marks the blanks of some columns."""

    columns: tuple[int, ...]
    fill: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    marked: tuple[int, ...]  # places in ``columns``
    cut: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # place in ``columns`` -> between what
    reach: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # the same of columns that were not cut

    @property
    def width(self) -> int:
        return len(self.columns) + len(self.marked)

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        blank = np.isnan(values)
        filled = np.where(blank, self.fill, values) if blank.any() else values
        low, high = self.bounds()
        scaled = np.empty(values.shape, np.float32)
        with np.errstate(over="ignore"):  # beyond float32 is infinite: the scores will not be finite either
            for rows in range(0, len(values), _ROWS):  # in double precision, of which little is held
                scaled[rows : rows + _ROWS] = (filled[rows : rows + _ROWS].clip(low, high) - self.centre) / self.scale
        marks = blank[:, list(self.marked)].astype(np.float32)
        return np.concatenate([scaled, marks], axis=1) if self.marked else scaled

    def bounds(self) -> NDArray[np.float64]:
        """The lowest and the highest number of each column that stays as it is, (2, columns)."""
        found = np.array([[-np.inf], [np.inf]]) * np.ones(len(self.columns))
        for place, between in (*self.cut.items(), *self.reach.items()):
            found[:, place] = between
        return found

    def beyond(self, values: NDArray[Any]) -> dict[int, NDArray[Any]]:
        """By place, the numbers that are cut off in columns of which no number of the training rows was."""
        low, high = self.bounds()
        outside = ((values < low) | (values > high)).any(0)
        places = [place for place in np.flatnonzero(outside).tolist() if place in self.reach]
        return {at: values[(values[:, at] < low[at]) | (values[:, at] > high[at]), at] for at in places}


@dataclass(frozen=True)
class Categories:
    """One column of names: a 1 for the name it holds; rare and unseen ones share the last place, where there is one."""

    column: int
    names: tuple[str, ...]
    has_rare: bool
    rare_share: float = 0.0  # of the training rows: those whose names have no place of their own

    @property
    def width(self) -> int:
        return len(self.names) + self.has_rare

    def unseen(self, values: NDArray[Any]) -> list[str]:
        """The names that have no place at all: no 1 stands for them. Blanks are not told."""
        names = sorted(set(values.tolist()) - {MISSING, *self.names})
        return [name for name, row in zip(names, self.transform(np.array(names, object)), strict=True) if not row.any()]

    def about_new(self, values: NDArray[Any], is_new: NDArray[np.bool_]) -> str:
        """What to say of rows whose names have no place of their own, where they are many and it is not usual."""
        count = int(is_new.sum())
        if count < _FEW_NEW or count < max(_NEW, 2 * self.rare_share) * len(values):
            return ""
        names = [name for name, _ in Counter(values[is_new].tolist()).most_common()]
        plain, learnt = ({" ".join(name.casefold().split()) for name in found} for found in (names, self.names))
        alike = "; they differ only in case or blanks" if plain <= learnt else ""
        shown, known = (listed([repr(n) for n in found if n != MISSING], 3) for found in (names, self.names))
        return f"{count} of {len(values)} rows: {shown}; learnt were {known}{alike}"

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


def fit_numbers(
    values: NDArray[Any], at: tuple[int, ...], weights: NDArray[Any] | None = None, keep_constant: bool = False
) -> tuple[Numbers, dict[int, str]]:
    """The columns that change, and why the others are left out; where none changes, the first one stays. ``weights``
    of rows: for mean and spread. With ``keep_constant`` only columns of blanks are left out: others may change later,
    by as much as they are."""
    from sklearn.preprocessing import StandardScaler

    blank = np.isnan(values)
    has_blanks, empty = blank.any(0), blank.all(0)
    fill, first, last, known = _middles(values)
    if has_blanks.any():
        low, high = np.where(blank, np.inf, values).min(0), np.where(blank, -np.inf, values).max(0)
        filled = np.where(blank, fill, values)
    else:
        low, high, filled = values.min(0), values.max(0), values
    cut = _far(low, high, first, last, known)
    if cut:
        filled = filled.copy()
        for column, between in cut.items():
            filled[:, column] = filled[:, column].clip(*between)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(filled, sample_weight=weights)
    _check_squares(scaler.var_, at, low, high)
    constant = high <= low
    marked = has_blanks & ~empty
    if keep_constant:
        scaler.scale_ = np.where(constant & (scaler.mean_ != 0), np.abs(scaler.mean_), scaler.scale_)
        constant = empty
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
    seen = (known >= _ENOUGH) & ~constant
    with np.errstate(over="ignore"):
        ends = np.stack([low, high], axis=1) + _REACH * np.outer(np.asarray(scaler.scale_), [-1, 1])
    seen &= np.isfinite(ends).all(1)
    reach = {p: tuple(ends[c].tolist()) for p, c in enumerate(kept.tolist()) if seen[c] and c not in cut}
    numbers = replace(numbers, reach=reach)
    left = sorted(set(range(len(at))) - set(kept.tolist()))
    return numbers, {at[column]: BLANKS if empty[column] else CONSTANT for column in left}


def _check_squares(
    variances: NDArray[Any], at: Sequence[int], low: NDArray[np.float64], high: NDArray[np.float64]
) -> None:
    beyond = np.flatnonzero(~np.isfinite(variances))
    if len(beyond):
        column = int(beyond[0])
        raise ShortlistError(
            f"column {at[column] + 1} holds numbers from {low[column]:.3g} to {high[column]:.3g}, whose squares are "
            "beyond double precision: divide them, take their logarithm, or leave the column out"
        )


def _far(*facts: NDArray[Any]) -> dict[int, tuple[float, float]]:
    """The columns that hold numbers far from all others (a slip, or -9999 for blank), and where to cut them off: they
    would leave nothing of what the others tell apart. The facts: lowest and highest number, ends of the middle nine
    tenths, and of how many numbers these are."""
    low, high, first, last, known = facts
    with np.errstate(over="ignore"):  # nothing is beyond infinity
        width = last - first
        far = (known >= _ENOUGH) & (width > 0) & ((low < first - _FAR * width) | (high > last + _FAR * width))
        ends = np.stack([first - _CUT * width, last + _CUT * width], axis=1)
    return {column: (ends[column, 0].item(), ends[column, 1].item()) for column in np.flatnonzero(far).tolist()}


def _middles(values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Of each column, blanks apart: the median (0 where all are blank); and of a sample of the rows the ends of the
    middle nine tenths, and how many numbers they are of."""
    sample = np.sort(values[:: max(1, len(values) // _SAMPLE)].T, axis=1)  # blanks are last
    known = sample.shape[1] - np.isnan(sample).sum(1)
    first, low, median, high, last = (_quantile(sample, known, share) for share in (0.05, 0.45, 0.5, 0.55, 0.95))
    if sample.shape[1] < len(values):
        for begin in range(0, len(known), _TOGETHER):
            for column, numbers in enumerate(np.ascontiguousarray(values[:, begin : begin + _TOGETHER].T), begin):
                median[column] = _median(numbers, low[column], high[column])
    return np.nan_to_num(median), first, last, known


def _quantile(ordered: NDArray[Any], known: NDArray[Any], share: float) -> NDArray[np.float64]:
    """Of the first ``known`` numbers of each row, which are in order; NaN where there are none."""
    place = share * np.maximum(known - 1, 0)
    before = np.floor(place).astype(np.int64)
    after = np.minimum(before + 1, np.maximum(known - 1, 0))
    rows, part = np.arange(len(known)), place - before
    return (1 - part) * ordered[rows, before].astype(np.float64) + part * ordered[rows, after]


def _median(numbers: NDArray[Any], low: float, high: float) -> float:
    """The median of the numbers that are not blank; NaN where all are. It is likely to lie between ``low`` and
    ``high``, and then only what does is put in order."""
    known = len(numbers) - int(np.isnan(numbers).sum())
    before, between = int((numbers < low).sum()), numbers[(numbers >= low) & (numbers <= high)]
    if not before <= (known - 1) // 2 <= known // 2 < before + len(between):
        before, between = 0, numbers[~np.isnan(numbers)]
    if not len(between):
        return math.nan
    middle = [(known - 1) // 2 - before, known // 2 - before]
    return sum(0.5 * float(number) for number in np.partition(between, middle)[middle])


def is_constant(values: NDArray[Any]) -> bool:
    return len(np.unique(values)) == 1  # NaN is a value of its own


def fit_categories(values: NDArray[Any], column: int) -> Categories | str:
    """The encoding of a column of names; or why it has none."""
    from pandas import factorize
    from sklearn.preprocessing import OneHotEncoder

    codes, distinct = factorize(values, sort=True)
    counts = np.bincount(codes)
    if len(distinct) == 1:
        return CONSTANT if distinct[0] != MISSING else BLANKS
    if len(distinct) > _TEXT and (counts == 1).sum() > 0.5 * len(values):
        return f"{len(distinct)} different values in {len(values)} rows: {TEXT_OR_ID}"
    rare_below = max(2, math.ceil(len(values) / 1000))
    encoder = OneHotEncoder(
        min_frequency=rare_below, max_categories=MOST_NAMES + 1, handle_unknown="infrequent_if_exist"
    ).fit(codes[:, None])  # which are quicker to compare than names
    rare = encoder.infrequent_categories_[0]
    hidden = [] if rare is None else rare.tolist()
    names = tuple(np.delete(distinct, hidden).tolist())
    if not names:
        return f"{len(distinct)} different values in {len(values)} rows: {TEXT_OR_ID}"
    share = float(counts[hidden].sum() / len(values)) if hidden else 0.0
    return Categories(column, names, bool(hidden), share)


def fit_sparse_scale(X: Any, weights: NDArray[Any] | None = None) -> NDArray[np.float64] | None:
    """Between each column's largest absolute value and its standard deviation; None where rows have length 1."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X = X.tocsr()
    if not X.has_canonical_format:  # several numbers stored in one place are their sum
        X = X.copy()
        X.sum_duplicates()
    scaler = StandardScaler(with_mean=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if bool((squares > 0).any()) and bool(np.allclose(squares[squares > 0], 1, atol=1e-3)):
            return None
        scaler.fit(X, sample_weight=weights)
    largest = np.asarray(MaxAbsScaler().fit(X).scale_, dtype=np.float64)
    _check_squares(scaler.var_, range(len(largest)), -largest, largest)
    return np.sqrt(largest * np.asarray(scaler.scale_, dtype=np.float64))
