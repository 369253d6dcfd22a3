"""Top-k losses under label noise (smooth top-k table 1, LML figure 4), from features and from pixels."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shortlist.metrics import functional as M
from shortlist.runs.config import RunConfig
from shortlist_recipes._published_training import densenet_on_cifar100, sgd, small_network_on_pixels
from shortlist_recipes.cells import Cell, Numbers, TrainCell, Trained
from shortlist_recipes.figures import COLORS, Drawing, add_legend, draw_line, new_axes
from shortlist_recipes.known_data import (
    CIFAR100_FEATURES_NEEDS,
    CIFAR100_NEEDS,
    SOME_CIFAR100_NEEDS,
    cifar100_features,
    embedded,
)
from shortlist_recipes.layout import SEED_BY_SEED, Texts, signed, verdicts
from shortlist_recipes.measures import top_accuracies
from shortlist_recipes.protocols.noisy_cifar100 import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, Value

OBJECTIVES: dict[str, dict[str, Any]] = {
    "cross-entropy": {},
    "smooth-topk": {"k": 5, "tau": 1.0},
    "truncated-entropy": {"k": 5},
    "lml": {"k": 5},
    "noised-topk": {"k": 5, "epsilon": 1.0},
}
NOISE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
HUMAN = "human (0.40)"  # the share of wrong labels in CIFAR-100N
# how labels are drawn anew: what the program of Berrada et al. does, and what their text says, with validation labels
# drawn anew as well, which is harder; without noise they are the same, and run once
PROGRAM, TEXT = "blocks of five, clean validation", "coarse classes, noisy validation"
SMOOTH, CROSS, TRUNCATED = "smooth-topk", "cross-entropy", "truncated-entropy"
SEEDS: dict[Scale, int] = {"smoke": 2, "cpu": 3, "pixels": 2, "paper": 3}
FOUR_SEEDS = (TRUNCATED, "lml")  # as in Amos et al., at the scales that have their table
USE = 20_000  # training images at cpu scale: few enough for the network to fit their noise, as the paper's does
# what may make truncated entropy collapse, one thing at a time: changes of the config, at this noise
COLLAPSE_NOISE, COLLAPSE_SEEDS = 0.6, 4
VARIED: dict[str, dict[str, Any]] = {
    "as in the table": {},
    "a quarter of the rate": {"optimizer": {"name": "adamw", "lr": 5e-4, "weight_decay": 1e-2}},
    "SGD, rate 0.1": {"optimizer": sgd(0.1)},
    "batches of 64": {"batch_size": 64},
    "warm-up of two epochs": {"schedule": {"name": "cosine", "warm_up": 2}},
    "no hidden layer": {"backbone": {"name": "identity"}},
    "k = 2": {"objective": {"name": TRUNCATED, "k": 2}},
}
_HUMAN_LABELS = "cifar100/cifar100n_human_labels.npz"

# Berrada et al. 2018, table 1: noise -> top-1 of cross-entropy and of smooth top-k, top-5 of the same
_TABLE_1 = {
    0.0: (76.68, 69.33, 94.34, 94.29),
    0.2: (68.20, 71.30, 87.89, 90.59),
    0.4: (61.18, 70.02, 83.04, 87.39),
    0.6: (52.50, 67.97, 79.59, 83.86),
    0.8: (35.53, 55.85, 74.80, 79.32),
    1.0: (14.06, 15.28, 67.70, 72.93),
}
PUBLISHED = {
    (noise, objective): {"top-1": row[place], "top-5": row[2 + place]}
    for noise, row in _TABLE_1.items()
    for place, objective in enumerate((CROSS, SMOOTH))
}


def cells(scale: Scale, data: Path) -> list[Cell]:
    grid: list[Cell] = []
    for seed, form, noise, objective in runs_of(scale):
        keys = {"part": "losses", "form": form, "noise": noise, "objective": objective, "seed": seed}
        measure = accuracies_and_memory if scale == "pixels" else accuracies_and_stuck_labels
        grid.append(TrainCell(keys, config(scale, data, form, noise, objective, seed), measure))
    if scale == "cpu":
        for seed, form, varied in product(range(COLLAPSE_SEEDS), (PROGRAM, TEXT), VARIED):
            keys = {"part": "collapse", "form": form, "varied": varied, "seed": seed}
            made = config(scale, data, form, COLLAPSE_NOISE, TRUNCATED, seed, VARIED[varied])
            grid.append(TrainCell(keys, made, accuracies_and_stuck_labels))
    return grid


def runs_of(scale: Scale) -> list[tuple[int, str, float | str, str]]:
    """Seed, form of the noise, its level and objective."""
    if scale == "pixels":
        return list(product(range(SEEDS[scale]), (PROGRAM,), (0.0, 0.8), (CROSS, SMOOTH, "lml")))
    levels: dict[str, tuple[float | str, ...]] = {PROGRAM: NOISE, TEXT: NOISE[1:]}
    if scale == "smoke":
        levels = {PROGRAM: (0.0, 0.8), TEXT: (0.8,)}
    elif scale == "cpu":
        levels[TEXT] = (*NOISE[1:], HUMAN)
    return [
        (seed, form, noise, objective)
        for seed in range(SEEDS[scale] + 1)
        for form in levels
        for noise in levels[form]
        for objective in OBJECTIVES
        if seed < SEEDS[scale] or (scale != "smoke" and objective in FOUR_SEEDS)
    ]


def rank(keys: Mapping[str, Any]) -> Any:
    """First what the paper says most about: the two losses, many wrong labels and none, the noise of the program; then
    why truncated entropy collapses."""
    kind = 1 if keys["part"] == "collapse" else 0 if keys["objective"] in (CROSS, SMOOTH) else 2
    return kind, keys.get("noise") != 0.8, keys.get("noise") != 0.0, keys.get("form") != PROGRAM


def config(
    scale: Scale,
    data: Path,
    form: str,
    noise: float | str,
    objective: str,
    seed: int,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> RunConfig:
    """The same for every objective, but for its name and options; ``changes``: what is varied."""
    own = {"block": 5, "parts": ["train"]} if form == PROGRAM else {"parts": ["train", "validation"]}
    corruptions = [{"name": "noise-within-groups", "p": noise, **own}]
    content: dict[str, Any] = {
        "objective": {"name": objective, **OBJECTIVES[objective]},
        "stop": {"metric": "topk-accuracy@5"},
        "seed": seed,
    }
    if scale in ("paper", "pixels"):
        train = densenet_on_cifar100 if scale == "paper" else small_network_on_pixels
        content |= train(data, corruptions=corruptions)
        return RunConfig.model_validate(content)
    content |= {
        "backbone": {"name": "mlp", "hidden": [512]},
        # of 5e-4, 2e-3, 5e-3 and 1e-2 the best for every objective on validation data with noise 0.4 (seed 100)
        "optimizer": {"name": "adamw", "lr": 2e-3, "weight_decay": 1e-2},
        "schedule": {"name": "cosine"},
        "batch_size": 256,
        "accelerator": "cpu",
    }
    if scale == "smoke":
        content |= {"data": embedded(corruptions=corruptions), "epochs": 2, "batch_size": 64}
    elif noise == HUMAN:
        content |= {"data": _human_noise(data), "epochs": 12}
    else:
        content |= {"data": cifar100_features(data, use=USE, corruptions=corruptions), "epochs": 12}
    return RunConfig.model_validate({**content, **changes})


def _human_noise(data: Path) -> dict[str, Any]:
    """Train and validation labels as people gave them (CIFAR-100N); the file has no names, so the labels have none."""
    parts = cifar100_features(data, use=USE)
    for part in ("train", "test"):
        kept = {key: parts[part][key] for key in ("reader", "path", "labels", "labels_key")}
        parts[part] = {**kept, "num_labels": 100}
    parts["train"] |= {"labels": str(data / _HUMAN_LABELS), "labels_key": "noisy_fine"}
    return parts


def accuracies_and_stuck_labels(trained: Trained) -> Numbers:
    """Top-1 and top-5 accuracy on clean labels, and how many labels are among the first five of most test images.

    A label's share is 1 in 20; one that is among the five everywhere takes a place from the others.
    """
    scores = trained.scores("test")
    counts = scores.topk(5).indices.flatten().bincount(minlength=scores.shape[1])
    return {**top_accuracies(trained), "stuck": float((2 * counts > len(scores)).sum())}


def accuracies_and_memory(trained: Trained) -> Numbers:
    """The same; how many training labels, noise and all, are the first answer; and the last epoch's validation."""
    learned = M.top_k_accuracy(trained.scores("train"), trained.parts["train"].target, 1)
    curve = [float(record["topk-accuracy@5"]) for record in trained.history.records]
    return {
        **accuracies_and_stuck_labels(trained),
        "learned": float(learned),
        "best validation": max(curve),
        "last validation": curve[-1],
        "curve": curve,
    }


# ---- what is shown


_STUCK = "a label is among the first five of most test images, where it takes a place from the others"


def findings(results: Results) -> list[str]:
    """Smooth top-k against cross-entropy, the best loss of all, when it is best, and labels that got stuck."""
    losses, sentences = results.where(part="losses"), []
    for form in losses.levels("form"):
        here = losses.where(form=form)
        levels = here.levels("noise")
        sentences += [
            f"Noise in {form}: {name} accuracy of {SMOOTH} against {CROSS}, by the noise: "
            + verdicts({str(noise): _gains(here, name, noise) for noise in levels})
            + "."
            for name in ("top-5", "top-1")
        ]
        for other in here.levels("objective"):
            each = {
                str(noise): here.gains("top-5", {"objective": other}, {"objective": SMOOTH}, noise=noise)
                for noise in levels
            }
            if other not in (SMOOTH, CROSS) and any(each.values()):
                sentences.append(f"Noise in {form}: top-5 accuracy of {other} against {SMOOTH}: {verdicts(each)}.")
        best: dict[str, list[str]] = {}
        for noise in levels:
            best.setdefault(_best(here, noise)[0], []).append(str(noise))
        won = "; ".join(f"{objective} at {', '.join(at)}" for objective, at in best.items())
        won = won if len(best) > 1 else f"{next(iter(best))} everywhere"
        if len(here.each("objective")) > 1:
            sentences.append(f"Noise in {form}: the highest mean of top-5, by the noise: {won}.")
    best_epochs = {o: losses.mean("best epoch", objective=o) for o in losses.levels("objective")}
    epochs = [f"{o} {number:.1f}" for o, number in best_epochs.items() if number is not None]
    if epochs:
        sentences.append(f"The best epoch on validation data has, on average, the number: {', '.join(epochs)}.")
    for objective in losses.levels("objective"):
        stuck = losses.values("stuck", objective=objective)
        if any(stuck):
            sentences.append(f"{objective}: in {sum(map(bool, stuck))} of {len(stuck)} runs {_STUCK}.")
    return [*sentences, *_collapse_findings(results.where(part="collapse")), *_memory_findings(losses)]


def _collapse_findings(collapse: Results) -> list[str]:
    """In how many runs truncated entropy has stuck labels, by what was varied."""
    sentences = []
    for form in collapse.levels("form"):
        here, each = collapse.where(form=form), []
        for varied in here.levels("varied"):
            stuck = here.values("stuck", varied=varied)
            each.append(f"{varied} {sum(map(bool, stuck))} of {len(stuck)}")
        place = f"{TRUNCATED} at noise {COLLAPSE_NOISE} in {form}"
        sentences.append(f"{place}, runs with stuck labels: {', '.join(each)}.")
    return sentences


def _memory_findings(losses: Results) -> list[str]:
    """How much of the training labels was learned by heart, and what early stopping is worth."""
    sentences = []
    for noise in losses.levels("noise"):
        each = []
        for objective in losses.levels("objective"):
            here = losses.where(noise=noise, objective=objective)
            learned, best, last = (here.mean(name) for name in ("learned", "best validation", "last validation"))
            if learned is not None and best is not None and last is not None:
                each.append(f"{objective} {100 * learned:.1f} % and {100 * (best - last):.1f} points")
        if each:
            sentences.append(
                f"Noise {noise}: training labels that are the first answer of the chosen epoch, and how far the last "
                f"epoch is below the best in top-5 on validation data: {', '.join(each)}."
            )
    return sentences


def overview(results: Results) -> list[Texts]:
    tables = []
    for form in results.where(part="losses").levels("form"):
        here = results.where(part="losses", form=form)
        header = ["noise", "highest mean of top-5"]
        for name in ("top-5", "top-1"):
            header += [f"{name}: published", "ours"]
        rows = []
        for noise in here.levels("noise"):
            best, accuracy = _best(here, noise)
            row = [str(noise), f"{best}, {accuracy:.2f} %"]
            for name in ("top-5", "top-1"):
                pair = [PUBLISHED.get((noise, objective)) for objective in (SMOOTH, CROSS)]
                published = "" if pair[0] is None or pair[1] is None else f"{pair[0][name] - pair[1][name]:+.2f}"
                row += [published, signed(_gains(here, name, noise))]
            rows.append(row)
        caption = f"{form}: {SMOOTH} against {CROSS}, in points of accuracy, {SEED_BY_SEED}"
        tables.append(Texts(header, rows, 2, caption))
    return tables


def _gains(results: Results, name: str, noise: Any) -> list[float]:
    """Of smooth top-k over cross-entropy in points, seed by seed."""
    return results.gains(name, {"objective": SMOOTH}, {"objective": CROSS}, noise=noise)


def _best(results: Results, noise: Any) -> tuple[str, float]:
    means = results.where(noise=noise).means("top-5", "objective")
    best = max(means, key=means.__getitem__)
    return best, 100 * means[best]


def figures(results: Results) -> Sequence[Drawing]:
    drawings = []
    for form in results.where(part="losses").levels("form"):
        figure, [axes] = new_axes(1, 2, width=9, height=3.8)
        here = results.where(part="losses", form=form)
        levels = Results([record for record in here.records if not isinstance(record.keys["noise"], str)])
        for place, name in enumerate(("top-1", "top-5")):
            for number, objective in enumerate(OBJECTIVES):
                some = levels.where(objective=objective)
                draw_line(axes[place], some, "noise", name, label=objective, color=COLORS[number])
            axes[place].set(xlabel="share of labels drawn anew", ylabel=f"{name} test accuracy, %")
        add_legend(axes[0])
        caption = f"Accuracy on clean test labels against the noise, in {form}; band: 95 % interval."
        drawings.append(Drawing("program" if form == PROGRAM else "text", caption, figure))
    return drawings


def _table(form: str, said: str) -> Table:
    return Table(
        title=f"Accuracy on the clean test labels, noise in {form}",
        reference="Berrada et al. 2018, table 1 (DenseNet 40-40 on the images, 3 seeds, whose standard deviations are "
        f"0.13 to 0.97 in top-1 and 0.08 to 0.39 in top-5, table 9); {said}",
        by=("noise", "objective"),
        values=(Value("top-1", "top-1, %"), Value("top-5", "top-5, %")),
        published={key: row for key, row in PUBLISHED.items() if key[0] or form == PROGRAM},
        apart="noise",
        where={"part": "losses", "form": form},
    )


RECIPE = Recipe(
    name="noisy-cifar100",
    title="CIFAR-100 with label noise",
    paper="Table 1 of Berrada, Zisserman and Kumar, Smooth loss functions for deep top-k classification (ICLR 2018), "
    "and figure 4 of Amos, Koltun and Kolter, The limited multi-label projection layer (2019).",
    claim="With noisy labels the smooth top-5 loss is better than cross-entropy in top-5 and in top-1 accuracy, and "
    "the more so the more noise there is; without noise cross-entropy is better in top-1. Truncated entropy and LML "
    "do as well as the smooth top-5 loss.",
    cells=cells,
    tables=(
        _table(PROGRAM, "this is the noise of the authors' program"),
        _table(TEXT, "this is the noise of their text; without noise the forms are the same"),
        Table(
            title="From pixels: what was learned by heart, and what early stopping is worth",
            reference="no table of the paper",
            by=("noise", "objective"),
            values=(
                Value("learned", "training labels that are the first answer, %"),
                Value("best validation", "best top-5 on validation data, %"),
                Value("last validation", "after the last epoch, %"),
            ),
            where={"part": "losses"},
        ),
        Table(
            title="Truncated entropy: one thing varied at a time",
            reference="no table of the paper",
            by=("form", "varied"),
            values=(
                Value("top-1", "top-1, %"),
                Value("top-5", "top-5, %"),
                Value("stuck", "stuck labels", 1.0),
            ),
            apart="form",
            where={"part": "collapse"},
        ),
    ),
    findings=findings,
    overview=overview,
    figures=figures,
    protocols=PROTOCOLS,
    needs={
        "cpu": {**CIFAR100_FEATURES_NEEDS, _HUMAN_LABELS: "the labels of CIFAR-100N (noisy_fine)"},
        "pixels": SOME_CIFAR100_NEEDS,
        "paper": CIFAR100_NEEDS,
    },
    differences={
        "smoke": "Embedded data and two epochs: this only shows that everything runs.",
        "cpu": "A network with one hidden layer on frozen 256-dimensional features (EfficientNet-Lite0, trained on "
        "ImageNet) of 20,000 images instead of a DenseNet trained on 45,000 images.",
        "pixels": "A small convolutional network from random weights on 9,000 images, without augmentation.",
    },
    scales=("smoke", "cpu", "pixels", "paper"),
    rank=rank,
)
