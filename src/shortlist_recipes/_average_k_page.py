"""What the recipe average-k says and draws about its results."""

from collections.abc import Sequence
from typing import Any

from shortlist_recipes._average_k_sets import GROUPS, LARGEST
from shortlist_recipes.figures import COLORS, Drawing, draw_line, new_axes
from shortlist_recipes.results import Results

BALANCED, LONG_TAILED = "balanced", "long-tailed"


def findings(results: Results) -> list[str]:
    losses = results.where(part="losses")
    sentences = []
    for which, k in losses.each("data", "k"):
        here = losses.where(data=which, k=k)
        means = {o: here.mean("accuracy", objective=o) or 0.0 for (o,) in here.each("objective")}
        best = max(means, key=means.__getitem__)
        gain = 100 * (means["average-k"] - means["cross-entropy"])
        sentence = (
            f"{which.capitalize()}, K = {k}: best average-{k} accuracy with {best}, {100 * means[best]:.2f} %; "
            f"average-k is {abs(gain):.2f} points {'above' if gain > 0 else 'below'} cross-entropy"
        )
        few = [here.mean("few", objective=o) for o in ("average-k", "cross-entropy")]
        if which == LONG_TAILED and few[0] is not None and few[1] is not None:
            gain = 100 * (few[0] - few[1])
            sentence += f", and {abs(gain):.2f} points {'above' if gain > 0 else 'below'} it on few-shot classes"
        sentences.append(sentence + ".")
    sentences += _reason(results)
    sentences += _link_finding(losses) + _size_findings(losses) + _sensitivity_findings(results)
    return sentences


def _reason(results: Results) -> list[str]:
    """Where average-k is behind with each loss's own rate, but ahead with one rate for both: why that may be."""
    losses, of_size = results.where(part="losses"), results.where(part="batch size")

    def gain(here: Results, name: str) -> float:
        return (here.mean(name, objective="average-k") or 0.0) - (here.mean(name, objective="cross-entropy") or 0.0)

    gains = [100 * gain(of_size.where(**{"batch size": size}), "accuracy") for (size,) in of_size.each("batch size")]
    behind = all(gain(losses.where(data=d, k=k), "accuracy") < 0 for d, k in losses.each("data", "k"))
    if not behind or min(gains) < 0:
        return []
    return [
        "Unlike in the paper, average-k is behind cross-entropy in these tables. Yet with the same rate of SGD for "
        f"both it is {min(gains):.2f} to {max(gains):.2f} points ahead, at every batch size. A reason may be that "
        "average-k mends the overconfidence of a network that has learned its training labels by heart, as SGD makes "
        "it do here and the paper's networks do; a chosen rate and early stopping on frozen features leave less of it "
        "to mend."
    ]


def _link_finding(losses: Results) -> list[str]:
    means = [losses.mean(name, k=5, data=BALANCED, objective="average-k") for name in ("accuracy", "by own link")]
    if means[0] is None or means[1] is None:
        return []
    return [
        f"Average-k on balanced data, K = 5: thresholds on the softmax of the scores, as Algorithm 1 of the "
        f"paper says, give {100 * means[0]:.2f} %, on their sigmoid {100 * means[1]:.2f} %."
    ]


def _size_findings(losses: Results) -> list[str]:
    here = losses.where(data=LONG_TAILED, k=5)
    ones = {o: 100 * _mean_curve(here, "sizes", objective=o)[1] for o in ("cross-entropy", "average-k")}
    fewer = ones["average-k"] < ones["cross-entropy"]
    sentences = [
        f"Long-tailed, K = 5: {ones['cross-entropy']:.1f} % of the sets of cross-entropy and "
        f"{ones['average-k']:.1f} % of those of average-k have one label: "
        + ("fewer, as in the paper." if fewer else "not fewer, unlike in the paper.")
    ]
    sizes = {}
    for name in GROUPS:
        shares = _mean_curve(here, f"sizes {name}", objective="average-k")
        if shares:
            sizes[name] = sum(size * share for size, share in enumerate(shares))
    if sizes:
        text = ", ".join(f"{size:.1f} for {name}-shot classes" for name, size in sizes.items())
        sentences.append(f"Average-k, long-tailed, K = 5: mean set size (sets over {LARGEST} as {LARGEST}) {text}.")
    return sentences


def _sensitivity_findings(results: Results) -> list[str]:
    of_alpha = results.where(part="alpha")
    at = {alpha: of_alpha.mean("validation", alpha=alpha) or 0.0 for (alpha,) in of_alpha.each("alpha")}
    best = max(at, key=at.__getitem__)
    near = [alpha for alpha, value in at.items() if value > at[best] - 0.01]
    sentences = [
        f"alpha: best validation average-5 accuracy at {best:g}, {100 * at[best]:.2f} %; within one point of it for "
        f"alpha = {', '.join(f'{alpha:g}' for alpha in near)}."
    ]
    drops = []
    for objective in ("cross-entropy", "average-k"):
        of_size = results.where(part="batch size", objective=objective)
        means = {
            size: of_size.mean("validation", **{"batch size": size}) or 0.0 for (size,) in of_size.each("batch size")
        }
        largest = max(means)
        drop = 100 * (max(means.values()) - means[largest])
        drops.append(f"{objective} loses {drop:.2f} points from its best to the largest batch size, {largest}")
    return [*sentences, f"Batch size: {'; '.join(drops)}."]


def _mean_curve(results: Results, name: str, **keys: Any) -> list[float]:
    curves = results.curves(name, **keys)
    return [sum(at) / len(at) for at in zip(*curves, strict=True)]


def figures(results: Results) -> Sequence[Drawing]:
    return [_histograms(results.where(part="losses", data=LONG_TAILED, k=5)), _sensitivity(results)]


def _histograms(here: Results) -> Drawing:
    figure, [[left, right]] = new_axes(1, 2, width=10, height=3.6)
    drawn = [(left, "sizes", objective, objective) for objective in ("cross-entropy", "average-k")]
    drawn += [(right, f"sizes {name}", "average-k", f"{name}-shot classes") for name in GROUPS]
    for number, (axes, name, objective, label) in enumerate(drawn):
        shares = _mean_curve(here, name, objective=objective)
        width = 0.4 if axes is left else 0.28
        shift = width * (number - 0.5 if axes is left else number - 3)
        places = [size + shift for size in range(len(shares))]
        if shares:
            axes.bar(places, [100 * share for share in shares], width, color=COLORS[number], label=label)
    for axes in (left, right):
        axes.set(xlabel=f"labels in the set (last: {LARGEST} or more)", ylabel="share of test images, %")
        axes.set_xticks(range(0, LARGEST + 1, 2))
        axes.legend(frameon=False)
    right.set_title("average-k", fontsize=10)
    return Drawing("sizes", "Set sizes on long-tailed data, five labels on average (the paper's figure 4).", figure)


def _sensitivity(results: Results) -> Drawing:
    figure, [[left, right]] = new_axes(1, 2, width=9, height=3.6)
    of_alpha, of_size = results.where(part="alpha"), results.where(part="batch size")
    draw_line(left, of_alpha, "alpha", "validation", label="average-k", color=COLORS[1])
    left.set(xscale="log", xlabel="alpha", ylabel="best validation average-5 accuracy, %")
    for number, objective in enumerate(("cross-entropy", "average-k")):
        chosen = of_size.where(objective=objective)
        draw_line(right, chosen, "batch size", "validation", label=objective, color=COLORS[number])
    right.set(xscale="log", xlabel="batch size", ylabel="best validation average-5 accuracy, %")
    right.set_xticks(sizes := [size for (size,) in of_size.each("batch size")], [str(size) for size in sizes])
    right.minorticks_off()
    right.legend(frameon=False)
    return Drawing("sensitivity", "Sensitivity to alpha and to the batch size (the paper's figures 5 and 6).", figure)
