"""The smooth top-k loss from tau 0 to 100, with and without a margin (smooth top-k tables 6-8)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from shortlist.data import Dataset
from shortlist.metrics import functional as M
from shortlist.runs.config import RunConfig
from shortlist.runs.setup import build_learner, facts_of
from shortlist.training.history import Record
from shortlist.training.learner import Learner, score
from shortlist.training.loop import Quiet
from shortlist_recipes._published_training import densenet_on_cifar100, resnet18_on_imagenet
from shortlist_recipes.cells import Cell, FunctionCell, Numbers, TrainCell, Trained, train_model
from shortlist_recipes.figures import COLORS, Drawing, add_legend, draw_line, new_axes, whole_numbers
from shortlist_recipes.known_data import (
    CIFAR100_FEATURES_NEEDS,
    CIFAR100_NEEDS,
    IMAGENET_NEEDS,
    cifar100_features,
    embedded,
)
from shortlist_recipes.layout import SEED_BY_SEED, signed, verdicts
from shortlist_recipes.protocols.temperature import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, Value

TEMPERATURES = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
MARGINS = ((1, 1.0), (5, 0.1))  # k, tau: with margin 0 the first is cross-entropy
SEEDS = {"smoke": 1, "cpu": 3, "paper": 1}
WATCHED = 10_000  # training examples whose error is measured after every epoch
_TINY = 1e-7  # the resolution of single precision near 1

# Berrada et al. 2018: table 6, training and testing accuracy; tables 7 and 8, top-k accuracy with margin 0 and 1
TABLE_6 = {
    (0.0,): {"train": 10.01, "top-5": 10.38},
    (0.001,): {"train": 17.40, "top-5": 18.19},
    (0.01,): {"train": 98.95, "top-5": 91.35},
    (0.1,): {"train": 99.73, "top-5": 91.70},
    (1.0,): {"train": 99.78, "top-5": 91.52},
    (10.0,): {"train": 99.62, "top-5": 90.92},
    (100.0,): {"train": 99.42, "top-5": 90.46},
}
TABLES_7_AND_8 = {
    (1, 0.0): {"top-k": 71.03},
    (1, 1.0): {"top-k": 71.15},
    (5, 0.0): {"top-k": 89.12},
    (5, 1.0): {"top-k": 89.45},
}


def cells(scale: Scale, data: Path) -> list[Cell]:
    temperatures = (0.0, 0.01, 1.0) if scale == "smoke" else TEMPERATURES
    grid: list[Cell] = []
    for seed in range(SEEDS[scale]):
        for tau in temperatures:
            keys: dict[str, Any] = {"part": "temperature", "tau": tau, "seed": seed}
            config = temperature_config(scale, data, objective(5, tau, 1.0), seed)
            grid.append(FunctionCell(keys, trained_at_temperature, {"config": config}, resumable=True))
        for k, tau in MARGINS:
            for margin in (0.0, 1.0):
                keys = {"part": "margin", "k": k, "margin": margin, "seed": seed}
                config = margin_config(scale, data, objective(k, tau, margin), seed)
                grid.append(TrainCell(keys, config, validation_top_k))
    return grid


def objective(k: int, tau: float, margin: float) -> dict[str, Any]:
    """The smooth loss; at temperature 0 it is the hinge."""
    if tau == 0:
        return {"name": "topk-hinge", "k": k, "alpha": margin}
    return {"name": "smooth-topk", "k": k, "tau": tau, "alpha": margin}


def temperature_config(scale: Scale, data: Path, objective: dict[str, Any], seed: int) -> RunConfig:
    """One setting for all temperatures: as in the paper, that of cross-entropy in Huang et al. 2017."""
    content: dict[str, Any] = {"objective": objective, "stop": {"metric": "topk-accuracy@5"}, "seed": seed}
    if scale == "paper":
        content |= densenet_on_cifar100(data, growth=12)
    else:
        epochs = 4 if scale == "smoke" else 8
        content |= {
            "data": embedded() if scale == "smoke" else cifar100_features(data, use=20_000),
            "backbone": {"name": "mlp", "hidden": [512]},
            "optimizer": {"name": "sgd-nesterov", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
            "schedule": {"name": "step", "at": [epochs // 2, 3 * epochs // 4]},
            "epochs": epochs,
            "batch_size": 64,
            "accelerator": "cpu",
        }
    return RunConfig.model_validate(content)


def margin_config(scale: Scale, data: Path, objective: dict[str, Any], seed: int) -> RunConfig:
    if scale != "paper":
        return temperature_config(scale, data, objective, seed)
    content = resnet18_on_imagenet(data, smooth=objective["k"] > 1)
    content |= {"objective": objective, "stop": {"metric": f"topk-accuracy@{objective['k']}"}, "seed": seed}
    return RunConfig.model_validate(content)


# ---- what is measured


def trained_at_temperature(config: RunConfig, folder: Path | None) -> Numbers:
    """Top-5 accuracy on training and test data, by epoch on training and validation data, and how sparse the first
    gradients are."""
    trained = train_model(config, folder, watch=_Watched)
    records = trained.history.records
    return {
        "train": _top_k(trained, "train", 5),
        "top-5": _top_k(trained, "test", 5),
        "curve": [record["topk-accuracy@5"] for record in records],
        "training curve": [trained.watched.found.get(record["epoch"]) for record in records],
        **first_gradients(trained),
    }


class _Watched(Quiet):
    """Top-5 accuracy on some training examples after every epoch (of those trained here, where a run was resumed)."""

    def __init__(self, learner: Learner, dataset: Dataset) -> None:
        self.learner, self.dataset = learner, dataset.subset(torch.arange(min(WATCHED, len(dataset))))
        self.found: dict[int, float] = {}

    def epoch(self, record: Record) -> None:
        self.found[record["epoch"]] = float(M.top_k_accuracy(score(self.learner, self.dataset), self.dataset.target, 5))


def validation_top_k(trained: Trained) -> Numbers:
    """Top-k accuracy with the loss's own k, on validation data as in the paper and on test data."""
    k = trained.config.objective.options["k"]
    return {"top-k": _top_k(trained, "validation", k), "test": _top_k(trained, "test", k)}


def first_gradients(trained: Trained) -> dict[str, float]:
    """The share of the loss's derivatives by the scores that are not 0, with the weights as they were drawn.

    Also the share above 1e-7, what single precision resolves next to 1; the largest possible is 1 / k.
    """
    train = trained.parts["train"]
    learner = build_learner(trained.config, facts_of(train), train_set=train).eval()
    some = train.subset(slice(0, WATCHED))
    scores, target = score(learner, some).requires_grad_(), some.target
    loss = learner.objective.score_loss(scores, target)  # type: ignore[operator]  # one head, as both losses have
    (gradient,) = torch.autograd.grad(len(target) * loss, scores)
    return {
        "not zero": float((gradient != 0).float().mean()),
        "above 1e-7": float((gradient.abs() > _TINY).float().mean()),
    }


def _top_k(trained: Trained, part: str, k: int) -> float:
    return float(M.top_k_accuracy(trained.scores(part), trained.parts[part].target, k))


# ---- what is shown


_DOES_NOT_FAIL = "unlike in the paper, it does not fail."


def findings(results: Results) -> list[str]:
    of_tau = results.where(part="temperature")
    test = of_tau.means("top-5", "tau")
    best = max(test, key=test.__getitem__)
    against = {f"{tau:g}": of_tau.gains("top-5", {"tau": tau}, {"tau": best}) for tau in test if tau != best}
    sentences = [
        f"The highest mean of test top-5 accuracy is at tau = {best:g}, {100 * test[best]:.2f} %. Against it, by tau: "
        f"{verdicts(against)}."
    ]
    sentences += [
        f"tau = {tau:g} reaches {100 * accuracy:.2f} %, {signed(against[f'{tau:g}'])} points ({SEED_BY_SEED}): "
        + ("it fails, as in the paper." if accuracy < test[best] / 2 else _DOES_NOT_FAIL)
        for tau, accuracy in test.items()
        if tau < 0.01 and tau != best
    ]
    dense = {tau: of_tau.mean("above 1e-7", tau=tau) or 0.0 for tau in test}
    sentences.append(
        "Share of derivatives above 1e-7 at the start: "
        + ", ".join(f"{100 * share:.1f} % at tau = {tau:g}" for tau, share in dense.items())
        + "."
    )
    for k, tau in MARGINS:
        gains = results.gains("top-k", {"margin": 1.0}, {"margin": 0.0}, part="margin", k=k)
        if gains:
            sentences.append(
                f"k = {k}, tau = {tau:g}: a margin of 1 changes validation top-{k} accuracy by {signed(gains)} points "
                f"({SEED_BY_SEED})."
            )
    return sentences


def figures(results: Results) -> Sequence[Drawing]:
    of_tau = results.where(part="temperature")
    figure, [[left, middle, right]] = new_axes(1, 3, width=12, height=3.6)
    for number, (tau,) in enumerate(of_tau.each("tau")):
        for name, style, label in (("training curve", "-", f"tau = {tau:g}"), ("curve", ":", None)):
            errors = [100 - share for share in of_tau.mean_curve(name, tau=tau) if not math.isnan(share)]
            left.plot(range(1, len(errors) + 1), errors, style, color=COLORS[number % len(COLORS)], label=label)
    left.set(xlabel="epoch", ylabel="top-5 error, %: training (dots: validation)")
    whole_numbers(left)
    add_legend(left, fontsize=8)
    for axes, names in ((middle, ("not zero", "above 1e-7")), (right, ("train", "top-5"))):
        for number, name in enumerate(names):
            label = {"train": "training data", "top-5": "test data", "not zero": "not 0"}.get(name, name)
            draw_line(axes, of_tau, "tau", name, label=label, color=COLORS[number])
        axes.set_xscale("symlog", linthresh=1e-3)
        axes.set_xlabel("tau (0: the hinge)")
        add_legend(axes, fontsize=8, loc="center right" if axes is middle else "center left")
    middle.set_ylabel("share of derivatives at the start, %")
    right.set_ylabel("top-5 accuracy, %")
    return [Drawing("tau", "The influence of the temperature on training, on the gradient and on accuracy.", figure)]


RECIPE = Recipe(
    name="temperature",
    title="The temperature and the margin of the smooth top-k loss",
    paper="Figure 2 and tables 6-8 of Berrada, Zisserman and Kumar, Smooth loss functions for deep top-k "
    "classification (ICLR 2018).",
    claim="With a temperature of 0.01 or more the network learns, below it fails: derivatives are numerically sparse "
    "there, and that they are not sparse is the key to training. A margin of 1 is slightly better than none.",
    cells=cells,
    tables=(
        Table(
            title="Temperature, k = 5",
            reference="Berrada et al. 2018, table 6 (DenseNet 40-12 on the images of CIFAR-100); the shares of "
            "derivatives are only drawn there, in figure 2b",
            by=("tau",),
            values=(
                Value("train", "top-5 on training data, %"),
                Value("top-5", "top-5 on test data, %"),
                Value("not zero", "derivatives not 0, %"),
                Value("above 1e-7", "above 1e-7, %"),
            ),
            published=TABLE_6,
            where={"part": "temperature"},
        ),
        Table(
            title="Margin: top-1 with k = 1, tau = 1 and top-5 with k = 5, tau = 0.1",
            reference="Berrada et al. 2018, tables 7 and 8 (ResNet-18 on ImageNet, validation data)",
            by=("k", "margin"),
            values=(Value("top-k", "top-k on validation data, %"), Value("test", "top-k on test data, %")),
            published=TABLES_7_AND_8,
            where={"part": "margin"},
        ),
    ),
    findings=findings,
    figures=figures,
    protocols=PROTOCOLS,
    needs={"cpu": CIFAR100_FEATURES_NEEDS, "paper": {**CIFAR100_NEEDS, **IMAGENET_NEEDS}},
    differences={
        "smoke": "Embedded data and four epochs: this only shows that everything runs.",
        "cpu": "A network with one hidden layer on frozen 256-dimensional features of 20,000 CIFAR-100 images, for "
        "both experiments; the optimizer and its schedule are the paper's, over 8 epochs instead of 300, and the same "
        "for every temperature.",
    },
)
