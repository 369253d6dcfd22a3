"""What judges scores batch by batch: metrics of the scores, and outcomes of each rule's sets. Judges merge."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from shortlist.metrics.functional.set_summary import LabelOutcomes, SetOutcomes, judged, outcomes_by
from shortlist.metrics.streams import Stream, after_a_pass
from shortlist.reports.commonest import FirstLabels
from shortlist.sets import SetRule
from shortlist.sets.named import needed

_MOST_LABELS = 10_000  # of more, what there is to say of each takes more time than it is worth


class Judge:
    """Sees every batch once, and is merged with those that saw others. It then has the outcomes of all sets, and the
    ``values`` of the metrics, but for those that must see everything again: ``look_again`` is a judge for these.
    ``truth``: such as it will be given, all right labels or votes; ``by_label``: the rule whose sets are judged label
    by label, too."""

    def __init__(
        self,
        streams: Mapping[str, Stream],
        rules: Mapping[str, SetRule],
        truth: Any = None,
        by_label: str | None = None,
    ) -> None:
        self.streams, self.rules = dict(streams), dict(rules)
        self.outcomes = {name: SetOutcomes() for name in rules}
        self.of_truth: dict[str, Any] = {name: outcomes_by(truth) for name in rules}
        self.by_label, self.of_labels = by_label, LabelOutcomes()
        self.first = FirstLabels()
        self.examples = 0
        self.judged = {"rows": 0, "labels": 0, "absent": 0, "unknown": 0}
        self.values: dict[str, float] = {}

    def see(
        self,
        scores: Tensor,
        target: Any,
        truth: Any = None,
        rows: Mapping[str, Any] | None = None,
        first_row: int = 0,
    ) -> None:
        """One batch, of which the first row is the ``first_row``-th of the data."""
        for stream in self.streams.values():
            stream.update(scores, target)
        for name, rule in self.rules.items():
            sets = rule.predict_rows(scores, first_row, **needed(rule, rows))
            self.outcomes[name].update(sets, target)
            if name == self.by_label and scores.shape[1] <= _MOST_LABELS:
                self.of_labels.update(sets, target)
            if truth is not None:
                self.of_truth[name].update(sets, truth)
        if target.ndim == 1:
            self.first.update(scores.cpu(), target)
        self.examples += len(scores)
        for key, count in judged(target, (scores.shape[0], scores.shape[1])).items():
            self.judged[key] += count

    def merge(self, other: "Judge") -> None:
        for name, stream in self.streams.items():
            stream.merge(other.streams[name])
        for name in self.rules:
            self.outcomes[name].merge(other.outcomes[name])
            self.of_truth[name].merge(other.of_truth[name])
        self.of_labels.merge(other.of_labels)
        self.first.merge(other.first)
        self.examples += other.examples
        for key in self.judged:
            self.judged[key] += other.judged[key]

    def look_again(self) -> "Judge | None":
        """After all batches: the judge that must see them again, if any. It has the values found so far."""
        values, waiting = after_a_pass(self.streams)
        self.values |= values
        if not waiting:
            return None
        judge = Judge(waiting, {})
        judge.values = self.values
        return judge

    def results(
        self, metrics: Sequence[str], with_truth: bool, label_names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """What ``results_of`` tells, by the first judge, after the last has looked."""
        found: dict[str, Any] = {
            "examples": self.examples,
            "judged": dict(self.judged),
            "metrics": {name: self.values[name] for name in metrics},
            **self.first.found(label_names),
            "rules": {},
            "intervals": {},
            "empty": {name: outcomes.empty for name, outcomes in self.outcomes.items()},
        }
        for name, outcomes in self.outcomes.items():
            summary = outcomes.summary()
            if with_truth:
                of_truth = self.of_truth[name].summary()
                summary |= {f"truth-{key}": of_truth[key] for key in ("coverage", "exact") if key in of_truth}
            found["rules"][name] = {key: estimate.value for key, estimate in summary.items()}
            found["intervals"][name] = {key: [estimate.low, estimate.high] for key, estimate in summary.items()}
        if self.of_labels.counts.size:
            found["by_label"] = {"rule": self.by_label, "labels": self.of_labels.table(label_names)}
        return found
