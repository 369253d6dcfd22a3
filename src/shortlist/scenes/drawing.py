"""A scene graph as a picture: boxes and labelled arrows on the image, or on a blank canvas. SVG and PNG."""

from __future__ import annotations

import base64
import io
import math
from html import escape

from shortlist.errors import ShortlistError
from shortlist.scenes._layout import Label, lay_out
from shortlist.scenes.graphs import SceneGraph
from shortlist.text import visible

_PAPER, _TIE = "#ffffff", "#8a929c"
_TEXT, _LABELS = 0.036, 20  # height of letters, as a share of the longer side; less with more than so many labels


def to_svg(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> str:
    """The graph as SVG text; every name is escaped. Objects of one class are numbered.

    Args:
        graph: what to draw.
        image: the picture itself, PNG or JPEG; without it the canvas is blank.
        right: the recorded graph: arrows whose relation is in it are drawn in green.

    >>> from shortlist.scenes.graphs import SceneObject, SceneRelation
    >>> objects = (SceneObject("man", (10.0, 5.0, 50.0, 75.0)), SceneObject("<hat>", (20.0, 5.0, 40.0, 15.0)))
    >>> svg = to_svg(SceneGraph("1.jpg", 60, 80, objects, (SceneRelation(0, "wears", 1),)))
    >>> svg[:4], "&lt;hat&gt;" in svg, svg.count("<path")
    ('<svg', True, 1)
    """
    width, height, text, line = _measures(graph)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(graph.image)}: {escape('; '.join(graph.sentences()))}</title>",
        f'<rect width="{width}" height="{height}" fill="{_PAPER}"/>',
    ]
    if image is not None:
        address = f"data:{_kind(image)};base64,{base64.b64encode(image).decode()}"
        parts.append(f'<image width="{width}" height="{height}" href="{address}" preserveAspectRatio="none"/>')
    layout = lay_out(graph, right, (width, height), text)
    for name, thing in zip(layout.names, graph.objects, strict=True):
        stroke = f'fill="none" stroke="{name.color}" stroke-width="{line:.2f}"'
        parts.append(_rectangle(thing.box, stroke))
    for arrow in layout.arrows:
        (x, y), (bend_x, bend_y), (x1, y1) = arrow.start, arrow.bend, arrow.end
        tip = " ".join(f"{a:.1f},{b:.1f}" for a, b in arrow.head(text * 0.7))
        parts.append(
            f'<path d="M{x:.1f} {y:.1f} Q{bend_x:.1f} {bend_y:.1f} {x1:.1f} {y1:.1f}" fill="none" '
            f'stroke="{arrow.color}" stroke-width="{line:.2f}"/><polygon points="{tip}" fill="{arrow.color}"/>'
        )
    for (x, y), (x1, y1) in layout.ties:
        dotted = f'stroke="{_TIE}" stroke-width="{0.8 * line:.2f}" stroke-dasharray="{2 * line:.2f}"'
        parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {dotted}/>')
    for (x, y), name in zip(layout.dots, layout.names, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.3 * text:.1f}" fill="{name.color}"/>')
    for name in layout.names:
        parts.append(_rectangle(name.area.corners, f'fill="{name.color}"') + _written(name, text, _PAPER))
    for label in layout.predicates:  # what is beneath shows through, arrows above all
        paper = _rectangle(label.area.corners, f'fill="{_PAPER}" fill-opacity="0.7"')
        parts.append(paper + _written(label, text, label.color))
    return visible("".join([*parts, "</svg>"]))


def to_png(graph: SceneGraph, *, image: bytes | None = None, right: SceneGraph | None = None) -> bytes:
    """The same as PNG; arguments as in `to_svg`.

    >>> to_png(SceneGraph("1.jpg", 60, 80, (), ()))[:4]
    b'\\x89PNG'
    """
    from PIL import Image, ImageDraw, ImageFont

    width, height, text, line = _measures(graph)
    text = max(8, text)
    if image is None:
        canvas = Image.new("RGB", (width, height), _PAPER)
    else:
        _kind(image)
        canvas = Image.open(io.BytesIO(image)).convert("RGB").resize((width, height))
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=text)
    stroke = max(1, round(line))
    layout = lay_out(graph, right, (width, height), text)
    for name, thing in zip(layout.names, graph.objects, strict=True):
        draw.rectangle(thing.box, outline=name.color, width=stroke)
    for arrow in layout.arrows:
        draw.line([arrow.at(step / 16) for step in range(17)], fill=arrow.color, width=stroke, joint="curve")
        draw.polygon(arrow.head(text * 0.7), fill=arrow.color)
    for tie in layout.ties:
        draw.line(tie, fill=_TIE, width=1)
    for (x, y), name in zip(layout.dots, layout.names, strict=True):
        radius = 0.3 * text
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=name.color)
    tags = [(name, _PAPER, name.color) for name in layout.names]
    for label, ink, paper in tags + [(label, label.color, _PAPER) for label in layout.predicates]:
        draw.rectangle(label.area.corners, fill=paper)
        draw.text((label.area.x, label.area.y), label.text, ink, font, "mm")
    file = io.BytesIO()
    canvas.save(file, "PNG", optimize=True)
    return file.getvalue()


def _rectangle(corners: tuple[float, float, float, float], style: str) -> str:
    x, y, x1, y1 = corners
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{x1 - x:.1f}" height="{y1 - y:.1f}" {style}/>'


def _written(label: Label, size: float, ink: str) -> str:
    """Its looks are a style, not attributes: a page's own rules for text must not change them."""
    return (
        f'<text x="{label.area.x:.1f}" y="{label.area.y + 0.36 * size:.1f}" text-anchor="middle" '
        f'style="font:{size:.1f}px sans-serif;fill:{ink}">{escape(label.text)}</text>'
    )


def _measures(graph: SceneGraph) -> tuple[int, int, float, float]:
    """Width, height, size of letters and of lines."""
    width, height = max(1, graph.width), max(1, graph.height)
    longer, labels = max(width, height), len(graph.objects) + len(graph.relations)
    text = _TEXT * longer * min(1.0, math.sqrt(_LABELS / max(1, labels)))
    return width, height, min(text, min(width, height) / 2), 0.004 * longer


def _kind(image: bytes) -> str:
    for start, kind in ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg")):
        if image.startswith(start):
            return kind
    raise ShortlistError(f"image must be the bytes of a PNG or JPEG file, got bytes starting {image[:8]!r}")
