"""Preprocessing: columns of numbers and categories become features that a model can learn from.

scikit-learn's transformers are fitted on the training rows; what they learnt is kept as plain numbers and names, so a
model's file can hold it as JSON and nothing has to be unpickled.
"""

from __future__ import annotations

import re
import reprlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import CURRENCIES, NA_VALUES, is_number
from shortlist.data.choices import Choices, fit_choices
from shortlist.data.column_features import (
    BLANKS,
    CONSTANT,
    TEXT_OR_ID,
    Categories,
    Numbers,
    fit_categories,
    fit_numbers,
    fit_sparse_scale,
    is_constant,
)
from shortlist.data.column_use import as_option, listed
from shortlist.data.dates import as_days
from shortlist.data.frame_columns import (
    MISSING,
    as_names,
    blank_numbers,
    column_names,
    numbers_in,
    read_column,
    with_numbers,
)
from shortlist.data.preprocessing_facts import facts_of, fields_of
from shortlist.data.text_columns import CountedTexts, fit_texts
from shortlist.data.tf_idf import TfIdf
from shortlist.data.written_numbers import READ, may_be_number
from shortlist.errors import ShortlistError, ShortlistWarning, renamed

_ENOUGH = 20  # rows: of fewer ones all may be blank, or rare, by chance
_FEW = 5  # rows: that all of fewer ones are blank says nothing of the column, be it never blank in training


@dataclass(eq=False, repr=False)
class Preprocessor:
    """What to do with each column, learnt by ``fit`` from the training rows.

    - Dense numbers (numpy) are standardised; blanks (NaN) are filled with the column's median, and a further column
      says where they were. A column that never changes is left out. Where numbers lie farther from the middle nine
      tenths of their column than twenty times these are wide (a slip, or -9999 for blank), what is beyond three times
      is cut off, with a warning; and so is, of new rows, what lies more than ten standard deviations beyond all that
      a column held in 20 training rows or more.
    - A pandas frame has its columns read by type: numbers as above (also those that are written in texts, $4,843 or
      31.6%, as in a file of text), names as categories (rare ones together, unseen
      ones with them; a blank is a category of its own). Of the dtype "category", and of texts of digits such as 01001,
      numbers are names too. Where cells hold several choices, ``Python;R;SQL``, each choice is a feature (not of the
      dtype "category": there a cell is one name). The words of texts are counted (`TfIdf`), each column's and those of
      all texts together; features are then sparse. Dates are days since 1970. Ids are left out, with a warning. Columns
      are found by name.
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

    kind: str  # "dense", "frame" or "sparse"
    num_columns: int
    column_names: tuple[str, ...] | None
    numbers: Numbers | None = None
    categories: Sequence[Categories] = ()
    texts: Sequence[CountedTexts] = ()
    sparse_scale: NDArray[np.float64] | None = None
    left_out: dict[int, str] = field(default_factory=dict)
    na_values: tuple[str, ...] = NA_VALUES
    units: dict[str, str] | None = None  # what stood beside the numbers of a column, where they were read from a text
    decimal: str | None = None  # what stood before the digits of fractions in texts, where they told
    dates: dict[str, str] = field(default_factory=dict)  # the columns of dates, and how these were written

    @property
    def columns_left_out(self) -> dict[str, str]:
        """The columns of a frame that no feature is made of, and why."""
        return {} if self.column_names is None else {self.column_names[at]: why for at, why in self.left_out.items()}

    @property
    def name_columns(self) -> tuple[str, ...]:
        """The columns of a frame whose cells are names."""
        names = self.column_names or ()
        return tuple(names[one.column] for one in self.categories) if names else ()

    @property
    def choice_columns(self) -> tuple[str, ...]:
        """Those of them whose cells hold several, and may be lists."""
        return tuple(self._names[one.column] for one in self.categories if isinstance(one, Choices))

    # ---- learning

    @classmethod
    def fit(
        cls,
        X: Any,
        *,
        na_values: Sequence[str] = NA_VALUES,
        weights: NDArray[Any] | None = None,
        keep_constant: bool = False,
    ) -> Preprocessor:
        """Learn from these rows. ``na_values``: texts of a frame's cells that mean that nothing is known. ``weights``:
        how often each row counts for the mean and spread of numbers; for all else it is once. ``keep_constant``: so are
        numbers that are all the same here, because they may differ in rows to come."""
        if hasattr(X, "tocsr"):
            return cls("sparse", int(X.shape[1]), None, sparse_scale=fit_sparse_scale(X, weights))
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            return cls._fit_frame(X, tuple(na_values), weights, keep_constant)
        values = np.asarray(X)
        numbers, left_out = fit_numbers(values, tuple(range(values.shape[1])), weights, keep_constant)
        found = cls("dense", values.shape[1], None, numbers, left_out=left_out)
        if numbers.cut:
            found._warn_of_cuts(values[:, list(numbers.columns)])
        return found

    @classmethod
    def _fit_frame(
        cls, frame: Any, na_values: tuple[str, ...], weights: NDArray[Any] | None, keep_constant: bool
    ) -> Preprocessor:
        names = column_names(frame)
        was_read = READ in frame.attrs
        frame = with_numbers(frame, na_values=na_values)
        written = frame.attrs[READ]
        at, numbers, categories, left_out = [], [], [], {}
        of_names: dict[int, NDArray[Any]] = {}
        choices: dict[int, Choices] = {}
        dates: dict[str, str] = {}
        of_numbers = numbers_in(frame)
        for column, name in enumerate(frame):
            one = of_numbers.get(name)
            if one is None or np.isinf(one).any():  # which names the column
                one = frame.iloc[:, column]
            values, why_not, order = read_column(one, na_values)
            dates |= {names[column]: order} if order and not why_not else {}
            if why_not:
                left_out[column] = why_not
            elif values.dtype == object:
                of_names[column] = values
                is_one_name = frame.dtypes.iloc[column] == "category"
                several = None if is_one_name else fit_choices(values, column)
                choices |= {} if several is None else {column: several}
            else:
                at.append(column)
                numbers.append(values)
        texts = fit_texts({column: values for column, values in of_names.items() if column not in choices})
        counted = {column for one in texts for column in one.columns}
        for column, values in of_names.items():
            if column in counted:
                continue
            found = choices[column] if column in choices else fit_categories(values, column)
            if isinstance(found, str):
                left_out[column] = found
            else:
                categories.append(found)
        fitted, stacked = None, np.empty((len(frame), 0))
        if numbers:
            stacked = np.stack(numbers, axis=1)
            fitted, constant = fit_numbers(stacked, tuple(at), weights, keep_constant)
            left_out |= constant
        blank = [repr(names[column]) for column, why in sorted(left_out.items()) if why == BLANKS]
        if blank:
            which = f"{len(blank)} column{'s are' if len(blank) > 1 else ' is'} left out"
            said = f"{which}, always blank in the {len(frame)} rows to learn from: {listed(blank)}"
            warnings.warn(said, ShortlistWarning, stacklevel=4)
        told = {column: why for column, why in sorted(left_out.items()) if why not in (CONSTANT, BLANKS)}
        dropped = [f"{names[column]!r} ({why})" for column, why in told.items()]
        if dropped:
            remedy = "make numbers of what is in them, or leave them out yourself (of a table: other_columns)"
            warnings.warn(f"columns left out: {listed(dropped)}: {remedy}", ShortlistWarning, stacklevel=4)
        if not was_read:  # from a table, whose readers tell it
            _warn_of_texts({names[column]: values for column, values in of_names.items()})
            plain = [at for at in of_names if at not in choices and frame.dtypes.iloc[at] != "category"]
            _warn_of_slips({names[at]: of_names[at] for at in plain})
        units = written.get("units")
        for name, which in written.get("bare", {}).items():
            said = f"{units[name]!r} stands beside most numbers of {name!r}, and not beside all ({which})"
            remedy = "write all in one unit, or leave it out (other_columns)"
            warnings.warn(f"{said}: {remedy}", ShortlistWarning, stacklevel=4)
        if not categories and not texts and (fitted is None or all(map(is_constant, numbers))):
            if fitted is not None:
                left_out |= dict.fromkeys(fitted.columns, CONSTANT)
            why_each = listed([f"{names[column]!r} ({why})" for column, why in left_out.items()])
            texts_of = [names[column] for column, why in left_out.items() if why.endswith(TEXT_OR_ID)]
            hint = f"; if {texts_of[0]!r} holds texts: text_column={as_option(texts_of[0])}" if texts_of else ""
            raise ShortlistError(f"no column is left to learn from: {why_each}{hint}")
        prepared = cls(
            "frame", len(names), names, fitted, categories, texts,
            left_out=left_out, na_values=na_values, units=units, decimal=written.get("decimal"), dates=dates,
        )  # fmt: skip
        if fitted is not None and fitted.cut:
            prepared._warn_of_cuts(stacked[:, np.searchsorted(at, fitted.columns)])
        return prepared

    def _warn_of_cuts(self, values: NDArray[Any]) -> None:
        """Say which numbers are far from all others; these are the values of ``numbers``' columns."""
        cut = self._numbers.cut.items()
        far = {place: values[(values[:, place] < low) | (values[:, place] > high), place] for place, (low, high) in cut}
        shown = [self._outside(place, such, self._numbers.cut[place], len(such)) for place, such in far.items()]
        if shown:
            remedy = "write blanks (of a table: name them in data.na_values, as in [NA, -9999])"
            said = f"numbers far from all others are cut off: {listed(shown, 3)}: if these stand for blanks, {remedy}"
            warnings.warn(said, ShortlistWarning, stacklevel=5)

    def _warn_of_new(self, values: NDArray[Any]) -> None:
        """Say which numbers are far from all that ``numbers``' columns held in training."""
        beyond, of = self._numbers.beyond(values).items(), f" of {len(values)}"
        shown = [self._outside(place, far, self._numbers.reach[place], f"{len(far)}{of}") for place, far in beyond]
        if shown:
            said = f"numbers far from all those of the training rows are cut off: {listed(shown, 3)}"
            warnings.warn(f"{said}: if these stand for blanks, leave them blank", ShortlistWarning, stacklevel=5)

    def _outside(self, place: int, far: NDArray[Any], ends: tuple[float, float], count: object) -> str:
        """A column of ``numbers``, and what of it is not between its ends."""
        such = listed([f"{value:g}" for value in np.unique(far).tolist()], 3)
        name = self._called(self._numbers.columns[place])
        return f"{name!r} ({count} outside {ends[0]:.3g} to {ends[1]:.3g}: {such})"

    def _called(self, column: int) -> str | int:
        return self.column_names[column] if self.column_names else column

    # ---- using

    @property
    def width(self) -> int:
        """How many features come out."""
        if self.kind == "sparse":
            return self.num_columns
        names, words = sum(one.width for one in self.categories), sum(one.width for one in self.texts)
        return (self.numbers.width if self.numbers else 0) + names + words

    def transform(self, X: Any) -> Any:
        """Features, float32 (N, width); a CSR matrix where the input is sparse, or holds texts."""
        if self.kind == "frame":
            return self._transform_frame(X)
        if X.shape[1] != self.num_columns:
            raise ShortlistError(f"there are {X.shape[1]} columns, fitted were {self.num_columns}")
        if hasattr(X, "tocsr"):
            return self._transform_sparse(X)
        if self.kind == "sparse":
            from scipy.sparse import csr_matrix

            return self._transform_sparse(csr_matrix(X))
        values, used = np.asarray(X), self._numbers.columns
        values = values if len(used) == values.shape[1] else values[:, list(used)]
        self._warn_of_new(values)
        return self._numbers.transform(values)

    def _transform_sparse(self, X: Any) -> Any:
        if self.kind == "dense":
            return self.transform(X.toarray())  # centred numbers have no zeros to save
        X = X.tocsr()
        if self.sparse_scale is None:
            return X.astype(np.float32)
        X = X.copy()
        X.data = (X.data / self.sparse_scale[X.indices]).astype(np.float32)  # only then, or large numbers were infinite
        return X

    def _transform_frame(self, frame: Any) -> Any:
        if not hasattr(frame, "columns"):
            if frame.shape[1] != self.num_columns:
                raise ShortlistError(f"there are {frame.shape[1]} unnamed columns, fitted were {self.num_columns}")
            import pandas as pd

            dense = frame.toarray() if hasattr(frame, "tocsr") else np.asarray(frame)
            frame = pd.DataFrame(dense, columns=list(self._names))
        frame = self._with_numbers(frame)
        self._warn_of_units(frame)
        frame = self.aligned(frame)
        parts, few, enough = [], len(frame) < _FEW, len(frame) >= _ENOUGH
        # columns of which nothing is known, those that hold only names that were not learnt, and those that hold many
        blank, new, partly_new = [], [], []
        if self.numbers is not None:
            stacked = self._read_numbers(frame)
            self._warn_of_new(stacked)
            parts.append(self._numbers.transform(stacked))
            empty = np.flatnonzero(np.isnan(stacked).all(0)).tolist()
            told = [place for place in empty if not few and (enough or place not in self.numbers.marked)]
            blank += [self.numbers.columns[place] for place in told]
        for one in self.categories:
            names = as_names(frame.iloc[:, one.column], self.na_values)
            parts.append(one.transform(names))
            there = names != MISSING
            if not there.any():
                blank += [one.column] if not few and (enough or MISSING not in one.names) else []
            elif (enough or not one.has_rare) and not parts[-1][there, : len(one.names)].any():
                both = sorted({*names}), one.names
                now, learnt = ([reprlib.repr(name) for name in found if name != MISSING] for found in both)
                new.append(f"{self._names[one.column]!r} ({listed(now, 3)}; learnt were {listed(learnt, 3)})")
            elif said_of := one.about_new(names, there & ~parts[-1][:, : len(one.names)].any(1)):
                partly_new.append(f"{self._names[one.column]!r} ({said_of})")
        if partly_new:
            shown = f"names that were not learnt, and say nothing: {listed(partly_new, 3)}"
            warnings.warn(f"{shown}: write them as in training", ShortlistWarning, stacklevel=4)
        if len(frame) and (blank or new):
            said = [f"no value of {listed(new, 3)} is one that was learnt"] if new else []
            said += [f"always blank here: {listed([repr(self._names[c]) for c in blank])}"] if blank else []
            warnings.warn(f"columns that say nothing: {'; '.join(said)}", ShortlistWarning, stacklevel=4)
        if not self.texts:
            return np.concatenate(parts, axis=1)
        from scipy.sparse import csr_matrix, hstack

        places = {column for one in self.texts for column in one.columns}
        cells = {column: as_names(frame.iloc[:, column], self.na_values) for column in places}
        words = [one.transform(cells) for one in self.texts]
        return hstack([*map(csr_matrix, parts), *words], format="csr", dtype=np.float32)

    def unseen(self, frame: Any) -> dict[str, list[str]]:
        """By column of a frame, the names that say nothing, because the fitted column had no such ones."""
        columns = ((one, as_names(frame[self._names[one.column]], self.na_values)) for one in self.categories)
        found = {self._names[one.column]: one.unseen(names) for one, names in columns}
        return {column: names for column, names in found.items() if names}

    def aligned(self, frame: Any) -> Any:
        """The fitted columns of a frame, by name and in their order; missing ones are an error, others a warning."""
        names, here = self._names, column_names(frame)
        if here == names:
            return frame
        needed = [name for column, name in enumerate(names) if column not in self.left_out]
        there = set(here)
        missing = [name for name in needed if name not in there]
        if missing:
            absent = listed(list(map(repr, missing))) + renamed(missing, here)
            raise ShortlistError(f"columns that it was fitted with are missing: {absent}")
        known = set(names)
        extra = [name for name in here if name not in known]
        if extra:
            warnings.warn(f"columns it was not fitted with are ignored: {listed(list(map(repr, extra)))}", stacklevel=2)
        frame = frame.set_axis(list(here), axis=1)
        return frame.reindex(columns=list(names))

    def _with_numbers(self, frame: Any) -> Any:
        """With the numbers that are written in texts, in the columns that were fitted with numbers."""
        numbers = set() if self.numbers is None else {self._names[column] for column in self.numbers.columns}
        numbers -= self.dates.keys()
        plain = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in frame.dtypes)
        return frame if plain and not self.units else with_numbers(frame, self.decimal, numbers, self.na_values)

    def _warn_of_units(self, frame: Any) -> None:
        """Say which numbers have another unit beside them than in training."""
        here = frame.attrs.get(READ, {}).get("units")
        if here is None or self.units is None or not (here or self.units) or self.numbers is None or not len(frame):
            return
        numbers = {self._names[column] for column in self.numbers.columns}
        shown = [
            f"{name!r} (in training {self.units.get(name) or 'none'}, now {here.get(name) or 'none'})"
            for name in frame
            if name in numbers and _differ(self.units.get(name, ""), here.get(name, "")) and frame[name].notna().any()
        ]
        if shown:
            said = f"units beside numbers that are not those of training: {listed(shown, 3)}"
            warnings.warn(f"{said}: write them as in training", ShortlistWarning, stacklevel=5)

    def _read_numbers(self, frame: Any) -> NDArray[np.float64]:
        """The columns of numbers side by side; those that are numbers already at once."""
        columns, found = self._numbers.columns, None
        plain = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in frame.dtypes.iloc[list(columns)])
        plain &= not self.dates
        if plain and not blank_numbers(self.na_values):
            found = frame.iloc[:, list(columns)].to_numpy(dtype=np.float64)
        if found is None or np.isinf(found).any():  # which names the column
            found = np.stack([self._read_number(frame.iloc[:, column], column) for column in columns], axis=1)
        return found

    def _read_number(self, series: Any, column: int) -> NDArray[np.float64]:
        from pandas.api.types import infer_dtype

        if series.dtype == object and infer_dtype(series, skipna=True) == "boolean":
            series = series.astype("boolean")  # which pandas holds as objects where some are blank
        elif infer_dtype(series, skipna=True) == "string" and set(series.dropna().str.lower()) <= {"true", "false"}:
            series = series.str.lower().map({"true": 1.0, "false": 0.0})  # as files have them
        order = self.dates.get(self._names[column], "")
        values, why_not, written = read_column(series, self.na_values, codes=False, dates=order)
        blank = values == MISSING if values.dtype == object else np.isnan(values)
        if not why_not and blank.all():
            return np.full(len(series), np.nan)  # all blank, or no rows
        if why_not or values.dtype == object or written != order:
            cells = series.dropna().unique().tolist()
            if order:
                wrong = [cell for cell in cells if as_days(str(cell).strip(), order) is None] or cells
            else:
                wrong = [cell for cell in cells if not is_number(str(cell))] or cells
                wrong = [cell for cell in wrong if not may_be_number(str(cell))] or wrong
            shown, first = listed([reprlib.repr(cell) for cell in wrong[:3]]), series.isin(wrong).idxmax()
            kind = f"dates ({order})" if order else "numbers"
            raise ShortlistError(
                f"the column {self._names[column]!r} was fitted with {kind}, now it holds {shown}, first in row "
                f"{first}: mend such cells, leave them blank, or name them in data.na_values when training"
            )
        return values

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

        Columns of one kind, such as a network's features or principal components, say by their spread how much they
        matter; of columns in different units it says nothing, so try both. None where the spreads are alike.
        """
        if self.numbers is None or len(self.numbers.columns) < 2 or self.texts:
            return None
        scale = self.numbers.scale
        if scale.max() < 1.1 * scale.min():
            return None
        factors = np.ones(self.width, dtype=np.float32)
        factors[: len(scale)] = scale / np.sqrt(np.mean(scale**2))
        return factors

    # ---- showing and keeping

    def describe(self, left_out: bool = True) -> str:
        """Which columns became what, in lines to read; also those that are left out, unless ``left_out`` is False."""

        def name(column: int) -> str:
            return str(self._called(column))

        def shown(one: Categories) -> str:
            rest = " and rare or unseen ones" if one.has_rare else ""
            return f"{name(one.column)} ({listed(one.names, 5)}{rest})"

        if self.kind == "sparse":
            how = "as they are" if self.sparse_scale is None else "each divided by a scale of its own"
            return f"sparse columns ({self.num_columns}): {how}"
        found = {
            "standardised numbers": [],
            "dates, as days since 1970, standardised": [f"{column} ({how})" for column, how in self.dates.items()],
            "categories": [shown(c) for c in self.categories if not isinstance(c, Choices)],
            "several choices in a cell": [
                f"{shown(c)[:-1]}, with {c.separator!r} between)" for c in self.categories if isinstance(c, Choices)
            ],
            "texts, by tf-idf": [f"{' + '.join(map(name, c.columns))} ({c.width} terms)" for c in self.texts],
        }
        if self.numbers is not None:
            names, cut = [name(column) for column in self.numbers.columns], self.numbers.cut.items()
            found["standardised numbers"] = [one for one in names if one not in self.dates]
            found["blanks marked"] = [names[place] for place in self.numbers.marked]
            found["numbers far from all others cut off"] = [f"{names[p]} ({a:.3g} to {b:.3g})" for p, (a, b) in cut]
        if left_out:
            found["left out"] = [f"{name(column)} ({why})" for column, why in sorted(self.left_out.items())]
        lines = (f"{what} ({len(shown)}): {listed(shown)}" for what, shown in found.items() if shown)
        return "\n".join(line.replace("\n", "\\n") for line in lines)  # names may have several

    def to_json(self) -> dict[str, Any]:
        """Everything learnt, as numbers, texts, lists and dicts."""
        return facts_of(self)

    @classmethod
    def from_json(cls, facts: Any) -> Preprocessor:
        """What ``to_json`` wrote, with every size and number checked."""
        return cls(**fields_of(facts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preprocessor) and self.to_json() == other.to_json()


def read_preprocessing(facts: Any) -> Preprocessor | TfIdf:
    """What ``to_json`` of either wrote."""
    kind = facts.get("kind") if isinstance(facts, dict) else None
    return TfIdf.from_json(facts) if kind == TfIdf.kind else Preprocessor.from_json(facts)


def _warn_of_texts(columns: Mapping[str, NDArray[Any]]) -> None:
    """Say which columns of a frame are taken as names, or left out, and hold numbers that may be read in two ways, or
    in different units."""
    shown = []
    for name, values in columns.items():
        cells = [cell for cell in dict.fromkeys(values.tolist()) if cell != MISSING]
        like = [cell for cell in cells if may_be_number(cell) and not (cell.isascii() and is_number(cell))]
        if 2 * len(like) > len(cells):
            shown.append(f"{name!r} ({listed([repr(cell) for cell in like], 3)})")
    if shown:
        said = f"texts that look like numbers are taken as names, as they may mean several ones: {listed(shown, 3)}"
        warnings.warn(f"{said}: give numbers, without units", ShortlistWarning, stacklevel=5)


def _warn_of_slips(columns: Mapping[str, NDArray[Any]]) -> None:
    """Say which columns of a frame are taken as names, or left out, and hold numbers but for a few cells."""
    shown = []
    for name, values in columns.items():
        times = Counter(values.tolist())
        del times[MISSING]
        others = {cell: count for cell, count in times.items() if not is_number(cell)}
        if 0 < 2 * sum(others.values()) < times.total():
            such = listed([repr(cell) for cell in others], 3)
            shown.append(f"{name!r} ({sum(others.values())} of {times.total()} cells: {such})")
    if shown:
        said = f"numbers are taken as names, because some cells beside them are none: {listed(shown, 3)}"
        warnings.warn(f"{said}: mend them, or leave them blank", ShortlistWarning, stacklevel=5)


def _differ(unit: str, other: str) -> bool:
    """Whether numbers mean something else by these units; an amount of money may lack its sign."""
    return unit != other and not ("" in (unit, other) and re.fullmatch(f"[{CURRENCIES}]", unit + other))
