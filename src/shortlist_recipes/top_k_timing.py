"""Time and stability of the top-k losses beside the published algorithms (smooth top-k tables 3-5)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist import functional as F
from shortlist.errors import ShortlistError
from shortlist.timing import fastest_stages
from shortlist_recipes import rivals
from shortlist_recipes.cells import Cell, FunctionCell, Numbers
from shortlist_recipes.figures import COLORS, Drawing, draw_line, new_axes
from shortlist_recipes.layout import NO_VALUE, Texts
from shortlist_recipes.protocols.top_k_timing import PROTOCOLS
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, Value

Loss = Callable[[Tensor, Tensor], Tensor]
OURS: dict[str, Callable[..., Tensor]] = {
    "smooth-topk": F.smooth_topk_loss,
    "lml": F.lml_loss,
    "truncated-entropy": F.truncated_entropy_loss,
    "noised-topk": F.noised_topk_loss,
}
PUBLISHED = ("SA", "SA (CB)", "DC (AD)", "DC (CB)", "LML bracketing")
BATCH = 256
LOGITS = "cifar100_features/test_logits_linear_fp16.npy"
_STABLE = ("SA", "DC (AD)", "smooth-topk")

# Berrada et al. 2018, tables 3 and 4, in milliseconds (Titan Xp, k = 5, batches of 256). SA forward is Algorithm 3, DC
# Algorithm 1; AD: backward by automatic differentiation, CB: their own backward. The forward pass is the same for both.
_FORWARD = {"SA": (6, 62, 627, 6258), "DC (CB)": (11, 18, 24, 146)}
_BACKWARD = {"DC (AD)": (93, 139, 194, 287), "DC (CB)": (7, 6, 20, 171)}
_SIZES = (100, 1000, 10_000, 100_000)
TABLES_3_AND_4: dict[tuple[Any, ...], dict[str, float]] = {}
for _name, _found in (("forward", _FORWARD), ("backward", _BACKWARD)):
    for _algorithm, _times in _found.items():
        for _n, _time in zip(_SIZES, _times, strict=True):
            TABLES_3_AND_4.setdefault((_n, _algorithm), {})[_name] = _time
# the same paper, table 5: how many of tau = 10, 1, 0.1, ... 0.0001 are stable
TAUS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
TABLE_5 = {
    (algorithm, precision, tau): {"forward": 1.0 if place < stable else 0.0}
    for algorithm, precision, stable in (("SA", "S", 2), ("SA", "D", 3), ("DC (AD)", "S", 6), ("DC (AD)", "D", 6))
    for place, tau in enumerate(TAUS)
}


def cells(scale: Scale, data: Path) -> list[Cell]:
    """Sizes, then numbers of labels in a set, then stability; peers from PyPI where they are installed."""
    sizes = {"smoke": (50,), "cpu": _SIZES, "paper": _SIZES}[scale]
    counts = {"smoke": (5,), "cpu": (5, 10, 20, 50, 100), "paper": (5, 10, 20, 50, 100)}[scale]
    device = "cuda" if scale == "paper" else "cpu"
    seconds = {"smoke": 0.0, "cpu": 0.7, "paper": 2.0}[scale]
    grid: list[Cell] = []

    def timed(part: str, algorithm: str, n: int, k: int) -> None:
        keys: dict[str, Any] = {"part": part, "n": n, "k": k, "algorithm": algorithm}
        options = {"algorithm": algorithm, "n": n, "k": k, "device": device, "seconds": seconds}
        grid.append(FunctionCell(keys, measure_time, {**options, "batch": 8 if scale == "smoke" else BATCH}))

    for n in sizes:
        for algorithm in _algorithms():
            if scale == "paper" or _is_feasible(algorithm, n):
                timed("n", algorithm, n, 5)
    for k in counts:
        for algorithm in _algorithms():
            if k != 5:  # that one is among the sizes
                timed("k", algorithm, 1000, k)
    for algorithm in _STABLE:
        for precision in ("S", "D"):
            for tau in TAUS:
                keys: dict[str, Any] = {"part": "stability", "algorithm": algorithm, "precision": precision, "tau": tau}
                scores = str(data / LOGITS) if scale != "smoke" else None
                options = {"algorithm": algorithm, "double": precision == "D", "tau": tau, "scores": scores}
                grid.append(FunctionCell(keys, stability_and_error, options))
    return grid


def _algorithms() -> list[str]:
    return ["cross-entropy", *OURS, *PUBLISHED, *rivals.installed_peers()]


def _is_feasible(algorithm: str, n: int) -> bool:
    """Whether a pass takes seconds, and not minutes, on one core."""
    return n <= 10_000 or algorithm not in ("LML bracketing", *rivals.PEERS)


# ---- what is measured


def measure_time(algorithm: str, n: int, k: int, batch: int, device: str, seconds: float) -> Numbers:
    """Milliseconds of the fastest forward and backward pass; the ratio to cross-entropy, which takes turns with it."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ShortlistError("the scale paper measures on a CUDA device, and there is none here: use --scale cpu")
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(batch, n, generator=generator).to(device).requires_grad_()
    target = torch.randint(n, (batch,), generator=generator).to(device)
    losses = [loss_of(algorithm, n, k), torch.nn.functional.cross_entropy]
    stages = [_stages(loss, scores, target) for loss in losses]
    ours, theirs = fastest_stages(stages, seconds, turns=1)  # a pass of the slowest takes seconds
    forward, backward = (1e3 * stage for stage in ours)
    return {"forward": forward, "backward": backward, "total": forward + backward, "ratio": sum(ours) / sum(theirs)}


def _stages(loss: Loss, scores: Tensor, target: Tensor) -> list[Callable[[], None]]:
    """Forward, then backward; each ends when the device has done it."""
    values: list[Tensor] = []

    def forward() -> None:
        values.append(loss(scores, target))
        _finish(scores.device)

    def backward() -> None:
        scores.grad = None
        values.pop().backward()
        _finish(scores.device)

    return [forward, backward]


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def loss_of(algorithm: str, n: int, k: int, tau: float = 1.0) -> Loss:
    """A loss by the name it has in the tables."""
    if algorithm == "cross-entropy":
        return torch.nn.functional.cross_entropy
    if algorithm in OURS:
        function, options = OURS[algorithm], {"tau": tau} if algorithm == "smooth-topk" else {}
        return lambda scores, target: function(scores, target, k, **options)
    if algorithm in rivals.PEERS:
        return rivals.peer(algorithm, n, k)
    return rivals.published(algorithm, k, tau)


def stability_and_error(algorithm: str, double: bool, tau: float, scores: str | None, rows: int = 128) -> Numbers:
    """Whether loss and gradient are finite on a classifier's scores, and the largest error of a derivative.

    The error is against our loss in double precision, which the tests compare with enumeration, and has none itself.
    """
    if scores is None:
        raw = 5 * torch.randn(rows, 50, generator=torch.Generator().manual_seed(0))
    else:
        raw = torch.from_numpy(np.load(scores, allow_pickle=False)[:rows].astype(np.float32))
    target = torch.arange(rows) % raw.shape[1]
    loss, gradient = _loss_and_gradient(algorithm, raw.double() if double else raw, target, tau)
    _, exact = _loss_and_gradient("smooth-topk", raw.double(), target, tau)
    finite = bool(gradient.isfinite().all())
    itself = double and algorithm == "smooth-topk"
    error = float((gradient.double() - exact).abs().max()) * rows if finite and not itself else None
    return {"forward": float(loss.isfinite()), "backward": float(finite), "error": error}


def _loss_and_gradient(algorithm: str, scores: Tensor, target: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    scores = scores.clone().requires_grad_()
    loss = loss_of(algorithm, scores.shape[1], 5, tau)(scores, target)
    (gradient,) = torch.autograd.grad(loss, scores)
    return loss.detach(), gradient


# ---- what is shown


def findings(results: Results) -> list[str]:
    sentences = []
    faster = _times_as_fast(results)
    for which, names in ((f"{', '.join(PUBLISHED[:4])}, as written here", PUBLISHED[:4]), ("difftopk", ("difftopk",))):
        found = [times[name] for times in faster.values() for name in names if name in times]
        if found:
            times = " to ".join(dict.fromkeys(f"{end:.0f}" for end in (min(found), max(found))))
            sentences.append(f"Our smooth-topk is {times} times as fast as {which}.")
    ratios = {n: results.mean("ratio", part="n", n=n, algorithm="smooth-topk") or 0.0 for n in faster}
    each = ", ".join(f"{ratio:.1f} times as long for {n:,} labels" for n, ratio in ratios.items())
    sentences.append(f"Beside cross-entropy it takes {each}.")
    broken = {f"{row[0]} in {row[1]} precision": row[2] for row in _stability(results)}
    always = [name for name, taus in broken.items() if not taus]
    sentences += [f"{name} has no finite gradient at tau = {taus}." for name, taus in broken.items() if taus]
    if always:
        sentences.append(f"Always finite: {', '.join(always)}.")
    return sentences


def overview(results: Results) -> list[Texts]:
    """The numbers that the findings speak of."""
    faster = _times_as_fast(results)
    names = list(dict.fromkeys(name for times in faster.values() for name in times))
    rows = []
    for n, times in faster.items():
        ours = results.mean("total", part="n", n=n, algorithm="smooth-topk") or 0.0
        ratio = results.mean("ratio", part="n", n=n, algorithm="smooth-topk") or 0.0
        each = [f"{times[name]:.0f}" if name in times else "" for name in names]
        rows.append([f"{n:,}", f"{ours:.2f}", f"{ratio:.1f}", *each])
    header = ["n", "forward and backward, ms", "times cross-entropy", *(f"times as fast as {name}" for name in names)]
    stable = [[name, precision, taus or "none", error] for name, precision, taus, error in _stability(results)]
    columns = ["algorithm", "precision", "no finite gradient at tau", "largest error of a finite derivative"]
    return [Texts(header, rows, caption="Our smooth-topk, k = 5"), Texts(columns, stable, 3, "Stability")]


def _times_as_fast(results: Results) -> dict[int, dict[str, float]]:
    """For each number of labels, how many times as long as our smooth top-k loss the others take."""
    found: dict[int, dict[str, float]] = {}
    for n in results.where(part="n").levels("n"):
        ours = results.mean("total", part="n", n=n, algorithm="smooth-topk") or 1.0
        theirs = {name: results.mean("total", part="n", n=n, algorithm=name) for name in (*PUBLISHED[:4], "difftopk")}
        found[n] = {name: total / ours for name, total in theirs.items() if total is not None}
    return found


def _stability(results: Results) -> list[tuple[str, str, str, str]]:
    """Algorithm, precision, the temperatures where it breaks, and its largest error elsewhere."""
    rows = []
    for algorithm, precision in results.where(part="stability").each("algorithm", "precision"):
        of_one = results.where(part="stability", algorithm=algorithm, precision=precision)
        broken = [f"{tau:g}" for tau in of_one.levels("tau") if not of_one.mean("backward", tau=tau)]
        errors = of_one.values("error")
        error = f"{max(errors):.1e}" if errors else NO_VALUE
        rows.append((algorithm, "double" if precision == "D" else "single", ", ".join(broken), error))
    return rows


_MARKERS = ("s", "^", "v", "D", "<", ">", "P", "X")  # of the dotted lines, which are more than colours


def figures(results: Results) -> Sequence[Drawing]:
    figure, [axes] = new_axes(1, 2, width=10, height=4.2)
    both = {"n": results.where(part="n"), "k": Results([r for r in results.records if r.keys.get("n") == 1000])}
    for place, (x, chosen) in enumerate(both.items()):
        for number, (name,) in enumerate(results.each("algorithm")):
            is_ours = name in ("cross-entropy", *OURS)
            style = {} if is_ours else {"ls": ":", "marker": _MARKERS[number % len(_MARKERS)], "mfc": "white"}
            style["color"] = COLORS[number % len(COLORS)]
            draw_line(axes[place], chosen.where(algorithm=name), x, "total", label=name, factor=1.0, **style)
        across = {"n": "labels (k = 5)", "k": "k (1,000 labels)"}[x]
        axes[place].set(xscale="log", yscale="log", xlabel=across, ylabel="forward and backward, milliseconds")
    axes[1].legend(
        *axes[0].get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        handlelength=3,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    return [Drawing("time", "Time of a forward and backward pass; dotted: published algorithms and peers.", figure)]


_MILLISECONDS = (
    Value("forward", "forward, ms", factor=1.0, compare=False),
    Value("backward", "backward, ms", factor=1.0, compare=False),
    Value("ratio", "both, times cross-entropy", factor=1.0, digits=1),
)

RECIPE = Recipe(
    name="top-k-timing",
    title="Time and stability of the top-k losses",
    paper="Tables 3-5 of Berrada, Zisserman and Kumar, Smooth loss functions for deep top-k classification (ICLR "
    "2018), and figure 3 of Amos, Koltun and Kolter, The limited multi-label projection layer (2019).",
    claim="Divide and conquer (DC) is much faster than the summation algorithm (SA) for many labels, its own backward "
    "pass (CB) much faster than automatic differentiation (AD), and in log space it is stable at every temperature "
    "where SA overflows below 0.1. The smooth loss becomes expensive as k grows, LML and truncated entropy do not.",
    cells=cells,
    tables=(
        Table(
            title=f"Time against the number of labels n, k = 5, batches of {BATCH}",
            reference="Berrada et al. 2018, tables 3 and 4, on a Titan Xp, so on another machine than ours",
            by=("n", "algorithm"),
            values=_MILLISECONDS,
            published=TABLES_3_AND_4,
            where={"part": "n"},
            across="n",
        ),
        Table(
            title="Time against k, 1,000 labels",
            reference="Amos et al. 2019, figure 3, which gives no numbers",
            by=("k", "algorithm"),
            values=_MILLISECONDS,
            where={"part": "k"},
            across="k",
        ),
        Table(
            title="Stability: is everything finite (1) or not (0)?",
            reference="Berrada et al. 2018, table 5 (a ResNet-18's scores on ImageNet; S single, D double precision)",
            by=("algorithm", "precision", "tau"),
            values=(
                Value("forward", "loss", factor=1.0, digits=0, compare=False),
                Value("backward", "gradient", factor=1.0, digits=0),
                Value("error", "largest error of a derivative, 1e-6", factor=1e6),
            ),
            published=TABLE_5,
            where={"part": "stability"},
        ),
    ),
    findings=findings,
    overview=overview,
    figures=figures,
    protocols=PROTOCOLS,
    needs={scale: {LOGITS: "the scores of a classifier on the CIFAR-100 test images"} for scale in ("cpu", "paper")},
    differences={
        "smoke": "Tiny sizes and two passes: this only shows that everything runs.",
        "cpu": "On a processor instead of a GPU. The published algorithms are written from their papers "
        "(shortlist_recipes/published), the peers difftopk and pytopk are from PyPI; peers and bracketing are "
        "measured up to 10,000 labels. Scores for the stability test are a linear classifier's on 128 test images of "
        "CIFAR-100. Times also depend on what else the machine does meanwhile: trust the ratio to cross-entropy, which "
        "takes turns with each algorithm, more than the milliseconds.",
        "paper": "The stability test takes a linear classifier's scores on CIFAR-100.",
    },
)
