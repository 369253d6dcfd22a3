"""What the recipe average-k says and draws about its results."""

from collections.abc import Sequence

from shortlist_recipes._average_k_sets import GROUPS, LARGEST
from shortlist_recipes.figures import COLORS, Drawing, add_legend, draw_line, new_axes
from shortlist_recipes.layout import SEED_BY_SEED, Texts, signed, verdicts
from shortlist_recipes.results import Results

BALANCED, LONG_TAILED = "balanced", "long-tailed"
ONE_RATE, TUNED = "one rate for all losses", "each loss tuned"
OURS, CROSS = {"objective": "average-k"}, {"objective": "cross-entropy"}
ALPHAS_TRIED = (0.1, 0.3, 1.0, 3.0)  # of which validation data chooses, for every K, way and seed


def findings(results: Results) -> list[str]:
    losses = results.where(part="losses")
    sentences = []
    for which, way in losses.each("data", "way"):
        here = losses.where(data=which, way=way)
        ks = here.levels("k")
        for name, said in (("accuracy", ""), *((name, f", {name}-shot classes") for name in GROUPS)):
            if which == LONG_TAILED or name == "accuracy":
                each = {f"K = {k}": here.gains(name, OURS, CROSS, k=k) for k in ks}
                place = f"{which.capitalize()}, {way}{said}"
                if any(each.values()):
                    sentences.append(f"{place}: average-k against cross-entropy: {verdicts(each)}.")
    for which, k in losses.each("data", "k"):
        sentences += _ways_finding(losses.where(data=which, k=k), which, k)
    sentences += _alpha_findings(losses) + _link_finding(losses) + _size_findings(losses)
    return sentences + _sensitivity_findings(results)


def _alpha_findings(losses: Results) -> list[str]:
    """How often the chosen alpha is at an end of what was tried, so that another might do better."""
    sentences = []
    for way in losses.levels("way"):
        chosen = losses.values("alpha", way=way)
        ends = [f"{end:g} in {chosen.count(end)}" for end in (ALPHAS_TRIED[0], ALPHAS_TRIED[-1]) if end in chosen]
        if ends:
            sentences.append(
                f"{way.capitalize()}: of alpha = {', '.join(f'{alpha:g}' for alpha in ALPHAS_TRIED)}, validation data "
                f"chose an end, beyond which nothing was tried, in some runs: {' and '.join(ends)} of {len(chosen)}."
            )
    return sentences


def _ways_finding(here: Results, which: str, k: int) -> list[str]:
    """Which way of training is better, for both losses."""
    each = {}
    for loss in (CROSS, OURS):
        each[loss["objective"]] = here.gains("accuracy", {**loss, "way": TUNED}, {**loss, "way": ONE_RATE})
    if not any(each.values()):
        return []
    said = ", ".join(f"{name} {signed(gains)}" for name, gains in each.items())
    return [f"{which.capitalize()}, K = {k}: tuning gains, in points, {SEED_BY_SEED}: {said}."]


def overview(results: Results) -> list[Texts]:
    """The best loss for each data set, way and K, and average-k against cross-entropy and against the others."""
    losses, rows, against = results.where(part="losses"), [], []
    others = [o for o in losses.levels("objective") if o not in ("cross-entropy", "average-k")]
    for which, way, k in losses.each("data", "way", "k"):
        here = losses.where(data=which, way=way, k=k)
        means = here.means("accuracy", "objective")
        best = max(means, key=means.__getitem__)
        gain = signed(here.gains("accuracy", OURS, CROSS))
        few = signed(here.gains("few", OURS, CROSS)) if which == LONG_TAILED else ""
        rows.append([which, way, str(k), f"{best}, {100 * means[best]:.2f} %", gain, few])
        gains = [signed(here.gains("accuracy", OURS, {"objective": other})) for other in others]
        against.append([which, way, str(k), *gains])
    header = ["data", "way", "K", "highest mean", "average-k - cross-entropy", "few-shot classes"]
    tables = [Texts(header, rows, 4, f"Average-K accuracy; differences in points, {SEED_BY_SEED}")] if rows else []
    if others:
        caption = f"Average-k against the other losses, in points of average-K accuracy, {SEED_BY_SEED}"
        tables.append(Texts(["data", "way", "K", *others], against, 3, caption))
    return tables


def _link_finding(losses: Results) -> list[str]:
    here = losses.where(k=5, data=BALANCED, way=ONE_RATE, objective="average-k")
    means = [here.mean(name) for name in ("accuracy", "by own link")]
    if means[0] is None or means[1] is None:
        return []
    return [
        f"Average-k on balanced data, K = 5, one rate: thresholds on the softmax of the scores, as Algorithm 1 of the "
        f"paper says, give {100 * means[0]:.2f} %, on their sigmoid {100 * means[1]:.2f} %; the difference "
        f"{SEED_BY_SEED}: {signed(here.differences('accuracy', 'by own link'))} points."
    ]


def _size_findings(losses: Results) -> list[str]:
    here = losses.where(data=LONG_TAILED, k=5, way=ONE_RATE)
    curves = {o: here.mean_curve("sizes", objective=o) for o in ("cross-entropy", "average-k")}
    if not all(curves.values()):
        return []
    ones = {objective: curve[1] for objective, curve in curves.items()}
    sentences = [
        f"Long-tailed, K = 5, one rate: {ones['cross-entropy']:.1f} % of the sets of cross-entropy and "
        f"{ones['average-k']:.1f} % of those of average-k have one label; the difference {SEED_BY_SEED}: "
        f"{signed(_more_of_size(here, 1))} points (fewer in the paper)."
    ]
    sizes = {}
    for name in GROUPS:
        shares = here.mean_curve(f"sizes {name}", 1.0, objective="average-k")
        if shares:
            sizes[name] = sum(size * share for size, share in enumerate(shares))
    if sizes:
        text = ", ".join(f"{size:.1f} for {name}-shot classes" for name, size in sizes.items())
        sentences.append(f"Average-k, long-tailed, K = 5: mean set size (sets over {LARGEST} as {LARGEST}) {text}.")
    return sentences


def _more_of_size(here: Results, size: int) -> list[float]:
    """How many more sets of average-k than of cross-entropy have this size, in points, seed by seed."""
    found = []
    for seed in here.levels("seed"):
        curves = [here.where(**loss).mean_curve("sizes", seed=seed) for loss in (OURS, CROSS)]
        if all(curves):
            found.append(curves[0][size] - curves[1][size])
    return found


def _sensitivity_findings(results: Results) -> list[str]:
    of_alpha = results.where(part="alpha")
    at = of_alpha.means("validation", "alpha")
    if not at:
        return []
    best = max(at, key=at.__getitem__)
    near = [alpha for alpha, value in at.items() if value > at[best] - 0.01]
    sentences = [
        f"alpha: best validation average-5 accuracy at {best:g}, {100 * at[best]:.2f} %; within one point of it for "
        f"alpha = {', '.join(f'{alpha:g}' for alpha in near)}."
    ]
    of_size = results.where(part="batch size")
    each = {}
    for size in of_size.levels("batch size"):
        each[str(size)] = of_size.gains("accuracy", OURS, CROSS, **{"batch size": size})
    if any(each.values()):
        sentences.append(f"Average-k against cross-entropy, by the batch size: {verdicts(each)}.")
    for loss in (CROSS, OURS):
        here = of_size.where(**loss)
        sizes = here.levels("batch size")
        if len(sizes) > 1:
            least, most = ({"batch size": size} for size in (min(sizes), max(sizes)))
            sentences.append(
                f"{loss['objective']}, batches of {max(sizes)} against {min(sizes)}, {SEED_BY_SEED}: "
                f"{signed(here.gains('accuracy', most, least))} points of average-5 accuracy."
            )
    return sentences


def figures(results: Results) -> Sequence[Drawing]:
    here = results.where(part="losses", data=LONG_TAILED, k=5, way=ONE_RATE)
    drawings = [_histograms(here)] if here.records else []
    return [*drawings, *([_sensitivity(results)] if results.where(part="alpha").records else [])]


def _histograms(here: Results) -> Drawing:
    figure, [[left, right]] = new_axes(1, 2, width=10, height=3.6)
    drawn = [(left, "sizes", objective, objective) for objective in ("cross-entropy", "average-k")]
    drawn += [(right, f"sizes {name}", "average-k", f"{name}-shot classes") for name in GROUPS]
    for number, (axes, name, objective, label) in enumerate(drawn):
        shares = here.mean_curve(name, objective=objective)
        width = 0.4 if axes is left else 0.28
        shift = width * (number - 0.5 if axes is left else number - 3)
        places = [size + shift for size in range(len(shares))]
        if shares:
            axes.bar(places, shares, width, color=COLORS[number], label=label)
    for axes in (left, right):
        axes.set(xlabel=f"labels in the set (last: {LARGEST} or more)", ylabel="share of test images, %")
        axes.set_xticks(range(0, LARGEST + 1, 2))
        add_legend(axes)
    right.set_title("average-k", fontsize=10)
    caption = "Set sizes on long-tailed data, five labels on average, one rate for all losses (the paper's figure 4)."
    return Drawing("sizes", caption, figure)


def _sensitivity(results: Results) -> Drawing:
    figure, [[left, right]] = new_axes(1, 2, width=9, height=3.6)
    of_alpha, of_size = results.where(part="alpha"), results.where(part="batch size")
    draw_line(left, of_alpha, "alpha", "validation", label="average-k", color=COLORS[1])
    left.set(xscale="log", xlabel="alpha", ylabel="best validation average-5 accuracy, %")
    for number, objective in enumerate(("cross-entropy", "average-k")):
        chosen = of_size.where(objective=objective)
        draw_line(right, chosen, "batch size", "validation", label=objective, color=COLORS[number])
    right.set(xscale="log", xlabel="batch size", ylabel="best validation average-5 accuracy, %")
    right.set_xticks(sizes := of_size.levels("batch size"), [str(size) for size in sizes])
    right.minorticks_off()
    add_legend(right)
    return Drawing("sensitivity", "Sensitivity to alpha and to the batch size (the paper's figures 5 and 6).", figure)
