"""Calibrated probabilities: temperature, vector and isotonic scaling, fitted on held-out rows, as links for rules."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_choice
from shortlist.device_arrays import as_torch
from shortlist.errors import ShortlistError
from shortlist.links import SCALINGS, Link, ScaledLink, link_rows, raise_nan, usual_link
from shortlist.sets._blocks import check_rows, read_blocks
from shortlist.sets._targets import any_labels

_STEPS = 60  # of L-BFGS
_RIDGE = 1e-3  # pulls scales to 1 and shifts to 0, against labels that few rows have
_MOST_POINTS = 20_000  # of an isotonic fit: more are averaged over this many quantiles first


def check_scaling(kind: Any) -> None:
    check_choice(kind, "scaling", SCALINGS)


def fit_scaling(
    kind: Literal["temperature", "vector", "isotonic"], scores: Any, target: Any, link: Link | None = None
) -> ScaledLink:
    """The link whose probabilities fit the labels of these rows best: a temperature for all scores, a scale and a shift
    for each label (with sigmoid: Platt scaling), or an isotonic map of the linked scores (with sigmoid: of each label).

    The rows must not be those that calibrate a rule with a promise afterwards: ``shortlist calibrate --rule
    conformal:scaling=temperature`` gives every other row to each. ``target``: class indices or a label matrix; unknown
    (-1) entries are not used. ``link``: softmax for class indices and sigmoid for a label matrix, if not given.

    >>> torch.manual_seed(0).seed() and None
    >>> scores = torch.randn(4000, 5, dtype=torch.float64)
    >>> labels = torch.distributions.Categorical(logits=3 * scores).sample()  # the model is far too unsure
    >>> link = fit_scaling("temperature", scores, labels)
    >>> 2.8 < link.scale[0] < 3.2
    True
    """
    check_scaling(kind)
    check_rows(scores)
    blocks = [block for block in read_blocks(scores, target) if len(block.scores)]
    if not blocks or any(block.target is None for block in blocks):
        raise ShortlistError("a scaling is fitted on rows and their labels: fit_scaling(kind, scores, target)")
    single = blocks[0].target is not None and blocks[0].target.ndim == 1
    base = link or usual_link(single)
    if base == "none":
        raise ShortlistError("a scaling goes with softmax or sigmoid: with link='none' there are no probabilities")
    rows, known = (np.concatenate(parts) for parts in zip(*((b.scores, any_labels(b)) for b in blocks), strict=True))
    if np.isnan(rows).any():
        raise_nan(rows, 0)
    if not (known == 1).any():
        raise ShortlistError("a scaling is fitted on labelled rows: no row has a known present label")
    if kind == "isotonic":
        return ScaledLink(kind, base, knots=_isotonic(link_rows(rows, base), known, pooled=base == "softmax"))
    return _scaled(kind, base, as_torch(rows).double(), as_torch(known))


def _scaled(kind: Any, base: Any, rows: Tensor, known: Tensor) -> ScaledLink:
    """By maximum likelihood. Scores of -infinity stay what they are."""
    labels = rows.shape[1]
    log_scale = rows.new_zeros(1 if kind == "temperature" else labels).requires_grad_()
    shift = rows.new_zeros(0 if kind == "temperature" else labels).requires_grad_()
    used = (known >= 0).any(-1)
    rows, known = rows[used], known[used]
    if kind == "temperature" and base == "softmax":  # which sees differences alone
        top = rows.amax(-1, keepdim=True)
        rows = rows - top.where(top.isfinite(), 0.0)
    finite = rows.clamp(-1e4, 1e4)
    present, counted = (known == 1).double(), (known >= 0).double()
    optimizer = torch.optim.LBFGS([log_scale, shift], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        scaled = finite * log_scale.exp() + (shift if len(shift) else 0.0)
        if base == "softmax":
            each = torch.logsumexp(scaled, -1) * present.sum(-1) - (scaled * present).sum(-1)
        else:
            every = torch.nn.functional.binary_cross_entropy_with_logits(scaled, present, reduction="none")
            each = (every * counted).sum(-1)
        return each.sum() + _RIDGE * ((log_scale**2).sum() + (shift**2).sum())

    def step() -> float:
        optimizer.zero_grad()
        found = loss()
        found.backward()
        return float(found.detach())

    optimizer.step(step)
    return ScaledLink(kind, base, *(tuple(part.detach().cpu().tolist()) for part in (log_scale.exp(), shift)))


Knot = tuple[tuple[float, ...], tuple[float, ...]]


def _isotonic(p: NDArray[Any], known: NDArray[np.int8], pooled: bool) -> tuple[Knot, ...]:
    if pooled:
        return (_rising(p[known >= 0], known[known >= 0] == 1),)
    columns = [(p[:, at][known[:, at] >= 0], known[:, at][known[:, at] >= 0] == 1) for at in range(p.shape[1])]
    return tuple(_rising(values, right) if len(values) else ((0.0, 1.0), (0.0, 1.0)) for values, right in columns)


def _rising(p: NDArray[Any], right: NDArray[np.bool_]) -> Knot:
    """The rising steps that are nearest to what happened (pool adjacent violators), as knots at their ends."""
    x, place = np.unique(p.astype(np.float64), return_inverse=True)
    weight: NDArray[Any] = np.bincount(place)
    y: NDArray[Any] = np.bincount(place, right)
    if len(x) > _MOST_POINTS:
        part = np.minimum((weight.cumsum() / weight.sum() * _MOST_POINTS).astype(int), _MOST_POINTS - 1)
        total = np.bincount(part, weight)
        used = total > 0
        x, y = (np.bincount(part, x * weight) / np.maximum(total, 1))[used], np.bincount(part, y)[used]
        weight = total[used]
    blocks: list[list[float]] = []  # sum, weight, first x, last x
    for value, rows, at in zip(y.tolist(), weight.tolist(), x.tolist(), strict=True):
        blocks.append([value, rows, at, at])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1], blocks[-1][2], last[3]]
    ends, values = [], []
    for total_right, rows, first, last_x in blocks:
        for end in dict.fromkeys((first, last_x)):
            ends.append(end)
            values.append(total_right / rows)
    return tuple(ends), tuple(values)
