"""Figures of recipes: lines with their spread over seeds, in the report's style."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.reports.figures import COLORS, new_axes, saved
from shortlist_recipes.results import Results

__all__ = ["COLORS", "Drawing", "draw_line", "new_axes", "saved", "whole_numbers"]


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure, the end of its file's name, and what it shows."""

    name: str
    caption: str
    figure: Any


def draw_line(
    axes: Any, results: Results, x: str, name: str, *, label: str, color: str, factor: float = 100.0, **style: Any
) -> None:
    """A number against a key: the mean over everything else, and a band of one standard deviation."""
    points = [(at, results.mean(name, **{x: at}), results.spread(name, **{x: at}) or 0.0) for (at,) in results.each(x)]
    drawn = sorted((at, factor * mean, factor * spread) for at, mean, spread in points if mean is not None)
    if not drawn:
        return
    at, mean, spread = zip(*drawn, strict=True)
    axes.plot(at, mean, label=label, color=color, **{"marker": "o", "ms": 4, **style})
    low, high = _band(mean, spread)
    axes.fill_between(at, low, high, color=color, alpha=0.15, lw=0)


def whole_numbers(axes: Any) -> None:
    """No ticks between whole numbers on the x axis, where epochs are."""
    axes.xaxis.get_major_locator().set_params(integer=True)


def _band(mean: Sequence[float], spread: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = list(zip(mean, spread, strict=True))
    return [m - s for m, s in pairs], [m + s for m, s in pairs]
