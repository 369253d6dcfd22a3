"""Where the marks of a drawn scene graph go: dots, bent arrows, and labels that keep apart and inside the frame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from shortlist.reports.picture import Point, on_curve
from shortlist.scenes.graphs import SceneGraph, agreement

_COLORS = ("c0", "c1", "c3", "c4", "c5", "c6", "c7")  # of objects, by name; c2 is green
_RIGHT, _OTHER, _INK = "c2", "soft", "ink"
_BEND = 0.16  # how far an arrow bends, as a share of its length
_ALONG = (0.35, 0.45, 0.25, 0.55, 0.65, 0.15)  # where on an arrow its label may stand, best first: near its subject
_TRIES = 400  # places around the best one, where none of the usual ones is free
_TURN = 2.399963  # between one place and the next, further away: a sunflower's spiral
_SPIRAL = np.stack([turned(_TURN * np.arange(_TRIES)) for turned in (np.cos, np.sin)], 1)
_SPIRAL *= 0.6 * np.sqrt(np.arange(_TRIES))[:, None]  # in heights of letters

Points = NDArray[np.float64]  # (points, 2)


@dataclass(frozen=True)
class Area:
    """A rectangle around its middle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """xmin, ymin, xmax, ymax."""
        wide, high = self.width / 2, self.height / 2
        return self.x - wide, self.y - high, self.x + wide, self.y + high

    def holds(self, point: Point) -> bool:
        return abs(point[0] - self.x) <= self.width / 2 and abs(point[1] - self.y) <= self.height / 2


@dataclass(frozen=True)
class Label:
    """A text in the middle of its area."""

    text: str
    color: str
    area: Area


@dataclass(frozen=True)
class Arrow:
    """A quadratic curve from a subject to an object; ``bend`` is its control point."""

    start: Point
    bend: Point
    end: Point
    color: str

    def at(self, share: float) -> Point:
        """The point this far along."""
        return on_curve(self.start, self.bend, self.end, share)


@dataclass(frozen=True)
class Layout:
    """Dots and names are those of the graph's objects, in their order; predicates are those of the arrows. A tie leads
    from an arrow to its label where this could not stand on it."""

    dots: Sequence[Point]
    names: Sequence[Label]
    arrows: Sequence[Arrow]
    predicates: Sequence[Label]
    ties: Sequence[tuple[Point, Point]]


def lay_out(graph: SceneGraph, right: SceneGraph | None, frame: Point, size: float) -> Layout:
    """Every label takes the first of its usual places that is free, else the nearest free one, else the least covered.

    Args:
        graph: what to draw.
        right: the recorded graph.
        frame: width and height.
        size: height of letters.
    """
    dots: list[Point] = []
    for thing in graph.objects:
        middle = (thing.box[0] + thing.box[2]) / 2, (thing.box[1] + thing.box[3]) / 2
        places = np.array(middle) + size * _SPIRAL
        away = np.linalg.norm(places[:, None] - np.array(dots).reshape(-1, 2), axis=2)
        free = places[(away > 1.5 * size).all(1)]
        dots.append((float(free[0, 0]), float(free[0, 1])) if len(free) else middle)
    taken = [Area(*dot, size, size) for dot in dots]
    names = [
        _label(name, _COLORS[number % len(_COLORS)], _corners(thing.box, name, size), frame, size, taken)
        for number, (name, thing) in enumerate(zip(graph.names(), graph.objects, strict=True))
    ]
    arrows, predicates = [], []
    for arrow, text in _arrows(graph, right, dots, frame, size):
        arrows.append(arrow)
        predicates.append(_label(text, arrow.color, map(arrow.at, _ALONG), frame, size, taken))
    ties = [
        (arrow.at(_ALONG[0]), (label.area.x, label.area.y))
        for arrow, label in zip(arrows, predicates, strict=True)
        if not any(label.area.holds(arrow.at(step / 20)) for step in range(21))
    ]
    return Layout(dots, names, arrows, predicates, ties)


def _arrows(
    graph: SceneGraph, right: SceneGraph | None, dots: Sequence[Point], frame: Point, size: float
) -> Iterator[tuple[Arrow, str]]:
    """The predicates of a pair share an arrow, those that are recorded too another one, drawn last."""
    known = [False] * len(graph.relations) if right is None else agreement(graph, right)[0]
    found: dict[tuple[int, int, bool], list[str]] = {}
    for one, is_right in zip(graph.relations, known, strict=True):
        found.setdefault((one.subject, one.object, is_right), []).append(one.predicate)
    drawn: Counter[tuple[int, int]] = Counter()
    for (subject, other, is_right), predicates in sorted(found.items(), key=lambda arrow: arrow[0][2]):
        drawn[subject, other] += 1
        color = _RIGHT if is_right else _INK if right is None else _OTHER
        bend = _BEND * drawn[subject, other]
        yield _arrow(dots[subject], dots[other], bend, color, frame, size), ", ".join(predicates)


def _arrow(start: Point, end: Point, bend: float, color: str, frame: Point, size: float) -> Arrow:
    """Bent to its own left, so that the two directions of a pair do not cover each other; it ends beside the dot."""
    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2 + bend * (y1 - y0), (y0 + y1) / 2 - bend * (x1 - x0)
    control = max(0, min(middle[0], frame[0])), max(0, min(middle[1], frame[1]))
    length = math.dist(control, end) or 1.0
    before = min(0.4 * size / length, 1.0)
    return Arrow(start, control, (x1 - before * (x1 - control[0]), y1 - before * (y1 - control[1])), color)


def _corners(box: tuple[float, float, float, float], text: str, size: float) -> Iterator[Point]:
    """Where a box's name may stand: inside and outside of its corners."""
    left, right = box[0] + _wide(text, size) / 2, box[2] - _wide(text, size) / 2
    half = _high(size) / 2
    yield from ((left, box[1] + half), (left, box[1] - half), (right, box[1] - half), (right, box[1] + half))
    yield from ((left, box[3] - half), (left, box[3] + half), (right, box[3] + half), (right, box[3] - half))


def _label(text: str, color: str, usual: Iterable[Point], frame: Point, size: float, taken: list[Area]) -> Label:
    """The label at its place, which is taken from now on."""
    while len(text) > 1 and _wide(text, size) > frame[0]:
        text = text[:-2] + "…"
    width, height = _wide(text, size), _high(size)
    best = np.array(list(usual))
    half = np.array([width, height]) / 2
    places = np.concatenate([best, best[0] + size * _SPIRAL[1:]])
    places = np.maximum(np.minimum(places, np.array(frame) - half), half)
    x, y = places[_covered(places, width, height, taken).argmin()].tolist()  # the first of those that are covered least
    taken.append(Area(x, y, width, height))
    return Label(text, color, taken[-1])


def _covered(places: Points, width: float, height: float, taken: Sequence[Area]) -> NDArray[np.float64]:
    """How much of an area of this size others cover, were it at each of these places."""
    x, y, wide, high = np.array([(area.x, area.y, area.width, area.height) for area in taken]).T
    across = (width + wide) / 2 - np.abs(places[:, :1] - x)
    down = (height + high) / 2 - np.abs(places[:, 1:] - y)
    shared = np.minimum(across, np.minimum(width, wide)) * np.minimum(down, np.minimum(height, high))
    return np.where((across > 0) & (down > 0), shared, 0.0).sum(1)


def _wide(text: str, size: float) -> float:
    """About how wide a label is in a sans-serif font, rather more than less."""
    return size * 0.4 + size * sum(
        0.38 if sign in "fijlrtI .,:;'" else 1.0 if sign in "mwMW@%" or east_asian_width(sign) in "WF" else 0.64
        for sign in text
    )


def _high(size: float) -> float:
    return 1.25 * size
