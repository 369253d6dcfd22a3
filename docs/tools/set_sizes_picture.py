"""Set size against ambiguity, from the numbers that ``shortlist demo --json`` prints."""

from typing import Any

from matplotlib.figure import Figure
from pictures import BLUE, GREEN, GREY, INK, ORANGE

READINGS = (1, 2, 4)
_COLOURS = {"cross-entropy": BLUE, "smooth-topk": GREEN, "average-k": ORANGE}


def draw(result: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(5.6, 3.6))
    axes = figure.subplots()
    axes.plot(READINGS, READINGS, color=GREY, lw=1.2, ls=(0, (4, 2)))
    axes.text(3.95, 4.06, "best possible", color=GREY, ha="right", va="bottom")
    axes.plot((0.8, 4.3), [result["k"]] * 2, color=GREY, lw=1.2, ls=":")
    axes.text(4.35, result["k"], f"top-{result['k']}", color=GREY, ha="left", va="center")
    rule = f"average-{result['k']}"
    rows = [row for row in result["results"] if row["rule"] == rule and row["objective"] in _COLOURS]
    height = float("inf")  # of the name above, so that none hides another
    for number, row in enumerate(sorted(rows, key=lambda row: -row["sizes"][-1])):
        name = row["objective"]
        sizes, spread = row["sizes"], row["spread"].get("sizes", [0, 0, 0])
        places = [reading + 0.03 * (number - 1) for reading in READINGS]
        axes.errorbar(places, sizes, yerr=spread, color=_COLOURS[name], marker="o", ms=5, lw=1.8, capsize=3)
        height = min(sizes[-1], height - 0.26)
        axes.text(4.12, height, name, color=_COLOURS[name], va="center", weight="bold")
    axes.set_xticks(READINGS)
    axes.set_xlim(0.8, 5.1)
    axes.set_ylim(0, 4.5)
    axes.spines["bottom"].set_bounds(0.8, 4.3)
    axes.set_xlabel("possible readings of an image", x=0.4)
    axes.set_ylabel("mean size of its AverageK(2) set")
    axes.set_title(f"{result['examples']:,} test images of the demo, {result['seeds']} seeds", color=INK, loc="left")
    return figure
