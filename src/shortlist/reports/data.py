"""What a report is made from: scores, their target and the story of each run. Plain arrays, checked once, here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.dataset import checked_target
from shortlist.errors import ShortlistError, errors_name
from shortlist.labels import LabelSets
from shortlist.labels.sparse_labels import dense_labels
from shortlist.links import check_link, usual_link
from shortlist.reports.advice import Use
from shortlist.sets import AverageK, SetRule, TopK
from shortlist.sets.named import needed, no_answer
from shortlist.tasks import ScoredRun

Image = bytes | NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class RunResult:
    """One trained model and its scores on the examples of the report.

    Args:
        name: what the run is called in tables. Runs of one name are seeds of one thing: they are averaged.
        objective: the objective's name.
        scores: (N, L) raw scores, torch or numpy.
        target: (N,) class indices, -1 for unknown; or an (N, L) label matrix of 1, 0, -1.
        link: "softmax", "sigmoid" or "none": what makes rows comparable.
        rules: fitted set rules by name; without any, ``TopK`` and ``AverageK`` of 5 labels (fewer if there are fewer).
        history: one dict of numbers for each epoch.
        config, commands: how to make the run again.
        train_counts: (L,) training examples of each label; gives the shot groups.
        seconds: how long training took.
        seed: the run's seed.
        calibration: (M, L) held-out scores that set the threshold for every K of the slider. Without them the
            threshold comes from ``scores`` themselves (no target is used), and the page says so.
        why: what completed the labels of a run (`shortlist.reports.similarity.explain_run`).
        probabilities: are linked scores probabilities? Not those of a loss that only ranks: they are shown as scores.
        on: what the examples are called (`SetRule.fitted_on` says on which a rule was fitted).
        used_for: what else these examples were used for, of which the page warns.
        left_out: fitted rules that cannot answer here, and why.
        rows: the "groups" and "weights" of the examples, for rules that need them; coverage is told by group.
    """

    name: str
    objective: str
    scores: NDArray[np.float32]
    target: NDArray[Any]
    link: str = "softmax"
    rules: Mapping[str, SetRule] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    train_counts: NDArray[Any] | None = None
    seconds: float | None = None
    seed: int | None = None
    calibration: NDArray[np.float32] | None = None
    why: Mapping[str, Any] | None = None
    probabilities: bool = True
    on: str | None = None
    used_for: Sequence[Use] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        able = {rule: no_answer(made, self.rows) for rule, made in self.rules.items()}
        _put(self, "left_out", {**self.left_out, **{rule: why for rule, why in able.items() if why}})
        _put(self, "rules", {rule: made for rule, made in self.rules.items() if not able[rule]})
        scores = _scores(self.scores, f"scores of run {self.name!r}")
        num_labels = scores.shape[1]
        check_link(self.link, f"run {self.name!r}: link")
        _put(self, "scores", scores)
        _put(self, "target", _target(self.target, scores.shape, self.name))
        if self.calibration is not None:
            _put(self, "calibration", _scores(self.calibration, f"calibration of run {self.name!r}", num_labels))
        if self.train_counts is not None:
            counts = _numpy(self.train_counts)
            if counts.shape != (num_labels,) or not (counts >= 0).all():
                raise ShortlistError(
                    f"run {self.name!r}: train_counts must be {num_labels} numbers >= 0, got shape {counts.shape}"
                )
            _put(self, "train_counts", counts)
        if not self.rules:
            k = min(5, num_labels)
            _put(self, "rules", self.usual_rules(k))
        if self.link == "none":
            _put(self, "probabilities", False)

    @property
    def is_single(self) -> bool:
        """One label per example (class indices), rather than a label matrix?"""
        return self.target.ndim == 1

    def sets_by(self, rule: str) -> LabelSets:
        """The sets of one of the rules."""
        return self.rules[rule].predict(self.scores, **needed(self.rules[rule], self.rows))

    def average_k(self, k: float) -> AverageK:
        """``AverageK`` fitted for this k, on the calibration scores where there are any."""
        rule = AverageK(k, link=self.link)  # type: ignore[arg-type]
        return rule.fit(self.scores if self.calibration is None else self.calibration)

    def usual_rules(self, k: float) -> dict[str, SetRule]:
        """``TopK`` and ``AverageK`` of about so many labels."""
        average = self.average_k(k)
        average.fitted_on = self.on if self.calibration is None else None
        return {"TopK": TopK(max(1, math.floor(k + 0.5))), "AverageK": average}


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything on the page: runs side by side on the same examples, and what is known about those.

    Args:
        title: the page's heading.
        runs: one or several ``RunResult`` with the same target.
        vocabulary: the L labels' names; without it they are numbers.
        groups: (L,) the coarse group of each label, an index into ``group_names``.
        group_names: the names of the coarse groups.
        truth: all right labels of each example where that is known (``LabelSets``), for evaluation only.
        images: a function from the index of an example to its picture: PNG or JPEG bytes, uint8 (H, W[, C]), or None.
        texts: the examples' texts, where they are of texts.
        ids: the examples' names, such as file names.
        about: facts to state at the top: what was trained on what.
    """

    title: str
    runs: Sequence[RunResult]
    vocabulary: Sequence[str] | None = None
    groups: NDArray[Any] | None = None
    group_names: Sequence[str] | None = None
    truth: LabelSets | None = None
    images: Callable[[int], Image | None] | None = None
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ShortlistError("a report needs at least one run, got none")
        shape, target = self.shape, self.runs[0].target
        for run in self.runs[1:]:
            if run.scores.shape != shape or not np.array_equal(run.target, target):
                raise ShortlistError(
                    f"runs side by side must be scored on the same examples: {self.runs[0].name!r} has scores of shape "
                    f"{shape} and {run.name!r} of shape {run.scores.shape}, and their targets must be equal "
                    f"(data.seed in a config keeps the parts of the data the same for every seed)"
                )
        n, num_labels = shape
        vocabulary = tuple(map(str, range(num_labels) if self.vocabulary is None else self.vocabulary))
        _put(self, "vocabulary", vocabulary)
        for name, given, wanted in (
            ("vocabulary", vocabulary, num_labels),
            ("groups", self.groups, num_labels),
            ("truth", self.truth, n),
            ("ids", self.ids, n),
            ("texts", self.texts, n),
        ):
            if given is not None and len(given) != wanted:
                raise ShortlistError(
                    f"{name} must have {wanted} entries to fit scores of shape {shape}, got {len(given)}"
                )
        if self.truth is not None and self.truth.num_labels != num_labels:
            raise ShortlistError(f"truth has {self.truth.num_labels} labels, the scores have {num_labels}")

    @property
    def shape(self) -> tuple[int, int]:
        return self.runs[0].scores.shape  # type: ignore[return-value]

    @property
    def is_single(self) -> bool:
        return self.runs[0].is_single

    @property
    def names(self) -> tuple[str, ...]:
        """The labels' names."""
        return tuple(self.vocabulary or ())

    @property
    def start_k(self) -> float:
        """Where the slider starts: the k of the first AverageK rule, else of the first TopK rule, else 5."""
        for kind in (AverageK, TopK):
            for run in self.runs:
                for rule in run.rules.values():
                    if isinstance(rule, kind):
                        return float(min(max(rule.k, 1), self.shape[1]))
        return float(min(5, self.shape[1]))


AnyRun = TypeVar("AnyRun", RunResult, ScoredRun)


def seeds_by_name(runs: Iterable[AnyRun]) -> dict[str, list[AnyRun]]:
    """Runs of one name together, in the order they were given."""
    found: dict[str, list[AnyRun]] = {}
    for run in runs:
        found.setdefault(run.name, []).append(run)
    return found


def from_scores(
    scores: Any,
    target: Any,
    vocabulary: Sequence[str] | None = None,
    link: str | None = None,
    *,
    k: float | None = None,
    name: str = "scores",
    title: str = "Report on scores",
    rules: Mapping[str, SetRule] | None = None,
    calibration: Any = None,
    train_counts: Any = None,
    commands: Sequence[str] = (),
    rows: Mapping[str, Any] | None = None,
    **more: Any,
) -> ReportData:
    """A report's data from the scores of any model.

    Args:
        scores: (N, L) raw scores, torch or numpy; for probabilities take ``link="none"``.
        target: (N,) class indices, or an (N, L) label matrix.
        vocabulary: the labels' names.
        link: by default "softmax" for class indices and "sigmoid" for a label matrix.
        k: the average set size to start from; 5 by default.
        rules: fitted set rules by name, instead of ``TopK`` and ``AverageK`` of k labels.
        calibration: (M, L) held-out scores for the thresholds.
        rows: the "groups" and "weights" of the examples, for rules that need them.
        more: other fields of ``ReportData`` (truth, images, groups, ...).

    >>> import numpy as np
    >>> data = from_scores(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 1]), ["cat", "dog"], k=1)
    >>> data.names, data.runs[0].link, sorted(data.runs[0].rules)
    (('cat', 'dog'), 'softmax', ['AverageK', 'TopK'])
    """
    target = _numpy(target)
    if k is not None and not 0 < k <= np.shape(scores)[-1]:
        raise ShortlistError(f"k must be above 0 and at most {np.shape(scores)[-1]} (the number of labels), got {k}")
    run = RunResult(
        name=name,
        objective=name,
        scores=scores,
        target=target,
        link=link or usual_link(single=target.ndim == 1),
        rules=rules or {},
        calibration=calibration,
        train_counts=train_counts,
        commands=commands,
        on=name,
        rows=rows or {},
    )
    if k is not None and not rules:
        _put(run, "rules", run.usual_rules(k))
    return ReportData(title=title, runs=[run], vocabulary=vocabulary, **more)


def _put(thing: object, name: str, value: Any) -> None:
    object.__setattr__(thing, name, value)  # the dataclass is frozen for others


def _numpy(x: Any) -> NDArray[Any]:
    return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)


def _scores(given: Any, name: str, num_labels: int | None = None) -> NDArray[np.float32]:
    if hasattr(given, "detach"):
        given = given.detach().float()
    scores = np.ascontiguousarray(_numpy(given), dtype=np.float32)
    if scores.ndim != 2 or not scores.size or num_labels not in (None, scores.shape[1]):
        wanted = "(examples, labels)" if num_labels is None else f"(examples, {num_labels})"
        raise ShortlistError(f"{name} must have the shape {wanted} and not be empty, got {scores.shape}")
    bad = np.isnan(scores)
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise ShortlistError(f"{name} must not hold NaN: row {row}, label {label} is NaN")
    return scores


def _target(given: Any, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    target = _numpy(dense_labels(given))
    if target.shape not in (shape, shape[:1]):
        raise ShortlistError(
            f"run {name!r}: target of shape {target.shape} does not fit scores of shape {shape}: allowed are class "
            f"indices of shape {shape[:1]} or a label matrix of shape {shape}"
        )
    with errors_name(f"run {name!r}"):
        native = torch.from_numpy(np.array(target, target.dtype.newbyteorder("=")))
        return checked_target(native, shape[1]).numpy()  # type: ignore[union-attr]
