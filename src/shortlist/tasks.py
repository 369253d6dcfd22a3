"""Tasks: what is done with inputs that are answered with more than a set of labels of each example.

The usual task, sets of labels, is what the rooms themselves do. A vertical room (see ``verticals.py``) brings a task
object for its kind of inputs: its metrics, the files of its predictions and its report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

from shortlist import verticals
from shortlist.data import Dataset
from shortlist.registry import Registry

if TYPE_CHECKING:
    from shortlist.named import Named


@dataclass(frozen=True)
class ScoredRun:
    """One run's scores on the data that a report is about, and where it comes from."""

    name: str  # runs of one name are seeds of each other
    scores: Tensor
    history: Sequence[Mapping[str, Any]] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    seed: int | None = None


@dataclass(frozen=True)
class Predictions:
    """Where predictions go, and which are wanted."""

    folder: Path  # where the file goes, if none is named
    data: str  # the name of the data, for the name of that file
    out: Path | None = None
    rule: "Named | None" = None
    k: float | None = None  # the objective's
    draw: Path | None = None
    images: Path | None = None


class Task(Protocol):
    """What training, the commands and the report ask of a task."""

    readers: Sequence[str]  # of its data, for messages
    backbones: Sequence[str]  # that take its inputs, the usual one first
    calibration: str  # why there is nothing to calibrate

    def epoch_metrics(self) -> list[str]:
        """What every epoch is measured by where the config names no metrics."""
        ...

    def same_kind(self, facts: Mapping[str, Any], dataset: Dataset, what: str) -> None:
        """Raise a ShortlistError where the data is not of the kind that ``Inputs.facts`` kept of the training data."""
        ...

    def answers(self, dataset: Dataset, facts: Mapping[str, Any]) -> Any:
        """What the scores of the data are measured against; ``facts``: see ``same_kind``."""
        ...

    def start(self, backbone: nn.Module, train_set: Dataset) -> None:
        """Give a new backbone what it takes from the training data before training."""
        ...

    def results(
        self,
        dataset: Dataset,
        scores: Tensor,
        metrics: Sequence[str],
        facts: Mapping[str, Any],
        allow_import: Sequence[str] = (),
    ) -> dict[str, Any]:
        """What ``shortlist evaluate`` prints: examples, metrics and rules; ``facts``: see ``same_kind``."""
        ...

    def write_predictions(self, dataset: Dataset, scores: Tensor, wanted: Predictions) -> dict[str, Any]:
        """Write what ``shortlist predict`` writes; returns what it prints: the files ``written``, and counts."""
        ...

    def write_report(
        self, title: str, runs: Sequence[ScoredRun], dataset: Dataset, folder: Path, about: Mapping[str, str]
    ) -> Path:
        """Write the page, which opens offline, and its figures; returns its path."""
        ...


_TASKS: Registry[type[Task]] = Registry("task", verticals.TASKS)


def task_of(kind: str) -> Task | None:
    """The task of a kind of inputs (``Dataset.kind``); None for features and images, which have labels.

    >>> task_of("scenes").readers[:2], task_of("images")
    (('vrd', 'vrd-pairs'), None)
    """
    return _TASKS[kind]() if kind in _TASKS else None


def kind_of_facts(facts: Mapping[str, Any]) -> str | None:
    """Of which vertical room's inputs the facts of a run's training data are, if any."""
    return next((kind for kind in _TASKS if facts.get(kind) is not None), None)
