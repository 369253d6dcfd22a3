"""What /metrics tells Prometheus, in its text format."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    """Only the event loop counts, so that nothing needs a lock.

    >>> counters = Counters("leaves")
    >>> counters.answered(200, 0.004)
    >>> [line for line in counters.text(0).splitlines() if "requests_total{" in line]
    ['shortlist_requests_total{status="200"} 1']
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._answers: Counter[int] = Counter()
        self._seconds, self._buckets = 0.0, [0] * (len(_BOUNDS) + 1)
        self._batches = self._rows = 0

    def answered(self, status: int, seconds: float) -> None:
        self._answers[status] += 1
        self._seconds += seconds
        self._buckets[bisect_left(_BOUNDS, seconds)] += 1

    def batch(self, rows: int) -> None:
        self._batches += 1
        self._rows += rows

    def text(self, waiting: int) -> str:
        run = self._run.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        answers = [(f'{{status="{code}"}}', count) for code, count in sorted(self._answers.items())]
        reached, histogram = 0, list[tuple[str, float]]()
        for bound, count in zip((*_BOUNDS, "+Inf"), self._buckets, strict=True):
            reached += count
            histogram.append((f'_bucket{{le="{bound}"}}', reached))
        histogram += [("_sum", round(self._seconds, 6)), ("_count", reached)]
        return "".join([
            _family("requests_total", "counter", "Requests to /predict, by status.", answers),
            _family("request_seconds", "histogram", "Seconds until a request to /predict was answered.", histogram),
            _family("batches_total", "counter", "Batches that went through the model.", [("", self._batches)]),
            _family("rows_total", "counter", "Examples that went through the model.", [("", self._rows)]),
            _family("rows_waiting", "gauge", "Examples that wait for the model.", [("", waiting)]),
            _family("run", "gauge", "The run that answers.", [(f'{{name="{run}"}}', 1)]),
        ])  # fmt: skip


def _family(name: str, kind: str, said: str, values: Sequence[tuple[str, float]]) -> str:
    lines = [f"# HELP shortlist_{name} {said}", f"# TYPE shortlist_{name} {kind}"]
    return "\n".join([*lines, *(f"shortlist_{name}{of} {value}" for of, value in values), ""])
