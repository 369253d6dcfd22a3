"""What the recipe partial-labels says and draws about its results."""

import statistics
from collections.abc import Sequence
from typing import Any

from shortlist_recipes.figures import COLORS, Drawing, add_legend, draw_line, new_axes, whole_numbers
from shortlist_recipes.layout import SEED_BY_SEED, Texts, signed, verdicts
from shortlist_recipes.results import Results

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
# the same, table 2: points above logistic regression on MS-COCO
COCO_TABLE_2 = {
    "cnn-rnn": -0.6,
    "lsep": 0.1,
    "wsabie": 0.1,
    "fast0tag": 0.0,
    "latent-noise relevant": 0.9,
    "latent-noise visual": 1.0,
    "curriculum": 1.5,
    "imcl": 1.9,
}


def gains(results: Results, objective: str, **keys: Any) -> list[float]:
    """mAP over logistic regression in points, seed by seed: the same data, the same labels missing."""
    return results.gains("mAP", {"objective": objective}, {"objective": LOGISTIC}, **keys)


def findings(results: Results) -> list[str]:
    sentences = []
    for data in results.levels("data"):
        shares = results.where(data=data).levels("missing")
        each = {f"{100 * m:.0f} %": gains(results, "imcl", data=data, missing=m) for m in shares}
        sentences.append(f"{data}, imcl against logistic regression, by the share missing: {verdicts(each)}.")
    for data in results.levels("data"):
        for objective in results.where(data=data).levels("objective"):
            if objective in ("imcl", LOGISTIC):
                continue
            each = {
                f"{100 * m:.0f} %": gains(results, objective, data=data, missing=m)
                for m in results.where(data=data).levels("missing")
            }
            sentences.append(f"{data}, {objective} against logistic regression: {verdicts(each)}.")
        means = [signed(column) for column in group_gains_by_seed(results, data)]
        if means:
            sentences.append(
                f"{data}: the gain of imcl for ten groups of labels, from the fewest annotations to the most, a mean "
                f"over the shares of missing labels, in points, {SEED_BY_SEED}: {', '.join(means)}."
            )
    return sentences


def overview(results: Results) -> list[Texts]:
    """What the findings speak of, and which objective is best."""
    rows = []
    for data, missing in results.each("data", "missing"):
        here = results.where(data=data, missing=missing)
        gain = gains(here, "imcl")
        means = here.means("mAP", "objective")
        order = sorted(means, key=means.__getitem__, reverse=True)
        best = f"{order[0]}, {100 * means[order[0]]:.2f} %"
        won = f"{sum(value > 0 for value in gain)} of {len(gain)}"
        place = f"{order.index('imcl') + 1} of {len(order)}" if "imcl" in means else ""
        rows.append([data, f"{100 * missing:.0f} %", best, signed(gain), won, place])
    header = ["data", "missing", "best", "imcl - logistic", "seeds above 0", "place of imcl"]
    return [
        Texts(
            header, rows, 3, f"imcl against logistic regression, in points of mean average precision, {SEED_BY_SEED}"
        ),
        *_gains_of_all(results),
    ]


def _gains_of_all(results: Results) -> list[Texts]:
    """Every objective where most labels are missing, beside what is published: the paper's table 2, and the row of its
    table 1 with as many missing."""
    places = {data: max(results.where(data=data).levels("missing")) for data in results.levels("data")}
    rows = []
    for objective in results.levels("objective"):
        if objective == LOGISTIC:
            continue
        row = [objective]
        for data, missing in places.items():
            row.append(signed(gains(results, objective, data=data, missing=missing)))
        on_cub = [CUB_TABLE_1.get(("cub", 0.9, name)) for name in (objective, LOGISTIC)]
        row.append(f"{on_cub[0]['mAP'] - on_cub[1]['mAP']:+.1f}" if on_cub[0] and on_cub[1] else "")
        row.append(f"{COCO_TABLE_2[objective]:+.1f}" if objective in COCO_TABLE_2 else "")
        rows.append(row)
    ours = [f"{data}, {100 * missing:.0f} % missing" for data, missing in places.items()]
    header = ["objective", *ours, "published: CUB, 90 % missing", "published: MS-COCO"]
    caption = f"Every objective against logistic regression, in points, {SEED_BY_SEED}"
    return [Texts(header, rows, 1, caption)] if rows else []


def group_gains_by_seed(results: Results, data: str) -> list[list[float]]:
    """For each group of labels, the gain of imcl with every seed: the shares of one seed are not independent, so their
    mean counts once."""
    each = []
    for seed in results.where(data=data).levels("seed"):
        columns = _columns(_group_gains(results, data, seed=seed))
        if columns:
            each.append([statistics.fmean(column) if column else None for column in columns])
    return _columns(each)


def _group_gains(results: Results, data: str, **keys: Any) -> list[list[float | None]]:
    """For each share of missing labels and seed, the gain over logistic regression of each group of labels."""
    rows: list[list[float | None]] = []
    for missing, seed in results.where(data=data, **keys).each("missing", "seed"):
        here = results.where(data=data, missing=missing, seed=seed)
        curves = [here.curves("groups", objective=name) for name in ("imcl", LOGISTIC)]
        if curves[0] and curves[1]:
            pairs = zip(curves[0][0], curves[1][0], strict=True)
            rows.append([None if a is None or b is None else 100 * (a - b) for a, b in pairs])
    return rows


def _columns(rows: list[list[float | None]]) -> list[list[float]]:
    """The gains of each group, where there are any."""
    return [[value for value in column if value is not None] for column in zip(*rows, strict=True)]


# ---- figures


def figures(results: Results) -> Sequence[Drawing]:
    first = results.each("data")[0][0]
    return [*_by_missing(results), _groups(results, first), _curves(results, first)]


# one look for each objective, whatever the data
_LOOKS = {
    LOGISTIC: ("#16191d", "o"),
    "imcl": (COLORS[0], "o"),
    "curriculum": (COLORS[1], "s"),
    "fast0tag": (COLORS[2], "^"),
    "latent-noise visual": (COLORS[3], "v"),
    "latent-noise relevant": (COLORS[3], "x"),
    "cnn-rnn": (COLORS[4], "D"),
    "two-way": (COLORS[5], "P"),
    "lsep": (COLORS[6], "*"),
    "wsabie": (COLORS[7], "<"),
    "imcl a=10": (COLORS[0], ">"),
}


def _by_missing(results: Results) -> list[Drawing]:
    drawings = []
    for data in results.levels("data"):
        here = results.where(data=data)
        if len(here.each("missing")) < 2:
            continue
        figure, [[axes]] = new_axes(1, 1, width=7.6, height=4.4)
        for objective in here.levels("objective"):
            color, marker = _LOOKS[objective]
            style: dict[str, Any] = {"lw": 2.5} if objective in ("imcl", LOGISTIC) else {"lw": 1, "ls": "--"}
            style |= {"color": color, "marker": marker}
            draw_line(axes, here.where(objective=objective), "missing", "mAP", label=objective, **style)
        axes.set_xticks(here.levels("missing"))
        axes.set(xlabel="share of labels missing", ylabel="mean average precision, %")
        add_legend(axes, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        caption = f"{data}: mean average precision on complete test labels; band: 95 % interval over seeds."
        drawings.append(Drawing(data, caption, figure))
    return drawings


def _groups(results: Results, data: str) -> Drawing:
    """The left of the paper's figure 1."""
    shares = results.where(data=data).levels("missing")
    columns = min(3, len(shares))
    rows = -(-len(shares) // columns)
    figure, grid = new_axes(rows, columns, width=3.2 * columns, height=2.6 * rows)
    for place, axes in enumerate(grid.flat):
        if place >= len(shares):
            axes.set_visible(False)
            continue
        gained = _group_gains(results, data, missing=shares[place])
        mean = [statistics.fmean(column) if column else 0.0 for column in _columns(gained)]
        annotations = results.mean_curve("annotations", 1.0, data=data, missing=shares[place], objective="imcl")
        axes.bar(range(len(mean)), mean, color=COLORS[0])
        axes.axhline(0, color="#16191d", lw=0.8)
        axes.set_xticks(range(len(mean)), [f"{count:,.0f}" for count in annotations])
        axes.set_title(f"{100 * shares[place]:.0f} % missing", fontsize=10)
        if place % columns == 0:
            axes.set_ylabel("gain, points")
        if place // columns == rows - 1:
            axes.set_xlabel("training annotations per label")
    caption = (
        f"{data}: gain of imcl over logistic regression for ten groups of labels, from the fewest training "
        f"annotations to the most; below a group, the mean number that its labels have. The axes differ."
    )
    return Drawing("groups", caption, figure)


def _curves(results: Results, data: str) -> Drawing:
    """The right of the paper's figure 1."""
    figure, [[axes]] = new_axes(1, 1, width=6.4, height=4.0)
    for number, (missing,) in enumerate(results.where(data=data).each("missing")):
        for objective, style in (("imcl", "-"), (LOGISTIC, ":")):
            mean = results.mean_curve("curve", data=data, missing=missing, objective=objective)
            label = f"{100 * missing:.0f} % missing" if objective == "imcl" else None
            axes.plot(range(1, len(mean) + 1), mean, style, color=COLORS[number % len(COLORS)], label=label)
    axes.set(xlabel="epoch", ylabel="mAP on validation data, %")
    whole_numbers(axes)
    add_legend(axes, fontsize=8)
    return Drawing("curves", f"{data}: validation curves of imcl (lines) and of logistic regression (dots).", figure)
