"""How every function of ``shortlist.functional`` is called: one generator each, found by the function's name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import shortlist.functional as F
from tests.fuzz.draw import DTYPES, ROWS, WIDTHS, Batch, Draw, strided

Options = Callable[[Draw, int], dict[str, Any]]


@dataclass(frozen=True)
class Function:
    """A generator, and what has to be known to compare its results.

    ``target``: "index", "matrix", "single" (one present label), "both", or "" for a layer. ``reductions``: those in
    which the native kernel works. ``minus_out``: -inf takes a label out of its row. ``ties``: which of several tied
    labels has the gradient is not said. ``kinked``: a hinge, whose slope is either of two where it is 0. ``coupled``:
    rows of a batch depend on each other.
    """

    options: Options
    target: str
    reductions: tuple[str, ...] = ("none", "none", "mean", "sum")
    least: int = 1  # labels
    minus_out: bool = False
    ties: bool = False
    kinked: bool = False
    coupled: bool = False
    class_weight: bool = False


def plain(draw: Draw, n: int) -> dict[str, Any]:
    return {}


def with_k(low: int = 1, spare: int = 0) -> Options:
    return lambda draw, n: {"k": draw.k(low, n - spare)}


def _temperature(draw: Draw) -> float:
    return 1.0 if draw.chance(0.5) else draw.number(1e-3, 1e3) if draw.chance(0.8) else draw.of([1e-15, 1e15])


def _smooth(draw: Draw, n: int) -> dict[str, Any]:
    return {"k": draw.k(1, n - 1), "tau": _temperature(draw), "alpha": draw.of([1.0, 0.0, 0.3])}


def _hinge(draw: Draw, n: int) -> dict[str, Any]:
    return {"k": draw.k(1, n - 1), "alpha": draw.of([1.0, 0.0, 0.3])}


def _noised(draw: Draw, n: int) -> dict[str, Any]:
    counts = {"class_counts": torch.from_numpy(draw.random.integers(1, 1000, n)), "max_margin": draw.number(0.1, 10)}
    chosen = counts if draw.chance(0.4) else {}
    scale = {"scale": draw.number(0.1, 50)} if draw.chance(0.3) else {}
    noise = {"n_samples": draw.of([0, 0, 1, 3]), "epsilon": draw.of([0.0, 1.0])}
    return {"k": draw.k(1, n - 1), **noise, **chosen, **scale}


def _lml(draw: Draw, n: int) -> dict[str, Any]:
    return {"k": draw.k(1, n + 1), "temperature": draw.of([1.0, 1.0, 0.25, 1024.0])}  # exact divisors


def _binary(draw: Draw, n: int) -> dict[str, Any]:
    one = draw.of([None, None, 0.0, 2.5])
    return {"pos_weight": torch.from_numpy(draw.random.random(n) * 3) if draw.chance(0.3) else one}


def _asymmetric(draw: Draw, n: int) -> dict[str, Any]:
    gammas = [0.0, 0.5, 1.0, 2.0, 4.0, 7.3]
    focus = {name: draw.of(gammas) for name in ("gamma_neg", "gamma_pos")}
    return {**focus, "clip": draw.of([0.0, 0.0, 0.05, 0.5]), "detach_focus": draw.chance(0.2)}


def _selective(draw: Draw, n: int) -> dict[str, Any]:
    return {
        **_asymmetric(draw, n),
        "gamma_unknown": draw.of([0.0, 1.5, 2.0]),
        "likelihood_topk": draw.of([0, 1, 3, n, 10 * n]),
        "mode": draw.of(["selective", "selective", "ignore", "negative"]),
        "prior": torch.from_numpy(draw.random.random(n) * 0.1) if draw.chance(0.5) else None,
    }


def _two_way(draw: Draw, n: int) -> dict[str, Any]:
    temperatures = {name: _temperature(draw) for name in ("positive_temperature", "negative_temperature")}
    return {**temperatures, "margin": draw.of([0.0, 1.0, -2.0]), "way": draw.of(["both", "class"])}


def _expected(draw: Draw, n: int) -> dict[str, Any]:
    k = draw.number(0.1, n) if n > 1 else 1.0
    return {"k": k, "beta": draw.of([0.0, 0.01, 3.0]), "normalize": draw.chance(0.3)}


def _average(draw: Draw, n: int) -> dict[str, Any]:
    return {"k": draw.of([1, min(1.5, n), n, (1 + n) / 2, max(1, n - 0.5)]), "alpha": draw.of([1.0, 0.0, 0.3])}


TOPK = {"minus_out": True, "class_weight": True}
REDUCED = ("mean", "sum")
FUNCTIONS: dict[str, Function] = {
    "smooth_topk_loss": Function(_smooth, "index", least=2, **TOPK),
    "topk_hinge_loss": Function(_hinge, "index", least=2, ties=True, kinked=True, **TOPK),
    "truncated_entropy_loss": Function(with_k(spare=0), "both", ties=True, **TOPK),
    "noised_topk_loss": Function(_noised, "index", least=2, ties=True, kinked=True, **TOPK),
    "lml_loss": Function(_lml, "both", **TOPK),
    "lml": Function(_lml, "", minus_out=True),
    "log_subset_sum": Function(with_k(), "", minus_out=True),
    "subset_marginals": Function(with_k(), "", minus_out=True),
    "multi_crop_probabilities": Function(with_k(), "", minus_out=True),
    "binary_loss": Function(_binary, "matrix", REDUCED),
    "partial_binary_loss": Function(lambda d, n: {"boost": d.of([5.0, 1.0, 0.1])}, "matrix"),
    "asymmetric_loss": Function(_asymmetric, "matrix", REDUCED),
    "partial_selective_loss": Function(_selective, "matrix", REDUCED),
    "two_way_loss": Function(_two_way, "matrix", REDUCED, coupled=True),
    "lsep_loss": Function(plain, "matrix"),
    "multilabel_softmax_loss": Function(plain, "matrix"),
    "warp_loss": Function(lambda d, n: {"exact": d.chance(0.6)}, "matrix", ties=True),
    "rml_loss": Function(lambda d, n: {"ramp": d.of([-0.8, 0.0, -5.0]), "label_weight": d.of([1.0, 0.0])}, "matrix"),
    "assume_negative_loss": Function(
        lambda d, n: {"weighted": d.chance(0.7), "label_smoothing": d.of([0.0, 0.0, 0.1, 1.0])},
        "single",
        class_weight=True,
    ),
    "expected_positive_loss": Function(_expected, "single", REDUCED, coupled=True, class_weight=True),
    "average_k_loss": Function(_average, "single", REDUCED, coupled=True, class_weight=True),
}


def draw_batch(name: str, seed: int, number: int) -> Batch:
    """Batch ``number`` of a run: its function's input, whatever else the run does."""
    draw, how = Draw(seed, number), FUNCTIONS[name]
    n = max(draw.of(WIDTHS), how.least)
    rows = 0 if draw.chance(0.01) else draw.of(ROWS)
    scores = draw.scores(rows, n, draw.of(DTYPES))
    batch = Batch(name, scores, options=how.options(draw, n), seed=draw.seed)
    if how.target:
        kind = draw.of(["index", "matrix"]) if how.target == "both" else how.target
        make = {"index": draw.index, "matrix": draw.matrix, "single": draw.single_positive}[kind]
        batch.tensors["target"] = make(rows, n)
        batch.tensors["sample_weight"] = draw.weights(rows)
        if how.class_weight and kind != "matrix":
            batch.tensors["weight"] = draw.weights(n)
        batch.options["reduction"] = draw.of(how.reductions)
    if name == "average_k_loss":
        batch.tensors["proposal_scores"] = draw.scores(rows, n, scores.dtype)
    if name != "multi_crop_probabilities":
        batch.tensors["mask"] = draw.mask(rows, n)
    if name in ("lml", "lml_loss") and draw.chance(0.3):
        batch.options["k"] = torch.from_numpy(draw.random.integers(1, n + 2, rows))
    if draw.chance(0.2):
        batch.scores = strided(batch.scores)
    return batch


def call(batch: Batch, scores: Tensor, **changed: Any) -> Tensor:
    """The function on ``scores``, everything else as in the batch."""
    arguments = {**batch.tensors, **batch.options, **changed}
    arguments = {key: value for key, value in arguments.items() if value is not None}
    if batch.name in ("warp_loss", "noised_topk_loss"):
        arguments["generator"] = torch.Generator().manual_seed(batch.seed)
    if batch.name == "multi_crop_probabilities":
        scores = scores.unsqueeze(-2).expand(*scores.shape[:-1], 2, scores.shape[-1])
    result: Tensor = getattr(F, batch.name)(scores, **arguments)
    return result

