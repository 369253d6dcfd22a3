"""The LML polytope for three labels: where the plane sum = k cuts the unit cube, and where projections land."""

from itertools import product

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pictures import BLUE, GREEN, GREY, INK, ORANGE, PALE

import shortlist.functional as F

_DIRECTIONS = np.array([[0.82, 0.0, -0.57], [-0.30, 0.94, -0.22]])  # where the three axes point on paper: x, y


def draw() -> Figure:
    figure = Figure(figsize=(7.6, 3.7))
    left, right = figure.subplots(1, 2)
    _panel(left, 1)
    _panel(right, 2)
    figure.subplots_adjust(wspace=0.02)
    return figure


def _panel(axes: Axes, k: int) -> None:
    axes.set_aspect("equal")
    axes.axis("off")
    corners = [np.array(corner) for corner in product((0, 1), repeat=3)]
    for a, b in ((a, b) for a in corners for b in corners if (b - a).sum() == 1 and np.abs(b - a).sum() == 1):
        _line(axes, np.stack([a, b]), color=PALE, lw=1.2, zorder=1)
    vertices = np.array([corner for corner in corners if corner.sum() == k])
    flat = _flat(vertices)
    axes.fill(flat[:, 0], flat[:, 1], facecolor=BLUE, alpha=0.12, edgecolor="none", zorder=2)
    for corner in corners:
        x, y = _flat(corner)
        on = corner.sum() == k
        axes.plot(x, y, "o", color=BLUE if on else GREY, ms=5 if on else 3, zorder=3)
        if on or corner.sum() in (0, 3):
            middle = _flat(np.full(3, 0.5))
            dx, dy = 0.15 * (np.array([x, y]) - middle) / np.linalg.norm(np.array([x, y]) - middle + 1e-9)
            axes.text(x + dx, y + dy, "".join(map(str, corner)), ha="center", va="center", color=INK if on else GREY)

    scores = torch.randn(260, 3, generator=torch.Generator().manual_seed(3)) * 2
    points = _flat(F.lml(scores, k).numpy())
    axes.plot(points[:, 0], points[:, 1], ".", color=BLUE, ms=3, alpha=0.45, zorder=3, mew=0)

    ray = torch.tensor([1.6, 0.9, -1.4])
    far = torch.linspace(0, 14, 200)[:, None] * ray
    _line(axes, F.lml(far, k).numpy(), color=ORANGE, lw=2, zorder=4, label="LML along $t\\,s$, $t = 0 \\ldots \\infty$")
    other, name = F.subset_marginals(far, k).numpy(), "softmax" if k == 1 else "subset marginals"
    _line(axes, other, color=GREEN, lw=1.5, ls=(0, (4, 2)), zorder=4, label=f"{name} along the same ray")
    start = _flat(np.full(3, k / 3))
    axes.plot(*start, "o", color=ORANGE, ms=5, zorder=5)
    axes.set_title(f"$k = {k}$: the triangle with corners of {k} one{'s' * (k > 1)}", color=INK, pad=20)
    axes.legend(loc="lower center", frameon=False, bbox_to_anchor=(0.5, -0.2), fontsize=8, labelcolor=INK)


def _flat(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return points @ _DIRECTIONS.T


def _line(axes: Axes, points: NDArray[np.float64], **options: object) -> None:
    flat = _flat(points)
    axes.plot(flat[:, 0], flat[:, 1], **options)  # type: ignore[arg-type]
