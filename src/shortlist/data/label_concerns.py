"""Labels of a table that will hardly mean what is wanted: each with the option that mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

from shortlist.data.cells import NA_VALUES, UNKNOWN, UNSURE
from shortlist.data.column_use import as_option, listed
from shortlist.data.dataset import Dataset

_SEPARATORS = "|;,/"
_RARE = 3  # examples
_CLASSES, _PER_CLASS = 50, 5  # numbers that are more, with fewer examples on average, are hardly classes
_ONCE = 100  # classes that occur once, and most of them do


def label_concerns(dataset: Dataset, columns: tuple[str, ...], counts: Tensor | None = None) -> list[str]:
    """What to look at again in the labels, which these columns hold. ``counts``: the examples of each label, where
    there are others than these.

    >>> import torch
    >>> data = Dataset(torch.rand(3, 1), torch.tensor([0, 1, 1]), ("Cat", "cat"))
    >>> label_concerns(data, ("kind",))
    ["2 labels differ only in case or blanks: 'Cat', 'cat': write them alike"]
    """
    if not columns or not len(dataset):
        return []
    found = names_alike(dataset.vocabulary)
    if not dataset.is_single:
        of_lists = len(columns) != dataset.num_labels
        if not of_lists:
            return found + _never_absent(dataset)
        return found + _of_another_mark(dataset.vocabulary) + _always_together(dataset) + _blanks(dataset)
    several = _in_brackets(dataset) or _several(dataset)
    return several or found + _once(dataset, columns[0], counts) + _blanks(dataset) + _only_one(dataset)


def _in_brackets(dataset: Dataset) -> list[str]:
    """Names that may be lists in a form that no reader knows: most are in brackets, or one holds a comma there."""
    names = [name for name in dataset.vocabulary if name[:1] + name[-1:] in ("[]", "{}")]
    if 2 * len(names) <= dataset.num_labels and not any("," in name for name in names):
        return []
    are = "is a name" if len(names) == 1 else "are names"
    return [
        f"{len(names)} of {dataset.num_labels} labels {are} in brackets: {listed(list(map(repr, names)), 3)}: if these "
        f"are lists of labels, write all cells as lists, [\"joy\", \"love\"], or with a mark between, joy|love"
    ]


def _several(dataset: Dataset) -> list[str]:
    """Names that are several ones."""
    mark, several = joined_names(dataset.vocabulary)
    if not several:
        return []
    hold = f"{len(several)} of {len(set(dataset.vocabulary))} labels hold{'s' * (len(several) == 1)} {mark!r}"
    shown = listed([repr(name) for name in several], 3)
    return [f"{hold}: {shown}: give separator={mark!r} if these are several labels in one cell"]


def joined_names(names: Sequence[str]) -> tuple[str, list[str]]:
    """A mark, and the names that look like several ones with it between them: pieces are names, too, or come again.

    >>> joined_names(["joy", "joy|love", "R&D, IT"])
    ('|', ['joy|love'])
    >>> joined_names(["oak big", "oak old", "elm big", "elm old"])[0]
    ' '
    """
    known = set(names)
    for mark in _SEPARATORS:
        several = [name for name in names if mark in name]
        pieces = Counter(piece.strip() for name in several for piece in name.split(mark))
        if any(piece in known for piece in pieces) or (len(several) > 2 and len(pieces) < len(several)):
            return mark, several
    words = Counter(word for name in names for word in set(name.split()))
    if len(names) > 3 and all(" " in name.strip() for name in names) and min(words.values()) > 1:
        return " ", list(names)
    return "", []


def _of_another_mark(names: Sequence[str]) -> list[str]:
    """Labels of lists that are others with a mark between, as where tables that were joined have different ones."""
    known = set(names)
    for mark in _SEPARATORS:
        joined = [repr(name) for name in names if mark in name and known.issuperset(map(str.strip, name.split(mark)))]
        if joined:
            have = "labels are others" if len(joined) > 1 else "label is others"
            return [f"{len(joined)} {have} with {mark!r} between: {listed(joined, 3)}: write one mark in all cells"]
    return []


def _always_together(dataset: Dataset) -> list[str]:
    """Labels of lists that may be pieces of one name: what parts the labels stands within it, too."""
    if not isinstance(dataset.target, Tensor):
        return []
    alike: dict[bytes, list[str]] = {}
    often = (dataset.label_counts() >= _RARE).tolist()
    for name, column, tells in zip(dataset.vocabulary, dataset.target.T.contiguous().numpy(), often, strict=True):
        if tells:
            alike.setdefault(column.tobytes(), []).append(repr(name))
    together = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if not together:
        return []
    return [
        f"labels that are always present together: {listed(together, 3)}: if separator has parted one name, put a mark "
        "between labels that no name holds, and give that as separator"
    ]


def untrained_labels(train: Dataset, counts: Tensor) -> list[str]:
    """What to say of labels that occur (``counts`` of all examples), but not in the training data."""
    places = ((train.label_counts() == 0) & (counts > 0)).nonzero()[:, 0].tolist()
    if not places:
        return []
    shown = listed([repr(train.vocabulary[place]) for place in places], 3)
    return [
        f"{len(places)} of {train.num_labels} labels {'have' if len(places) > 1 else 'has'} no training example and "
        f"cannot be learnt; other parts of the data have: {shown}"
    ]


def rare_labels(train: Dataset, counts: Tensor) -> list[str]:
    """What to say of labels with one or two examples in all the data (``counts``).

    >>> import torch
    >>> data = Dataset(torch.rand(4, 1), torch.tensor([0, 0, 0, 1]), ("cat", "dog"))
    >>> rare_labels(data, torch.tensor([4, 1]))
    ["1 of 2 labels has fewer than 3 examples, too few to learn and to judge: 'dog' (1): find more, or leave it out"]
    """
    places = ((counts > 0) & (counts < _RARE)).nonzero()[:, 0].tolist()
    if not places or _once(train, "", counts):  # which says it of most labels
        return []
    shown = listed([f"{train.vocabulary[place]!r} ({int(counts[place])})" for place in places], 5)
    has, it = ("has", "it") if len(places) == 1 else ("have", "them")
    return [
        f"{len(places)} of {train.num_labels} labels {has} fewer than {_RARE} examples, too few to learn and to judge: "
        f"{shown}: find more, or leave {it} out"
    ]


def _once(dataset: Dataset, column: str, counts: Tensor | None) -> list[str]:
    counts = dataset.label_counts() if counts is None else counts
    once, total = int((counts == 1).sum()), dataset.num_labels
    if total > _CLASSES and int(counts.sum()) < _PER_CLASS * total and all(map(str.isdecimal, dataset.vocabulary)):
        return [
            f"the labels are {total} different whole numbers, of which {once} occur once: is {column!r} a quantity? "
            f"Then make classes of it first, such as low and high"
        ]
    if once < _ONCE or 2 * once <= total:
        return []
    return [
        f"{once} of {total} labels occur once: is {column!r} a text or an id? The column of the labels is named by "
        f"labels_key"
    ]


def _blanks(dataset: Dataset) -> list[str]:
    taken, blank = taken_as_labels(dataset.vocabulary)
    if not blank:
        return []
    none = "" if dataset.is_single else "; leave such cells blank if it means that no label applies"
    return [f"{taken}: give unknown_names={as_option(blank)} if that means that nothing is known{none}"]


def taken_as_labels(names: Iterable[str]) -> tuple[str, list[str]]:
    """Labels whose names say that nothing is known, and how that is told.

    >>> taken_as_labels(["cat", "Unsure", "?"])
    ("'Unsure', '?' are taken as labels", ['Unsure', '?'])
    """
    blank = [name for name in names if name in NA_VALUES or name.casefold() in UNKNOWN | UNSURE]
    shown = listed([repr(name) for name in blank], 3)
    return f"{shown} is taken as a label" if len(blank) == 1 else f"{shown} are taken as labels", blank


def _only_one(dataset: Dataset) -> list[str]:
    present = [name for name, count in zip(dataset.vocabulary, dataset.label_counts().tolist(), strict=True) if count]
    if len(present) != 1:
        return []
    return [f"every example has the label {present[0]!r}: there is nothing to tell apart"]


def names_alike(names: Iterable[str]) -> list[str]:
    """What is to be said of names of labels that may be meant to be the same.

    >>> names_alike(["drama", " drama", "comedy"])
    ["2 labels differ only in case or blanks: 'drama', ' drama': write them alike"]
    """
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(" ".join(name.casefold().split()), []).append(repr(name))
    twice = [name for names in plain.values() if len(names) > 1 for name in names]
    return [f"{len(twice)} labels differ only in case or blanks: {listed(twice, 6)}: write them alike"] if twice else []


def _never_absent(dataset: Dataset) -> list[str]:
    if bool((dataset.target == 0).any()) or not bool((dataset.target == 1).any()):
        return []
    if bool((dataset.target == 1).all()):
        return ["every label is present in every example: there is nothing to tell apart"]
    return [
        "no label is ever absent, because -1 and blank mean unknown: give coding=signed if -1 means absent; if blank "
        "does, write 0"
    ]
