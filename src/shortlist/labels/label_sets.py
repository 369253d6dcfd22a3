"""LabelSets: one set of labels per example, ragged and immutable, over two arrays (public as ``shortlist.LabelSets``).

The set of example ``i`` is ``indices[offsets[i] : offsets[i + 1]]``. Every operation works on the two arrays at once;
Python lists appear only where the caller asks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import ShortlistError, errors_name
from shortlist.files import PathLike
from shortlist.labels import label_set_files as files
from shortlist.labels import label_set_inputs as inputs
from shortlist.labels.label_set_files import Beside
from shortlist.optional import require

_SHOWN = 5  # labels of a set, where sets are shown


@dataclass(frozen=True, init=False, repr=False, eq=False)
class LabelSets:
    """One set of labels per example.

    Args:
        offsets: where each set begins, and the end of the last: N + 1 whole numbers, from 0 to ``len(indices)``.
        indices: the labels of all sets one after the other, in increasing order within each set.
        num_labels: how many labels there are to choose from; labels are ``0 .. num_labels - 1``.
        vocabulary: the labels' names, if they have any: ``num_labels`` different strings.
        values: of each index, 1 (present), 0 (absent) or -1 (unknown), where the sets are a label matrix of which some
            entries are stored: a target. The sets are then what is present; None: all of it.
        rest: what labels are that are not stored: 0 (absent) or -1 (unknown). What equals it is not stored.

    The arrays are copied and cannot be written to (``offsets`` is int64; ``indices`` is int32 whenever ``num_labels``
    allows it). Most callers use ``from_lists``, ``from_dense``, ``from_sparse`` or ``from_scores``.

    >>> sets = LabelSets([0, 2, 2, 3], [0, 2, 1], num_labels=3, vocabulary=["cat", "dog", "owl"])
    >>> sets
    LabelSets(3 sets over 3 labels, mean size 1: {cat, owl}, {}, {dog})
    >>> sets[0], sets.sizes, sets[1:].names
    ([0, 2], array([2, 0, 1]), [[], ['dog']])
    >>> dogs = LabelSets.from_lists([["dog"]] * 3, vocabulary=sets.vocabulary)
    >>> (sets | dogs).names, (sets & dogs).names
    ([['cat', 'dog', 'owl'], ['dog'], ['dog']], [[], [], ['dog']])
    >>> LabelSets([0, 2, 3], [0, 2, 1], num_labels=3, values=[1, 0, 1], rest=-1)
    LabelSets(2 sets over 3 labels, mean size 1: {0}, {1}; 1 absent, the rest unknown)
    """

    offsets: NDArray[np.int64]
    indices: NDArray[np.int32] | NDArray[np.int64]
    num_labels: int
    vocabulary: tuple[str, ...] | None = None
    values: NDArray[np.int8] | None = None
    rest: int = 0

    def __init__(
        self,
        offsets: ArrayLike,
        indices: ArrayLike,
        num_labels: int,
        vocabulary: Sequence[str] | None = None,
        *,
        values: ArrayLike | None = None,
        rest: int = 0,
    ) -> None:
        num_labels = inputs.check_num_labels(num_labels, vocabulary)
        inputs.check_rest(rest)
        checked_offsets, checked_indices = inputs.check_arrays(offsets, indices, num_labels)
        checked_values = None
        if values is not None:
            checked_offsets, checked_indices, checked_values = inputs.check_values(
                values, checked_offsets, checked_indices, rest
            )
        names = inputs.check_vocabulary(vocabulary, num_labels)
        self.__dict__.update(offsets=checked_offsets, indices=checked_indices, values=checked_values)
        self.__dict__.update(num_labels=num_labels, vocabulary=names, rest=rest)

    # ---- ways in

    @classmethod
    def from_parts(cls, sizes: NDArray[Any], labels: NDArray[Any], num_labels: int) -> LabelSets:
        """From the size of each set and the labels of all sets one after the other, by a program that knows that they
        are right: nothing is checked, and the labels may be kept as they are, read-only.

        >>> LabelSets.from_parts(np.array([2, 0]), np.array([0, 2]), num_labels=3).to_lists()
        [[0, 2], []]
        """
        kind = np.int32 if num_labels <= 2**31 else np.int64
        return cls._of(inputs.as_offsets(sizes), labels.astype(kind, copy=False), num_labels, None)

    @classmethod
    def from_one(cls, labels: NDArray[np.int32], num_labels: int, vocabulary: inputs.Names | None = None) -> LabelSets:
        """One set, likewise of labels (and names) that are known to be right; they are kept as they are, and the labels
        must be read-only.

        >>> LabelSets.from_one(np.frombuffer(bytes([0, 0, 0, 0, 2, 0, 0, 0]), np.int32), num_labels=3).to_lists()
        [[0, 2]]
        """
        sets = object.__new__(cls)
        sets.__dict__.update(
            offsets=inputs.offsets_of_one(labels.size), indices=labels, num_labels=num_labels, vocabulary=vocabulary
        )
        return sets

    def named(self, vocabulary: Sequence[str]) -> LabelSets:
        """The same sets with names for the labels.

        >>> LabelSets.from_lists([[0], [0, 1]], num_labels=2).named(("cat", "dog")).names
        [['cat'], ['cat', 'dog']]
        """
        sets = object.__new__(type(self))
        sets.__dict__.update(self.__dict__, vocabulary=inputs.check_vocabulary(vocabulary, self.num_labels))
        return sets

    @classmethod
    def _of(cls, offsets: Any, indices: Any, num_labels: int, vocabulary: tuple[str, ...] | None) -> LabelSets:
        """From arrays that are right and belong to no one else, without any check."""
        offsets.setflags(write=False)
        indices.setflags(write=False)
        sets = object.__new__(cls)
        sets.__dict__.update(offsets=offsets, indices=indices, num_labels=num_labels, vocabulary=vocabulary)
        return sets

    @classmethod
    def from_lists(
        cls,
        lists: Iterable[Iterable[int] | Iterable[str]],
        num_labels: int | None = None,
        vocabulary: Sequence[str] | None = None,
    ) -> LabelSets:
        """From one collection of labels per example: indices, or names when there is a vocabulary (which then gives
        ``num_labels`` too). Order and repetition within a collection do not matter.

        >>> LabelSets.from_lists([[4, 1], {2}, ()], num_labels=5).to_lists()
        [[1, 4], [2], []]
        >>> LabelSets.from_lists([["owl", "cat"]], vocabulary=["cat", "dog", "owl"]).to_lists()
        [[0, 2]]
        """
        num_labels = inputs.check_num_labels(num_labels, vocabulary)
        offsets, labels = inputs.flatten_lists(lists, num_labels, inputs.check_vocabulary(vocabulary, num_labels))
        inputs.check_keys(len(offsets) - 1, num_labels)
        keys = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) * num_labels + labels
        if (keys[1:] < keys[:-1]).any():
            keys.sort()
        return cls._from_keys(keys, len(offsets) - 1, num_labels, vocabulary)

    @classmethod
    def from_dense(cls, matrix: Any, vocabulary: Sequence[str] | None = None) -> LabelSets:
        """From an (N, L) matrix, torch or numpy, of bools (or exactly 0 and 1): True where the label is in the set.

        >>> LabelSets.from_dense([[True, False, True], [False, False, False]]).to_lists()
        [[0, 2], []]
        """
        member = inputs.as_members(matrix)
        num_labels = member.shape[1]
        return cls(inputs.as_offsets(np.count_nonzero(member, axis=1)), np.nonzero(member)[1], num_labels, vocabulary)

    @classmethod
    def from_sparse(cls, matrix: Any, vocabulary: Sequence[str] | None = None, *, rest: int = 0) -> LabelSets:
        """From a scipy sparse (N, L) matrix of bools, or of 1 (present), 0 (absent) and -1 (unknown).

        ``rest``: what labels are that it does not store, 0 or -1; with -1, a 0 that it stores is absent.

        >>> from scipy.sparse import csr_array
        >>> LabelSets.from_sparse(csr_array([[0, 1, 1], [0, 0, 0]])).to_lists()
        [[1, 2], []]
        >>> LabelSets.from_sparse(csr_array([[0, 1, -1], [0, 0, 0]]))
        LabelSets(2 sets over 3 labels, mean size 0.5: {1}, {}; 1 unknown)
        """
        offsets, indices, num_labels, values = inputs.sparse_parts(matrix)
        return cls(offsets, indices, num_labels, vocabulary, values=values, rest=rest)

    @classmethod
    def from_scores(cls, scores: Any, threshold: Any, vocabulary: Sequence[str] | None = None) -> LabelSets:
        """The labels whose score reaches the threshold (``scores >= threshold``), one number or one per label.

        ``scores`` is (N, L), torch or numpy. Raw scores of different examples are seldom comparable:
        ``shortlist.sets.Threshold`` and ``AverageK`` link them first.

        >>> LabelSets.from_scores([[0.2, 0.9, 0.5], [0.1, 0.1, 0.1]], threshold=0.5).to_lists()
        [[1, 2], []]
        """
        return cls.from_dense(inputs.reaches(scores, threshold), vocabulary)

    @classmethod
    def concatenate(cls, parts: Iterable[LabelSets]) -> LabelSets:
        """The examples of all parts, one after the other; the parts agree in ``num_labels`` and vocabulary.

        >>> a = LabelSets.from_lists([[0], [1, 2]], num_labels=3)
        >>> LabelSets.concatenate([a, a[:1]]).to_lists()
        [[0], [1, 2], [0]]
        """
        parts = list(parts)
        if not parts:
            raise ShortlistError("concatenate needs at least one LabelSets (num_labels comes from it), got none")
        vocabulary, rest = None, parts[0].rest
        for i, part in enumerate(parts):
            vocabulary = parts[0]._common_vocabulary(part, f"part {i}", vocabulary)
            if part.rest != rest:
                raise ShortlistError(f"part {i} has rest={part.rest}, the first has {rest}")
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        indices = np.concatenate([part.indices for part in parts])
        values = None if all(part.values is None for part in parts) else np.concatenate([p._values() for p in parts])
        return cls(inputs.as_offsets(sizes), indices, parts[0].num_labels, vocabulary, values=values, rest=rest)

    @classmethod
    def _from_keys(
        cls, keys: NDArray[np.int64], count: int, num_labels: int, vocabulary: Sequence[str] | None
    ) -> LabelSets:
        """From increasing keys ``example * num_labels + label``; a key that is repeated counts once."""
        if len(keys) and not (different := keys[1:] != keys[:-1]).all():
            keys = keys[np.concatenate([[True], different])]
        rows, labels = np.divmod(keys, num_labels)
        return cls(inputs.as_offsets(np.bincount(rows, minlength=count)), labels, num_labels, vocabulary)

    # ---- ways out

    @property
    def present(self) -> LabelSets:
        """The sets alone: of a target, the labels that are present.

        >>> LabelSets([0, 2], [0, 2], num_labels=3, values=[1, -1]).present
        LabelSets(1 set over 3 labels, mean size 1: {0})
        """
        if self.values is None:
            return self if self.rest == 0 else self._of(self.offsets, self.indices, self.num_labels, self.vocabulary)
        chosen = self.values == 1
        offsets = np.concatenate([[0], np.cumsum(chosen)])[self.offsets]
        return self._of(offsets, self.indices[chosen], self.num_labels, self.vocabulary)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many labels each set holds.

        >>> LabelSets.from_lists([[0, 1], []], num_labels=2).sizes
        array([2, 0])
        """
        return np.diff(self.present.offsets)

    @property
    def names(self) -> list[list[str]]:
        """The sets as lists of label names.

        >>> LabelSets.from_lists([[0, 1], []], vocabulary=["cat", "dog"]).names
        [['cat', 'dog'], []]
        """
        if self.vocabulary is None:
            raise ShortlistError(
                "these LabelSets have no vocabulary, so the labels have no names; "
                "give vocabulary=[...] when they are built, or use to_lists() for their indices"
            )
        sets = self.present
        return sets._split([self.vocabulary[i] for i in sets.indices.tolist()])

    def to_lists(self) -> list[list[int]]:
        """The sets as lists of label indices, in increasing order.

        >>> LabelSets([0, 2, 2], [0, 2], num_labels=3).to_lists()
        [[0, 2], []]
        """
        sets = self.present
        return sets._split(sets.indices.tolist())

    def to_dense(self) -> NDArray[np.bool_]:
        """The (N, L) bool matrix that is True where the label is in the set.

        >>> LabelSets.from_lists([[0, 2], []], num_labels=3).to_dense()
        array([[ True, False,  True], [False, False, False]])
        """
        dense = np.zeros((len(self), self.num_labels), dtype=np.bool_)
        sets = self.present
        dense[sets._rows(), sets.indices] = True
        return dense

    def to_sparse(self) -> Any:
        """The same matrix as a ``scipy.sparse.csr_array``.

        >>> LabelSets.from_lists([[0, 2], []], num_labels=3).to_sparse().sum(axis=1)
        array([2, 0])
        """
        scipy_sparse = require("scipy.sparse")
        sets = self.present
        data = np.ones(len(sets.indices), dtype=np.bool_)
        # csr_array keeps the arrays it is given: it gets its own, so that writing to it cannot change these sets
        parts = (data, sets.indices.copy(), sets.offsets.copy())
        return scipy_sparse.csr_array(parts, shape=(len(self), self.num_labels))

    # ---- questions

    def contains(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """For each example, whether its set holds its label: one label per example, or one for all.

        -1 (unknown) is in no set.

        >>> LabelSets.from_lists([[0, 2], [1], []], num_labels=3).contains([2, 0, -1])
        array([ True, False, False])
        """
        wanted = inputs.one_label_each(labels, len(self), self.num_labels)
        found = np.zeros(len(self), dtype=np.bool_)
        sets = self.present
        rows = sets._rows()
        found[rows[sets.indices == wanted[rows]]] = True
        return found

    def __contains__(self, labels: object) -> bool:
        """Whether some example has exactly this set of labels: ``{0, 2} in sets``."""
        if not isinstance(labels, Iterable) or isinstance(labels, str):
            raise ShortlistError(f"`in` looks for a whole set, got {labels!r}; for one label use contains({labels!r})")
        wanted = self.from_lists([list(labels)], self.num_labels, self.vocabulary)[0]
        return any(self[int(i)] == wanted for i in np.flatnonzero(self.sizes == len(wanted)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSets):
            return NotImplemented
        return (
            self.num_labels == other.num_labels
            and self.vocabulary == other.vocabulary
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.indices, other.indices)
            and self.rest == other.rest
            and np.array_equal(self._values(), other._values())
        )

    __hash__ = None  # type: ignore[assignment]  # equality reads every label: too slow to hash without surprise

    # ---- the sets as a sequence

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.to_lists())

    @overload
    def __getitem__(self, key: int) -> list[int]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> LabelSets: ...

    def __getitem__(self, key: Any) -> list[int] | LabelSets:
        """One set as a list of labels; for a slice, a bool mask or an array of positions, those sets."""
        positions = inputs.as_positions(key, len(self))
        if positions.ndim == 0:
            sets = self.present
            return sets.indices[sets.offsets[positions] : sets.offsets[positions + 1]].tolist()
        offsets = inputs.as_offsets(np.diff(self.offsets)[positions])
        # the j-th label of a chosen set stands j places after that set's old beginning
        shift = np.repeat(self.offsets[positions] - offsets[:-1], np.diff(offsets))
        places = shift + np.arange(offsets[-1])
        values = None if self.values is None else self.values[places]
        return LabelSets(offsets, self.indices[places], self.num_labels, self.vocabulary, values=values, rest=self.rest)

    # ---- sets combined, example by example

    def __or__(self, other: LabelSets) -> LabelSets:
        """Example by example, the labels in either set."""
        keys, vocabulary = self._merged_keys(other)
        return self._from_keys(keys, len(self), self.num_labels, vocabulary)

    def __and__(self, other: LabelSets) -> LabelSets:
        """Example by example, the labels in both sets."""
        keys, vocabulary = self._merged_keys(other)
        return self._from_keys(keys[1:][keys[1:] == keys[:-1]], len(self), self.num_labels, vocabulary)

    # ---- files

    def to_parquet(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a parquet file with a column ``id``, the examples' names or their numbers, and a list column
        ``labels``; the file appears whole or not at all.

        ``beside``: a number for each label in the sets, one after the other as in ``indices``, and what they are
        called: a further list column, with the labels' ``names`` in one more; the label with the largest number then
        comes first.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.parquet"
        >>> sets = LabelSets.from_lists([[0], []], vocabulary=["cat", "dog"])
        >>> sets.to_parquet(path)
        >>> LabelSets.from_parquet(path) == sets
        True
        """
        files.write_parquet(path, [(self, ids, beside)])

    def to_jsonl(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a text file: a first line about the labels, then ``{"id": ..., "labels": [...]}`` for each example, by
        name where there is a vocabulary. The file appears whole or not at all. ``ids`` and ``beside``: as for
        ``to_parquet``.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.jsonl"
        >>> LabelSets.from_lists([[0], []], vocabulary=["cat", "dog"]).to_jsonl(path)
        >>> print(path.read_text())
        {"num_sets": 2, "num_labels": 2, "vocabulary": ["cat", "dog"]}
        {"id": 0, "labels": ["cat"]}
        {"id": 1, "labels": []}
        """
        files.write_jsonl(path, [(self, ids, beside)], len(self))

    def to_csv(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a table to look at: a line for each example with its id (or number), the names of its labels with "|"
        between, and the numbers ``beside`` them, the largest first. Where a name holds a "|" itself, both are lists as
        JSON writes them. The file appears whole or not at all.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.csv"
        >>> sets = LabelSets.from_lists([[0, 1], []], vocabulary=["cat", "dog"])
        >>> sets.to_csv(path, ids=["a.jpg", "b.jpg"], beside=("probabilities", np.array([0.25, 0.75])))
        >>> print(path.read_text())
        id,labels,probabilities
        a.jpg,dog|cat,0.75|0.25
        b.jpg,,
        """
        files.write_csv(path, [(self, ids, beside)])

    @classmethod
    def from_parquet(cls, path: PathLike, *, max_labels: int = 1 << 28) -> LabelSets:
        """Read what ``to_parquet`` wrote, or a folder of such files (``predict --engine ray``); ids are left out.

        A file that states more than ``max_labels`` labels in all its sets, or more sets than that, is refused before
        they are read: a few bytes can stand for any number of them.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.parquet"
        >>> LabelSets.from_lists([[1], []], num_labels=4).to_parquet(path)
        >>> LabelSets.from_parquet(path)
        LabelSets(2 sets over 4 labels, mean size 0.5: {1}, {})
        """
        if os.path.isdir(path):
            parts = sorted(Path(path).glob("*.parquet"))
            if not parts:
                raise ShortlistError(f"{os.fspath(path)}: the folder has no .parquet files")
            return cls.concatenate([cls.from_parquet(part, max_labels=max_labels) for part in parts])
        with errors_name(path):
            return cls(*files.read_parquet(path, max_labels))

    @classmethod
    def from_jsonl(
        cls,
        path: PathLike,
        *,
        num_labels: int | None = None,
        vocabulary: Sequence[str] | None = None,
    ) -> LabelSets:
        """Read what ``to_jsonl`` wrote; ids are left out. Files of ``shortlist predict`` do not begin with what the
        labels are: give the vocabulary, `load_run(RUN).label_names` (of scores without names, ``num_labels``).

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.jsonl"
        >>> LabelSets.from_lists([[1], []], num_labels=4).to_jsonl(path)
        >>> LabelSets.from_jsonl(path).to_lists()
        [[1], []]
        """
        with errors_name(path):
            return cls.from_lists(*files.read_jsonl(path, num_labels, vocabulary))

    # ---- inside

    def __repr__(self) -> str:
        shown = [_short_set(labels, self.vocabulary) for labels in self[:3]]
        if len(self) > len(shown):
            shown.append("...")
        count = f"{len(self)} set{'' if len(self) == 1 else 's'} over {self.num_labels} labels"
        mean = f", mean size {self.sizes.mean():.3g}: " if len(self) else ""
        words = [f"{(self._values() == value).sum()} {word}" for value, word in ((0, "absent"), (-1, "unknown"))]
        more = [word for word in words if not word.startswith("0 ")] + ["the rest unknown"] * (self.rest == -1)
        return f"LabelSets({count}{mean}{', '.join(shown)}{'; ' * bool(more)}{', '.join(more)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that unpickled arrays are read-only again
        parts = (self.offsets, self.indices, self.num_labels, self.vocabulary)
        return partial(LabelSets, values=self.values, rest=self.rest), parts

    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def _values(self) -> NDArray[np.int8]:
        return np.ones(len(self.indices), dtype=np.int8) if self.values is None else self.values

    def _split(self, flat: list[Any]) -> list[list[Any]]:
        ends = self.offsets.tolist()
        return [flat[begin:end] for begin, end in pairwise(ends)]

    def _merged_keys(self, other: LabelSets) -> tuple[NDArray[np.int64], Sequence[str] | None]:
        if not isinstance(other, LabelSets):
            raise ShortlistError(f"LabelSets combine with LabelSets, got {type(other).__name__}")
        if len(self) != len(other):
            raise ShortlistError(f"sets combine example by example: got {len(self)} examples and {len(other)}")
        vocabulary = self._common_vocabulary(other, "the other", self.vocabulary)
        inputs.check_keys(len(self), self.num_labels)
        keys = np.concatenate([sets._rows() * sets.num_labels + sets.indices for sets in (self.present, other.present)])
        keys.sort(kind="stable")  # two increasing runs: a merge
        return keys, vocabulary

    def _common_vocabulary(self, other: LabelSets, name: str, known: Sequence[str] | None) -> Sequence[str] | None:
        """The vocabulary shared with ``other``; sets without one take the names of those that have them."""
        if other.num_labels != self.num_labels:
            raise ShortlistError(f"{name} has num_labels={other.num_labels}, the first has {self.num_labels}")
        if known is None or other.vocabulary is None:
            return known or other.vocabulary
        for label, (ours, theirs) in enumerate(zip(known, other.vocabulary, strict=True)):
            if ours != theirs:
                raise ShortlistError(f"vocabularies differ at label {label}: {ours!r}, and {theirs!r} in {name}")
        return known


def _short_set(labels: list[int], vocabulary: tuple[str, ...] | None) -> str:
    shown = [str(label) if vocabulary is None else vocabulary[label] for label in labels[:_SHOWN]]
    return "{" + ", ".join(shown + ["..."] * (len(labels) > _SHOWN)) + "}"
