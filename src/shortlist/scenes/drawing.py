"""A scene graph as a picture: boxes and labelled arrows on the image, or on a blank canvas. SVG and PNG."""

from __future__ import annotations

import math

from shortlist.reports.picture import Picture, Point
from shortlist.scenes._layout import lay_out
from shortlist.scenes.graphs import SceneGraph

_TEXT, _LABELS = 0.036, 20  # height of letters, as a share of the longer side; less with more than so many labels
_SMALLEST = 8  # pixels of a letter in a PNG


def to_svg(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> str:
    """The graph as SVG text; every name is escaped. Objects of one class are numbered.

    Args:
        graph: what to draw.
        image: the picture itself, PNG or JPEG; without it the canvas is blank.
        right: the recorded graph: arrows whose relation is in it are drawn in green.

    >>> from shortlist.scenes.graphs import SceneObject, SceneRelation
    >>> objects = (SceneObject("man", (10.0, 5.0, 50.0, 75.0)), SceneObject("<hat>", (20.0, 5.0, 40.0, 15.0)))
    >>> svg = to_svg(SceneGraph("1.jpg", 60, 80, objects, (SceneRelation(0, "wears", 1),)))
    >>> svg[:4], "&lt;hat&gt;" in svg, svg.count("<circle")
    ('<svg', True, 2)
    """
    return _drawn(graph, image, right).to_svg()


def to_png(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> bytes:
    """The same as PNG; arguments as in `to_svg`.

    >>> to_png(SceneGraph("1.jpg", 60, 80, (), ()))[:4]
    b'\\x89PNG'
    """
    return _drawn(graph, image, right, _SMALLEST).to_png(sharpness=1)


def _drawn(graph: SceneGraph, image: bytes | None, right: SceneGraph | None, smallest: float = 0) -> Picture:
    width, height, size, line = _measures(graph, smallest)
    picture = Picture(width, height, f"{graph.image}: {'; '.join(graph.sentences())}", image=image)
    layout = lay_out(graph, right, (width, height), size)
    for name, thing in zip(layout.names, graph.objects, strict=True):
        around = _corners(thing.box)
        picture.line([*around, around[0]], name.color, line)
    for arrow in layout.arrows:
        picture.arrow(arrow.start, arrow.bend, arrow.end, arrow.color, line, tip=0.7 * size)
    for tie in layout.ties:
        picture.line(tie, "soft", 0.8 * line, (2 * line, 2 * line), opacity=0.7)
    for dot, name in zip(layout.dots, layout.names, strict=True):
        picture.dot(dot, 0.3 * size, name.color)
    tags = [(name, "card", name.color, 1.0) for name in layout.names]
    # what is beneath a predicate shows through, arrows above all
    for label, ink, paper, opacity in tags + [(label, label.color, "card", 0.7) for label in layout.predicates]:
        picture.area(_corners(label.area.corners), paper, opacity)
        picture.text((label.area.x, label.area.y + 0.36 * size), label.text, ink, size=size)
    return picture


def _corners(box: tuple[float, float, float, float]) -> list[Point]:
    x, y, x1, y1 = box
    return [(x, y), (x1, y), (x1, y1), (x, y1)]


def _measures(graph: SceneGraph, smallest: float) -> tuple[int, int, float, float]:
    """Width, height, size of letters and of lines."""
    width, height = max(1, graph.width), max(1, graph.height)
    longer, labels = max(width, height), len(graph.objects) + len(graph.relations)
    text = _TEXT * longer * min(1.0, math.sqrt(_LABELS / max(1, labels)))
    return width, height, max(smallest, min(text, min(width, height) / 2)), 0.004 * longer
