"""The report's charts, each described once: axes with their ticks, and what stands between them, in data's own units.

A description is plain values. The page's script draws it in the width of its box, `drawing.py` as SVG and PNG files.
Where K moves something, the description has ``"at"``: for every K of the slider, the entries that differ.

title, detail, description    text; for the heading, and for those who cannot see the chart
height                        in pixels
x, y                          {"from", "to", "ticks": [[value, text]], "name", and "log" where it is}; the ticks of bars
                              are 0, 1, ..., the last with a + where it stands for "more"
bands, lines                  [{"color": number of the run, "points": [[x, y]], "kind"}]; a y of None is a gap
bars                          heights, at 0, 1, ...; "color" of all
dots                          [{"color", "point", "square"}]
upright                       {"x", "kind"}: a vertical line
notes                         [[x, y, text]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.reports.words import fixed, percent

Chart = dict[str, Any]
Legend = list[tuple[str, int, str]]  # name, number of the run, kind of line

_SIZES = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
_WORTH_A_BAR = 0.002  # sizes that fewer examples have are counted together, at the end


def report_charts(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Every chart of the page: accuracy, sizes (for each run), shots (for each run and group), levels, training."""
    models, grid = contents["models"], contents["grid"]
    num_labels = len(contents["labels"]["names"])
    several = len(models) > 1
    sizes = [
        _histogram(
            model["name"] if several else "",
            [f"mean {fixed(size, 2)}" for size in model["average"]["size"]],
            model["average"]["histogram"], grid, place, num_labels,
        )
        for place, model in enumerate(models)
    ]  # fmt: skip
    return {
        "accuracy": _accuracy(contents),
        "sizes": sizes,
        "shots": [_shots(model, place, contents, num_labels) for place, model in enumerate(models)],
        "levels": _levels(contents) if contents["levels"] else None,
        "training": training_charts(contents["training"], [model["name"] for model in models]),
    }


def legend(models: Sequence[Mapping[str, Any]]) -> Legend:
    """A line for each run and rule; one run needs no name."""
    rules = (("AverageK", ""), ("TopK", "top"))
    named = len(models) > 1
    return [
        (f"{model['name']}, {rule}" if named else rule, place, kind)
        for place, model in enumerate(models)
        for rule, kind in rules
    ]


def _accuracy(contents: Mapping[str, Any]) -> Chart | None:
    """Accuracy against mean set size, TopK dashed, with a band of one standard deviation over seeds."""
    models, grid, word = contents["models"], contents["grid"], contents["words"]["accuracy"]
    shares = [v for m in models for rule in ("average", "top") for v in m[rule]["accuracy"] if v is not None]
    sizes = [size for model in models for size in model["average"]["size"] if size]
    if not shares:
        return None
    first, last = min(1.0, *sizes), max(grid[-1], *sizes)
    low = math.floor(min(shares) * 10) / 10
    lines, bands = [], []
    for color, model in enumerate(models):
        average, top = model["average"], model["top"]
        if "accuracy_spread" in average:
            points = list(zip(average["size"], average["accuracy"], average["accuracy_spread"], strict=True))
            sizes_of, upper = average["size"], [min(1.0, share + spread) for _, share, spread in points]
            lower = [max(low, share - spread) for _, share, spread in points]
            bands.append({"color": color, "points": line_points(sizes_of + sizes_of[::-1], upper + lower[::-1])})
        lines.append({"color": color, "kind": "top", "points": line_points(top["size"], top["accuracy"])})
        lines.append({"color": color, "kind": "", "points": line_points(average["size"], average["accuracy"])})
    at = [
        {
            "upright": {"x": k, "kind": "here"},
            "dots": [
                {
                    "color": color, "square": rule == "top",
                    "point": line_points([model[rule]["size"][place]], [share])[0],
                }
                for color, model in enumerate(models)
                for rule in ("top", "average")
                if (share := model[rule]["accuracy"][place]) is not None
            ],
        }
        for place, k in enumerate(grid)
    ]
    return {
        "title": "",
        "height": 330 if len(models) > 1 else 410,
        "x": {
            "from": first, "to": last, "log": True, "name": "mean set size (log scale)",
            "ticks": [[size, str(size)] for size in _SIZES if first <= size <= last],
        },
        "y": {"from": low, "to": 1.0 if low < 1 else 2.0, "ticks": in_percent(nice_ticks(low, 1))},
        "bands": bands, "lines": lines, "at": at,
        "description": f"{word} against mean set size, from {grid[0]:g} to {grid[-1]:g} labels; the numbers are in the "
        "tables of this section.",
    }  # fmt: skip


def _shots(model: Mapping[str, Any], color: int, contents: Mapping[str, Any], num_labels: int) -> list[Chart]:
    average, word = model["average"], contents["words"]["accuracy"].lower()
    charts = []
    for group, shot in enumerate(contents["shots"]):
        found = zip(average["shot_accuracy"], average["shot_size"], strict=True)
        details = [f"{word} {percent(a[group])}, mean size {fixed(s[group], 2)}" for a, s in found]
        shares = [histograms[group] for histograms in average["shot_histogram"]]
        charts.append(_histogram(shot["name"], details, shares, contents["grid"], color, num_labels))
    return charts


def _histogram(
    title: str,
    details: Sequence[str],
    histograms: Sequence[Sequence[float]],
    grid: Sequence[float],
    color: int,
    num_labels: int,
) -> Chart:
    """The share of the examples by the size of their set; an upright line at K, where TopK is."""
    at = []
    for k, shares, detail in zip(grid, histograms, details, strict=True):
        end = min(num_labels, max(4, math.ceil(k) + 1))
        end = max([end, *(size for size in range(end + 1, len(shares)) if shares[size] >= _WORTH_A_BAR)])
        bars = [round(share, 4) for share in shares[: end + 1]] + [0] * (end + 1 - len(shares))
        rest = round(sum(shares[end + 1 :]), 4)
        if rest > 0:
            bars = [*bars, rest]
        most = max(*bars, 0.05)
        at.append({
            "detail": detail,
            "x": {"from": -0.5, "to": len(bars) - 0.5, "more": rest > 0},
            "y": {"from": 0, "to": _short(1.12 * most), "ticks": in_percent(nice_ticks(0, most, 3))},
            "bars": bars,
            "upright": {"x": k, "kind": "mean"},
        })  # fmt: skip
    return {"title": title, "height": 190, "color": color, "at": at, "description": title or "AverageK sets"}


def _levels(contents: Mapping[str, Any]) -> Chart:
    """Mean set size by the number of right labels, beside TopK and sets of exactly the right size."""
    models, grid, levels = contents["models"], contents["grid"], contents["levels"]
    places = [float(level["name"].rstrip("+")) for level in levels]
    begin, end = min(places), max(places)
    room = 0.08 * ((end - begin) or 1)
    at = []
    for place, k in enumerate(grid):
        sizes = [model["average"]["level_size"][place] for model in models]
        most = 1.08 * max([end, k, *(size for of_model in sizes for size in of_model if size is not None)])
        lines: list[dict[str, Any]] = [
            {"color": None, "kind": "ideal", "points": [[begin, begin], [end, end]]},
            {"color": None, "kind": "top", "points": [[begin, k], [end, k]]},
        ]
        lines += [{"color": c, "kind": "", "points": line_points(places, of_model)} for c, of_model in enumerate(sizes)]
        at.append({
            "y": {
                "from": 0, "to": _short(most), "name": "mean set size",
                "ticks": [[v, f"{v:g}"] for v in nice_ticks(0, most)],
            },
            "lines": lines,
            "dots": [
                {"color": color, "point": point}
                for color, of_model in enumerate(sizes)
                for point in line_points(places, of_model) if point[1] is not None
            ],
            "notes": [(end, k, "TopK")],
        })  # fmt: skip
    return {
        "title": "",
        "height": 300,
        "x": {
            "from": begin - room, "to": end + room, "name": "right labels of the example",
            "ticks": [[value, level["name"]] for value, level in zip(places, levels, strict=True)],
        },
        "at": at,
        "description": "Mean set size by the number of right labels; the numbers are in the table beside.",
    }  # fmt: skip


def training_charts(
    curves: Sequence[Mapping[str, Any]], names: Sequence[str], across: str = "epoch"
) -> list[Chart]:
    """For each number of the histories, its curve in every run; ``across`` is what they are counted by."""
    charts = []
    for curve in curves:
        xs, ys = zip(*(point for line in curve["lines"] for point in line["points"]), strict=True)
        left, right = min(xs), max(xs)
        span = (max(ys) - min(ys)) or abs(ys[0]) or 1.0
        low, high = min(ys) - 0.05 * span, max(ys) + 0.05 * span
        room = 0.5 if right == left else 0.0
        end = ", ".join(f"{names[line['model']]} {line['points'][-1][1]:g}" for line in curve["lines"])
        charts.append({
            "title": curve["name"].replace("_", " "),
            "height": 200,
            "x": {
                "from": left - room, "to": right + room, "name": across,
                "ticks": [[v, f"{v:g}"] for v in nice_ticks(left, right) if v == round(v)],
            },
            "y": {"from": low, "to": high, "ticks": [[v, f"{v:.4g}"] for v in nice_ticks(low, high, 4)]},
            "lines": [{"color": line["model"], "kind": "thin", "points": line["points"]} for line in curve["lines"]],
            "dots": [
                {"color": line["model"], "point": line["points"][0]}
                for line in curve["lines"] if len(line["points"]) == 1
            ],
            "description": f"{curve['name']} by {across}; at the end: {end}.",
        })  # fmt: skip
    return charts


def x_ticks(chart: Chart) -> list[tuple[float, str]]:
    """The ticks as given, or one for each bar."""
    last = len(chart.get("bars", ())) - 1
    usual = [(x, f"{x}+" if x == last and chart["x"].get("more") else str(x)) for x in range(last + 1)]
    return chart["x"].get("ticks", usual)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high, about ``count`` steps apart.

    >>> nice_ticks(0, 1), nice_ticks(0.31, 0.48, 3)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.4])
    """
    raw = (high - low) / count or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(one * power for one in (1, 2, 2.5, 5, 10, 20) if one * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def line_points(xs: Sequence[Any], ys: Sequence[Any]) -> list[list[Any]]:
    return [[_short(x), _short(y)] for x, y in zip(xs, ys, strict=True)]


def _short(value: float | None) -> float | None:
    """As many digits as can be seen in a chart: the page stays small."""
    return None if value is None else float(f"{value:.4g}")


def in_percent(ticks: Sequence[float]) -> list[list[Any]]:
    return [[value, f"{100 * value:g}\u202f%"] for value in ticks]
