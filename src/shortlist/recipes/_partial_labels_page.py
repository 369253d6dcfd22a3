"""What the recipe partial-labels says and draws about its results."""

import statistics
from collections.abc import Sequence
from typing import Any

from shortlist.recipes.figures import COLORS, Drawing, draw_line, new_axes
from shortlist.recipes.results import Results

LOGISTIC = "binary"

# Huynh and Elhamifar 2020, supplement, table 1
_COLUMNS = (LOGISTIC, "cnn-rnn", "fast0tag", "curriculum", "imcl", "imcl a=10")
_ROWS = {
    0.9: (23.8, 23.3, 23.3, 23.8, 25.3, 25.7),
    0.8: (25.2, 25.0, 25.0, 25.7, 26.4, 26.4),
    0.6: (26.4, 27.3, 27.3, 27.4, 27.3, 27.9),
    0.4: (26.6, 26.9, 27.2, 27.8, 27.7, 27.8),
    0.2: (26.6, 27.3, 27.6, 27.8, 27.5, 27.6),
    0.0: (27.9, 27.2, 27.9, 27.9, 28.6, 28.7),
}
CUB_TABLE_1 = {
    ("cub", missing, objective): {"mAP": row[place]}
    for missing, row in _ROWS.items()
    for place, objective in enumerate(_COLUMNS)
}


def gains(results: Results, objective: str, **keys: Any) -> list[float]:
    """mAP over logistic regression in points, seed by seed: the same data, the same labels missing."""
    found = []
    for data, missing, seed in results.where(**keys).each("data", "missing", "seed"):
        here = results.where(data=data, missing=missing, seed=seed)
        ours, theirs = (here.mean("mAP", objective=name) for name in (objective, LOGISTIC))
        if ours is not None and theirs is not None:
            found.append(100 * (ours - theirs))
    return found


def findings(results: Results) -> list[str]:
    sentences = []
    for data, missing in results.each("data", "missing"):
        here = results.where(data=data, missing=missing)
        gain = gains(here, "imcl")
        means = {o: here.mean("mAP", objective=o) or 0.0 for (o,) in here.each("objective")}
        order = sorted(means, key=means.__getitem__, reverse=True)
        won = sum(value > 0 for value in gain)
        sentences.append(
            f"{data}, {100 * missing:.0f} % missing: imcl is {statistics.fmean(gain):+.2f} points from logistic "
            f"regression (above it in {won} of {len(gain)} seeds), number {order.index('imcl') + 1} of {len(order)}; "
            f"best: {order[0]}, {100 * means[order[0]]:.2f} %."
        )
    for (data,) in results.each("data"):
        few, many = ([row[place] for row in _group_gains(results, data, "imcl")] for place in (0, -1))
        sentences.append(
            f"{data}: imcl gains {statistics.fmean(few):+.2f} points on the fifth of the labels with the fewest "
            f"annotations and {statistics.fmean(many):+.2f} on the fifth with the most, over all shares of missing "
            f"labels."
        )
    return sentences


def _group_gains(results: Results, data: str, objective: str, **keys: Any) -> list[list[float]]:
    """For each share of missing labels and seed, the gain over logistic regression of each group of labels."""
    rows = []
    for missing, seed in results.where(data=data, **keys).each("missing", "seed"):
        here = results.where(data=data, missing=missing, seed=seed)
        curves = [here.curves("groups", objective=name) for name in (objective, LOGISTIC)]
        if curves[0] and curves[1]:
            pairs = zip(curves[0][0], curves[1][0], strict=True)
            rows.append([100 * (a - b) for a, b in pairs if a is not None and b is not None])
    return rows


# ---- figures


def figures(results: Results) -> Sequence[Drawing]:
    first = results.each("data")[0][0]
    return [*_by_missing(results), _groups(results, first), _curves(results, first)]


def _by_missing(results: Results) -> list[Drawing]:
    drawings = []
    for (data,) in results.each("data"):
        here = results.where(data=data)
        if len(here.each("missing")) < 2:
            continue
        figure, [[axes]] = new_axes(1, 1, width=7.2, height=4.4)
        for number, (objective,) in enumerate(here.each("objective")):
            style = {"lw": 2.5} if objective in ("imcl", LOGISTIC) else {"lw": 1, "ls": "--"}
            color = COLORS[number % len(COLORS)]
            draw_line(axes, here.where(objective=objective), "missing", "mAP", label=objective, color=color, **style)
        axes.set(xlabel="share of labels missing", ylabel="mean average precision, %")
        axes.legend(frameon=False, fontsize=8)
        caption = f"{data}: mean average precision on complete test labels; band: 1 deviation over seeds."
        drawings.append(Drawing(data, caption, figure))
    return drawings


def _groups(results: Results, data: str) -> Drawing:
    """The left of the paper's figure 1."""
    shares = [missing for (missing,) in results.where(data=data).each("missing")]
    figure, [axes] = new_axes(1, len(shares), width=2.4 * max(2, len(shares)), height=3.0)
    for place, missing in enumerate(shares):
        rows = _group_gains(results, data, "imcl", missing=missing)
        mean = [statistics.fmean(column) for column in zip(*rows, strict=True)]
        axes[place].bar(range(1, len(mean) + 1), mean, color=COLORS[0])
        axes[place].axhline(0, color="#16191d", lw=0.8)
        counts = results.curves("annotations", data=data, missing=missing, objective="imcl")
        twin = axes[place].twinx()
        twin.plot(range(1, len(mean) + 1), [statistics.fmean(c) for c in zip(*counts, strict=True)], color=COLORS[1])
        twin.set_yscale("log")
        twin.tick_params(labelsize=7, colors=COLORS[1])
        axes[place].set(title=f"{100 * missing:.0f} % missing", xlabel="group of labels")
    axes[0].set_ylabel("gain over logistic, points")
    caption = (
        f"{data}: gain of imcl over logistic regression for groups of labels, from the fewest training annotations to "
        f"the most (their number: the line, right axis)."
    )
    return Drawing("groups", caption, figure)


def _curves(results: Results, data: str) -> Drawing:
    """The right of the paper's figure 1."""
    figure, [[axes]] = new_axes(1, 1, width=6.4, height=4.0)
    for number, (missing,) in enumerate(results.where(data=data).each("missing")):
        for objective, style in (("imcl", "-"), (LOGISTIC, ":")):
            curves = results.curves("curve", data=data, missing=missing, objective=objective)
            mean = [100 * statistics.fmean(column) for column in zip(*curves, strict=False)]
            label = f"{100 * missing:.0f} % missing" if objective == "imcl" else None
            axes.plot(range(1, len(mean) + 1), mean, style, color=COLORS[number % len(COLORS)], label=label)
    axes.set(xlabel="epoch", ylabel="mAP on validation data, %")
    axes.legend(frameon=False, fontsize=8)
    return Drawing("curves", f"{data}: validation curves of imcl (lines) and of logistic regression (dots).", figure)
