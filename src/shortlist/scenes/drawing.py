"""A scene graph as a picture: boxes and labelled arrows on the image, or on a blank canvas. SVG and PNG."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import escape

from shortlist.scenes.graphs import SceneGraph

COLORS = ("#0b62c4", "#c24e00", "#0b7a5c", "#a3308f", "#7a6200", "#5b4bc9", "#b3223c", "#40606f")
_RIGHT, _OTHER, _INK, _PAPER = "#0b7a5c", "#545d69", "#16191d", "#ffffff"
_TEXT = 0.028  # height of letters, as a share of the longer side


@dataclass(frozen=True)
class _Box:
    corners: tuple[float, float, float, float]
    text: str
    color: str


@dataclass(frozen=True)
class _Arrow:
    start: tuple[float, float]
    end: tuple[float, float]
    text: str
    color: str

    @property
    def middle(self) -> tuple[float, float]:
        return (self.start[0] + self.end[0]) / 2, (self.start[1] + self.end[1]) / 2

    def head(self, size: float) -> list[tuple[float, float]]:
        """The three corners of the tip."""
        angle = math.atan2(self.end[1] - self.start[1], self.end[0] - self.start[0])
        sides = (angle + math.pi - 0.4, angle + math.pi + 0.4)
        return [self.end, *((self.end[0] + size * math.cos(a), self.end[1] + size * math.sin(a)) for a in sides)]


def to_svg(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> str:
    """The graph as SVG text; every name is escaped.

    Args:
        graph: what to draw.
        image: the picture itself, PNG or JPEG; without it the canvas is blank.
        right: the recorded graph: arrows whose relation is in it are drawn in green.

    >>> from shortlist.scenes.graphs import SceneObject, SceneRelation
    >>> objects = (SceneObject("man", (10.0, 5.0, 50.0, 75.0)), SceneObject("<hat>", (20.0, 5.0, 40.0, 15.0)))
    >>> svg = to_svg(SceneGraph("1.jpg", 60, 80, objects, (SceneRelation(0, "wears", 1),)))
    >>> svg[:4], "&lt;hat&gt;" in svg, svg.count("<rect")
    ('<svg', True, 3)
    """
    width, height, text, line = _measures(graph)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="{text:.1f}">',
        f"<title>{escape(graph.image)}: {escape('; '.join(graph.sentences()))}</title>",
        f'<rect width="{width}" height="{height}" fill="{_PAPER}"/>',
    ]
    if image is not None:
        address = f"data:{_kind(image)};base64,{base64.b64encode(image).decode()}"
        parts.append(f'<image width="{width}" height="{height}" href="{address}" preserveAspectRatio="none"/>')
    halo = f'paint-order="stroke" stroke="{_PAPER}" stroke-width="{text / 4:.1f}" stroke-linejoin="round"'
    for shape in _shapes(graph, right):
        if isinstance(shape, _Box):
            x, y, x1, y1 = shape.corners
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{x1 - x:.1f}" height="{y1 - y:.1f}" fill="none" '
                f'stroke="{shape.color}" stroke-width="{line:.1f}"/>'
                f'<text x="{x + line:.1f}" y="{y + text:.1f}" fill="{shape.color}" {halo}>{escape(shape.text)}</text>'
            )
        else:
            (x, y), (x1, y1), (at, down) = shape.start, shape.end, shape.middle
            tip = " ".join(f"{a:.1f},{b:.1f}" for a, b in shape.head(text * 0.7))
            parts.append(
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{shape.color}" '
                f'stroke-width="{line:.1f}"/><polygon points="{tip}" fill="{shape.color}"/>'
                f'<text x="{at:.1f}" y="{down:.1f}" text-anchor="middle" fill="{shape.color}" {halo}>'
                f"{escape(shape.text)}</text>"
            )
    return "".join([*parts, "</svg>"])


def to_png(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> bytes:
    """The same as PNG; arguments as in :func:`to_svg`.

    >>> to_png(SceneGraph("1.jpg", 60, 80, (), ()))[:4]
    b'\\x89PNG'
    """
    from PIL import Image, ImageDraw, ImageFont

    width, height, text, line = _measures(graph)
    if image is None:
        canvas = Image.new("RGB", (width, height), _PAPER)
    else:
        _kind(image)
        canvas = Image.open(io.BytesIO(image)).convert("RGB").resize((width, height))
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=max(8, text))
    stroke, halo = max(1, round(line)), max(1, round(text / 8))
    for shape in _shapes(graph, right):
        if isinstance(shape, _Box):
            draw.rectangle(shape.corners, outline=shape.color, width=stroke)
            at, anchor = (shape.corners[0] + line, shape.corners[1]), "la"
        else:
            draw.line([shape.start, shape.end], fill=shape.color, width=stroke)
            draw.polygon(shape.head(text * 0.7), fill=shape.color)
            at, anchor = shape.middle, "mm"
        draw.text(at, shape.text, shape.color, font, anchor, stroke_width=halo, stroke_fill=_PAPER)
    file = io.BytesIO()
    canvas.save(file, "PNG", optimize=True)
    return file.getvalue()


def _shapes(graph: SceneGraph, right: SceneGraph | None) -> Iterator[_Box | _Arrow]:
    """Boxes first, arrows over them; the predicates of one pair share an arrow."""
    for number, thing in enumerate(graph.objects):
        yield _Box(thing.box, thing.name, COLORS[number % len(COLORS)])
    known: Collection[tuple[int, str, int]] = (
        {(one.subject, one.predicate, one.object) for one in right.relations} if right is not None else ()
    )
    arrows: dict[tuple[int, int, bool], list[str]] = {}
    for one in graph.relations:
        is_right = (one.subject, one.predicate, one.object) in known
        arrows.setdefault((one.subject, one.object, is_right), []).append(one.predicate)
    for (subject, other, is_right), predicates in sorted(arrows.items(), key=lambda arrow: arrow[0][2]):
        color = _RIGHT if is_right else _INK if right is None else _OTHER
        start, end = _middle(graph.objects[subject].box), _middle(graph.objects[other].box)
        yield _Arrow(start, end, ", ".join(predicates), color)


def _middle(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _measures(graph: SceneGraph) -> tuple[int, int, float, float]:
    """Width, height, size of letters and of lines."""
    longer = max(graph.width, graph.height, 1)
    return max(1, graph.width), max(1, graph.height), _TEXT * longer, 0.004 * longer


def _kind(image: bytes) -> str:
    for start, kind in ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg")):
        if image.startswith(start):
            return kind
    raise ValueError(f"image must be the bytes of a PNG or JPEG file, got bytes starting {image[:8]!r}")
