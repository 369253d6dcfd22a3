"""Charts and label graphs as pictures: one list of shapes, written as SVG (for a page or a file) or as PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby, pairwise
from typing import Any

from shortlist.reports.charts import Chart, Legend, x_ticks
from shortlist.reports.words import fixed
from shortlist.text import visible

_OF_RUNS = ("#0b62c4", "#c24e00", "#0b7a5c", "#a3308f", "#7a6200", "#5b4bc9", "#b3223c", "#40606f")
COLORS = {
    **{f"c{place}": color for place, color in enumerate(_OF_RUNS)},
    "ink": "#16191d",
    "soft": "#545d69",
    "line": "#dfe3e8",
    "card": "#ffffff",
}  # the light ones of style.css
_LEFT, _RIGHT, _TOP = 50, 14, 12
_TITLE, _ROW, _LETTER = 18, 20, 6.8
_SHARPNESS, _SMOOTHING = 2, 2  # PNG pixels per unit, and how much larger it is drawn at first
_DASHES = {"top": (5, 4), "ideal": (1.5, 4), "mean": (4, 3)}
_WIDTHS = {"top": 1.8, "ideal": 2.0, "thin": 1.3, "here": 1.0, "mean": 1.6}

Point = tuple[float, float]


class Picture:
    """Shapes on a white card (or a page's), in the order in which they are drawn. Colors are names of `COLORS`."""

    def __init__(self, width: float, height: float, description: str, left: float = 0, top: float = 0) -> None:
        self.box = (left, top, width, height)
        self.description = description
        self.shapes: list[tuple[str, Any, str, dict[str, Any]]] = []

    def line(self, points: Sequence[Point], color: str, width: float = 1, dash: Any = None, **looks: Any) -> None:
        """``opacity``, and a ``title`` that a pointer on it shows."""
        usual = {"opacity": 1, "title": ""}
        self.shapes.append(("line", list(points), color, {"width": width, "dash": dash, **usual, **looks}))

    def area(self, points: Sequence[Point], color: str, opacity: float = 1) -> None:
        self.shapes.append(("area", list(points), color, {"opacity": opacity}))

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

    def to_png(self) -> bytes:
        from PIL import Image, ImageDraw

        left, top, width, height = self.box
        scale = _SHARPNESS * _SMOOTHING
        canvas = Image.new("RGB", (round(width * scale), round(height * scale)), COLORS["card"])
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
        size = (round(width * _SHARPNESS), round(height * _SHARPNESS))
        canvas.resize(size, Image.Resampling.LANCZOS).save(file, "PNG")
        return file.getvalue()


def picture_of(charts: Sequence[Chart], legend: Legend | None = None, at: int = 0) -> Picture:
    """Charts side by side, at one K, with their legend above them."""
    shown = [{**chart, **chart["at"][at]} if "at" in chart else chart for chart in charts]
    columns = min(3, len(shown))
    wide = 560 if columns == 1 else 360
    width = columns * wide
    rows, x, y = [], 10.0, 0.0
    for entry in legend or ():
        room = 40 + _LETTER * len(entry[0]) + 14
        if x > 10 and x + room > width:
            x, y = 10.0, y + _ROW
        rows.append((x, y, *entry))
        x += room
    above = y + _ROW + 8 if legend else 0
    titled = _TITLE * max(len(_heading(chart, wide)) for chart in shown)
    high = max(chart["height"] for chart in shown) + titled
    count = -(-len(shown) // columns)
    picture = Picture(width, above + count * high + 4, " ".join(chart["description"] for chart in shown))
    for x, y, name, color, kind in rows:
        picture.line([(x, y + 13), (x + 26, y + 13)], f"c{color % 8}", _WIDTHS.get(kind, 2.2), _DASHES.get(kind))
        picture.text((x + 32, y + 17), name, "ink", anchor="start")
    for place, chart in enumerate(shown):
        left, top = place % columns * wide, above + place // columns * high
        for row, (text, looks) in enumerate(_heading(chart, wide)):
            picture.text((left + _LEFT, top + _TITLE * row + 15), text, anchor="start", **looks)
        _draw(picture, chart, left, top + titled, wide)
    return picture


def _heading(chart: Chart, width: float) -> list[tuple[str, dict[str, Any]]]:
    """The title, cut where it would run into the next chart, and the detail."""
    most = int((width - _LEFT) / (1.1 * _LETTER))
    title = chart["title"] if len(chart["title"]) <= most else f"{chart['title'][: most - 1]}…"
    rows = [(title, {"color": "ink", "bold": True}), (chart.get("detail"), {})]
    return [(text, looks) for text, looks in rows if text]


def _draw(picture: Picture, chart: Chart, left: float, top: float, width: float) -> None:
    """One chart, as the page's script draws it."""
    x_axis, y_axis = chart["x"], chart["y"]
    bottom = top + chart["height"] - (44 if x_axis.get("name") else 26)
    begin, end, top = left + _LEFT, left + width - _RIGHT, top + _TOP
    X, Y = _scale(x_axis, begin, end), _scale(y_axis, bottom, top)
    for value, name in y_axis["ticks"]:
        picture.line([(begin, Y(value)), (end, Y(value))], "line")
        picture.text((begin - 7, Y(value) + 4), name, anchor="end")
    picture.line([(begin, bottom), (end, bottom)], "soft")
    taken = -math.inf
    for value, name in x_ticks(chart):
        room = 4.2 * len(name) + 6
        if X(value) - room >= taken:
            taken = X(value) + room
            picture.text((X(value), bottom + 17), name)
    if x_axis.get("name"):
        picture.text(((begin + end) / 2, bottom + 38), x_axis["name"])
    if y_axis.get("name"):
        picture.text((left + 12, (top + bottom) / 2), y_axis["name"], upright=True)
    for band in chart.get("bands", ()):
        picture.area([(X(x), Y(y)) for x, y in band["points"] if y is not None], f"c{band['color'] % 8}", 0.16)
    bars = chart.get("bars", ())
    wide = max(2, min(44, (end - begin) / max(1, len(bars)) * 0.78)) / 2
    for x, share in enumerate(bars):
        if share > 0:
            corners = [(X(x) - wide, bottom), (X(x) - wide, Y(share)), (X(x) + wide, Y(share)), (X(x) + wide, bottom)]
            picture.area(corners, f"c{chart['color'] % 8}")
    if upright := chart.get("upright"):
        kind, k = upright["kind"], X(upright["x"])
        opacity = 0.5 if kind == "here" else 1
        picture.line([(k, top), (k, bottom)], "ink", _WIDTHS[kind], _DASHES.get(kind), opacity=opacity)
    for place, share in enumerate(bars):
        if len(bars) <= 12 and share >= 0.01:
            picture.text((X(place), Y(share) - 3), fixed(100 * share, 0), "ink", size=11, halo=True)
    for line in chart.get("lines", ()):
        color = "soft" if line["color"] is None else f"c{line['color'] % 8}"
        for run in _runs(line["points"]):
            points = [(X(x), Y(y)) for x, y in run]
            picture.line(points, color, _WIDTHS.get(line["kind"], 2.2), _DASHES.get(line["kind"]))
    for dot in chart.get("dots", ()):
        across, down = X(dot["point"][0]), Y(dot["point"][1])
        for more, color in ((1, "card"), (0, f"c{dot['color'] % 8}")):  # an edge parts it from lines and other dots
            if dot.get("square"):
                r = 4 + more
                picture.area([(across + a * r, down + b * r) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))], color)
            else:
                picture.dot((across, down), 5 + more, color)
    for x, y, text in chart.get("notes", ()):
        picture.text((X(x), Y(y) + 16), text, anchor="end")


def label_graph(graph: dict[str, Any]) -> Picture:
    """Labels on a circle and curved arrows between them: blue speaks for a label, orange against it."""
    edges = ", ".join(arrow["text"] for arrow in graph["arrows"])
    picture = Picture(600, 380, f"The strongest edges of the label graph: {edges}", -300, -190)
    for arrow in graph["arrows"]:
        color = "c0" if arrow["kind"] == "for" else "c1"
        begin, (x1, y1), (x2, y2) = arrow["curve"]
        points = [_on_curve(begin, (x1, y1), (x2, y2), step / 16) for step in range(17)]
        picture.line(points, color, arrow["width"], opacity=0.75, title=arrow["text"])
        away = math.atan2(y2 - y1, x2 - x1)
        sides = [(x2 - 7 * math.cos(away + turn), y2 - 7 * math.sin(away + turn)) for turn in (-0.4, 0.4)]
        picture.area([(x2, y2), *sides], color)
    for node in graph["nodes"]:
        picture.dot(node["dot"], 3, "soft")
        picture.text((node["x"], node["y"] + 4), node["name"], "ink", size=11, anchor=node["anchor"])
    return picture


def _font(size: float) -> Any:
    """A font with many alphabets where the machine has it, else the one that Pillow brings."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _on_curve(begin: Point, bend: Point, end: Point, t: float) -> Point:
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return a * begin[0] + b * bend[0] + c * end[0], a * begin[1] + b * bend[1] + c * end[1]


def _scale(axis: dict[str, Any], begin: float, end: float) -> Callable[[float], float]:
    """From values to pixels."""
    low, high = axis["from"], axis["to"]

    def place(value: float) -> float:
        if axis.get("log"):
            share = math.log(value / low) / math.log(high / low) if high > low else 0.5
        else:
            share = (value - low) / ((high - low) or 1)
        return begin + (end - begin) * share

    return place


def _runs(points: Sequence[Sequence[float | None]]) -> list[list[Sequence[Any]]]:
    """The points between gaps."""
    return [list(run) for is_gap, run in groupby(points, lambda point: None in point) if not is_gap]


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
