"""Whether sets keep their promise for everyone: coverage by class, by group and by size, its gap, the worst slab; and
whether new scores look like those that a rule was calibrated on."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_number
from shortlist.device_arrays import as_array, on_host
from shortlist.errors import ShortlistError
from shortlist.links import check_link, link_rows
from shortlist.metrics.functional.label_sets import coverage_rows, f_counts, predicted_and_truth, set_sizes
from shortlist.metrics.functional.set_summary import NO_ESTIMATE, Estimate, mean_estimate, share_interval
from shortlist.metrics.inputs import as_scores, as_tensor

_STEPS = 10  # slabs begin and end at this many places in each share of the rows


def coverage_by_class(sets: Any, target: Any) -> list[Estimate]:
    """For every label, the share of the rows that have it whose set holds it, with its 95 % interval; NaN for a label
    that no row has.

    >>> from shortlist.labels import LabelSets
    >>> found = coverage_by_class(LabelSets([0, 1, 1], [0], num_labels=2), torch.tensor([0, 0]))
    >>> [round(estimate.value, 2) for estimate in found], round(found[0].low, 2)
    ([0.5, nan], 0.09)
    """
    hits, _, present = f_counts(*predicted_and_truth(sets, target), by="class")
    return [_share(int(hit), int(count)) for hit, count in zip(hits, present, strict=True)]


def coverage_by_group(sets: Any, target: Any, groups: Any) -> dict[str, Estimate]:
    """The coverage (`set_coverage`) of the rows of each group, with its 95 % interval. ``groups``: a number or name for
    each row.

    >>> from shortlist.labels import LabelSets
    >>> found = coverage_by_group(LabelSets([0, 1, 1], [0], num_labels=2), torch.tensor([0, 0]), ["old", "new"])
    >>> {name: estimate.value for name, estimate in found.items()}
    {'new': 0.0, 'old': 1.0}
    """
    predicted, truth = predicted_and_truth(sets, target)
    names = np.asarray(groups.cpu() if isinstance(groups, Tensor) else groups).astype(str)
    if names.shape != (truth.num_rows,):
        raise ShortlistError(f"groups are one for each of {truth.num_rows} rows, got shape {names.shape}")
    known = names[(truth.known_per_row > 0).numpy()]
    return _by(coverage_rows(predicted, truth), known, np.unique(known).tolist())


def coverage_by_size(sets: Any, target: Any) -> dict[str, Estimate]:
    """The coverage of sets of 0, 1, 2, 3 to 4, 5 to 8, ... labels, with its 95 % interval.

    >>> from shortlist.labels import LabelSets
    >>> found = coverage_by_size(LabelSets([0, 1, 3], [0, 0, 1], num_labels=2), torch.tensor([1, 1]))
    >>> {size: estimate.value for size, estimate in found.items()}
    {'1': 0.0, '2': 1.0}
    """
    predicted, truth = predicted_and_truth(sets, target)
    sizes = set_sizes(sets)[truth.known_per_row > 0].numpy()
    step = np.ceil(np.log2(np.maximum(sizes, 1))).astype(int) + (sizes > 0)  # 0; 1; 2; 3 to 4; 5 to 8; ...
    names = ["0", "1", "2", *(f"{2**at + 1} to {2 ** (at + 1)}" for at in range(1, 63))]
    return _by(coverage_rows(predicted, truth), np.array(names)[step], [names[at] for at in np.unique(step)])


def coverage_gap(sets: Any, target: Any, *, coverage: float = 0.9) -> Tensor:
    """CovGap: by how much the coverage of a label differs from ``coverage``, on average over the labels that occur.

    >>> from shortlist.labels import LabelSets
    >>> coverage_gap(LabelSets([0, 1, 2], [0, 0], num_labels=2), torch.tensor([0, 1]), coverage=0.5)
    tensor(0.5000)
    """
    hits, _, present = f_counts(*predicted_and_truth(sets, target), by="class")
    return gap_of(hits, present, coverage)


def gap_of(hits: Tensor, present: Tensor, coverage: float) -> Tensor:
    """`coverage_gap` of counts."""
    check_number(coverage, 0, 1, "coverage must be between 0 and 1")
    return (hits.double() / present - coverage).abs().nanmean().float()


def worst_slab_coverage(
    sets: Any, target: Any, features: Any, *, share: float = 0.1, directions: int = 200, seed: int = 0
) -> Estimate:
    """The coverage of the worst slab of the feature space, with its 95 % interval: the rows between two parallel
    planes, at least a ``share`` of all, that are covered least (Cauchois, Gupta and Duchi 2021).

    Every other row looks for the slab, in random ``directions``; the coverage is that of the rows in it which did not
    look, so that it is not low by choice. ``features``: (rows, anything), such as the model's scores.

    >>> from shortlist.labels import LabelSets
    >>> features = torch.linspace(-1, 1, 400)[:, None]
    >>> sets = LabelSets.from_lists([[0] if x > -0.7 else [1] for x in features.flatten()], num_labels=2)
    >>> round(worst_slab_coverage(sets, torch.zeros(400, dtype=torch.long), features, share=0.15).value, 2)
    0.0
    """
    if not 0 < share < 1:
        raise ShortlistError(f"share must be between 0 and 1, both excluded, got {share!r}")
    predicted, truth = predicted_and_truth(sets, target)
    known = (truth.known_per_row > 0).numpy()
    held = coverage_rows(predicted, truth).numpy()
    points = as_tensor(features, "features").detach().cpu().double().numpy().reshape(truth.num_rows, -1)[known]
    looking = np.arange(len(points)) % 2 == 0
    if len(points) < 2 * _STEPS / share:
        fewest = math.ceil(2 * _STEPS / share)
        raise ShortlistError(f"a slab of {share:g} of the rows needs at least {fewest} known rows, got {len(points)}")
    random = np.random.default_rng(seed)
    worst, answer = math.inf, NO_ESTIMATE
    for _ in range(directions):
        direction = random.normal(size=points.shape[1])
        place = points @ (direction / np.linalg.norm(direction))
        low, high, coverage = _worst_of(place[looking], held[looking], share)
        if coverage < worst:
            inside = held[~looking & (place >= low) & (place <= high)]
            worst, answer = coverage, mean_estimate(inside)
    return answer


def _worst_of(place: NDArray[np.float64], held: NDArray[np.float64], share: float) -> tuple[float, float, float]:
    """The interval of places with at least this share of the rows and the smallest mean: its ends and that mean."""
    order = np.argsort(place)
    reached = np.concatenate([[0.0], held[order].cumsum()])
    edges = np.unique(np.linspace(0, len(place), max(2, round(_STEPS / share) + 1)).astype(int))
    begin, end = np.meshgrid(edges, edges, indexing="ij")
    enough = end - begin >= share * len(place)
    means = np.where(enough, (reached[end] - reached[begin]) / np.maximum(end - begin, 1), np.inf)
    at = np.unravel_index(means.argmin(), means.shape)
    rows = order[begin[at] : end[at]]
    return float(place[rows[0]]), float(place[rows[-1]]), float(means[at])


def same_scores(calibration: Any, new: Any, *, link: str = "softmax") -> float:
    """A p-value for "the new scores look like the calibration ones", without any labels: small where they do not, and
    then the promises of rules that were calibrated there may not hold here.

    Two tests, the smaller p-value doubled: of Kolmogorov and Smirnov, on the best label's linked score (is the model as
    sure?), and chi-square on which label is the best (does it say the same things?), labels that are rarely the best
    taken together.

    >>> scores = torch.randn(600, 5, generator=torch.Generator().manual_seed(0))
    >>> same_scores(scores[:300], scores[300:]) > 0.05, same_scores(scores[:300], 3 * scores[300:]) < 0.001
    (True, True)
    """
    old, fresh = as_scores(calibration), as_scores(new)
    if old.shape[-1] != fresh.shape[-1] or not len(old) or not len(fresh):
        raise ShortlistError(f"scores of shape {tuple(old.shape)} and {tuple(fresh.shape)} cannot be compared")
    kind = check_link(link)
    sure = [np.sort(on_host(link_rows(as_array(part.float()), kind).max(-1))) for part in (old, fresh)]
    best = [torch.bincount(part.argmax(-1), minlength=old.shape[-1]).double().cpu().numpy() for part in (old, fresh)]
    return min(1.0, 2 * min(_kolmogorov_smirnov(*sure), _chi_square(*best)))


def _kolmogorov_smirnov(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The p-value of two samples, asymptotic; ties make it larger, never smaller."""
    both = np.concatenate([a, b])
    gap = np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()
    rows = len(a) * len(b) / (len(a) + len(b))
    x = float(gap) * (math.sqrt(rows) + 0.12 + 0.11 / math.sqrt(rows))
    if x < 0.2:
        return 1.0
    return min(max(2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101)), 0.0), 1.0)


def _chi_square(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The p-value of two rows of counts; those of labels with fewer than ten in all are taken together."""
    often = a + b >= 10
    a, b = (np.append(counts[often], counts[~often].sum()) for counts in (a, b))
    a, b = a[a + b > 0], b[a + b > 0]
    if len(a) < 2:
        return 1.0
    share = (a + b) / (a + b).sum()
    statistic = sum(float(((c - share * c.sum()) ** 2 / (share * c.sum())).sum()) for c in (a, b))
    half = torch.tensor([(len(a) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def _by(held: Tensor, group: NDArray[Any], names: list[str]) -> dict[str, Estimate]:
    return {name: mean_estimate(held.numpy()[group == name]) for name in names}


def _share(hits: int, rows: int) -> Estimate:
    return Estimate(hits / rows, *share_interval(hits / rows, rows)) if rows else NO_ESTIMATE
