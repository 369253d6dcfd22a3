"""Charts and label graphs as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from shortlist.reports.charts import Chart, Legend, x_ticks
from shortlist.reports.picture import Picture
from shortlist.reports.words import fixed

_LEFT, _RIGHT, _TOP = 50, 14, 12
_TITLE, _ROW, _LETTER = 18, 20, 6.8
_DASHES = {"top": (5, 4), "ideal": (1.5, 4), "mean": (4, 3)}
_WIDTHS = {"top": 1.8, "ideal": 2.0, "thin": 1.3, "here": 1.0, "mean": 1.6}


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
        color, (begin, bend, end) = "c0" if arrow["kind"] == "for" else "c1", arrow["curve"]
        picture.arrow(begin, bend, end, color, arrow["width"], tip=7, opacity=0.75, title=arrow["text"])
    for node in graph["nodes"]:
        picture.dot(node["dot"], 3, "soft")
        picture.text((node["x"], node["y"] + 4), node["name"], "ink", size=11, anchor=node["anchor"])
    return picture


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
