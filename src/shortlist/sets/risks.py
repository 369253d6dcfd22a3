"""Risks that ``RiskControl`` keeps below a level: bounded losses of a set and its truth, averaged over rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import beside, on_host
from shortlist.errors import ShortlistError
from shortlist.registry import Registry

Counts = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[np.float64]]
OfSets = Callable[[NDArray[np.bool_], NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True, repr=False)
class Risk:
    """A loss of every row, from 0 to ``bound``.

    ``of_sets``: from membership (rows, labels) and label matrix (1 present, 0 absent, -1 unknown) to losses (rows,).
    ``of_counts``, instead: from the numbers of right labels in the set, of known labels in it, and of right labels.
    ``grows``: as a set gains labels its loss never falls (True), never rises (False), or does both (None).
    ``bound``: the largest loss; None is the number of labels. ``empty_is_safe``: empty sets lose nothing.

    >>> wrong = Risk("any-wrong", of_sets=lambda inside, target: (inside & (target == 0)).any(-1), grows=True)
    >>> wrong.name, wrong.bound
    ('any-wrong', 1.0)
    """

    name: str
    of_sets: OfSets | None = None
    of_counts: Counts | None = None
    grows: bool | None = None
    bound: float | None = 1.0
    empty_is_safe: bool = False  # an empty set loses nothing
    promise: str = ""  # with {level}, {share} (in percent), {rest} (1 - level) or {s} (of a plural)

    def __post_init__(self) -> None:
        if (self.of_sets is None) == (self.of_counts is None):
            raise ShortlistError(f"the risk {self.name!r} is computed of_sets or of_counts: give one of them")

    def __repr__(self) -> str:
        return f"Risk({self.name!r})"

    def losses(self, inside: NDArray[np.bool_], target: NDArray[Any]) -> NDArray[np.float64]:
        """The loss of every row."""
        if self.of_sets is not None:
            losses = self.of_sets(on_host(inside), on_host(target))  # a user's function is one of numpy's arrays
            return beside(self.checked(losses, len(target)), target)  # type: ignore[no-any-return]
        hits, listed = (inside & (target == 1)).sum(-1), (inside & (target >= 0)).sum(-1)
        assert self.of_counts is not None
        return self.of_counts(hits, listed, (target == 1).sum(-1))

    def at_start(self, target: NDArray[Any], inwards: bool) -> NDArray[np.float64]:
        """The loss of every row with an empty set (``inwards``), or with all labels."""
        if self.of_counts is not None and inwards:
            present = np.count_nonzero(target == 1, axis=-1)
            none = np.zeros_like(present)
            return self.of_counts(none, none, present)
        return self.losses(np.full_like(target, not inwards, dtype=bool), target)

    def checked(self, losses: Any, rows: int) -> NDArray[np.float64]:
        """What a user's function returned, where it is what it should be."""
        found = np.asarray(losses, dtype=np.float64)
        if found.shape != (rows,) or not bool(((found >= 0) & (found <= (self.bound or np.inf))).all()):
            raise ShortlistError(
                f"the risk {self.name!r} must return one loss for each of {rows} rows, from 0 to {self.bound or 'L'}; "
                f"it returned shape {found.shape}" + (f", from {found.min()} to {found.max()}" if found.size else "")
            )
        return found


def _missed(hits: NDArray[Any], listed: NDArray[Any], present: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(present > 0, 1 - hits / np.maximum(present, 1), 0.0)


def _wrong_share(hits: NDArray[Any], listed: NDArray[Any], present: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(listed > 0, 1 - hits / np.maximum(listed, 1), 0.0)


def _f1_loss(hits: NDArray[Any], listed: NDArray[Any], present: NDArray[Any]) -> NDArray[np.float64]:
    both = listed + present
    return np.where(both > 0, 1 - 2 * hits / np.maximum(both, 1), 0.0)


def _wrong(hits: NDArray[Any], listed: NDArray[Any], present: NDArray[Any]) -> NDArray[np.float64]:
    return (listed - hits).astype(np.float64)


def _check(name: str, risk: Any) -> None:
    if not isinstance(risk, Risk) or risk.name != name:
        raise ShortlistError(f"the risk {name!r} must be a Risk of that name, got {risk!r}")


_BUILT_IN = (
    Risk("recall", of_counts=_missed, grows=False, promise="at most {share} of an example's right labels are missed"),
    Risk("precision", of_counts=_wrong_share, empty_is_safe=True, promise="at most {share} of a set is wrong"),
    Risk("f1", of_counts=_f1_loss, promise="the F1 score of a set is at least {rest}"),
    Risk(
        "false-positives",
        of_counts=_wrong,
        grows=True,
        bound=None,
        empty_is_safe=True,
        promise="a set has at most {level} wrong label{s}",
    ),
)
RISKS: Registry[Risk] = Registry("risk", {risk.name: risk for risk in _BUILT_IN}, _check)


def register_risk(risk: Risk) -> Risk:
    """Give a risk its name, so that configs and the JSON of a rule can say it. Reading that JSON needs it registered.

    >>> wrong = register_risk(Risk("empty", of_sets=lambda inside, target: ~inside.any(-1), grows=False))
    >>> find_risk("empty") is wrong
    True
    """
    if risk.name in RISKS and RISKS[risk.name] != risk:
        raise ShortlistError(f"there is another risk of the name {risk.name!r}")
    RISKS[risk.name] = risk
    return risk


def find_risk(risk: Any) -> Risk:
    """A risk by its name; or a function of membership and label matrix, with losses from 0 to 1; or the risk itself."""
    if isinstance(risk, Risk):
        return risk
    if callable(risk):
        return Risk(getattr(risk, "__name__", "risk"), of_sets=risk)
    if not isinstance(risk, str):
        raise ShortlistError(f"risk must be one of {', '.join(map(repr, RISKS))}, a function or a Risk; got {risk!r}")
    if ":" in risk and all(entry.value != risk for entry in RISKS.installed().values()):  # no module is imported for it
        raise ShortlistError(
            f"risk {risk!r} is none of {', '.join(map(repr, RISKS))}: one of your own is a function, a Risk, or the "
            "name that register_risk gave it"
        )
    return RISKS.find(risk)
