"""Cross-entropy and smooth top-k on 5 to 100 % of the data, and several crops (its table 2)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.functional import multi_crop_probabilities
from shortlist.metrics import functional as M
from shortlist.runs.config import RunConfig
from shortlist.training.crops import crops_of, larger
from shortlist_recipes._published_training import resnet18_on_imagenet
from shortlist_recipes.cells import Cell, Numbers, TrainCell, Trained
from shortlist_recipes.figures import COLORS, Drawing, add_legend, draw_line, new_axes
from shortlist_recipes.known_data import (
    CIFAR100_FEATURES_NEEDS,
    IMAGENET_NEEDS,
    SOME_CIFAR100_NEEDS,
    cifar100_features,
    embedded,
    some_cifar100_images,
)
from shortlist_recipes.layout import SEED_BY_SEED, Texts, signed, verdicts
from shortlist_recipes.measures import top_accuracies
from shortlist_recipes.protocols.small_data import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, Value

SMOOTH, CROSS = "smooth-topk", "cross-entropy"
OBJECTIVES: dict[str, dict[str, Any]] = {CROSS: {}, SMOOTH: {"k": 5, "tau": 0.1}}
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
EPOCHS = {0.05: 40, 0.1: 24, 0.25: 12, 0.5: 8, 1.0: 8}  # at cpu scale: less data, more passes over it
IMAGE_EPOCHS = {0.25: 12, 1.0: 6}  # the shares of the images at cpu scale
IMAGENET_USE = {0.05: 64_000, 0.1: 128_000, 0.25: 320_000, 0.5: 640_000, 1.0: 1.0}  # the paper's numbers of images
SEEDS = {"smoke": 1, "cpu": 3, "paper": 1}
_CROPS_AT_ONCE = 1 << 23  # pixels

# Berrada et al. 2018, table 2: top-5 accuracy of cross-entropy and smooth top-k, over ten crops
_TABLE_2 = {1.0: (90.67, 90.61), 0.5: (87.57, 87.87), 0.25: (82.62, 83.38), 0.1: (71.06, 73.10), 0.05: (58.31, 60.44)}
PUBLISHED = {
    (share, objective): {"top-5": row[place]}
    for share, row in sorted(_TABLE_2.items())
    for place, objective in enumerate(OBJECTIVES)
}


def cells(scale: Scale, data: Path) -> list[Cell]:
    grid: list[Cell] = []

    def add(part: str, shares: Sequence[float]) -> None:
        for share in shares:
            for seed in range(SEEDS[scale]):
                for objective in OBJECTIVES:
                    keys: dict[str, Any] = {"part": part, "share": share, "objective": objective, "seed": seed}
                    measure = (
                        top_accuracies if part == "features" else crops_as_published if scale == "paper" else crops
                    )
                    grid.append(TrainCell(keys, config(scale, data, part, share, objective, seed), measure))

    if scale == "paper":
        add("images", SHARES)
        return grid
    add("features", (0.25, 1.0) if scale == "smoke" else SHARES)
    add("images", (1.0,) if scale == "smoke" else tuple(IMAGE_EPOCHS))
    return grid


def config(scale: Scale, data: Path, part: str, share: float, objective: str, seed: int) -> RunConfig:
    content: dict[str, Any] = {
        "objective": {"name": objective, **OBJECTIVES[objective]},
        "stop": {"metric": "topk-accuracy@5"},
        "seed": seed,
    }
    if scale == "paper":
        content |= resnet18_on_imagenet(data, smooth=objective == SMOOTH, use=IMAGENET_USE[share])
        return RunConfig.model_validate(content)
    content |= {
        # the rate that validation data chose for all losses of noisy-cifar100
        "optimizer": {"name": "adamw", "lr": 2e-3, "weight_decay": 1e-2},
        "schedule": {"name": "cosine"},
        "batch_size": 128,
        "accelerator": "cpu",
    }
    if part == "images":
        content |= {"augment": {"padding": 4, "flip": True}, "backbone": {"name": "convnet"}, "batch_size": 64}
    else:
        content |= {"backbone": {"name": "mlp", "hidden": [512]}}
    if scale == "smoke":
        content |= {"data": embedded(form="images" if part == "images" else "features", use=share), "epochs": 2}
    elif part == "images":
        content |= {"data": some_cifar100_images(data, use=share), "epochs": IMAGE_EPOCHS[share]}
    else:
        content |= {"data": cifar100_features(data, use=share), "epochs": EPOCHS[share]}
    return RunConfig.model_validate(content)


# ---- several crops


def crops(trained: Trained) -> Numbers:
    """Top-5 accuracy from the image as it is, and from ten crops by softmax and by subset marginals."""
    test = trained.parts["test"]
    scores = crop_scores(trained, test, trained.config.augment.padding)
    chances = {
        "one crop": trained.scores("test"),
        "softmax": scores.softmax(-1).mean(-2),
        "subsets": multi_crop_probabilities(scores, 5),
    }
    return {name: float(M.top_k_accuracy(found, test.target, 5)) for name, found in chances.items()}


def crops_as_published(trained: Trained) -> Numbers:
    """The same; the paper's own figures are those of subset marginals."""
    found = crops(trained)
    return {**found, "top-5": found["subsets"]}


@torch.no_grad()
def crop_scores(trained: Trained, dataset: Dataset, padding: int) -> Tensor:
    """The scores of ten crops of every image, (N, 10, L): files are decoded 8/7 as large (256 pixels for 224), pixels
    are padded."""
    learner = trained.learner.eval()
    device = next(learner.parameters()).device
    found, source = [], larger(dataset)
    for rows in torch.arange(len(dataset)).split(max(1, _CROPS_AT_ONCE // (10 * dataset.in_features))):
        images = source.batch(rows)[0].to(device)
        pieces = crops_of(torch.nn.functional.pad(images, (padding,) * 4), dataset.in_shape[1:], 10)
        found.append(learner.scores(pieces.flatten(0, 1)).unflatten(0, pieces.shape[:2]).float().cpu())
    return torch.cat(found)


# ---- what is shown


def findings(results: Results) -> list[str]:
    """Smooth top-k against cross-entropy at every share, subset marginals against softmax, and whether it is much."""
    compared, sentences = _with(results, "top-5"), []
    each = {f"{100 * share:g} %": gains for share, gains in _share_gains(compared).items()}
    if each:
        sentences.append(f"Top-5 accuracy of {SMOOTH} against {CROSS}, by the share of the data: {verdicts(each)}.")
    for objective in OBJECTIVES:
        crops = {f"{100 * share:g} %": subsets for share, name, _, subsets in _crops(results) if name == objective}
        if crops:
            sentences.append(
                f"{objective}, ten crops: top-5 accuracy by subset marginals against softmax, by the share of the "
                f"images: {verdicts(crops)}."
            )
    return sentences


def overview(results: Results) -> list[Texts]:
    """The differences that the findings speak of."""
    compared, tables = _with(results, "top-5"), []
    rows = []
    for share, gains in _share_gains(compared).items():
        published = PUBLISHED[share, SMOOTH]["top-5"] - PUBLISHED[share, CROSS]["top-5"]
        rows.append([f"{100 * share:g} %", f"{published:+.2f}", signed(gains)])
    header = ["share of the data", "published", "ours"]
    if rows:
        caption = f"{SMOOTH} against {CROSS}, in points of top-5 accuracy, {SEED_BY_SEED}"
        tables.append(Texts(header, rows, caption=caption))
    crops = [
        [f"{100 * share:g} %", objective, signed(softmax), signed(subsets)]
        for share, objective, softmax, subsets in _crops(results)
    ]
    header = [
        "share of the images",
        "objective",
        "softmax of ten crops against one crop",
        "subset marginals against it",
    ]
    if crops:
        tables.append(Texts(header, crops, 2, f"Ten crops, in points of top-5 accuracy, {SEED_BY_SEED}"))
    return tables


def _with(results: Results, name: str) -> Results:
    return Results([record for record in results.records if name in record.numbers])


def _share_gains(compared: Results) -> dict[float, list[float]]:
    """The gains at every share in points, seed by seed."""
    return {
        share: compared.gains("top-5", {"objective": SMOOTH}, {"objective": CROSS}, share=share)
        for share in compared.levels("share")
    }


def _crops(results: Results) -> list[tuple[float, str, list[float], list[float]]]:
    """Share, objective, and what ten crops gain by softmax over one crop, and by subset marginals over softmax."""
    found = []
    for share, objective in _with(results, "subsets").each("share", "objective"):
        here = results.where(part="images", share=share, objective=objective)
        softmax, subsets = here.differences("softmax", "one crop"), here.differences("subsets", "softmax")
        found.append((share, objective, softmax, subsets))
    return found


def figures(results: Results) -> Sequence[Drawing]:
    figure, [[left, right]] = new_axes(1, 2, width=9.5, height=3.8)
    compared = _with(results, "top-5")
    for number, objective in enumerate(OBJECTIVES):
        color = COLORS[number]
        draw_line(left, compared.where(objective=objective), "share", "top-5", label=objective, color=color)
        published = [(share, row["top-5"]) for (share, name), row in PUBLISHED.items() if name == objective]
        left.plot(*zip(*published, strict=True), ls=":", color=color, label=f"{objective}, published (ImageNet)")
    left.set_xscale("log")
    left.set_xticks(SHARES, [f"{100 * share:g} %" for share in SHARES])
    left.minorticks_off()
    left.set(xlabel="share of the training data", ylabel="top-5 test accuracy, %")
    add_legend(left, fontsize=8)
    groups = _with(results, "subsets").each("share", "objective")
    for place, (share, objective) in enumerate(groups):
        for number, name in enumerate(("one crop", "softmax", "subsets")):
            found = results.where(part="images", share=share, objective=objective)
            height, width = 100 * (found.mean(name) or 0.0), 100 * (found.interval(name) or 0.0)
            label = {"one crop": "one crop", "softmax": "ten, softmax", "subsets": "ten, subset marginals"}[name]
            where = place + 0.27 * (number - 1)
            color = COLORS[2 + number]
            right.errorbar(where, height, width, fmt="o", capsize=3, color=color, label=None if place else label)
    right.set_xticks(range(len(groups)), [f"{objective}\n{100 * share:g} %" for share, objective in groups], fontsize=8)
    right.set_ylabel("top-5 test accuracy from images, %")
    add_legend(right, fontsize=8, loc="upper left")
    return [Drawing("shares", "Accuracy against the share of the training data, and over several crops.", figure)]


RECIPE = Recipe(
    name="small-data",
    title="Little data, and several crops",
    paper="Table 2 and section 5.2 of Berrada, Zisserman and Kumar, Smooth loss functions for deep top-k "
    "classification (ICLR 2018).",
    claim="The smooth top-5 loss has the better top-5 accuracy when training data is restricted, and with all of it "
    "the difference is very small. Averaging over crops the probability to be among the five labels, instead of the "
    "softmax, gains at least 0.2 points for every loss, and up to 1 for cross-entropy with little data.",
    cells=cells,
    tables=(
        Table(
            title="Top-5 accuracy against the share of the training data",
            reference="Berrada et al. 2018, table 2 (ResNet-18 on ImageNet, ten crops)",
            by=("share", "objective"),
            values=(Value("top-5", "top-5, %"),),
            published=PUBLISHED,
        ),
        Table(
            title="Top-5 accuracy from several crops of an image",
            reference="Berrada et al. 2018, section 5.2, gives the gain of subset marginals over softmax only in words",
            by=("share", "objective"),
            values=(
                Value("one crop", "one crop, %"),
                Value("softmax", "ten crops, softmax, %"),
                Value("subsets", "ten crops, subset marginals, %"),
            ),
            where={"part": "images"},
        ),
    ),
    findings=findings,
    overview=overview,
    figures=figures,
    protocols=PROTOCOLS,
    needs={
        "cpu": {**CIFAR100_FEATURES_NEEDS, **SOME_CIFAR100_NEEDS},
        "paper": IMAGENET_NEEDS,
    },
    differences={
        "smoke": "Embedded data and two epochs: this only shows that everything runs.",
        "cpu": "CIFAR-100 instead of ImageNet. The shares are of 45,000 images: a network with one hidden layer on "
        "frozen features. The crops are of the shared 9,000 training images: a small convolutional network trained on "
        "them for a few epochs, and crops of the image padded by 4 pixels, as in its training.",
    },
)
