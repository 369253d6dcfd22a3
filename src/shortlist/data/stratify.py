"""Iterative stratification: parts in which every one of several labels keeps its share."""

import heapq

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def dealt(
    sizes: Integers,
    unit: Integers,
    label: Integers,
    count: Integers,
    wanted: Integers,
    random: np.random.Generator,
) -> Integers:
    """The part of each unit: an example, or a group of examples that stay together.

    The label that the fewest units still to be dealt have goes first, because later nothing could put it right; each of
    its units goes to the part that lacks most of that label. Unlike in the paper a part that is full gets no more, so
    that parts of single examples have exactly the size asked for. Units without labels fill up what is left.

    Args:
        sizes: how many examples each unit has.
        unit, label, count: how often a label is present in a unit, for each pair where it is.
        wanted: how many examples each part shall have; as many as there are in all.
        random: decides between parts that are equal.

    Reference:
        Sechidis, Tsoumakas, Vlahavas, "On the Stratification of Multi-Label Data", ECML PKDD 2011.

    >>> one = np.ones(4, dtype=np.int64)  # four examples; the first two have label 0, all have label 1
    >>> unit, label = np.array([0, 1, 0, 1, 2, 3]), np.array([0, 0, 1, 1, 1, 1])
    >>> parts = dealt(one, unit, label, np.ones_like(unit), np.array([2, 2]), np.random.default_rng(0))
    >>> sorted(parts[:2].tolist()), sorted(parts.tolist())
    ([0, 1], [0, 0, 1, 1])
    """
    total, parts = int(sizes.sum()), range(len(wanted))
    shuffled = random.permutation(len(sizes))
    order = np.lexsort((shuffled[unit], -count, label))  # of a label, groups that have most of it first
    having = _pieces(unit[order], label[order])
    by_unit = np.argsort(unit, kind="stable")
    labels_of, counts_of = _pieces(label[by_unit], unit[by_unit]), _pieces(count[by_unit], unit[by_unit])

    num_labels = int(label.max(initial=-1)) + 1
    units_left = np.bincount(label, minlength=num_labels)
    # what a part lacks of a label, times the number of examples: whole numbers, so that ties are ties
    lacks = np.outer(wanted, np.bincount(label, weights=count, minlength=num_labels).astype(np.int64))
    room: list[int] = wanted.tolist()
    part = np.full(len(sizes), -1, dtype=np.int64)

    # how many units have a label, and which; what is out of date is passed over when it comes up
    queue = [(left, at) for at, left in enumerate(units_left.tolist()) if left]
    heapq.heapify(queue)

    def deal(one: int, chosen: int) -> None:
        part[one] = chosen
        room[chosen] -= int(sizes[one])
        if one in labels_of:
            its = labels_of[one]
            lacks[chosen, its] -= counts_of[one] * total
            units_left[its] -= 1
            for left, at in zip(units_left[its].tolist(), its.tolist(), strict=True):
                if left:
                    heapq.heappush(queue, (left, at))

    while queue:
        left, rarest = heapq.heappop(queue)
        if left != units_left[rarest]:
            continue
        for one in having[rarest].tolist():
            if part[one] < 0:
                lacking: list[int] = lacks[:, rarest].tolist()
                deal(one, max(_open_to(int(sizes[one]), room), key=lambda p: (lacking[p], room[p], random.random())))
    for one in np.lexsort((shuffled, -sizes)).tolist():  # the small ones fill up what the large ones leave
        if part[one] < 0:
            chances = np.zeros(len(parts))
            able = _open_to(int(sizes[one]), room)
            chances[able] = [room[p] for p in able]
            deal(one, int(random.choice(len(parts), p=chances / chances.sum())))
    return part


def _open_to(size: int, room: list[int]) -> list[int]:
    """The parts with room for a unit; where it fits in none, the one with the most room."""
    fitting = [p for p, left in enumerate(room) if left >= size]
    return fitting or [room.index(max(room))]


def _pieces(values: Integers, keys: Integers) -> dict[int, Integers]:
    """The values of each key; the keys are sorted."""
    found, starts = np.unique(keys, return_index=True)
    return dict(zip(found.tolist(), np.split(values, starts[1:]), strict=True)) if len(found) else {}
