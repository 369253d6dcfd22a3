"""Losses for sets of K labels on average, balanced and long-tailed (average-K tables 1-2)."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from shortlist.runs.config import RunConfig
from shortlist_recipes._average_k_page import (
    ALPHAS_TRIED,
    BALANCED,
    LONG_TAILED,
    ONE_RATE,
    TUNED,
    figures,
    findings,
    overview,
)
from shortlist_recipes._average_k_sets import GROUPS, set_accuracies
from shortlist_recipes._published_training import densenet_on_cifar100, sgd, small_network_on_pixels
from shortlist_recipes.cells import Cell, FunctionCell, Numbers, TrainCell, train_model
from shortlist_recipes.known_data import (
    CIFAR100_FEATURES_NEEDS,
    CIFAR100_NEEDS,
    RESNET18_NEEDS,
    SOME_CIFAR100_NEEDS,
    cifar100_features,
    embedded,
)
from shortlist_recipes.protocols.average_k import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.tables import Table, Value

SEEDS = {"smoke": 1, "cpu": 3, "pixels": 2, "paper": 3}
ALPHAS = (0.001, 0.01, 0.1, 0.3, 1.0, 10.0, 100.0)
BATCH_SIZES = (16, 64, 256, 1024)
RATIO = 100.0  # of the largest to the smallest class, where the data is made long-tailed

PAPER: dict[str, dict[str, dict[str, Any]]] = {  # Garcin et al. 2023, tables 3 and 4
    BALANCED: {
        "cross-entropy": {},
        "average-k": {"alpha": 0.3},
        "role": {"beta": 0.0, "lr_multiple": 1.0},
        "assume-negative": {},
        "expected-positive": {"beta": 0.01},
        "noised-topk": {"epsilon": 0.2},
    },
    LONG_TAILED: {
        "cross-entropy": {},
        "noised-topk": {"epsilon": 1.0},
        "average-k": {"alpha": 5.0},
        "assume-negative": {},
        "expected-positive": {"beta": 0.001},
    },
}

# options and learning rates of the tuned way: the best average-5 accuracy on validation data (seed 100) of alpha 0.1,
# 0.3, 1, 3; beta 0.001, 0.01, 0.1 (role: 0, 1, and the table's rate x 1, x 10); epsilon 0.2, 1, 3; lr 5e-4, 2e-3, 5e-3
CHOSEN: dict[str, dict[str, tuple[dict[str, Any], float]]] = {
    BALANCED: {
        "cross-entropy": ({}, 5e-4),
        "average-k": ({"alpha": 0.3}, 2e-3),
        "role": ({"beta": 1.0, "lr_multiple": 10.0}, 2e-3),
        "assume-negative": ({}, 5e-4),
        "expected-positive": ({"beta": 0.1}, 5e-3),
        "noised-topk": ({"epsilon": 1.0}, 5e-4),
    },
    LONG_TAILED: {
        "cross-entropy": ({}, 2e-3),
        "average-k": ({"alpha": 0.3}, 2e-3),
        "role": ({"beta": 1.0, "lr_multiple": 10.0}, 2e-3),
        "assume-negative": ({}, 2e-3),
        "expected-positive": ({"beta": 0.01}, 2e-3),
        "noised-topk": ({"epsilon": 3.0}, 2e-3),
    },
}

# Garcin et al. 2023, table 1
TABLE_1 = {
    (5, objective): {"accuracy": accuracy}
    for objective, accuracy in {
        "cross-entropy": 96.83,
        "average-k": 97.35,
        "role": 96.12,
        "assume-negative": 96.71,
        "expected-positive": 95.88,
        "noised-topk": 96.32,
    }.items()
}
# table 2: K -> objective -> accuracy over all, few-shot, medium-shot and many-shot classes
_TABLE_2 = {
    2: {
        "cross-entropy": (89.63, 27.08, 65.83, 85.97),
        "noised-topk": (90.48, 24.98, 63.08, 87.21),
        "average-k": (90.34, 23.77, 61.81, 86.74),
        "assume-negative": (85.41, 2.05, 30.26, 76.64),
        "expected-positive": (86.30, 9.01, 37.27, 77.72),
    },
    3: {
        "cross-entropy": (92.64, 38.44, 75.55, 90.50),
        "noised-topk": (93.60, 38.46, 73.67, 91.85),
        "average-k": (93.81, 40.39, 76.50, 92.17),
        "assume-negative": (90.15, 7.46, 47.20, 86.04),
        "expected-positive": (90.49, 18.49, 51.58, 85.19),
    },
    5: {
        "cross-entropy": (95.11, 35.39, 83.65, 94.59),
        "noised-topk": (95.75, 49.90, 81.39, 95.00),
        "average-k": (96.42, 55.83, 88.19, 95.90),
        "assume-negative": (93.88, 20.31, 67.55, 92.66),
        "expected-positive": (93.63, 31.02, 65.85, 90.79),
    },
    10: {
        "cross-entropy": (97.11, 46.58, 91.71, 97.30),
        "noised-topk": (97.26, 56.49, 88.78, 97.26),
        "average-k": (98.23, 75.75, 94.14, 98.08),
        "assume-negative": (96.86, 42.61, 85.49, 96.87),
        "expected-positive": (95.99, 41.44, 78.61, 95.09),
    },
}
TABLE_2 = {
    (k, objective): dict(zip(("accuracy", *GROUPS), row, strict=True))
    for k, rows in _TABLE_2.items()
    for objective, row in rows.items()
}


# ---- the grid


def cells(scale: Scale, data: Path) -> list[Cell]:
    grid: list[Cell] = []
    for seed, (which, way, k, objective) in product(range(SEEDS[scale]), runs_of(scale)):
        keys: dict[str, Any] = {"part": "losses", "data": which, "way": way, "k": k}
        keys |= {"objective": objective, "seed": seed}
        made = config(scale, data, which, way, objective, k, seed)
        if objective == "average-k" and scale == "cpu":
            tried = [with_alpha(made, alpha) for alpha in ALPHAS_TRIED]
            grid.append(FunctionCell(keys, best_on_validation, {"configs": tried}))
        else:
            grid.append(TrainCell(keys, made, set_accuracies))
    for seed in range(SEEDS[scale]) if scale != "pixels" else ():
        for alpha in (0.1, 10.0) if scale == "smoke" else ALPHAS:
            keys = {"part": "alpha", "alpha": alpha, "seed": seed}
            made = small_config(scale, data, "average-k", seed, alpha=alpha)
            grid.append(TrainCell(keys, made, set_accuracies))
        for size in (32, 128) if scale == "smoke" else BATCH_SIZES:
            for objective in ("cross-entropy", "average-k"):
                keys = {"part": "batch size", "batch size": size, "objective": objective, "seed": seed}
                made = small_config(scale, data, objective, seed, batch_size=size)
                grid.append(TrainCell(keys, made, set_accuracies))
    return grid


def runs_of(scale: Scale) -> list[tuple[str, str, int, str]]:
    """Data, way of training, K and objective."""
    if scale == "pixels":
        return [(BALANCED, ONE_RATE, 5, objective) for objective in ("cross-entropy", "average-k")]
    ks = {LONG_TAILED: (5,) if scale == "smoke" else (2, 3, 5, 10), BALANCED: (5,)}  # as in the paper's tables
    if scale == "paper":
        return [(which, ONE_RATE, k, objective) for which in ks for k in ks[which] for objective in PAPER[which]]
    return [run for which in ks for run in product((which,), (ONE_RATE, TUNED), ks[which], PAPER[BALANCED])]


def rank(keys: Mapping[str, Any]) -> Any:
    """First the two losses that the paper compares, with K = 5."""
    return keys.get("objective") not in ("cross-entropy", "average-k"), keys.get("k") != 5


def config(scale: Scale, data: Path, which: str, way: str, objective: str, k: int, seed: int) -> RunConfig:
    """One loss on one data set: early stopping and threshold by average-k accuracy on validation data."""
    content = _common(k, seed)
    options = PAPER[which].get(objective, PAPER[BALANCED][objective])
    if scale == "paper":
        content |= densenet_on_cifar100(data) if which == BALANCED else _plantnet(data)
    elif scale == "pixels":
        content |= small_network_on_pixels(data)
    else:
        content |= {
            "data": _features(scale, data, which),
            "backbone": {"name": "mlp", "hidden": [256]},
            "optimizer": sgd(0.1),
            "schedule": {"name": "cosine"},
            "epochs": 2 if scale == "smoke" else 10 if which == BALANCED else 12,
            "batch_size": 64,
            "accelerator": "cpu",
        }
        if way == TUNED:
            options, lr = CHOSEN[which][objective]
            content |= {"optimizer": _adamw(lr), "batch_size": 128}
    return RunConfig.model_validate({**content, "objective": _objective(objective, k, options)})


def with_alpha(config: RunConfig, alpha: float) -> RunConfig:
    content = config.model_dump()
    return RunConfig.model_validate({**content, "objective": {**content["objective"], "alpha": alpha}})


def best_on_validation(configs: Sequence[RunConfig]) -> Numbers:
    """Train as each config says; the numbers of the one that is best on validation data, and its alpha."""
    found = [(set_accuracies(train_model(config)), config) for config in configs]
    best, config = max(found, key=lambda pair: pair[0]["validation"])
    return {**best, "alpha": float(config.objective.options["alpha"])}


def small_config(
    scale: Scale, data: Path, objective: str, seed: int, *, alpha: float | None = None, batch_size: int = 64
) -> RunConfig:
    """For the figures on alpha and the batch size: K = 5, learning rate in proportion to the batch size."""
    content = _common(5, seed)
    options = PAPER[BALANCED][objective] if alpha is None else {"alpha": alpha}
    if scale == "paper":
        content |= densenet_on_cifar100(data)
    else:
        content |= {
            "data": embedded(use=300) if scale == "smoke" else cifar100_features(data, use=10_000),
            "backbone": {"name": "mlp", "hidden": [256]},
            "schedule": {"name": "cosine"},
            "epochs": 2 if scale == "smoke" else 8,
            "accelerator": "cpu",
        }
    if alpha is None or scale == "paper":
        content |= {"optimizer": sgd(0.1 * batch_size / 64), "batch_size": batch_size}
    else:  # SGD does not survive an alpha of 100; AdamW is indifferent to the scale of the loss
        content |= {"optimizer": _adamw(2e-3), "batch_size": 128}
    return RunConfig.model_validate({**content, "objective": _objective(objective, 5, options)})


def _common(k: int, seed: int) -> dict[str, Any]:
    metric = f"average-k-accuracy@{k}"  # every objective here has the link of the paper's Algorithm 1, softmax
    return {"stop": {"metric": metric}, "metrics": [metric], "seed": seed}


def _objective(name: str, k: int, options: dict[str, Any]) -> dict[str, Any]:
    own_k = {} if name in ("cross-entropy", "assume-negative") else {"k": k}
    return {"name": name, **own_k, **options}


def _features(scale: Scale, data: Path, which: str) -> dict[str, Any]:
    # the test data stays as it is: see weights_of_test
    tail = [{"name": "long-tailed", "ratio": RATIO, "parts": ["train", "validation"]}]
    more: dict[str, Any] = {"corruptions": tail} if which == LONG_TAILED else {}
    if scale == "smoke":
        return embedded(**more)
    return cifar100_features(data, use=20_000 if which == BALANCED else 1.0, **more)


def _adamw(lr: float) -> dict[str, Any]:
    return {"name": "adamw", "lr": lr, "weight_decay": 1e-2}


def _plantnet(data: Path) -> dict[str, Any]:
    def images(part: str) -> dict[str, Any]:
        return {"reader": "plantnet", "path": str(data / "plantnet_300K"), "part": part, "size": 224, "crop": True}

    return {
        "data": {"train": images("train"), "validation": images("val"), "test": images("test"), "calibration": None},
        "augment": {"resize": 256},
        "backbone": {"name": "resnet18", "weights": str(data / "resnet18.pth")},
        "optimizer": sgd(0.002),
        "schedule": {"name": "step", "at": [25]},
        "epochs": 30,
        "batch_size": 32,
    }


_SETS = (Value("by own link", "threshold on the loss's own link, %"), Value("mean size", "mean size", 1.0))

RECIPE = Recipe(
    name="average-k",
    title="Sets of K labels on average",
    paper="Tables 1 and 2 and figures 4-6 of Garcin, Servajean, Joly and Salmon, A two-head loss function for deep "
    "Average-K classification (2023).",
    claim="The average-k loss has the best average-K accuracy but for K = 2, the more so the larger K is and the fewer "
    "examples a class has. Its sets of one label are fewer than those of cross-entropy, and sets are larger for rare "
    "classes. Any alpha from 0.01 to 10 does; large batches hurt it less than cross-entropy.",
    cells=cells,
    tables=(
        Table(
            title="Balanced data: average-K accuracy",
            reference="Garcin et al. 2023, table 1 (DenseNet 40-40 on the images of CIFAR-100)",
            by=("way", "k", "objective"),
            values=(Value("accuracy", "accuracy, %"), *_SETS),
            published={(ONE_RATE, *keys): row for keys, row in TABLE_1.items()},
            apart="way",
            where={"part": "losses", "data": BALANCED},
        ),
        Table(
            title="Long-tailed data: average-K accuracy, over all and by training images per class",
            reference="Garcin et al. 2023, table 2 (ResNet-18 on Pl@ntNet-300K: 1,081 species, so other data than ours "
            "at cpu scale); few: below 20 training images, many: above 100",
            by=("way", "k", "objective"),
            values=(
                Value("accuracy", "all classes, %"),
                Value("few", "few-shot classes, %"),
                Value("medium", "medium-shot classes, %"),
                Value("many", "many-shot classes, %"),
                *_SETS,
            ),
            published={(ONE_RATE, *keys): row for keys, row in TABLE_2.items()},
            across="k",
            apart="way",
            where={"part": "losses", "data": LONG_TAILED},
        ),
        Table(
            title="The alpha that validation data chose",
            reference="Garcin et al. 2023, tables 3 and 4: 0.3 on CIFAR-100, 5 on Pl@ntNet-300K",
            by=("data", "way", "k"),
            values=(Value("alpha", "mean over seeds", 1.0, 1),),
            across="k",
            where={"part": "losses", "objective": "average-k"},
        ),
        Table(
            title="alpha: average-5 accuracy of the average-k loss",
            reference="Garcin et al. 2023, figure 5, gives no numbers",
            by=("alpha",),
            values=(Value("validation", "validation, %"), Value("accuracy", "test, %")),
            where={"part": "alpha"},
        ),
        Table(
            title="Batch size: average-5 accuracy, learning rate in proportion",
            reference="Garcin et al. 2023, figure 6, gives no numbers",
            by=("batch size", "objective"),
            values=(Value("validation", "validation, %"), Value("accuracy", "test, %")),
            where={"part": "batch size"},
        ),
    ),
    findings=findings,
    overview=overview,
    figures=figures,
    protocols=PROTOCOLS,
    needs={
        "cpu": CIFAR100_FEATURES_NEEDS,
        "pixels": SOME_CIFAR100_NEEDS,
        "paper": {
            **CIFAR100_NEEDS,
            **RESNET18_NEEDS,
            "plantnet_300K": "the folder of plantnet_300K.zip (https://zenodo.org/records/5645731)",
        },
    },
    differences={
        "smoke": "Embedded data and two epochs: this only shows that everything runs.",
        "cpu": "Every loss is trained in two ways: with one rate of SGD for all, and its published options, as in the "
        "paper, and tuned, with the optimizer AdamW and a rate and options of its own, chosen on validation data for "
        "K = 5 and kept for the other K; in both, alpha is chosen on the validation data of each run. A network with "
        "one hidden layer on frozen 256-dimensional features of 20,000 CIFAR-100 images instead of a DenseNet on the "
        "images, and a long-tailed choice of them (450 images of the first class, 4 of the last) instead of "
        "Pl@ntNet-300K. Its validation data is as long-tailed; test data is balanced, and weighted by the classes' "
        "training frequencies. Alpha and batch size: 10,000 images, 8 epochs, of SGD for the batch size. Thresholds "
        "are on softmax scores, as in Algorithm 1; the column beside it has the loss's own link, sigmoid for all but "
        "cross-entropy and noised-topk.",
        "pixels": "A small convolutional network from random weights on 9,000 images, without augmentation.",
    },
    scales=("smoke", "cpu", "pixels", "paper"),
    rank=rank,
)
