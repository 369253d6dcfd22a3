"""What each loss does to one row of scores: minus its gradient, label by label."""

from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pictures import BLUE, GREY, INK, ORANGE, PALE
from torch import Tensor

import shortlist.functional as F

K = 3
SCORES = torch.tensor([4.0, 3.4, 2.9, 2.3, 1.8, 1.0, 0.4, -0.2, -0.8, -1.6, -2.2, -3.0])
LABEL = 4  # the fifth best: outside the top 3
PRESENT = [1, 4]  # for the losses of a label matrix

_index = torch.tensor([LABEL])
_matrix = torch.zeros(1, len(SCORES), dtype=torch.int8)
_matrix[0, PRESENT] = 1

ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "cross-entropy": lambda s: torch.nn.functional.cross_entropy(s, _index),
    "smooth top-3, τ = 1": lambda s: F.smooth_topk_loss(s, _index, K),
    "smooth top-3, τ = 0.1": lambda s: F.smooth_topk_loss(s, _index, K, tau=0.1),
    "top-3 hinge": lambda s: F.topk_hinge_loss(s, _index, K),
    "truncated entropy": lambda s: F.truncated_entropy_loss(s, _index, K),
    "LML": lambda s: F.lml_loss(s, _index, K),
    "noised top-3": lambda s: F.noised_topk_loss(
        s, _index, K, n_samples=2000, generator=torch.Generator().manual_seed(0)
    ),
    "assume negative": lambda s: F.assume_negative_loss(s, _index),
}
SEVERAL: dict[str, Callable[[Tensor], Tensor]] = {
    "binary": lambda s: F.binary_loss(s, _matrix),
    "asymmetric": lambda s: F.asymmetric_loss(s, _matrix),
    "two-way (this row)": lambda s: F.two_way_loss(s, _matrix, way="sample"),
    "multilabel softmax": lambda s: F.multilabel_softmax_loss(s, _matrix),
    "LSEP": lambda s: F.lsep_loss(s, _matrix),
    "WARP, exact": lambda s: F.warp_loss(s, _matrix, exact=True),
    "RML": lambda s: F.rml_loss(s, _matrix),
    "LML": lambda s: F.lml_loss(s, _matrix, K),
}


def push(loss: Callable[[Tensor], Tensor]) -> Tensor:
    """Minus the gradient, its largest entry 1."""
    scores = SCORES.double().unsqueeze(0).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(scores), scores)
    return -gradient[0] / gradient.abs().max()


def draw() -> Figure:
    figure = Figure(figsize=(8.2, 8.0))
    top, one, several = figure.add_gridspec(3, 1, height_ratios=(1.0, 2.3, 2.3), hspace=0.42)
    _row(figure.add_subplot(top))
    for cell, title, losses, present in (
        (one, f"one label recorded, the 5th best (orange); k = {K} (shaded)", ONE, [LABEL]),
        (several, "two labels present, the 2nd and the 5th best (orange)", SEVERAL, PRESENT),
    ):
        grid = cell.subgridspec(2, 4, hspace=0.6, wspace=0.12)
        for number, (name, loss) in enumerate(losses.items()):
            axes = figure.add_subplot(grid[number // 4, number % 4])
            _panel(axes, name, push(loss), present, shade=present == [LABEL] or name == "LML")
            if number == 0:
                axes.text(-1.0, 1.95, title, color=INK, fontsize=9.5, weight="bold")
    return figure


def _row(axes: Axes) -> None:
    axes.bar(range(len(SCORES)), SCORES.tolist(), color=GREY, width=0.7)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_title("the row: twelve scores in decreasing order", color=INK, loc="left", weight="bold")
    axes.set_xticks(range(len(SCORES)), [str(i + 1) for i in range(len(SCORES))])
    axes.set_xlim(-1, len(SCORES))
    axes.set_ylabel("score")


def _panel(axes: Axes, name: str, values: Tensor, present: list[int], shade: bool) -> None:
    if shade:
        axes.axvspan(-0.6, K - 0.5, color=PALE, alpha=0.7, lw=0)
    colors = [ORANGE if label in present else BLUE for label in range(len(values))]
    axes.bar(range(len(values)), values.tolist(), color=colors, width=0.75)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_ylim(-1.15, 1.15)
    axes.set_xlim(-0.8, len(values) - 0.2)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(name, color=INK, pad=3)
