"""A picture as a list of shapes, written as SVG (for a page or a file) or as PNG."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from shortlist.errors import ShortlistError
from shortlist.text import visible

OF_RUNS = ("#0b62c4", "#c24e00", "#0b7a5c", "#a3308f", "#7a6200", "#5b4bc9", "#b3223c", "#40606f")
COLORS = {
    **{f"c{place}": color for place, color in enumerate(OF_RUNS)},
    "ink": "#16191d",
    "soft": "#545d69",
    "line": "#dfe3e8",
    "card": "#ffffff",
}  # the light ones of style.css
_SHARPNESS, _SMOOTHING = 2, 2  # PNG pixels per unit, and how much larger it is drawn at first

Point = tuple[float, float]


class Picture:
    """Shapes on a white card (or a page's, or an ``image``, PNG or JPEG), in the order in which they are drawn. Colors
    are names of `COLORS`."""

    def __init__(
        self,
        width: float,
        height: float,
        description: str,
        left: float = 0,
        top: float = 0,
        image: bytes | None = None,
    ) -> None:
        self.box = (left, top, width, height)
        self.description, self.image = description, image
        self.shapes: list[tuple[str, Any, str, dict[str, Any]]] = []

    def line(self, points: Sequence[Point], color: str, width: float = 1, dash: Any = None, **looks: Any) -> None:
        """``opacity``, and a ``title`` that a pointer on it shows."""
        usual = {"opacity": 1, "title": ""}
        self.shapes.append(("line", list(points), color, {"width": width, "dash": dash, **usual, **looks}))

    def area(self, points: Sequence[Point], color: str, opacity: float = 1) -> None:
        self.shapes.append(("area", list(points), color, {"opacity": opacity}))

    def arrow(self, begin: Point, bend: Point, end: Point, color: str, width: float, tip: float, **looks: Any) -> None:
        """A curve that bends towards a point, with a tip of this length at its end."""
        self.line([on_curve(begin, bend, end, step / 16) for step in range(17)], color, width, **looks)
        away = math.atan2(end[1] - bend[1], end[0] - bend[0])
        sides = [(end[0] - tip * math.cos(away + turn), end[1] - tip * math.sin(away + turn)) for turn in (-0.4, 0.4)]
        self.area([end, *sides], color)

    def dot(self, at: Point, radius: float, color: str) -> None:
        self.shapes.append(("dot", at, color, {"radius": radius}))

    def text(self, at: Point, text: str, color: str = "soft", **looks: Any) -> None:
        """``size``, ``anchor``, ``bold``, ``upright``, and a ``halo`` that parts it from what is beneath."""
        usual = {"size": 12, "anchor": "middle", "bold": False, "upright": False, "halo": False}
        self.shapes.append(("text", at, color, {**usual, **looks, "text": text}))

    def to_svg(self, *, in_page: bool = False) -> str:
        """SVG text; every name is escaped. In a page, colors follow its theme."""
        left, top, width, height = self.box
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {top:g} {width:g} {height:g}" role="img" '
            f'aria-label="{escape(self.description)}"'
            + (">" if in_page else f' width="{width:g}" height="{height:g}" font-family="sans-serif">')
        ]
        if not in_page:
            size = f'width="{width:g}" height="{height:g}"'
            parts.append(f'<rect x="{left:g}" y="{top:g}" {size} fill="{COLORS["card"]}"/>')
        if self.image is not None:
            address = f"data:{image_kind(self.image)};base64,{base64.b64encode(self.image).decode()}"
            parts.append(f'<image width="{width:g}" height="{height:g}" href="{address}" preserveAspectRatio="none"/>')
        for kind, where, color, looks in self.shapes:
            paint = f"var(--{color})" if in_page else COLORS[color]
            if kind == "line":
                dash = "" if looks["dash"] is None else ";stroke-dasharray:{:g} {:g}".format(*looks["dash"])
                style = f"fill:none;stroke:{paint};stroke-width:{looks['width']:g}{dash}{_faint(looks)}"
                title = f"<title>{escape(looks['title'])}</title>" if looks["title"] else ""
                parts.append(f'<path d="M{_joined(where)}" style="{style}">{title}</path>')
            elif kind == "area":
                parts.append(f'<path d="M{_joined(where)}Z" style="fill:{paint}{_faint(looks)}"/>')
            elif kind == "dot":
                place = f'cx="{where[0]:.1f}" cy="{where[1]:.1f}" r="{looks["radius"]:g}"'
                parts.append(f'<circle {place} style="fill:{paint}"/>')
            else:
                x, y = where
                turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if looks["upright"] else ""
                style = f"fill:{paint};font-size:{looks['size']:g}px" + (";font-weight:600" if looks["bold"] else "")
                if looks["halo"]:
                    edge = "var(--card)" if in_page else COLORS["card"]
                    style += f";paint-order:stroke;stroke-width:4px;stroke:{edge}"
                place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{looks["anchor"]}"{turn}'
                parts.append(f'<text {place} style="{style}">{escape(looks["text"])}</text>')
        return visible("".join([*parts, "</svg>"]))

    def to_png(self, sharpness: int = _SHARPNESS) -> bytes:
        """``sharpness``: pixels for each unit."""
        from PIL import Image, ImageDraw

        left, top, width, height = self.box
        scale = sharpness * _SMOOTHING
        whole = round(width * scale), round(height * scale)
        canvas = Image.new("RGB", whole, COLORS["card"])
        if self.image is not None:
            image_kind(self.image)
            canvas = Image.open(io.BytesIO(self.image)).convert("RGB").resize(whole)
        draw = ImageDraw.Draw(canvas, "RGBA")

        def place(point: Point) -> Point:
            return (point[0] - left) * scale, (point[1] - top) * scale

        for kind, where, color, looks in self.shapes:
            paint = COLORS[color] + f"{round(255 * looks.get('opacity', 1)):02x}"
            if kind == "line":
                for piece in _dashed(where, looks["dash"]):
                    draw.line([place(point) for point in piece], paint, max(1, round(looks["width"] * scale)), "curve")
            elif kind == "area":
                draw.polygon([place(point) for point in where], paint)
            elif kind == "dot":
                draw.circle(place(where), looks["radius"] * scale, paint)
            else:
                font, text = _font(looks["size"] * scale), looks["text"].replace("\u202f", " ")
                side = {"start": "l", "middle": "m", "end": "r"}[looks["anchor"]] + "s"
                if not looks["upright"]:
                    halo: Any = {"stroke_width": 2 * scale, "stroke_fill": COLORS["card"]} if looks["halo"] else {}
                    draw.text(place(where), text, paint, font, side, **halo)
                    continue
                long, high = round(font.getlength(text)), round(1.6 * looks["size"] * scale)
                mask = Image.new("L", (long, high))
                ImageDraw.Draw(mask).text((0, 0.75 * high), text, 255, font, "ls")
                mask = mask.rotate(90, expand=True)
                x, y = place(where)
                canvas.paste(paint, (round(x - 0.75 * high), round(y - long / 2)), mask)
        file = io.BytesIO()
        size = (round(width * sharpness), round(height * sharpness))
        canvas.resize(size, Image.Resampling.LANCZOS).save(file, "PNG")
        return file.getvalue()


def _font(size: float) -> Any:
    """A font with many alphabets where the machine has it, else the one that Pillow brings."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def on_curve(begin: Point, bend: Point, end: Point, t: float) -> Point:
    """The point this far along a quadratic curve."""
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return a * begin[0] + b * bend[0] + c * end[0], a * begin[1] + b * bend[1] + c * end[1]


def _joined(points: Sequence[Point]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _faint(looks: dict[str, Any]) -> str:
    return "" if looks["opacity"] == 1 else f";opacity:{looks['opacity']:g}"


def _dashed(points: Sequence[Point], dash: tuple[float, float] | None) -> list[list[Point]]:
    """The pieces of a line that are drawn."""
    if dash is None:
        return [list(points)]
    pieces, drawn, left = [], True, dash[0]
    for (x0, y0), (x1, y1) in pairwise(points):
        length, done = math.dist((x0, y0), (x1, y1)), 0.0
        while done < length:
            step = min(left, length - done)
            ends = [(x0 + (x1 - x0) * at / length, y0 + (y1 - y0) * at / length) for at in (done, done + step)]
            if drawn:
                pieces.append(ends)
            done, left = done + step, left - step
            if left <= 1e-9:
                drawn = not drawn
                left = dash[0] if drawn else dash[1]
    return pieces


def image_kind(image: bytes) -> str:
    """What an image is, by its first bytes; a ShortlistError where it is neither PNG nor JPEG."""
    for start, kind in ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg")):
        if image.startswith(start):
            return kind
    raise ShortlistError(f"image must be the bytes of a PNG or JPEG file, got bytes starting {image[:8]!r}")
