"""Scorers of sets, for ``GridSearchCV`` and ``cross_val_score``: they see k and the rule, which ``score`` does not."""

from collections.abc import Callable
from functools import partial
from typing import Any

from shortlist.errors import ShortlistError, nearest
from shortlist.estimators.targets import read_target
from shortlist.labels import LabelSets
from shortlist.metrics import functional as M

_METRICS: dict[str, Callable[..., Any]] = {
    "f1": M.set_f_score,
    "micro-f1": partial(M.set_f_score, average="all"),
    "coverage": M.set_coverage,
    "exact-match": M.exact_match,
}


class SetScorer:
    """A scorer: estimator, X, y -> how good its sets are. Made by `set_scorer`."""

    def __init__(self, metric: str, largest: float | None) -> None:
        self.metric, self.largest = metric, largest

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        while hasattr(estimator, "steps") or hasattr(estimator, "best_estimator_"):
            if hasattr(estimator, "steps"):  # a pipeline gives on what it was made to; the sets are its last step's
                X = estimator[:-1].transform(X) if len(estimator) > 1 else X
                estimator = estimator[-1]
            else:  # a search, whose sets are those of what it found
                estimator = estimator.best_estimator_
        if not hasattr(estimator, "predict_sets"):
            raise ShortlistError(f"set_scorer needs an estimator with predict_sets, got {type(estimator).__name__}")
        sets = estimator.predict_sets(X)
        if self.largest is not None and float(sets.sizes.mean()) > self.largest:
            return 0.0
        labels, target = read_target(y, estimator.classes_, new=True)
        if len(labels) > sets.num_labels:  # that training did not have: no set holds them
            sets = LabelSets.from_lists(sets.to_lists(), len(labels))
        return float(_METRICS[self.metric](sets, target))

    def __repr__(self) -> str:
        return f"set_scorer({self.metric!r}, largest={self.largest})"


def set_scorer(metric: str = "f1", *, largest: float | None = None) -> SetScorer:
    """A scorer of the sets that ``predict_sets`` answers with, for scikit-learn's searches over k, the rule and more.

    Args:
        metric: "f1" (mean over rows), "micro-f1", "coverage" (share of the present labels that are in the set) or
            "exact-match". Coverage alone prefers the largest sets: give it ``largest``. A label that the training rows
            did not have is in no set.
        largest: sets with more labels than this on average score 0: the best coverage at a size.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from shortlist.estimators import SetClassifier
    >>> search = GridSearchCV(SetClassifier(random_state=0), {"k": [1, 2]}, scoring=set_scorer("f1"), cv=3)
    >>> search.fit(*load_iris(return_X_y=True)).best_params_
    {'k': 1}
    """
    if metric not in _METRICS:
        known = ", ".join(_METRICS)
        raise ShortlistError(f"there is no set metric {metric!r}{nearest(metric, _METRICS)}; there are {known}")
    return SetScorer(metric, largest)
