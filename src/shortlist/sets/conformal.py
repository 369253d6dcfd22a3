"""Conformal: sets that miss the true label with probability at most alpha, whatever the model."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_choice, whole
from shortlist.device_arrays import on_host
from shortlist.errors import ShortlistError
from shortlist.links import AnyLink, high_entries, link_entries, link_rows, rule_link, usual_link
from shortlist.packed import pack
from shortlist.sets._blocks import Block, Scores, read_blocks
from shortlist.sets._cells import Cells
from shortlist.sets._nonconformity import Nonconformity
from shortlist.sets._one_row import Labels, best, first_ranks, reaching, reaching_each
from shortlist.sets._rule import SetRule, members, members_at, not_negative, share, unpack
from shortlist.sets._targets import class_indices, label_matrix, vote_shares
from shortlist.sets.scores import RankScore, make_score
from shortlist.sets.scores.lac import Lac


class Conformal(SetRule):
    """Calibrated on n held-out rows that are exchangeable with the rows to come, promises on average over draws:

    - ``labels="single"``: the true label is in the set with probability at least 1 - alpha. Every label of a row gets
      a nonconformity score; a set holds the labels whose score is at most the r-th smallest of the true labels'
      calibration scores, r = ceil((n + 1)(1 - alpha)), all labels if r > n. Scores, p the linked row:

      - "lac": 1 - p_y. The smallest sets on average; may be empty.
      - "aps": the mass of the labels ranked before y. Sets adapt to how hard the row is and are never empty.
      - "raps": aps + ``penalty`` (0.01) * max(0, rank of y - ``free_rank``), rank from 1. Avoids very large sets.
      - "saps": p_max + (rank of y - 2) * ``penalty`` (0.2), and 0 for the best label. Small sets where the
        probabilities of unlikely labels are noise; never empty.
      - "top-k": the rank of y. The same size for every row.
      - "margin": the largest p of another label, less p_y.

      These are deterministic. With a ``seed``, aps, raps, saps and top-k are the randomised scores of the literature,
      such as (mass up to and with y) - u p_y: u in [0, 1) is a hash of the seed and the row's content, so the same row
      always gets the same set; sets are a little smaller and may be empty. (No seed is u = 1, the one fixed u without
      empty sets.)

      The promise is over all rows together. It is stronger with

      - ``per_class=True`` (Mondrian): for the rows of each class; every label is calibrated on the rows of its class,
        and a class with too few rows is in every set.
      - ``clusters=m``: for the rows of each cluster of classes. Every third row of a class forms at most m clusters
        of classes with similar scores, the other rows calibrate them; classes with few rows share one more.
      - ``by_group=True``: for the rows of each group. ``fit`` and ``predict`` take ``groups``, a number or name for
        each row; rows of a group that calibration did not meet get every label.
      - ``weighted=True``: for rows of another distribution (covariate shift). ``fit`` and ``predict`` take
        ``weights``, how much likelier each row is there than among the calibration rows, up to a factor. The promise
        holds as far as the weights are right.

    - ``labels="multi"``: the expected share of a row's true labels that its set misses is at most alpha (conformal
      risk control). Sets are p >= lambda, lambda the largest with (sum of missed shares + 1) / (n + 1) <= alpha; all
      labels if alpha < 1 / (n + 1). The target is a label matrix; unknown (-1) entries are not used, a row without a
      known present label misses nothing, a row of unknowns only is left out. ``RiskControl`` does more of the kind.

    - ``labels="votes"``: a label drawn from the votes of a new row (one of the answers of the people who were asked) is
      in the set with probability at least 1 - alpha, over rows and answers together. The target holds votes, (rows,
      labels), counts or shares; rows without a vote are left out. Scores as for single labels; a set holds the labels
      whose score is at most the smallest limit with (sum of the rows' shares of votes above it + 1) / (n + 1) <= alpha
      (conformal risk control: no answer is drawn, all of them count). With one vote per row it is "single".

    ``link`` defaults to softmax for single and votes, and to sigmoid for multi. A target of -1 (single) leaves its row
    out. ``min_size=1``: a set that would be empty holds its row's best label (labels, where several are equally good).
    Sets only grow by that, so that every promise stays.

    Fewer than 1 / alpha - 1 rows cannot keep the promise but with every label: ``fit`` then warns, and
    ``always_listed`` says how many labels are in every set whatever their scores (with ``per_class`` or ``clusters``,
    those of classes with too few rows).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(2000, 10))
    >>> target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)  # labels drawn from softmax(scores)
    >>> rule = Conformal(alpha=0.2).fit(scores[:1000], target[:1000])
    >>> float(rule.predict(scores[1000:]).contains(target[1000:]).mean())
    0.806
    """

    learns = needs_target = True
    _keeps_type = True

    def __init__(
        self,
        alpha: float = 0.1,
        score: Literal["lac", "aps", "raps", "saps", "top-k", "margin"] = "lac",
        labels: Literal["single", "multi", "votes"] = "single",
        link: AnyLink | None = None,
        per_class: bool = False,
        penalty: float | None = None,
        free_rank: int = 5,
        seed: int | None = None,
        clusters: int | None = None,
        by_group: bool = False,
        weighted: bool = False,
        min_size: int = 0,
    ) -> None:
        self.alpha = share(alpha, "alpha")
        self.penalty = None if penalty is None else not_negative(penalty, "penalty")
        self.free_rank = whole(free_rank, "free_rank", 0)
        made = make_score(score, self.penalty, self.free_rank)
        check_choice(labels, "labels", ("single", "multi", "votes"))
        self.seed = None if seed is None else whole(seed, "seed")
        self.clusters = None if clusters is None else whole(clusters, "clusters", 1)
        self.score, self.labels, self.per_class = score, labels, bool(per_class)
        self.by_group, self.weighted = bool(by_group), bool(weighted)
        self.min_size = whole(min_size, "min_size", 0)
        if self.min_size > 1:
            raise ShortlistError(f"min_size must be 0 or 1, got {min_size}: larger sets come from a smaller alpha")
        self.needs = (*(("groups",) if by_group else ()), *(("weights",) if weighted else ()))
        if labels == "multi" and (
            score != "lac" or per_class or clusters is not None or by_group or weighted or seed is not None
        ):
            raise ShortlistError(
                "where examples have several labels (labels='multi'), only a threshold is calibrated: "
                "score, per_class, clusters, by_group, weighted and seed do not apply; risk-control has more promises"
            )
        if labels == "votes" and (per_class or clusters is not None or by_group or weighted):
            raise ShortlistError(
                "on votes (labels='votes') one limit serves all rows: per_class, clusters, by_group and weighted do "
                "not apply"
            )
        if self.per_class and self.clusters is not None:
            raise ShortlistError("per_class calibrates each class, clusters some together: choose one of them")
        self.link: AnyLink = rule_link(link or usual_link(single=labels != "multi"))
        self._nonconformity = Nonconformity(made, self.link, self.seed)
        self.reset()

    # ---- what it needs and promises

    @property
    def limits(self) -> NDArray[np.float64]:
        """Single labels: the largest nonconformity score that gets in, (1, 1), or (1, labels) where classes have their
        own. Several labels: the smallest linked score that does, (1, 1)."""
        if self.labels == "multi":
            return np.full((1, 1), self._threshold)
        if self.needs:
            raise ShortlistError(f"the limits of {self!r} depend on the row: on its {' and '.join(self.needs)}")
        return self._limits(Block(np.zeros((1, self.num_labels or 1), np.float32), None, 0))

    @property
    def score_penalty(self) -> float:
        """The penalty of the score, whether it was given or is the usual one; 0 where the score has none."""
        return float(getattr(self._nonconformity.score, "penalty", 0.0))

    @property
    def rows_needed(self) -> int:
        """The fewest calibration rows (of each class, cluster or group) from which sets can be smaller."""
        return math.ceil(1 / Fraction(repr(self.alpha)) - 1)

    @property
    def always_listed(self) -> int:
        """How many labels are in every set, whatever their scores, because too few rows calibrated them."""
        num_labels = self.num_labels or 0
        if self.labels != "single":
            return num_labels if self._rows < self.rows_needed else 0
        return self._cells.always_listed(self.rows_needed, num_labels)

    @property
    def promise(self) -> str:
        if self.labels == "votes":
            return f"the set holds a label drawn from the votes of a row with probability at least {1 - self.alpha:.1%}"
        if self.labels == "multi":
            return f"on average at most {self.alpha:.1%} of an example's right labels are missed"
        of = "of the examples"
        if self.per_class:
            of = "of the examples of each class"
        elif self.clusters is not None:
            of = "of the examples of each cluster of classes"
        if self.by_group:
            of += ", in each group" if self.per_class or self.clusters is not None else " of each group"
        when = "on average over calibrations" + (", if the weights are right" if self.weighted else "")
        return f"the set holds the right label of at least {1 - self.alpha:.1%} {of}, {when}"

    @property
    def concern(self) -> str:
        if not self.is_fitted:
            return ""
        needed = f"alpha={self.alpha:g} needs at least {self.rows_needed} calibration rows"
        small = [name for name, n in self._rows_of_groups() if n < self.rows_needed]
        if small:
            return (
                f"conformal sets hold all labels in {len(small)} group{'s' if len(small) > 1 else ''} "
                f"({', '.join(small[:3])}{', ...' if len(small) > 3 else ''}): {needed} of each group"
            )
        if self.labels == "multi" and not len(self._values[0]):
            return f"none of the {self._rows} calibration rows has a right label: sets are empty, and nothing is known"
        if not self.always_listed:
            return ""
        some = f"{self.always_listed} label{'s' if self.always_listed > 1 else ''}"
        which = "all labels" if self.always_listed == self.num_labels else some
        part = "class" if self.per_class else "cluster of classes" if self.clusters is not None else ""
        given = "some have fewer" if part else f"it had {self._rows}"
        of_part = f" of each {part}" if part else ""
        return f"conformal sets hold {which} whatever the scores: {needed}{of_part}, and {given}"

    def about_empty(self, count: int) -> str:
        if not count or self.labels == "multi":
            return ""
        sets = f"{count} set{'s are' if count > 1 else ' is'} empty"
        what = f"no label of such a row is likely enough at alpha={self.alpha:g}, which the promise allows"
        return f"{sets}: {what}; with a smaller alpha there are fewer, and with score=aps (without a seed) none"

    def _rows_of_groups(self) -> list[tuple[str, int]]:
        if not self.by_group:
            return []
        names, counts = np.unique(self._kept("groups"), return_counts=True)
        return list(zip(names.tolist(), counts.tolist(), strict=True))

    # ---- learning

    def reset(self) -> None:
        self._rows = 0
        # single: the nonconformity score of each row's true label, and that label; multi: linked score and weight
        # (1 / number of present labels of its row) of each present label; votes: likewise, with shares
        self._values: list[NDArray[np.float64]] = []
        self._extras: list[NDArray[Any]] = []
        self._facts: dict[str, list[NDArray[Any]]] = {"groups": [], "weights": []}  # of each row, where asked for
        self._cells = Cells(self.per_class, self.clusters, self.by_group, self.weighted)
        self._same_limits: NDArray[np.float64] | None = None
        self._of_row: Callable[[Tensor], Labels | None] | None = None

    def learn(self, block: Block) -> None:
        {"single": self._learn_single, "multi": self._learn_multi, "votes": self._learn_votes}[self.labels](block)

    def _learn_single(self, block: Block) -> None:
        row, label = class_indices(block)
        self._values.append(self._nonconformity.of_true(block, row, label))
        self._extras.append(label)
        for name, kept in self._facts.items():
            if name in self.needs:
                kept.append(getattr(block, name)[row])
        self._rows += len(label)

    def _learn_multi(self, block: Block) -> None:
        target = label_matrix(block)
        present = target == 1
        row, label = np.nonzero(present)
        linked = link_entries(block.scores, self.link, row, label, block.first_row)
        self._values.append(on_host(linked.astype(np.float64)))
        self._extras.append(on_host(1 / present.sum(-1)[row]))
        self._rows += int((target != -1).any(-1).sum())

    def _learn_votes(self, block: Block) -> None:
        row, label, share, rows = vote_shares(block)
        self._values.append(self._nonconformity.of_true(block, row, label))
        self._extras.append(on_host(share))
        self._rows += rows

    def finish(self) -> None:
        self._same_limits = self._of_row = None
        self._values = [np.concatenate(self._values)]
        self._extras = [np.concatenate(self._extras)]
        self._facts = {name: [np.concatenate(kept)] if kept else [] for name, kept in self._facts.items()}
        values, extras = self._values[0], self._extras[0]
        if self.labels == "multi":
            self._threshold = risk_threshold(values, extras, self._rows, self.alpha)
            return
        if self.labels == "votes":
            self._same_limits = np.full((1, 1), -risk_threshold(-values, extras, self._rows, self.alpha))
            return
        groups, weights = (self._kept(name) if name in self.needs else None for name in ("groups", "weights"))
        self._cells.fill(values, extras, groups, weights)

    def _kept(self, name: str) -> NDArray[Any]:
        return self._facts[name][0]

    def absorb(self, other: Conformal) -> None:
        self._rows += other._rows
        self._values += other._values
        self._extras += other._extras
        for name, kept in self._facts.items():
            kept += other._facts[name]

    # ---- predicting

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        if self._of_row is None:  # the same for every row
            self._of_row = self._row_answer(scores.shape[1])
        found = self._of_row(scores)
        return best(scores, 1) if self.min_size and found is not None and not len(found) else found

    def _row_answer(self, num_labels: int) -> Callable[[Tensor], Labels | None]:
        limits, score = self.limits[0], self._nonconformity.score
        if self.labels == "multi" or isinstance(score, Lac):
            least = limits if self.labels == "multi" else -limits
            if limits.size == 1:
                return partial(reaching, link=self.link, threshold=least.item())
            return partial(reaching_each, link=self.link, thresholds=least)
        if isinstance(score, RankScore) and self.seed is None and limits.size == 1:
            before, steps = score.before, score.steps(num_labels)
            return partial(first_ranks, link=self.link, before=before, steps=steps, limit=limits.item())
        return _by_blocks

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        sizes, labels = self._calibrated_sets(block)
        if self.min_size and not sizes.all():
            empty = np.flatnonzero(sizes == 0)
            scores = block.scores[empty]
            counts, best_ones = members(scores == scores.max(-1)[:, None])
            labels = np.insert(on_host(labels), np.repeat(np.cumsum(sizes)[empty], counts), best_ones)
            sizes[empty] = counts
        return sizes, labels

    def _calibrated_sets(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.labels == "multi":
            high = high_entries(block.scores, self.link, self._threshold, block.first_row)
            if high is not None:
                return members_at(high[0][high[1].astype(np.float64) >= self._threshold], *block.scores.shape)
            linked = link_rows(block.scores, self.link, block.first_row)
            return members(linked.astype(np.float64, copy=False) >= self._threshold)
        return members(self._nonconformity.below(block, self._limits(block)))

    def _limits(self, block: Block) -> NDArray[np.float64]:
        """The largest score that gets in: (rows or 1, labels or 1)."""
        if self.needs:
            return self._cells.limits(block, self.alpha)
        if self._same_limits is None:  # the same for every block: one row is not kept waiting for them again
            self._same_limits = self._cells.limits(block, self.alpha)
        return self._same_limits

    def p_values(self, scores: Scores, *, groups: Any = None, weights: Any = None) -> NDArray[np.float64]:
        """The p-value of every label of every row, (rows, labels): the share of calibration rows (of its class, cluster
        or group, by weight), with the new row itself, that suit their true label no better. For the true label, it is
        at most a with probability at most a, for every a; the set of ``predict`` is p > alpha (but
        for ``min_size``). It takes O((n_cal + n_test L) log n_cal).

        >>> rule = Conformal(0.25).fit(np.log([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]), np.array([0, 0, 1]))
        >>> rule.p_values(np.log([[0.5, 0.5]]))
        array([[0.5, 0.5]])
        """
        if self.labels != "single" or not self.is_fitted:
            raise ShortlistError(f"p-values are those of a fitted rule with labels='single'; this is {self!r}")
        found = [np.zeros((0, self.num_labels or 0))]
        for block in read_blocks(scores, None, self.block_size, groups, weights):
            self._check_labels(block.scores.shape[1])
            self._check_needs(block)
            found.append(self._cells.p_values(block, self._nonconformity.of_all(self._in_type(block))))
        return np.concatenate(found)

    # ---- to a file and back

    def state(self) -> dict[str, Any]:
        kind = "<i8" if self.labels == "single" else "<f8"
        state: dict[str, Any] = {
            "rows": self._rows,
            "values": pack(self._values[0], "<f8"),
            "extras": pack(self._extras[0], kind),
        }
        if self.by_group:
            names, codes = np.unique(self._kept("groups"), return_inverse=True)
            state |= {"group_names": names.tolist(), "groups": pack(codes, "<i8")}
        if self.weighted:
            state["weights"] = pack(self._kept("weights"), "<f8")
        return state

    def restore(self, state: dict[str, Any]) -> None:
        kind = "<i8" if self.labels == "single" else "<f8"
        self._rows = int(state["rows"])
        values, extras = unpack(state["values"], "<f8"), unpack(state["extras"], kind)
        if self.labels == "single":
            fits = len(values) == self._rows and extras.min() >= 0 and extras.max() < (self.num_labels or 0)
        else:
            fits = self._rows > 0 and bool(((extras > 0) & (extras <= 1)).all())
        if self.by_group:
            codes, names = unpack(state["groups"], "<i8"), np.array([str(name) for name in state["group_names"]])
            fits = fits and len(codes) == self._rows and codes.min() >= 0 and codes.max() < len(names)
            self._facts["groups"] = [names[codes]] if fits else []
        if self.weighted:
            weights = unpack(state["weights"], "<f8")
            fits = fits and len(weights) == self._rows and bool(((weights >= 0) & (weights < math.inf)).all())
            self._facts["weights"] = [weights]
        if not fits or len(values) != len(extras) or np.isnan(values).any():
            raise ShortlistError(f"what it learned does not fit {self._rows} rows of {self.num_labels} labels")
        self._values, self._extras = [values], [extras]
        self.finish()


def _by_blocks(scores: Tensor) -> None:
    """The answer for one row of a rule that has none of its own for it."""


def risk_threshold(values: NDArray[np.float64], weights: NDArray[np.float64], n: int, alpha: float) -> float:
    """The largest lambda with (sum of the weights of values < lambda, plus 1) / (n + 1) <= alpha; -inf if there is
    none, inf if every lambda will do."""
    budget = alpha * (n + 1) - 1
    slack = 1e-12 * (n + 1)  # sums of 1/1, 1/2, 1/3 .. that are equal on paper
    if budget < -slack:
        return -math.inf
    order = np.argsort(values)
    over = np.cumsum(weights[order]) > budget + slack
    return float(values[order[np.argmax(over)]]) if over.any() else math.inf
