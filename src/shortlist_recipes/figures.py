"""Figures of recipes: lines with their 95 % interval over seeds, in the report's style."""

import io
import warnings
from dataclasses import dataclass
from typing import Any

from shortlist.optional import require
from shortlist.reports.picture import OF_RUNS
from shortlist_recipes.results import Results

COLORS = OF_RUNS


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure, the end of its file's name, and what it shows."""

    name: str
    caption: str
    figure: Any


def draw_line(
    axes: Any, results: Results, x: str, name: str, *, label: str, color: str, factor: float = 100.0, **style: Any
) -> None:
    """A number against a key: the mean over everything else, and a band of its 95 % interval."""
    places = [(at, results.where(**{x: at})) for at in results.levels(x)]
    points = [(at, here.mean(name), here.interval(name) or 0.0) for at, here in places]
    drawn = sorted((at, factor * mean, factor * width) for at, mean, width in points if mean is not None)
    if not drawn:
        return
    at, mean, width = zip(*drawn, strict=True)
    axes.plot(at, mean, label=label, color=color, **{"marker": "o", "ms": 4, **style})
    low, high = zip(*((m - w, m + w) for m, w in zip(mean, width, strict=True)), strict=True)
    axes.fill_between(at, low, high, color=color, alpha=0.15, lw=0)


def add_legend(axes: Any, **style: Any) -> None:
    """What the lines are, where there are any: a grid may not be run yet."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, **style)


def whole_numbers(axes: Any) -> None:
    """No ticks between whole numbers on the x axis, where epochs are."""
    axes.xaxis.get_major_locator().set_params(integer=True)


def new_axes(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    """A figure of this size in inches and its axes, row by row."""
    # without pyplot: no display, no global state
    figure = require("matplotlib.figure", "report").Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dfe3e8", lw=0.8)
        axes.set_axisbelow(True)
    return figure, grid


def saved(figure: Any, kind: str) -> bytes:
    """The figure as a PNG or SVG file."""
    import matplotlib

    file = io.BytesIO()
    # the same data gives the same file; text stays text; a name may hold signs that the font does not have
    with matplotlib.rc_context({"svg.hashsalt": "shortlist", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(file, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()
