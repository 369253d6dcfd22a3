"""RiskControl: sets whose recall, precision, F1 or number of wrong labels is as good as promised, on new rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_choice, whole
from shortlist.device_arrays import DeviceArray, on_host
from shortlist.errors import ShortlistError
from shortlist.links import AnyLink, link_rows, rule_link
from shortlist.packed import pack
from shortlist.sets._blocks import Block
from shortlist.sets._bounds import betting_accepts, crc_budget, hoeffding_bentkus_budget
from shortlist.sets._one_row import Labels, reaching, reaching_each
from shortlist.sets._order import best_labels
from shortlist.sets._rule import SetRule, members, number, share, unpack
from shortlist.sets._targets import any_labels
from shortlist.sets._walk import Steps, walk
from shortlist.sets.risks import RISKS, Risk, find_risk

_BOUNDS = ("hoeffding-bentkus", "waudby-smith-ramdas")
_CHOOSE = 3  # every third row chooses the threshold that the others test, where there is no safe end to walk from
_ROUNDING = 1e-12  # of sums of losses that are equal on paper, for each row


class RiskControl(SetRule):
    """The labels with linked score >= threshold; the threshold is the farthest for which the calibration rows allow the
    promise that the ``risk`` is at most ``alpha`` on new rows that are exchangeable with them. It is exact over all
    scores that the calibration rows have; there is no grid.

    ``risk``, a loss averaged over rows, and how ``alpha`` bounds it:

    - "recall": the share of a row's right labels that its set misses (0 in a row without right labels);
    - "precision": the share of a set's labels that are wrong (0 for an empty set);
    - "f1": 1 - the F1 score of the set;
    - "false-positives": the number of wrong labels in the set; alpha is a number of labels;
    - a ``Risk``, or a function of membership (rows, labels) and label matrix that gives a loss in [0, 1] for each row;
    - several of these, with an alpha for each: all hold at once.

    ``method``, and what it promises:

    - "crc" (conformal risk control): the expected risk is at most alpha, on average over calibrations. For risks that
      only rise or only fall as sets grow: recall, false-positives. It is the default without a ``delta``.
    - "rcps" (risk-controlling prediction sets): with probability at least 1 - ``delta`` over calibrations, the risk is
      at most alpha. For the same risks. Walks from the safe end while the ``bound`` allows: "hoeffding-bentkus", or
      "waudby-smith-ramdas", which gains where losses vary little and takes a look at all rows for each score passed.
    - "ltt" (learn, then test): the same promise, for any risk. Precision is walked from empty sets, which are safe.
      For F1, for several risks and for functions every third row chooses a threshold and the others test it; where
      they do not confirm it, there is no threshold that keeps the promise, and ``predict`` says so.

    ``per_label=True``: the promise holds for every label on its own, each with its own threshold. "recall": of the rows
    that have the label, at most alpha miss it; "false-positives": of the rows that do not have it, at most alpha list
    it (alpha is a share, and with a delta the binomial test is exact). ``max_size``, for false-positives: sets have at
    most so many labels, the best ones; losses are then at most max_size, which makes the promise much cheaper than
    bounding them by the number of labels.

    The target is a label matrix, or class indices. Unknown (-1) labels are not used, and rows of unknowns only are left
    out: the promise is then about the labels that are looked at in new rows, where these are looked at as they were
    in the calibration rows. Rows without a right label are used.

    ``threshold`` is the result, one number or one for each label; ``concern`` says where it is at the safe end.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(4000, 8)) * 2 - 1
    >>> target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(int)
    >>> rule = RiskControl("recall", alpha=0.1, delta=0.05).fit(scores[:2000], target[:2000])
    >>> missed = (target[2000:] == 1) & ~rule.predict(scores[2000:]).to_dense()
    >>> round(float((missed.sum(-1) / np.maximum(target[2000:].sum(-1), 1)).mean()), 3)
    0.08
    """

    learns = needs_target = True
    _keeps_type = True
    threshold: Any  # a number, an array with one for each label, or None where no threshold keeps the promise

    def __init__(
        self,
        risk: str | Risk | Callable[..., Any] | Sequence[Any],
        alpha: float | Sequence[float],
        delta: float | None = None,
        method: Literal["crc", "rcps", "ltt"] | None = None,
        link: AnyLink = "sigmoid",
        bound: Literal["hoeffding-bentkus", "waudby-smith-ramdas"] = "hoeffding-bentkus",
        per_label: bool = False,
        max_size: int | None = None,
    ) -> None:
        self.risk, self.alpha = risk, alpha
        several = isinstance(risk, list | tuple)
        self._risks = [find_risk(one) for one in (risk if isinstance(risk, list | tuple) else [risk])]
        levels = alpha if isinstance(alpha, list | tuple) else [alpha]
        if len(levels) != len(self._risks) or not levels:
            raise ShortlistError(f"give an alpha for each risk: {len(self._risks)} risks, alpha is {alpha!r}")
        self._levels = [number(one, "alpha") for one in levels]
        self.alpha = list(self._levels) if several else self._levels[0]
        self.delta = None if delta is None else share(delta, "delta")
        self.link = rule_link(link)
        self.bound, self.per_label = bound, bool(per_label)
        self.max_size = None if max_size is None else whole(max_size, "max_size", 1)
        monotone = len(self._risks) == 1 and self._risks[0].grows is not None
        self.method = method or ("crc" if delta is None else "rcps" if monotone else "ltt")
        self._check(monotone)
        self.reset()

    def _check(self, monotone: bool) -> None:
        names = ", ".join(risk.name for risk in self._risks)
        for risk, level in zip(self._risks, self._levels, strict=True):
            top = self.max_size if risk.bound is None and not self.per_label else 1.0 if self.per_label else risk.bound
            if not 0 < level < (top or math.inf):
                raise ShortlistError(f"alpha must be above 0 and below {top or 'the number of labels'}, got {level!r}")
        check_choice(self.method, "method", ("crc", "rcps", "ltt"))
        check_choice(self.bound, "bound", _BOUNDS)
        if (self.delta is None) != (self.method == "crc"):
            raise ShortlistError(
                "method 'crc' promises on average and has no delta; 'rcps' and 'ltt' hold with probability 1 - delta: "
                f"got method={self.method!r}, delta={self.delta!r}"
            )
        if self.method != "ltt" and not monotone:
            raise ShortlistError(f"the risk {names} is not monotone in the size of sets: use method='ltt' with a delta")
        if self.per_label and names not in ("recall", "false-positives"):
            raise ShortlistError(f"per_label is for the risks 'recall' and 'false-positives', got {names}")
        if self.max_size is not None and (names != "false-positives" or self.per_label):
            raise ShortlistError("max_size goes with the risk 'false-positives' of whole sets")

    # ---- what it needs and promises

    @property
    def levels(self) -> list[tuple[Risk, float]]:
        """Each risk, and the level that it stays below."""
        return list(zip(self._risks, self._levels, strict=True))

    @property
    def promise(self) -> str:
        said = []
        for risk, level in zip(self._risks, self._levels, strict=True):
            if self.per_label:
                which = "that have it miss it" if risk.name == "recall" else "without it list it"
                said.append(f"for every label at most {level:.1%} of the examples {which}")
            else:
                words = risk.promise or f"the risk {risk.name} is at most {{level}}"
                plural = "" if level == 1 else "s"
                said.append(words.format(level=f"{level:g}", share=f"{level:.1%}", rest=f"{1 - level:.3g}", s=plural))
        sure = "over calibrations" if self.delta is None else f"with a confidence of {1 - self.delta:.1%}"
        known = " (among the labels that are looked at)" if self._has_unknown else ""
        return f"on average {' and '.join(said)}{known}, {sure}"

    @property
    def concern(self) -> str:
        if not self.is_fitted:
            return ""
        rows = f"{self._rows} calibration row{'s' * (self._rows != 1)}"
        if self.threshold is None:
            return f"no threshold keeps the promise of {self!r} on {rows}"
        if self._sparse and not len(self._values[0]):
            listed = "hold every label" if self.per_label else "are empty"
            return f"none of the {rows} has a right label: sets {listed}, and nothing is known"
        safe = -math.inf if self._risks[0].grows is False else math.inf
        at_end = int((np.asarray(self.threshold) == safe).sum())
        if not at_end:
            return ""
        what = "every label" if safe < 0 else "no label"
        where = f" for {at_end} label{'s' * (at_end != 1)}" if self.per_label else ""
        allow = "allows" if self._rows == 1 else "allow"
        return f"{rows} {allow} the promise of {self!r} only with sets of {what}{where}"

    # ---- learning

    @property
    def _sparse(self) -> bool:
        """Recall changes at right labels only: no other entry is kept."""
        return len(self._risks) == 1 and self._risks[0] == RISKS["recall"]

    def reset(self) -> None:
        self._rows = 0
        self._has_unknown = False
        self._values: list[NDArray[Any]] = []  # sparse: linked scores of right labels; else (rows, labels)
        self._entries: list[NDArray[Any]] = []  # sparse: (2, entries), their rows and labels; else the label matrix
        self.threshold = None

    def learn(self, block: Block) -> None:
        target = any_labels(block)
        used = np.flatnonzero((target != -1).any(-1))
        self._has_unknown |= bool((target[used] == -1).any())
        linked = link_rows(block.scores, self.link, block.first_row)
        if self._sparse:
            row, label = np.nonzero(target[used] == 1)
            self._values.append(on_host(linked[used[row], label]))
            self._entries.append(np.array([on_host(row) + self._rows, on_host(label)], np.int32))
        else:
            if self.max_size is not None and self.max_size < target.shape[1]:
                listed = np.zeros_like(target, dtype=bool)
                np.put_along_axis(listed, best_labels(block.scores, self.max_size, block.first_row), True, -1)
                target = np.where(listed, target, np.int8(-1))
            whole_block = len(used) == len(target)
            _extend(self._values, linked if whole_block else linked[used])
            _extend(self._entries, target if whole_block else target[used])
        self._rows += len(used)

    def finish(self) -> None:
        if self._sparse:
            self._values, self._entries = [np.concatenate(self._values)], [np.concatenate(self._entries, axis=1)]
        elif len(self._values) > 1:
            self._values, self._entries = [np.concatenate(self._values)], [np.concatenate(self._entries)]
        (values,), (entries,) = self._values, self._entries
        if self.per_label:
            self.threshold = self._thresholds_of_labels(values, entries)
        elif len(self._risks) == 1 and (self._risks[0].grows is not None or self._risks[0].empty_is_safe):
            self.threshold = self._walked(values, entries)
        else:
            self.threshold = self._chosen_and_tested(values, entries)

    def _bound_of(self, risk: Risk) -> float:
        return float(risk.bound or self.max_size or self.num_labels or 1)

    def _budget(self, n: int, risk: Risk, level: float) -> float:
        """The largest sum of n losses that allows the promise."""
        top = self._bound_of(risk)
        if self.delta is None:
            return crc_budget(n, level, top)
        return top * hoeffding_bentkus_budget(n, level / top, self.delta)

    def _walked(self, values: NDArray[Any], entries: NDArray[Any]) -> float | None:
        """From the safe end to the last threshold before the first that does not allow the promise."""
        risk, inwards = self._risks[0], self._risks[0].grows is not False
        if self._sparse:
            losses = np.zeros(self._rows)
            steps: Iterable[Steps] = [_steps_of_right_labels(values, entries[0])] if len(values) else []
        else:
            losses, steps = risk.at_start(entries, inwards), walk(values, entries, risk, inwards)
        by_betting = self.bound == _BOUNDS[1] and self.delta is not None
        accepts = (self._by_betting if by_betting else self._by_sum)(losses, risk)
        last = math.inf if inwards else -math.inf
        if not accepts(None).all():  # too few rows: the safe end keeps the promise all the same if no row loses more
            return last if losses.max(initial=0) <= self._levels[0] else None
        for part in steps:
            ends = np.flatnonzero(part.ends)
            accepted = accepts(part)
            if not accepted.all():
                first = int(np.argmin(accepted))
                if not inwards:
                    return float(part.value[ends[first]])  # the label that may not go
                return float(part.value[ends[first - 1]]) if first else last  # the last one let in before
            last = float(part.value[-1])
        return -math.inf if inwards else math.inf

    def _by_sum(self, losses: NDArray[np.float64], risk: Risk) -> Callable[[Steps | None], NDArray[np.bool_]]:
        budget = self._budget(self._rows, risk, self._levels[0]) + _ROUNDING * (self._rows + 1)
        total = float(losses.sum())

        def accepts(part: Steps | None) -> NDArray[np.bool_]:
            nonlocal total
            if part is None:
                return np.array([total <= budget])
            totals = total + part.change.cumsum()
            total = float(totals[-1])
            return totals[part.ends] <= budget

        return accepts

    def _by_betting(self, losses: NDArray[np.float64], risk: Risk) -> Callable[[Steps | None], NDArray[np.bool_]]:
        top, delta, losses = self._bound_of(risk), self.delta or 0.0, on_host(losses)

        def accepts(part: Steps | None) -> NDArray[np.bool_]:
            if part is None:
                return np.array([betting_accepts(losses / top, self._levels[0] / top, delta)])
            ends, row, change = map(on_host, (np.flatnonzero(part.ends), part.row, part.change))
            found, start = np.ones(len(ends), bool), 0
            for place, end in enumerate(ends.tolist()):
                np.add.at(losses, row[start : end + 1], change[start : end + 1])
                start = end + 1
                kept = np.clip(losses / top, 0.0, 1.0)  # sums of changes round
                if not betting_accepts(kept, self._levels[0] / top, delta):
                    found[place:] = False
                    break
            return found

        return accepts

    def _chosen_and_tested(self, values: NDArray[Any], target: NDArray[Any]) -> float | None:
        """Every third row chooses the threshold with the most room below the levels; the others test that one."""
        choosing = np.arange(self._rows) % _CHOOSE == 0
        own, truth = values[choosing], target[choosing]
        curves = []
        for risk in self._risks:
            start = float(risk.at_start(truth, inwards=True).sum())
            parts = list(walk(own, truth, risk))
            if not parts:
                return None
            value, change = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "change"))
            ends = np.append(value[1:] != value[:-1], True)
            curves.append((value[ends], (start + change.cumsum())[ends] / len(own)))
        shared = np.unique(np.concatenate([value for value, _ in curves]))[::-1]
        excess = np.full(len(shared), -math.inf)
        for risk, level, (value, mean) in zip(self._risks, self._levels, curves, strict=True):
            # the mean at a threshold is that after the last of the risk's own scores at or above it
            place = np.searchsorted(-value, -shared, side="right") - 1
            at = np.where(place >= 0, mean[np.maximum(place, 0)], math.inf)
            excess = np.maximum(excess, (at - level) / self._bound_of(risk))
        threshold = float(shared[np.argmin(excess)])
        tested, truth = values[~choosing] >= threshold, target[~choosing]
        for risk, level in zip(self._risks, self._levels, strict=True):
            losses = on_host(risk.losses(tested, truth))
            top = self._bound_of(risk)
            if self.bound == _BOUNDS[1]:
                accepted = betting_accepts(losses / top, level / top, self.delta or 0.0)
            else:
                budget = self._budget(len(losses), risk, level)
                accepted = bool(losses.sum() <= budget + _ROUNDING * (len(losses) + 1))
            if not accepted:
                return None
        return threshold

    def _thresholds_of_labels(self, values: NDArray[Any], entries: NDArray[Any]) -> NDArray[np.float64]:
        """For every label, the same walk over the rows that have it (recall), or do not have it (false-positives)."""
        found = np.full(self.num_labels or 0, -math.inf if self._sparse else math.inf)
        for label in np.unique(entries[1]).tolist() if self._sparse else range(len(found)):
            own = values[entries[1] == label] if self._sparse else values[:, label][entries[:, label] == 0]
            own, n = np.sort(own.astype(np.float64)), len(own)
            if self.delta is None:
                budget = crc_budget(n, self._levels[0])
            else:
                budget = hoeffding_bentkus_budget(n, self._levels[0], self.delta, binary=True)
            most = math.floor(budget + _ROUNDING * (n + 1))  # rows that may lose
            if most < 0:
                continue
            if self._sparse:
                found[label] = own[most] if most < n else math.inf
            elif most >= n:
                found[label] = -math.inf
            else:
                above = own[own > own[n - 1 - most]]  # the (most + 1)-th largest may not be listed
                found[label] = float(above[0]) if len(above) else math.inf
        return found

    def absorb(self, other: RiskControl) -> None:
        for values, entries in zip(other._values, other._entries, strict=True):
            if self._sparse:
                self._values.append(values)
                self._entries.append(entries + np.array([[self._rows], [0]], np.int32))
            else:
                _extend(self._values, values)
                _extend(self._entries, entries)
        self._rows += other._rows
        self._has_unknown |= other._has_unknown

    # ---- predicting

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        if self.threshold is None or self.max_size is not None:
            return None
        if self.per_label:
            return reaching_each(scores, self.link, self.threshold)
        return reaching(scores, self.link, self.threshold)

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.threshold is None:
            raise ShortlistError(f"{self.concern}: calibrate on more rows, or ask for less")
        linked = link_rows(block.scores, self.link, block.first_row)
        inside = linked.astype(np.float64, copy=False) >= self.threshold
        if self.max_size is not None and self.max_size < inside.shape[1]:
            best = best_labels(block.scores, self.max_size, block.first_row)
            kept = np.zeros_like(inside)
            np.put_along_axis(kept, best, np.take_along_axis(inside, best, -1), -1)
            inside = kept
        return members(inside)

    # ---- to a file and back

    def to_json(self) -> str:
        unnamed = [risk.name for risk in self._risks if RISKS.get(risk.name) != risk]
        if unnamed:
            raise ShortlistError(f"the risk {unnamed[0]!r} is a function: give it a name with register_risk(Risk(...))")
        return super().to_json()

    def _settings(self) -> dict[str, Any]:
        several = isinstance(self.risk, list | tuple)
        names = [risk.name if RISKS.get(risk.name) == risk else risk for risk in self._risks]
        return {**super()._settings(), "risk": names if several else names[0]}

    def state(self) -> dict[str, Any]:
        (values,), (entries,) = self._values, self._entries
        kind = "<f4" if values.dtype == np.float32 else "<f8"
        threshold = None if self.threshold is None else pack(np.atleast_1d(np.float64(self.threshold)), "<f8")
        return {
            "rows": self._rows,
            "unknown": self._has_unknown,
            "threshold": threshold,
            "type": kind,
            "values": pack(on_host(values), kind),
            "entries": pack(on_host(entries), "<i4" if self._sparse else "|i1"),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._rows, self._has_unknown = int(state["rows"]), bool(state["unknown"])
        kind = {"<f4": "<f4", "<f8": "<f8"}[state["type"]]
        num_labels = self.num_labels or 0
        values, entries = unpack(state["values"], kind), unpack(state["entries"], "<i4" if self._sparse else "|i1")
        if self._sparse:
            entries = entries.reshape(2, -1)
            fits = entries.shape[1] == len(values) and (
                not len(values)
                or bool((entries >= 0).all() and entries[0].max() < self._rows and entries[1].max() < num_labels)
            )
        else:
            fits = len(values) == len(entries) == self._rows * num_labels and bool(np.isin(entries, (-1, 0, 1)).all())
            values, entries = (part.reshape(-1, num_labels) if fits else part for part in (values, entries))
        threshold = None if state["threshold"] is None else unpack(state["threshold"], "<f8")
        if threshold is not None:
            fits = fits and len(threshold) == (num_labels if self.per_label else 1) and not np.isnan(threshold).any()
        if not fits or self._rows < 1 or np.isnan(values).any():
            raise ShortlistError(f"what it learned does not fit {self._rows} rows of {num_labels} labels")
        self._values, self._entries = [values], [entries]
        self.threshold = threshold if threshold is None or self.per_label else float(threshold[0])


def _extend(parts: list[NDArray[Any]], more: NDArray[Any]) -> None:
    """Add rows to the one array in ``parts``. It grows in place, so that there are never two copies of all rows; on a
    device none does, and parts are put together in the end."""
    if not parts or any(isinstance(part, DeviceArray) for part in (*parts, more)):
        parts.append(more.copy())
        return
    kind = np.result_type(parts[0], more)
    if parts[0].dtype != kind or not parts[0].flags.owndata:
        parts[0] = parts[0].astype(kind, copy=True)
    rows = len(parts[0])
    parts[0].resize((rows + len(more), *more.shape[1:]), refcheck=False)
    parts[0][rows:] = more


def _steps_of_right_labels(values: NDArray[Any], row: NDArray[Any]) -> Steps:
    """The walk of recall from all labels outwards: only right labels cost, each its share of its row."""
    order = np.argsort(values, kind="stable")
    share = 1 / np.bincount(row)[row]
    return Steps(values[order], row[order], share[order])
