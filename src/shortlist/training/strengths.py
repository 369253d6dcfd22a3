"""How strongly the weights of a linear model are drawn to zero, chosen by cross-validation.

From a middling strength the search walks both ways, half a power of ten at a time, for as long as things get better on
held-out rows; each step starts from the weights of the one before. Every row is held out once, so the best strength
leaves a score for each row from a model that has not seen it: what rules and thresholds are calibrated on.

What counts is the held-out loss, summed over rows, less one for every row whose highest score is right: the loss alone
is ruled by a few rows that are far off. A little is added for a strength far from a middling one, and for any form of
the columns but the first: these decide on very few rows, where chance speaks loudest.

Strong decay ranks well but makes scores too small, which the loss would punish. So the scores are first stretched away
from the base rates, all by the one factor that suits the held-out rows best; the weights that stay are stretched alike.
This is done for single labels and for binary cross-entropy. Where the best strength leaves scores of single labels that
are too large, all are divided by one number in the end, which leaves every row its highest score: drawn to the base
rates, rows would lean to the classes that happen to be common in training.

Similarities of single labels are searched in less time: they are dropped if they are clearly worse than the columns on
the first fold, the strength is chosen on that fold alone, and if they are better there, all three decide. Where nearly
every held-out row is right and sure, nothing else is tried. Means of both models' scores are judged like either; the
best of them is less sure than the two often are, so that it is then stretched away from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.training.full_batch import Loss, binary_columns, fit_linear, log_odds, take, times, total_weight
from shortlist.training.head_columns import HeadColumns

FOLDS = 3
_FIRST, _FACTOR, _MOST = 10**1.5, 10**-0.5, 9  # a strength of 10 is C = 0.1; at most so many steps one way
_MIDDLING, _DOUBT = 10**0.5, 1.0  # a strength ten times as strong or as weak costs so many rows
_OTHERS, _CLOSE = 0.5, 1.0  # rows that each further form of the columns costs, and that it may be behind to be searched
_OTHERS_WIDE = 1.5  # the same where there are more columns than rows
_TOLERANCE = 3e-3  # to compare strengths; the weights that stay are fitted more closely
_LEAST_DOUBLINGS, _MOST_DOUBLINGS, _HALVINGS = -2.0, 4.0, 9  # of the stretch, and how closely it is found
_FAR_TOO_LARGE = 0.5  # a stretch that asks for more decay
_MARGIN = 0.02  # per row: by how much similarities may be worse with the first strength
_SURE = 0.01  # per row: a loss and share of wrong rows that leave nothing to look for
_FIRST_QUICK, _MOST_QUICK = 10**0.5, 2  # of similarities: where they suit, they want less decay than columns
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of similarities, in a mean with the columns' scores
USUAL = 1.0  # where there are too few rows to choose


_HEARD: ContextVar[Callable[[str], None] | None] = ContextVar("heard", default=None)


@contextmanager
def search_told_to(hear: Callable[[str], None]) -> Iterator[None]:
    """Within this block, ``hear`` is told what each strength reached: with many long texts a search takes minutes."""
    token = _HEARD.set(hear)
    try:
        yield
    finally:
        _HEARD.reset(token)


@dataclass
class Chosen:
    """What did best on held-out rows: which form of the inputs, the strength, the stretch and the scores that it leaves
    alone, scores of rows while they were held out (stretched), weights to start from (not stretched). ``cost`` is what
    is compared. Without folds, what was given."""

    form: str
    strength: float
    stretch: float
    centre: Tensor
    cost: float
    scores: Tensor
    weights: list[Tensor]
    folds: list[tuple[Tensor, Tensor]]

    @classmethod
    def given(cls, form: str, strength: float, start: Tensor) -> Chosen:
        """A strength that nothing else was tried beside."""
        centre = torch.zeros(start.shape[1])
        return cls(form, strength, 1.0, centre, 0.0, centre[:0], [start], [])

    def mean_with(self, other: Chosen, share: float) -> Chosen:
        """The same with the mean of both scores, of which so much is its own."""
        return replace(self, scores=share * self.scores + (1 - share) * other.scores)

    @property
    def start(self) -> Tensor:
        return torch.stack(self.weights).mean(0)


class StrengthSearch:
    """Strengths, tried on held-out rows over three folds; ``tried`` is what each of them reached. Rows with ``weights``
    count so many times, where they train and where they judge."""

    def __init__(
        self, target: Tensor, names: tuple[str, ...], loss: Loss, single: bool, seed: int, weights: Tensor | None = None
    ) -> None:
        self.target, self.loss, self.single, self.weights = target, loss, single, weights
        self.folds = _folds(target, names, seed)
        self.base, self.stretches = log_odds(target, len(names), weights), single or loss is binary_columns
        self.tried: list[dict[str, Any]] = []
        self._parts: tuple[HeadColumns | None, dict[int, tuple[Any, Any]]] = None, {}

    def best(self, forms: dict[str, HeadColumns], wide: bool = False) -> Chosen:
        """The form and the strength that do best. The first form is searched; the others start from what it found, and
        are searched on where they are about as good with that strength. Where the columns are ``wide``, more of them
        than rows, a form fits by chance more easily."""
        (first, columns), *others = forms.items()
        best = self._walk(self._attempt(first, columns, _FIRST, [None] * FOLDS), columns)
        if self.is_sure(best):
            return self._settled(best)
        found, heads = [best], [columns.head(each[:-1], each[-1]) for each in best.weights]
        for number, (form, columns) in enumerate(others, 1):
            starts = [columns.of_head(*head) for head in heads]
            doubt = (_OTHERS_WIDE if wide else _OTHERS) * number
            there = self._attempt(form, columns, best.strength, starts, doubt)
            if there.cost < best.cost + _CLOSE:
                found.append(self._walk(there, columns, doubt))
        return self._settled(min(found, key=_cost))

    def only(self, found: Chosen, columns: HeadColumns) -> Chosen:
        """What the strength that was found on other rows reaches on these: how far scores are stretched depends on how
        many there are."""
        return self._settled(self._attempt(found.form, columns, found.strength, [found.start] * FOLDS))

    def quick(self, form: str, columns: HeadColumns, other: Chosen | None = None) -> Chosen:
        """The same in less time: the strength is chosen on the first fold alone, in steps twice as large. It ends there
        if the other is better on that fold, and with the first strength if that is clearly worse."""
        first = self._attempt(form, columns, _FIRST_QUICK, [None])
        if other is not None and not self.does_better(first, other, _MARGIN):
            return first
        best = self._walk(first, columns, weaker=_FACTOR**2, most=_MOST_QUICK)
        if other is not None and not self.does_better(best, other):
            return best  # it would have to be better in every fold
        return self._settled(self._attempt(form, columns, best.strength, [best.weights[0], None, None]))

    def _attempt(
        self, form: str, columns: HeadColumns, strength: float, starts: Sequence[Tensor | None], doubt: float = 0
    ) -> Chosen:
        """What is reached on as many folds as there are weights to start from (None: from zero)."""
        weights, scores = [], torch.zeros(len(self.target), len(self.base))
        folds = self.folds[: len(starts)]
        for fold, ((rest, held), start) in enumerate(zip(folds, starts, strict=True)):
            learnt, others = self._parts_of(columns, fold)
            here, weigh = (learnt, self.target[rest]), self._weights(rest)
            start = zero_weights(here, len(self.base), weigh) if start is None else start
            found = fit_linear(
                *here, start, self.loss, strength, columns.variances, weigh, tolerance=_TOLERANCE
            ).weights
            scores[held] = times(others, found)
            weights.append(found)
        judged = torch.cat([held for _, held in folds]).sort().values
        target, weigh = self.target[judged], self._weights(judged)
        stretch, lost = best_stretch(scores[judged], self.base, target, self.loss, self.stretches, weigh)
        scores, total = stretched(scores, self.base, stretch), total_weight(target, weigh)
        right, known = _right(scores[judged], target, weigh)
        cost = (
            lost * total - self._counted(right, known, total) + _DOUBT * math.log10(strength / _MIDDLING) ** 2 + doubt
        )
        reached = {"loss": lost, "precision_at_1": right / known, "folds": len(folds)}
        self.tried.append({"scale": form, "weight_decay": strength, "stretch": stretch, **reached})
        if (hear := _HEARD.get()) is not None:
            hear(f"a weight decay of {strength:.3g} ({form}): loss {lost:.4f} on held-out rows")
        return Chosen(form, strength, stretch, self.base, cost, scores, weights, folds)

    def _walk(
        self, first: Chosen, columns: HeadColumns, doubt: float = 0, weaker: float = _FACTOR, most: int = _MOST
    ) -> Chosen:
        """The best of the first and what lies on both sides of it, for as long as things get better and nearly every
        held-out row is not yet right; where its scores are far too large, the stronger side is first."""
        attempts = [first]
        for factor in (weaker, 1 / weaker) if first.stretch > _FAR_TOO_LARGE else (1 / weaker, weaker):
            before = first
            for _ in range(most):
                attempts.append(
                    after := self._attempt(first.form, columns, before.strength * factor, before.weights, doubt)
                )
                if after.cost >= before.cost:
                    break
                before = after
                if self.is_sure(after):
                    break
            if before is not first:
                break  # the one was better than the first, so the other is worse
        return min(attempts, key=_cost)

    def does_better(self, one: Chosen, other: Chosen, margin: float = 0) -> bool:
        """Whether one costs less than the other, or by no more than a margin per row more, in every fold that it was
        tried on."""
        return all(
            self._cost(one, held) < self._cost(other, held) + margin * self._total(held) for _, held in one.folds
        )

    def best_mean(self, one: Chosen, other: Chosen, both: bool = False) -> tuple[tuple[float, float], Chosen]:
        """The shares in the mean of both that does best, of those that do better than the ``other`` in every fold, and
        that mean, stretched; no shares and ``one`` itself, where none does. With ``both``, there is some of each."""
        if len(one.folds) < FOLDS:  # it was behind on the first
            return (0.0, 0.0), one
        means = {share: one.mean_with(other, share) for share in _SHARES[: -1 if both else None]}
        better = {share: mean for share, mean in means.items() if self.does_better(mean, other)}
        tried, rows = means if both and not better else better, torch.arange(len(self.target))
        if not tried:
            return (0.0, 0.0), one
        share, mean = min(tried.items(), key=lambda each: self._cost(each[1], rows))
        if share == 1:
            return (1.0, 0.0), one
        zero = torch.zeros_like(self.base)
        stretch, _ = best_stretch(mean.scores, zero, self.target, self.loss, self.stretches, self.weights)
        return (stretch * share, stretch * (1 - share)), replace(mean, scores=stretch * mean.scores)

    def is_sure(self, chosen: Chosen) -> bool:
        """Whether nearly every held-out row of single labels is right, and its score says so."""
        rows = torch.arange(len(self.target))
        return self.single and self._cost(chosen, rows) + self._total(rows) < _SURE * self._total(rows)

    def reached(self, chosen: Chosen, folds: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
        """The mean loss, and how often the highest score was right, where that is known, of the rows that these folds
        held out."""
        held = torch.cat([held for _, held in folds])
        lost, right, known = self._judged(chosen, held)
        return {"loss": lost / self._total(held), "precision_at_1": right / known}

    def _judged(self, chosen: Chosen, rows: Tensor) -> tuple[float, float, float]:
        scores, target, weigh = chosen.scores[rows], self.target[rows], self._weights(rows)
        return float(self.loss(scores, target, weigh)[0].sum()), *_right(scores, target, weigh)

    def _cost(self, chosen: Chosen, rows: Tensor) -> float:
        lost, right, known = self._judged(chosen, rows)
        return lost - self._counted(right, known, self._total(rows))

    def _counted(self, right: float, known: float, total: float) -> float:
        """The right rows as the loss counts rows: of single labels the mean of those that are known, times all."""
        return right / known * total if self.single else right

    def _parts_of(self, columns: HeadColumns, fold: int) -> tuple[Any, Any]:
        """The rows to learn from and those held out, kept for as long as the same columns are tried."""
        if self._parts[0] is not columns:
            self._parts = columns, {}
        parts = self._parts[1]
        if fold not in parts:
            rest, held = self.folds[fold]
            parts[fold] = take(columns.columns, rest), take(columns.columns, held)
        return parts[fold]

    def _weights(self, rows: Tensor) -> Tensor | None:
        return None if self.weights is None else self.weights[rows]

    def _total(self, rows: Tensor) -> float:
        return total_weight(rows, self._weights(rows))

    def _settled(self, best: Chosen) -> Chosen:
        """Too large scores of single labels divided."""
        if self.single and best.stretch < 1:
            unstretched, best.centre = stretched(best.scores, self.base, 1 / best.stretch), torch.zeros_like(self.base)
            best.stretch = best_stretch(unstretched, best.centre, self.target, self.loss, weights=self.weights)[0]
            best.scores = stretched(unstretched, best.centre, best.stretch)
        return best


def _cost(chosen: Chosen) -> float:
    return chosen.cost


def _right(scores: Tensor, target: Tensor, weights: Tensor | None) -> tuple[float, float]:
    """In how many rows the highest score is that of a present label, and of how many rows that is known."""
    highest = scores.argmax(1)
    single = target.ndim == 1
    present = highest == target if single else target.gather(1, highest[:, None])[:, 0] == 1
    known = target >= 0 if single else target.gather(1, highest[:, None])[:, 0] != -1
    right, judged = (float(rows.sum() if weights is None else weights[rows].sum()) for rows in (present, known))
    return right, max(judged, 1e-30)


def stretched(scores: Tensor, centre: Tensor, stretch: float) -> Tensor:
    """Scores, or biases, so many times as far from a centre: the base rates, or zero."""
    return centre + stretch * (scores - centre)


def best_stretch(
    scores: Tensor,
    centre: Tensor,
    target: Tensor,
    loss: Loss,
    stretches: bool = True,
    weights: Tensor | None = None,
) -> tuple[float, float]:
    """The stretch with the smallest loss, by halving where its slope changes sign, and the mean loss it leaves; unless
    something ``stretches``, it is 1. Of single labels one more row counts, which is as sure as the others and wrong:
    otherwise rows that are all right would make every score as large as it may be."""

    total = total_weight(target, weights)

    def mean_loss(stretch: float) -> float:
        return float(loss(stretched(scores, centre, stretch), target, weights)[0].sum()) / total

    if not stretches:
        return 1.0, mean_loss(1.0)
    apart, low, high, wrong = scores - centre, _LEAST_DOUBLINGS, _MOST_DOUBLINGS, 0.0
    if target.ndim == 1:  # from the highest score of a row to the others, on average
        labels = apart.shape[1]
        each = apart.amax(1) - apart.mean(1)
        mean = each.mean() if weights is None else (each * weights).sum() / total
        wrong = float(mean) * labels / max(1, labels - 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = (loss(stretched(scores, centre, 2**middle), target, weights)[1] * apart).sum() + wrong
        low, high = (middle, high) if slope < 0 else (low, middle)
    both = [(stretch, mean_loss(stretch)) for stretch in (1.0, 2 ** ((low + high) / 2))]
    return min(both, key=lambda one: one[1] + one[0] * wrong / total)


def zero_weights(data: tuple[Any, Tensor], num_labels: int, weights: Tensor | None = None) -> Tensor:
    """Weights of zero, and the biases that fit them best."""
    inputs, target = data
    start = torch.zeros(inputs.shape[1] + 1, num_labels)
    start[-1] = log_odds(target, num_labels, weights)
    return start


def _folds(target: Tensor, names: tuple[str, ...], seed: int) -> list[tuple[Tensor, Tensor]]:
    """The rows to learn from and the rows held out, of each fold; every one has its share of each label."""
    numbered = Dataset(torch.arange(len(target))[:, None], target, names)
    sizes = [len(target) * (fold + 1) // FOLDS - len(target) * fold // FOLDS for fold in range(FOLDS)]
    parts = [part.inputs[:, 0] for part in split(numbered, sizes, seed=seed, stratify=True)]
    return [(torch.cat(parts[:fold] + parts[fold + 1 :]).sort().values, parts[fold]) for fold in range(FOLDS)]
