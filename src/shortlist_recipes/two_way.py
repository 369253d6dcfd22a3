"""Multi-label losses by mean average precision; temperature against margin (two-way tables B and C)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from shortlist.metrics import functional as M
from shortlist.runs.config import RunConfig
from shortlist_recipes._published_training import sgd
from shortlist_recipes.cells import Cell, Numbers, TrainCell, Trained
from shortlist_recipes.figures import COLORS, Drawing, add_legend, new_axes
from shortlist_recipes.known_data import (
    COCO_NEEDS,
    NUS_WIDE_NEEDS,
    RESNET50_NEEDS,
    coco,
    embedded,
    mulan,
    nus_wide,
    voc2012_features,
)
from shortlist_recipes.layout import SEED_BY_SEED, Texts, signed, verdicts
from shortlist_recipes.protocols.two_way import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, Value

LOSSES: dict[str, dict[str, Any]] = {
    "softmax": {"name": "multilabel-softmax"},
    "binary": {"name": "binary"},
    "asymmetric": {"name": "asymmetric"},
    "warp": {"name": "warp"},
    "rml": {"name": "rml"},
    "sample-wise": {"name": "two-way", "way": "sample"},
    "class-wise": {"name": "two-way", "way": "class"},
    "two-way": {"name": "two-way", "positive_temperature": 4.0},
}
DATA = {"smoke": ("numbers",), "cpu": ("voc2012", "corel5k", "bibtex"), "paper": ("mscoco", "nus-wide")}
SEEDS = {"smoke": 1, "cpu": 3, "paper": 1}
PLAIN = (1.0, 0.0)  # temperature of the present labels, margin
TEMPERATURES, MARGINS = (2.0, 4.0, 8.0), (1.0, 2.0, 4.0)
CLASS, SAMPLE = "mAP@class", "mAP@sample"
# learning rates at cpu scale: of 3e-4, 1e-3, 3e-3 and 1e-2 the best mAP@class on validation data (seed 100, version
# 0.1.0); where it was the first or the last of them, this version tried the next one beyond, until that was no better
_RATES = {
    "voc2012": (3e-4, 1e-3, 3e-4, 3e-4, 1e-3, 3e-4, 3e-4, 3e-4),
    "corel5k": (3e-3, 1e-2, 3e-3, 3e-3, 3e-2, 3e-3, 1e-3, 3e-3),
    "bibtex": (3e-3, 1e-2, 1e-3, 3e-3, 3e-3, 1e-2, 3e-3, 3e-3),
}
RATES = {name: dict(zip(LOSSES, rates, strict=True)) for name, rates in _RATES.items()}
_USUAL_RATE = 1e-3
EPOCHS = {"numbers": 2, "voc2012": 15, "corel5k": 15, "bibtex": 10}
SLOW = {("bibtex", "rml"): 20}  # it has not learned after 10

# Kobayashi 2023, supplement, tables B and C
PUBLISHED = {
    ("mscoco", "warp"): {CLASS: 62.54, SAMPLE: 84.22},
    ("mscoco", "sample-wise"): {CLASS: 67.18, SAMPLE: 86.07},
    ("mscoco", "rml"): {CLASS: 71.37, SAMPLE: 85.58},
    ("mscoco", "two-way"): {CLASS: 74.11, SAMPLE: 86.66},
    ("nus-wide", "softmax"): {CLASS: 49.85, SAMPLE: 82.77},
    ("nus-wide", "asymmetric"): {CLASS: 58.40, SAMPLE: 83.73},
    ("nus-wide", "two-way"): {CLASS: 59.67, SAMPLE: 83.60},
}
# better loss, other loss, and the published gain in mAP@class and mAP@sample
_PAIRS = (
    ("two-way", "rml", "mscoco"),
    ("sample-wise", "warp", "mscoco"),
    ("two-way", "sample-wise", "mscoco"),
    ("two-way", "asymmetric", "nus-wide"),
    ("two-way", "softmax", "nus-wide"),
)


# ---- the grid


def cells(scale: Scale, data: Path) -> list[Cell]:
    grid: list[Cell] = []
    settings = [PLAIN, *((t, 0.0) for t in TEMPERATURES), *((1.0, margin) for margin in MARGINS)]
    for name in DATA[scale]:
        for seed in range(SEEDS[scale]):
            for loss, objective in LOSSES.items():
                keys: dict[str, Any] = {"part": "losses", "data": name, "loss": loss, "seed": seed}
                grid.append(TrainCell(keys, config(scale, data, name, loss, objective, seed), mean_precisions))
            for temperature, margin in settings[:: 3 if scale == "smoke" else 1] if name != "bibtex" else ():
                keys = {"part": "margin", "data": name, "temperature": temperature, "margin": margin, "seed": seed}
                options = {"name": "two-way", "positive_temperature": temperature, "margin": margin}
                made = config(scale, data, name, "two-way", options, seed)
                grid.append(TrainCell(keys, made, precisions_and_shares))
    return grid


def config(scale: Scale, data: Path, name: str, loss: str, objective: dict[str, Any], seed: int) -> RunConfig:
    """The same for every loss but for the learning rate, and the epochs of `SLOW`."""
    content: dict[str, Any] = {
        "objective": objective,
        "stop": {"metric": "mean-average-precision"},
        "metrics": ["mean-average-precision", "mean-average-precision-sample"],
        "seed": seed,
    }
    if scale == "paper":
        content |= {
            "data": coco(data) if name == "mscoco" else nus_wide(data),
            **as_the_author_trains(0.01),
            "backbone": {"name": "resnet50", "weights": str(data / "resnet50.pth")},
            "epochs": 40,
        }
        content["optimizer"] |= {"backbone_lr": 0.1}
        return RunConfig.model_validate(content)
    rate = RATES.get(name, {}).get(loss, _USUAL_RATE)
    content |= {
        "backbone": {"name": "mlp", "hidden": [512], "dropout": 0.5},
        "optimizer": {"name": "adamw", "lr": rate, "weight_decay": 1e-2},
        "schedule": {"name": "cosine"},
        "epochs": SLOW.get((name, loss), EPOCHS[name]),
        "batch_size": 128,
        "accelerator": "cpu",
    }
    if scale == "smoke":
        content["data"] = embedded(labels="all")
    else:
        content["data"] = voc2012_features(data) if name == "voc2012" else mulan(data, name)
    return RunConfig.model_validate(content)


def as_the_author_trains(lr: float) -> dict[str, Any]:
    """What the author's program has for images, whatever the data."""
    return {
        "augment": {
            "area": [0.08, 1.0],
            "flip": True,
            "jitter": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4},
            "lighting": 0.1,
        },
        "optimizer": sgd(lr),
        "schedule": {"name": "cosine"},
        "batch_size": 512,
        "precision": "16-mixed",
    }


# ---- what is measured


def mean_precisions(trained: Trained) -> Numbers:
    """Mean average precision over the labels and over the examples of the test data."""
    scores, target = trained.scores("test"), trained.parts["test"].target
    best = trained.history.best
    return {
        CLASS: float(M.mean_average_precision(scores, target)),
        SAMPLE: float(M.mean_average_precision(scores, target, average="sample")),
        "validation": None if best is None else best["mean-average-precision"],
    }


def precisions_and_shares(trained: Trained) -> Numbers:
    """The same, and the share of the gradient that the label with the largest share gets.

    Over test examples with several present labels: the largest of the softmax of -x_p / T in equations (iv) and (v).
    """
    temperature = trained.config.objective.options["positive_temperature"]
    present = trained.parts["test"].target == 1
    several = present.sum(1) > 1
    logits = (-trained.scores("test") / temperature).masked_fill(~present, -torch.inf)[several]
    return {**mean_precisions(trained), "largest share": float(logits.softmax(1).amax(1).mean())}


# ---- what is shown


def findings(results: Results) -> list[str]:
    sentences = []
    losses = results.where(part="losses")
    names = losses.levels("data")
    for better, other, _ in _PAIRS:
        each = {name: _gains(losses, better, other, name) for name in names}
        sentences.append(f"{better} against {other} in {CLASS}: {verdicts(each, 'on')}.")
    for name in names:
        each = {loss: _gains(losses, loss, "binary", name) for loss in LOSSES if loss != "binary"}
        sentences.append(f"{name}: against binary in {CLASS}: {verdicts(each, 'for')}.")
    margins = results.where(part="margin")
    return [*sentences, *(_margin_finding(margins.where(data=name), name) for name in margins.levels("data"))]


def overview(results: Results) -> list[Texts]:
    """The two best losses on each data set, and the differences that the findings speak of."""
    losses = results.where(part="losses")
    names = losses.levels("data")
    best = []
    for name in names:
        row = [name]
        for measure in (CLASS, SAMPLE):
            means = {loss: losses.mean(measure, data=name, loss=loss) or 0.0 for loss in LOSSES}
            two = sorted(means, key=means.__getitem__, reverse=True)[:2]
            row += [f"{loss}, {100 * means[loss]:.2f} %" for loss in two]
        best.append(row)
    header = ["data", *(f"{which} in {measure}" for measure in (CLASS, SAMPLE) for which in ("best", "second"))]
    rows = []
    for better, other, where in _PAIRS:
        published = PUBLISHED[where, better][CLASS] - PUBLISHED[where, other][CLASS]
        ours = [signed(_gains(losses, better, other, name)) for name in names]
        rows.append([better, other, *ours, f"{published:+.2f} on {where}"])
    return [
        Texts(header, best, len(header), "The best losses"),
        Texts(["loss", "against", *names, "published"], rows, 2, f"Differences in points of {CLASS}, {SEED_BY_SEED}"),
    ]


def _gains(losses: Results, better: str, other: str, data: str) -> list[float]:
    return losses.gains(CLASS, {"loss": better}, {"loss": other}, data=data)


def _margin_finding(here: Results, name: str) -> str:
    """Temperature and margin, each chosen on validation data."""
    chosen = {}
    for what, is_such in (("temperature", lambda t, m: m == 0), ("margin", lambda t, m: t == 1)):
        settings = [(t, m) for t, m in here.each("temperature", "margin") if is_such(t, m)]
        chosen[what] = max(settings, key=lambda s: here.mean("validation", temperature=s[0], margin=s[1]) or 0.0)
    temperature, margin = chosen["temperature"], chosen["margin"]
    values = {
        s: {n: 100 * (here.mean(n, temperature=s[0], margin=s[1]) or 0.0) for n in (CLASS, "largest share")}
        for s in (PLAIN, temperature, margin)
    }
    ours, theirs = ({"temperature": t, "margin": m} for t, m in (temperature, margin))
    gains = here.gains(CLASS, ours, theirs)
    return (
        f"{name}, two-way: validation data chooses temperature {temperature[0]:g}, test {CLASS} "
        f"{values[temperature][CLASS]:.2f} %, and margin {margin[1]:g}, {values[margin][CLASS]:.2f} %; with neither it "
        f"is {values[PLAIN][CLASS]:.2f} %. Temperature against margin, {SEED_BY_SEED}: {signed(gains)} points. Of "
        f"the gradient, the present label with the largest share gets {values[temperature]['largest share']:.0f} %, "
        f"with the margin {values[margin]['largest share']:.0f} %, with neither {values[PLAIN]['largest share']:.0f} %."
    )


def figures(results: Results) -> Sequence[Drawing]:
    return [_bars(results.where(part="losses")), _margins(results.where(part="margin"))]


def _bars(losses: Results) -> Drawing:
    names = losses.levels("data")
    figure, grid = new_axes(2, len(names), width=3.6 * len(names) + 1, height=5.6)
    for row, measure in zip(grid, (CLASS, SAMPLE), strict=True):
        for axes, name in zip(row, names, strict=True):
            means = [100 * (losses.mean(measure, data=name, loss=loss) or 0.0) for loss in LOSSES]
            widths = [100 * (losses.interval(measure, data=name, loss=loss) or 0.0) for loss in LOSSES]
            axes.barh(list(LOSSES), means, xerr=widths, color=[COLORS[number % len(COLORS)] for number in range(8)])
            low, high = min(means), max(means)
            axes.set_xlim(max(0.0, low - 0.5 * (high - low) - 1), high + 0.1 * (high - low) + 1)
            axes.invert_yaxis()
            axes.grid(False, axis="y")
            axes.grid(axis="x", color="#dfe3e8", lw=0.8)
            axes.set_title(name, fontsize=10)
            axes.set_xlabel(f"{measure}, %")
    return Drawing("losses", "Test mean average precision of each loss; the axes do not start at 0.", figure)


def _margins(here: Results) -> Drawing:
    figure, [[left, right]] = new_axes(1, 2, width=9, height=3.6)
    for number, (name,) in enumerate(here.each("data")):
        of_data = here.where(data=name)
        plain = of_data.mean(CLASS, temperature=PLAIN[0], margin=PLAIN[1]) or 0.0
        for axes, settings, place in ((left, of_data.where(margin=0.0), 0), (right, of_data.where(temperature=1.0), 1)):
            points = sorted(
                (
                    setting[place],
                    100 * ((settings.mean(CLASS, temperature=setting[0], margin=setting[1]) or 0.0) - plain),
                )
                for setting in settings.each("temperature", "margin")
            )
            axes.plot(*zip(*points, strict=True), "o-", ms=4, color=COLORS[number], label=name)
    left.set(xlabel="temperature of the present labels, no margin", ylabel=f"gain in test {CLASS}, points")
    right.set(xlabel="margin, temperature 1", ylabel=f"gain in test {CLASS}, points")
    add_legend(left)
    low, high = (f(*left.get_ylim(), *right.get_ylim()) for f in (min, max))
    for axes in (left, right):
        axes.set_ylim(low, high)
    return Drawing(
        "margin", "The two-way loss with a temperature or a margin, against temperature 1 and no margin.", figure
    )


RECIPE = Recipe(
    name="two-way",
    title="The two-way multi-label loss",
    paper="Section A and tables B and C of the supplement of Kobayashi, Two-way multi-label loss (CVPR 2023).",
    claim="The two-way loss has a better mAP@class than softmax, asymmetric, WARP and RML losses, and its sample-wise "
    "half alone is better than WARP. A temperature on present labels is better than a margin, because it spreads the "
    "gradient over all of them.",
    cells=cells,
    tables=(
        Table(
            title="Losses",
            reference="Kobayashi 2023, supplement, tables B (MSCOCO) and C (NUS-WIDE), ResNet-50 on the images",
            by=("data", "loss"),
            values=(Value(CLASS, f"{CLASS}, %"), Value(SAMPLE, f"{SAMPLE}, %")),
            published=PUBLISHED,
            where={"part": "losses"},
            across="data",
        ),
        Table(
            title="The two-way loss: temperature of the present labels, or margin",
            reference="section A of the supplement argues with formulas; its figures are in the paper's table 2",
            by=("data", "temperature", "margin"),
            values=(
                Value("validation", f"validation {CLASS}, %"),
                Value(CLASS, f"test {CLASS}, %"),
                Value(SAMPLE, f"test {SAMPLE}, %"),
                Value("largest share", "largest share of the gradient, %", digits=1),
            ),
            where={"part": "margin"},
        ),
    ),
    findings=findings,
    overview=overview,
    figures=figures,
    protocols=PROTOCOLS,
    needs={
        "cpu": {
            "voc2012_multilabel": "labels.npz, train_feats_fp16_512.npy and val_feats_fp16_512.npy of VOC2012",
            "mulan_multilabel/corel5k.npz": "corel5k of the Mulan library",
            "mulan_multilabel/bibtex.npz": "bibtex of the Mulan library",
        },
        "paper": {**COCO_NEEDS, **NUS_WIDE_NEEDS, **RESNET50_NEEDS},
    },
    differences={
        "smoke": "Embedded data and two epochs: this only shows that everything runs.",
        "cpu": "A network with one hidden layer on frozen features of VOC2012, on corel5k and on bibtex, where the "
        "paper trains a ResNet-50 on MSCOCO and NUS-WIDE: the published rows are there for comparison. 15 % of the "
        "training data choose the epoch and, once for each loss, the learning rate. Ranks over examples are those of "
        "raw scores, also for softmax. 15 epochs, on bibtex 10 (20 with RML, which learns slowly there).",
    },
)
