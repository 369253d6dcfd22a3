"""The figures of the page as PNG and SVG files, for papers and slides: matplotlib, without a display."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

COLORS = ("#0b62c4", "#c24e00", "#0b7a5c", "#a3308f", "#7a6200", "#5b4bc9", "#b3223c", "#40606f")


def draw_figures(contents: dict[str, Any]) -> dict[str, bytes]:
    """File name -> bytes: every figure that there is data for, as PNG and as SVG."""
    drawings: dict[str, Callable[[dict[str, Any]], Any]] = {"accuracy": _accuracy, "set_sizes": _set_sizes}
    if contents["shots"]:
        drawings["set_sizes_by_shots"] = _by_shots
    if contents["levels"]:
        drawings["ambiguity"] = _ambiguity
    if contents["training"]:
        drawings["training"] = _training
    for number, model in enumerate(contents["similarity"], 1):
        if model["graph"]:
            drawings["label_graph" if number == 1 else f"label_graph_{number}"] = partial(_label_graph, model["graph"])
    files: dict[str, bytes] = {}
    for name, drawing in drawings.items():
        figure = drawing(contents)
        files[f"{name}.png"] = saved(figure, "png")
        files[f"{name}.svg"] = saved(figure, "svg")
    return files


def _accuracy(contents: dict[str, Any]) -> Any:
    figure, [[axes]] = new_axes(1, 1, width=6.4, height=4.2)
    at = contents["start"]
    for place, model in enumerate(contents["models"]):
        average, top, color = model["average"], model["top"], COLORS[place % len(COLORS)]
        axes.plot(average["size"], _nan(average["accuracy"]), color=color, label=_text(f"{model['name']}, AverageK"))
        axes.plot(top["size"], _nan(top["accuracy"]), color=color, ls="--", label=_text(f"{model['name']}, TopK"))
        axes.plot(average["size"][at], _nan([average["accuracy"][at]]), "o", color=color)
        axes.plot(top["size"][at], _nan([top["accuracy"][at]]), "s", color=color)
    axes.set_xscale("log")
    ticks = [tick for tick in (1, 2, 3, 5, 7, 10, 15, 20, 30, 50) if tick <= contents["grid"][-1]]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="mean set size", ylabel=contents["words"]["accuracy"].lower())
    _in_percent(axes)
    axes.legend(frameon=False)
    return figure


def _set_sizes(contents: dict[str, Any]) -> Any:
    at, models = contents["start"], contents["models"]
    parts = [(model["name"], model["average"]["histogram"][at], place) for place, model in enumerate(models)]
    return _histograms(parts, contents["grid"][at])


def _by_shots(contents: dict[str, Any]) -> Any:
    at = contents["start"]
    parts = [
        (f"{model['name']}, {shot['name']} shots", model["average"]["shot_histogram"][at][group], place)
        for place, model in enumerate(contents["models"])
        for group, shot in enumerate(contents["shots"])
    ]
    return _histograms(parts, contents["grid"][at])


def _histograms(parts: list[tuple[str, list[float], int]], k: float) -> Any:
    columns = min(3, len(parts))
    rows = -(-len(parts) // columns)
    figure, grid = new_axes(rows, columns, width=3.4 * columns, height=2.6 * rows)
    for place, axes in enumerate(axes for row in grid for axes in row):
        if place >= len(parts):
            axes.set_visible(False)
            continue
        name, shares, model = parts[place]
        axes.bar(range(len(shares)), shares, color=COLORS[model % len(COLORS)])
        axes.axvline(k, color="#16191d", ls="--", lw=1)
        axes.set_title(_text(name), fontsize=10)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="labels in the set", ylabel="share of examples")
        _in_percent(axes)
    return figure


def _ambiguity(contents: dict[str, Any]) -> Any:
    figure, [[axes]] = new_axes(1, 1, width=5.6, height=4)
    at, levels = contents["start"], contents["levels"]
    places = [float(level["name"].rstrip("+")) for level in levels]
    for place, model in enumerate(contents["models"]):
        sizes = _nan(model["average"]["level_size"][at])
        axes.plot(places, sizes, "o-", color=COLORS[place % len(COLORS)], label=_text(f"{model['name']}, AverageK"))
    axes.plot(places, [contents["grid"][at]] * len(places), "--", color="#545d69", label="TopK")
    axes.plot(places, places, ":", color="#545d69", label="as many as are right")
    axes.set_xticks(places, [level["name"] for level in levels])
    axes.set(xlabel="right labels of the example", ylabel="mean set size", ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def _training(contents: dict[str, Any]) -> Any:
    curves, models = contents["training"], contents["models"]
    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
    figure, grid = new_axes(rows, columns, width=3.6 * columns, height=2.8 * rows)
    for place, axes in enumerate(axes for row in grid for axes in row):
        if place >= len(curves):
            axes.set_visible(False)
            continue
        seen: set[int] = set()
        for line in curves[place]["lines"]:
            model = line["model"]
            label = None if model in seen else _text(models[model]["name"])  # one entry for all seeds
            seen.add(model)
            marker = "o" if len(line["points"]) == 1 else None
            axes.plot(*zip(*line["points"], strict=True), marker=marker, color=COLORS[model % len(COLORS)], label=label)
        axes.set_title(_text(curves[place]["name"].replace("_", " ")), fontsize=10)
        by_epoch(axes)
        if place == 0:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _label_graph(graph: dict[str, Any], _: dict[str, Any]) -> Any:
    from matplotlib.patches import FancyArrowPatch

    figure, [[axes]] = new_axes(1, 1, width=7.2, height=7.2)
    for arrow in graph["arrows"]:
        begin, end = (graph["nodes"][place]["dot"] for place in arrow["between"])
        color = COLORS[0] if arrow["kind"] == "for" else COLORS[1]
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "connectionstyle": "arc3,rad=0.25"}
        axes.add_patch(FancyArrowPatch(begin, end, color=color, lw=arrow["width"], shrinkA=3, shrinkB=3, **style))
    for node in graph["nodes"]:
        axes.plot(*node["dot"], "o", color="#16191d", ms=4)
        side = {"start": "left", "end": "right", "middle": "center"}[node["anchor"]]
        axes.text(node["x"], node["y"], _text(node["name"]), ha=side, va="center", fontsize=9)
    axes.set_aspect("equal")
    axes.margins(0.15)
    axes.invert_yaxis()  # as on the page
    axes.axis("off")
    axes.set_title("blue: speaks for it, orange: against it", fontsize=9)
    return figure


def new_axes(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    """A figure of this size in inches and its axes, row by row."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib, which is not installed: pip install 'shortlist[report]'") from error

    figure = Figure(figsize=(width, height), layout="constrained")  # without pyplot: no display, no global state
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dfe3e8", lw=0.8)
        axes.set_axisbelow(True)
    return figure, grid


def by_epoch(axes: Any) -> None:
    """Epochs from left to right, marked at whole numbers."""
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.set_xlabel("epoch")


def saved(figure: Any, kind: str) -> bytes:
    """The figure as a PNG or SVG file."""
    import matplotlib

    file = io.BytesIO()
    # the same data gives the same file; text stays text; a name may hold signs that the font does not have
    with matplotlib.rc_context({"svg.hashsalt": "shortlist", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(file, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


def _in_percent(axes: Any) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def _nan(values: list[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _text(name: str) -> str:
    """A name as matplotlib must read it to show it as it is."""
    return name.replace("\\", "\\\\").replace("$", r"\$") if "$" in name else name
