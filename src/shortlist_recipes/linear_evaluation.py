"""Features trained with each loss, judged by linear classifiers on other classes (section B)."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shortlist.data import Dataset, split
from shortlist.models import build_backbone
from shortlist.runs.config import RunConfig
from shortlist_recipes._frozen_features import (
    STRENGTHS,
    as_label_matrix,
    evaluate_linearly,
    features_of,
    of_classes,
)
from shortlist_recipes.cells import Cell, FunctionCell, Numbers, Trained, train_model
from shortlist_recipes.figures import COLORS, Drawing, add_legend, new_axes
from shortlist_recipes.known_data import (
    CIFAR100_FEATURES_NEEDS,
    IMAGENET_NEEDS,
    cifar100_features,
    embedded,
    imagenet,
)
from shortlist_recipes.layout import SEED_BY_SEED, signed, verdicts
from shortlist_recipes.protocols.linear_evaluation import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.sources import parts_of
from shortlist_recipes.tables import Table, Value
from shortlist_recipes.two_way import LOSSES as MULTI_LABEL_LOSSES
from shortlist_recipes.two_way import as_the_author_trains

# where one label is present, as here, the sample-wise loss is the softmax loss
LOSSES = {loss: options for loss, options in MULTI_LABEL_LOSSES.items() if loss != "sample-wise"}
OTHER, COARSE = "other classes", "coarse labels"
INPUTS = "none: the inputs"
SEEDS = {"smoke": 1, "cpu": 3, "paper": 1}
USE = 4000  # images of the other classes that the logistic regressions are trained on
UNTIL_CONVERGED = 10_000  # steps of L-BFGS at most at paper scale
RATE = 3e-3  # at cpu scale: of 3e-4, 1e-3 and 3e-3 best for every loss on validation data of the 50 classes (seed 100)
# table A of the supplement: the data sets that features are tried on
DOWNSTREAM = ("aircraft", "caltech101", "cars", "cub", "dtd", "flowers", "food101", "pets", "sun397")


def cells(scale: Scale, data: Path) -> list[Cell]:
    grid: list[Cell] = []
    tasks = DOWNSTREAM if scale == "paper" else (OTHER, COARSE)
    losses = LOSSES if scale == "paper" else (*LOSSES, INPUTS)
    for seed, task, loss in product(range(SEEDS[scale]), tasks, losses):
        keys: dict[str, Any] = {"task": task, "loss": loss, "seed": seed}
        options: dict[str, Any] = {"config": config(scale, data, loss, seed)}
        if scale == "paper":
            options["target"] = downstream(data, task, seed)
            grid.append(FunctionCell(keys, transfer_to_data, options, resumable=True))
        else:
            options |= {"task": task, "trained": loss != INPUTS, "use": USE}
            options |= {"use": 200, "strengths": STRENGTHS[::11]} if scale == "smoke" else {}
            grid.append(FunctionCell(keys, transfer_to_classes, options))
    return grid


def config(scale: Scale, data: Path, loss: str, seed: int) -> RunConfig:
    """How the backbone is trained; targets become label matrices, with one label present."""
    content: dict[str, Any] = {
        "objective": LOSSES.get(loss, LOSSES["softmax"]),
        "stop": {"metric": "precision@1"},
        "metrics": ["precision@1"],
        "seed": seed,
    }
    if scale == "paper":
        content |= {"data": imagenet(data), "backbone": {"name": "resnet50"}, "epochs": 100}
        content |= as_the_author_trains(0.2)
        return RunConfig.model_validate(content)
    content |= {
        "data": embedded() if scale == "smoke" else cifar100_features(data),
        "backbone": {"name": "mlp", "hidden": [256]},
        "optimizer": {"name": "adamw", "lr": RATE, "weight_decay": 1e-2},
        "schedule": {"name": "cosine"},
        "epochs": 2 if scale == "smoke" else 5,
        "batch_size": 128,
        "accelerator": "cpu",
    }
    return RunConfig.model_validate(content)


def downstream(data: Path, name: str, seed: int) -> RunConfig:
    """One of the data sets that features are tried on; a fifth of its training images chooses the regularisation."""

    def part(which: str) -> dict[str, Any]:
        return {"reader": "image-folder", "path": str(data / name / which), "size": 224, "crop": True}

    parts = {"train": part("train"), "test": part("test"), "validation": 0.2, "calibration": None}
    return RunConfig.model_validate({"data": parts, "seed": seed})


# ---- what is measured


def transfer_to_classes(
    config: RunConfig, task: str, trained: bool, use: int, strengths: Sequence[float] = STRENGTHS
) -> Numbers:
    """Train a backbone on half of the classes, and evaluate its features on the other half."""
    parts = parts_of(config)
    _, others = halves(parts["train"], config.seed)
    numbers: dict[str, Any] = {}
    if trained:
        model = _trained_on_classes(config.model_dump_json())
        backbone: torch.nn.Module = model.learner.backbone
        first = model.scores("test").argmax(1)
        numbers["source"] = float((model.parts["test"].target.gather(1, first[:, None]) == 1).float().mean())
    else:
        backbone = build_backbone("identity", in_shape=parts["train"].in_shape)
    groups = parts["train"].groups
    assert groups is not None, "the data has coarse labels"
    evaluated = {}
    for part in ("train", "validation", "test"):
        some = of_classes(parts[part], others)
        if part == "train":
            (some,) = split(some, [use], seed=config.seed, stratify=True)
        classes = some.target if task == OTHER else groups[others][some.target]
        evaluated[part] = features_of(backbone, some), np.asarray(classes)
    return {**evaluate_linearly(evaluated, strengths=strengths), **numbers}


def halves(dataset: Dataset, seed: int) -> tuple[list[int], list[int]]:
    """Half of the classes of every coarse group, at random, and the others."""
    assert dataset.groups is not None, "the data has coarse labels"
    order = torch.randperm(dataset.num_labels, generator=torch.Generator().manual_seed(seed))
    by_group = order[dataset.groups[order].argsort(stable=True)].tolist()
    return sorted(by_group[::2]), sorted(by_group[1::2])


@lru_cache(maxsize=len(LOSSES))  # one training of each loss for all tasks of a seed
def _trained_on_classes(config: str) -> Trained:
    made = RunConfig.model_validate_json(config)
    parts = parts_of(made)
    ours, _ = halves(parts["train"], made.seed)
    chosen = {part: as_label_matrix(of_classes(dataset, ours)) for part, dataset in parts.items()}
    return train_model(made, parts=chosen)


def transfer_to_data(config: RunConfig, target: RunConfig, folder: Path | None) -> Numbers:
    """Train a backbone on all of the config's data, once for all targets, and evaluate its features on another."""
    trained = _trained_on_all(config.model_dump_json(), None if folder is None else folder.parent)
    parts = parts_of(target)
    evaluated = {
        part: (features_of(trained.learner.backbone, parts[part]), np.asarray(parts[part].target))
        for part in ("train", "validation", "test")
    }
    return evaluate_linearly(evaluated, max_iter=UNTIL_CONVERGED)


@lru_cache(maxsize=len(LOSSES))  # one training of each loss for all tasks of a seed
def _trained_on_all(config: str, runs: Path | None) -> Trained:
    made = RunConfig.model_validate_json(config)
    folder = None if runs is None else runs / f"backbone-{hashlib.sha256(config.encode()).hexdigest()[:16]}"
    chosen = {part: as_label_matrix(dataset) for part, dataset in parts_of(made).items()}
    return train_model(made, folder, chosen)


# ---- what is shown


def findings(results: Results) -> list[str]:
    sentences = []
    for task in results.levels("task"):
        here = results.where(task=task)
        means = here.means("chosen", "loss")
        best = max((loss for loss in means if loss != INPUTS), key=means.__getitem__)
        gains = here.gains("chosen", {"loss": "two-way"}, {"loss": "softmax"})
        inputs = f"; the inputs themselves give {100 * means[INPUTS]:.2f} %" if INPUTS in means else ""
        sentences.append(
            f"{task.capitalize()}: best features from {best}, {100 * means[best]:.2f} %; two-way against softmax, "
            f"{SEED_BY_SEED}: {signed(gains)} points{inputs}."
        )
    for task in results.where(loss=INPUTS).levels("task"):
        each = {
            loss: results.gains("chosen", {"loss": loss}, {"loss": INPUTS}, task=task)
            for loss in results.where(task=task).levels("loss")
            if loss != INPUTS
        }
        sentences.append(
            f"{task.capitalize()}: the features of a loss against its inputs, which come from a network trained on the "
            f"1,000 classes of ImageNet at cpu scale: {verdicts(each, 'for')}."
        )
    gaps = [100 * (r.numbers["best on test"] - r.numbers["chosen"]) for r in results.records]
    sentences.append(
        f"Choosing the regularisation on test data, as the paper does, shows {sum(gaps) / len(gaps):.2f} points more "
        f"on average than choosing it on validation data, and up to {max(gaps):.2f}."
    )
    return sentences


def figures(results: Results) -> Sequence[Drawing]:
    tasks = results.levels("task")
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = new_axes(rows, columns, width=5 * columns, height=3.8 * rows)
    for task, axes in zip(tasks, (axes for row in grid for axes in row), strict=False):
        here = results.where(task=task)
        for number, (loss,) in enumerate(here.each("loss")):
            means = here.mean_curve("curve", loss=loss)
            strengths = STRENGTHS if len(means) == len(STRENGTHS) else STRENGTHS[::11]
            color = "#545d69" if loss == INPUTS else COLORS[number % len(COLORS)]
            axes.plot(strengths, means, label=loss, color=color, ls="--" if loss == INPUTS else "-")
        axes.set(xscale="log", xlabel="strength of the regularisation", ylabel="test accuracy, %")
        axes.set_title(task, fontsize=10)
    add_legend(grid[0][0], fontsize=8)
    return [Drawing("strengths", "Test accuracy of linear classifiers on frozen features, means over seeds.", figure)]


RECIPE = Recipe(
    name="linear-evaluation",
    title="Linear evaluation of features",
    paper="Section B of the supplement of Kobayashi, Two-way multi-label loss (CVPR 2023).",
    claim="A loss is judged by how well a linear classifier does on other classes, given the frozen features of a "
    "network that was trained with it. The supplement has the protocol; the figures are in the paper's table 8.",
    cells=cells,
    tables=(
        Table(
            title="Accuracy of linear classifiers on frozen features",
            reference="the supplement gives no figures",
            by=("task", "loss"),
            values=(
                Value("chosen", "regularisation chosen on validation data, %"),
                Value("best on test", "best on test data (as the paper), %"),
                Value("log strength", "log10 of the strength chosen", 1.0),
                Value("source", "accuracy on the classes trained on, %"),
            ),
        ),
    ),
    findings=findings,
    figures=figures,
    protocols=PROTOCOLS,
    needs={
        "cpu": CIFAR100_FEATURES_NEEDS,
        "paper": {
            **IMAGENET_NEEDS,
            **{f"{name}/{part}": f"{name}, one folder per class" for name in DOWNSTREAM for part in ("train", "test")},
        },
    },
    differences={
        "smoke": "Embedded data, two epochs and five strengths: this only shows that everything runs.",
        "cpu": "A network with one hidden layer of 256 on frozen features of CIFAR-100 is trained on 50 classes, half "
        "of every coarse class, instead of a ResNet-50 on ImageNet; it is evaluated on the other 50 classes and on "
        "their 20 coarse ones instead of nine data sets. The regressions are trained on 4,000 of the 22,500 images of "
        "the other classes, each from the next stronger one's solution and for at most 50 steps of L-BFGS, so that "
        "the weakest do not converge. The strength is that beside the sum of the losses; the paper does not say.",
    },
)
