"""What every set rule shares: reading scores, fit and merge, sets out, JSON out and in."""

from __future__ import annotations

import copy
import inspect
import json
import math
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist import packed
from shortlist.device_arrays import DeviceArray, on_host
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import parse_json
from shortlist.labels import LabelSets
from shortlist.links import ScaledLink
from shortlist.options import errors_at
from shortlist.registry import Registry
from shortlist.sets._blocks import BLOCK, Block, Scores, check_rows, read_blocks, split_rows
from shortlist.sets._one_row import Labels, is_one_row

_LOOKED_AT = 100  # rows, to see whether they are probabilities
_CLASSES: dict[str, type[SetRule]] = {}  # by what they are called in JSON


class Look:
    """One more pass over the calibration scores. Copies of it may see different rows, and are merged."""

    def see(self, block: Block) -> None:
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        raise NotImplementedError


class SetRule:
    """Scores in, one set of labels per row out. Constructor arguments are the settings; the rest is learned by ``fit``.

    A rule of one's own defines ``sets_of``; one that learns also overrides ``is_fitted`` and the methods from ``reset``
    to ``restore``, which ``fit``, ``merge`` and ``from_json`` call.
    """

    num_labels: int | None = None  # known after fit
    learns = False  # does it have to be fitted?
    needs_target = False  # does fit learn from the target too?
    needs: tuple[str, ...] = ()  # of the rows, in fit and predict: "groups", "weights"
    fitted_on: str | None = None  # what the data it was fitted on is called, where whoever fitted it says so
    fitted_at: str | None = None  # the day on which it was, 2026-11-16, likewise
    max_unpacked = 1 << 26  # bytes that an array in JSON may unfold to, where it is not 64 times its text
    block_size = BLOCK  # scores that are looked at together
    _rows = 0
    _keeps_type = False  # are new scores linked in the type of the calibration scores, so that equal ones stay equal?
    _in_double: bool | None = None  # whether that is float64; None: not known
    _is_ours = False  # the sets of other people's rules are checked

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _CLASSES[_in_json(cls)] = cls
        cls._is_ours = cls.__module__.startswith("shortlist.")

    # ---- learning

    def fit(self, scores: Scores, target: Any = None, *, groups: Any = None, weights: Any = None) -> Self:
        """Learn from held-out scores (and their target, where the rule needs one), forgetting earlier ones.

        ``scores``: raw scores of shape (..., rows, labels), torch or numpy, memory maps included; or an iterable of
        batches, each scores or a (scores, target) pair; or a function that returns such an iterable.

        ``groups`` (a number or a name for each row) and ``weights`` (a number for each row) are for the rules that
        ask for them; a batch brings its own as (scores, target, {"groups": ..., "weights": ...}).
        """
        fit_together([self], scores, target, groups=groups, weights=weights)
        return self

    def partial_fit(self, scores: Scores, target: Any = None, *, groups: Any = None, weights: Any = None) -> Self:
        """Learn from more scores, given as for ``fit``; the rule can predict after every call. Where a row is refused,
        the blocks of rows before it have been taken in."""
        try:
            for block in read_blocks(scores, target, self.block_size, groups, weights, not self._is_ours):
                if self.num_labels is None:
                    _warn_of_probabilities([self], block.scores)
                self._take_in(block)
        finally:
            self._conclude()
        self._check_fitted()
        return self

    def _take_in(self, block: Block) -> None:
        self._check_labels(block.scores.shape[1])
        if self.needs_target and block.target is None:
            raise ShortlistError(f"{type(self).__name__} needs the target of its calibration rows: fit(scores, target)")
        self._check_needs(block)
        self.num_labels = block.scores.shape[1]
        if len(block.scores):
            self._in_double = bool(self._in_double) or block.scores.dtype == np.float64
        self.learn(block)

    def _note_type(self, other: SetRule) -> None:
        """What the scores were that another rule has learned from, which is merged into this one."""
        if other._in_double is not None:
            self._in_double = bool(self._in_double) or other._in_double

    def _forget(self) -> None:
        self.num_labels = self.fitted_on = self.fitted_at = self._in_double = None
        self.reset()

    def _conclude(self) -> None:
        if self.is_fitted:
            self.finish()
        else:
            self.num_labels = self._in_double = None

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise ShortlistError(f"{self!r} cannot be fitted on no rows, or on rows without a known target only")

    def merge(self, *others: Self) -> Self:
        """One rule from several that learned from different shards; none of them is changed."""
        merged = copy.deepcopy(self)
        for other in others:
            if type(other) is not type(self) or other._settings() != self._settings():
                raise ShortlistError(f"only rules with the same settings can be merged: {self!r} and {other!r}")
            if other.num_labels is not None:
                merged._check_labels(other.num_labels)
                merged.num_labels = other.num_labels
            merged.fitted_on = self.fitted_on if other.fitted_on == self.fitted_on else None
            merged.fitted_at = self.fitted_at if other.fitted_at == self.fitted_at else None
            merged._note_type(other)
            merged.absorb(other)
        if merged.is_fitted:
            merged.finish()
        return merged

    # ---- predicting

    def predict(self, scores: Scores, *, groups: Any = None, weights: Any = None) -> LabelSets:
        """The set of each row (of the flattened rows, where scores have more than two dimensions). ``groups`` and
        ``weights`` as for ``fit``, for the rules that ask for them."""
        if not self.is_fitted:
            raise ShortlistError(f"{self!r} is not fitted: call fit (or partial_fit) on held-out scores before predict")
        if groups is None and weights is None and (row := self.one_row(scores)) is not None:
            return LabelSets.from_one(row, scores.shape[1])  # type: ignore[union-attr]
        parts, num_labels = [], 0
        for block in read_blocks(scores, None, self.block_size, groups, weights, not self._is_ours):
            num_labels = block.scores.shape[1]
            parts.append(self._answer(block))
        if not parts:
            raise ShortlistError("predict got no batch of scores")
        sizes, labels = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        return self._as_sets(sizes, labels, num_labels)

    def one_row(self, scores: Any) -> Labels | None:
        """The set of scores that are a single row, where few steps tell it; None: ``predict`` has to look closer."""
        if not self._is_ours or self.needs or not is_one_row(scores) or not self.is_fitted:
            return None
        if self._keeps_type and self._in_double:
            return None  # single rows are looked at in float32
        return self.labels_of_row(scores) if self.num_labels in (None, scores.shape[1]) else None

    def predict_rows(self, scores: Any, first_row: int = 0, *, groups: Any = None, weights: Any = None) -> LabelSets:
        """``predict`` on one array of scores, whose first row is the ``first_row``-th of all, as errors then say."""
        if not self.is_fitted:
            return self.predict(scores)  # which says so
        blocks = list(split_rows(scores, None, first_row, self.block_size, groups, weights, not self._is_ours))
        sizes, labels = map(np.concatenate, zip(*map(self._answer, blocks), strict=True))
        return self._as_sets(sizes, labels, blocks[0].scores.shape[1])

    def _answer(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        num_labels = block.scores.shape[1]
        self._check_labels(num_labels)
        self._check_needs(block)
        sizes, labels = map(on_host, self.sets_of(self._in_type(block)))
        if self._is_ours and num_labels <= 2**31:
            labels = labels.astype(np.int32, copy=False)  # as the sets keep them: half of the memory until then
        return sizes, labels

    def _in_type(self, block: Block) -> Block:
        """With scores of the type that the rule was calibrated on: a row that is equal to a calibration row then has
        the same linked scores, to the bit, where the last bit decides."""
        if not self._keeps_type or self._in_double is None:
            return block
        with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf
            scores = block.scores.astype(np.float64 if self._in_double else np.float32, copy=False)
        return block._replace(scores=scores)

    def _as_sets(self, sizes: NDArray[Any], labels: NDArray[Any], num_labels: int) -> LabelSets:
        if self._is_ours:
            return LabelSets.from_parts(sizes, labels, num_labels)
        return LabelSets(np.concatenate([[0], np.cumsum(sizes)]), labels, num_labels)

    # ---- to a file and back

    def to_json(self) -> str:
        """Settings and everything learned, as JSON text; ``from_json`` gives back an equal rule, to the last bit."""
        state = self.state() if self.is_fitted else None
        name = _in_json(type(self))
        data = {"rule": name, "settings": self._settings(), "num_labels": self.num_labels, "state": state}
        data |= {key: value for key in ("fitted_on", "fitted_at") if (value := getattr(self, key)) is not None}
        if self._keeps_type and self._in_double is not None:
            data["in_double"] = self._in_double
        return json.dumps(data, allow_nan=False, default=_as_json)

    @classmethod
    def from_json(cls, text: str, *, allow_import: Sequence[str] = ()) -> Self:
        """The rule that ``to_json`` wrote; runs no code from the text. ``SetRule.from_json`` reads any rule: ours, of
        installed packages, and of modules that are imported already or that ``allow_import`` lists.

        What was learned is compressed: an array that would unfold to more than 64 MB (``SetRule.max_unpacked``, which
        may be set) and to more than 64 times its text is refused, as are numbers of rows and labels that do not fit
        what is there.
        """
        try:
            data = parse_json(text)
            rule_class = _CLASSES.get(data["rule"])
            if rule_class is None and ":" in data["rule"]:
                rule_class = RULES.find(data["rule"], allow_import)
            if rule_class is None or not issubclass(rule_class, cls):
                allowed = sorted(name for name, rule in _CLASSES.items() if issubclass(rule, cls))
                raise ShortlistError(f"it holds the rule {data['rule']!r}; allowed here: {', '.join(allowed)}")
            rule = rule_class(**data["settings"])
            rule.num_labels = _num_labels(data["num_labels"])
            for key in ("fitted_on", "fitted_at"):
                setattr(rule, key, None if data.get(key) is None else str(data[key]))
            rule._in_double = None if data.get("in_double") is None else bool(data["in_double"])
            if data["state"] is not None:
                rule.reset()
                rule.restore(data["state"])
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, zlib.error) as error:
            raise ShortlistError(f"this is not the JSON of a set rule: {error}") from error
        return rule

    def __repr__(self) -> str:
        """With the settings that are not at their defaults."""
        usual = {name: option.default for name, option in inspect.signature(type(self)).parameters.items()}
        changed = [f"{name}={value!r}" for name, value in self._settings().items() if value != usual[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def rows(self) -> int:
        """How many calibration rows it has learned from; 0 where there was nothing to learn."""
        return self._rows

    @property
    def promise(self) -> str:
        """What holds for new rows like the calibration rows, in a sentence; empty where nothing is promised."""
        return ""

    @property
    def concern(self) -> str:
        """What to know about a promise that is kept at a high price, or not at all; empty where there is nothing."""
        return ""

    def about_empty(self, count: int) -> str:
        """What so many sets without a label mean and what to do about them; empty where they need no word."""
        return ""

    # ---- for the rules to fill in

    @property
    def is_fitted(self) -> bool:
        """Can the rule predict? A rule with nothing to learn always can."""
        return not self.learns or self._rows > 0

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        """Set sizes, and the labels of all sets one after the other, increasing within each."""
        raise NotImplementedError

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        """The set of one row, (1, labels) of float32, as ``sets_of`` would give it, where that can be told in fewer
        steps; None: ``sets_of`` is asked. Only rules of this package are asked, not those that are made from them."""
        return None

    def reset(self) -> None:
        """Forget everything learned."""

    def learn(self, block: Block) -> None:
        """Take in one block of calibration rows."""

    def finish(self) -> None:
        """Turn what was taken in into what predict needs."""

    def refine(self, scores: Scores) -> None:
        """After ``fit`` has seen all scores once: use further passes over them, if the rule gains from it; and warn of
        what concerns it."""
        if self.concern:
            warnings.warn(self.concern, ShortlistWarning, stacklevel=4)  # whoever called fit

    def looks(self) -> Iterator[Look]:
        """The passes that ``refine`` makes, one after the other, for whoever has the scores in many places: each is
        to have seen every row before the next is asked for."""
        return iter(())

    def absorb(self, other: Self) -> None:
        """Take in what another rule has taken in."""

    def state(self) -> dict[str, Any]:
        """What was learned, as JSON can hold it."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo ``state``."""

    # ---- helpers

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def _check_needs(self, block: Block) -> None:
        for name, given in (("groups", block.groups), ("weights", block.weights)):
            if given is None and name in self.needs:
                call = f"fit(scores, target, {name}=...) and predict(scores, {name}=...)"
                raise ShortlistError(f"{type(self).__name__} needs the {name} of the rows: {call}")
            if given is not None and name not in self.needs:
                raise ShortlistError(f"{self!r} has no use for {name}")

    def _check_labels(self, given: int) -> None:
        if self.num_labels not in (None, given):
            raise ShortlistError(f"{self!r} was fitted on {self.num_labels} labels, these scores have {given}")


def fit_together(
    rules: Sequence[SetRule],
    scores: Scores,
    target: Any = None,
    *,
    groups: Any = None,
    weights: Any = None,
    places: Sequence[str] = (),
) -> None:
    """``fit`` of several rules, which share the first pass over the scores. ``places``: how errors of each begin."""
    for rule in rules:
        rule._forget()
    try:
        check_rows(scores)
        size = min((rule.block_size for rule in rules), default=BLOCK)
        for block in read_blocks(scores, target, size, groups, weights, not all(rule._is_ours for rule in rules)):
            if not block.first_row:
                _warn_of_probabilities(rules, block.scores)
            for number, rule in enumerate(rules):
                with errors_at(places[number]) if places else nullcontext():
                    rule._take_in(block)
        for number, rule in enumerate(rules):
            with errors_at(places[number]) if places else nullcontext():
                rule._conclude()
                rule._check_fitted()
                rule.refine(scores)
    except Exception:
        for rule in rules:
            rule._forget()
        raise


def _warn_of_probabilities(rules: Sequence[SetRule], scores: Any) -> None:
    """Where the first scores look as if a link had made them, and a rule would apply it once more."""
    first = scores[:_LOOKED_AT]  # those on a device are not waited for
    if not isinstance(first, np.ndarray) or not first.size or not (first.min() >= 0 and 0 < first.max() <= 1):
        return
    links = {getattr(rule, "link", None) for rule in rules}
    if "softmax" in links and np.allclose(first.sum(1), 1, atol=1e-3):
        link, raw = "softmax", "logarithms"
    elif "sigmoid" in links:
        link, raw = "sigmoid", "log odds, log(p / (1 - p))"
    else:
        return
    said = f"the scores look like probabilities, and {link} makes probabilities of them once more"
    warnings.warn(f"{said}: give raw scores, or the {raw}", ShortlistWarning, stacklevel=4)


def _in_json(rule: type[SetRule]) -> str:
    """What a rule is called in JSON: ours by their class, others by where their class is found."""
    ours = rule.__module__.startswith("shortlist.")
    return rule.__name__ if ours else f"{rule.__module__}:{rule.__qualname__}"


def _check_rule(name: str, rule: Any) -> None:
    if not (isinstance(rule, type) and issubclass(rule, SetRule)):
        raise ShortlistError(f"rule {name!r} must be a subclass of shortlist.sets.SetRule, got {rule!r}")


RULES: Registry[type[SetRule]] = Registry("rule", check=_check_rule)  # by name: `shortlist.sets.named` adds ours


def _as_json(setting: Any) -> Any:
    """A setting that is a thing of ours, as JSON can hold it."""
    if isinstance(setting, ScaledLink):
        return setting.to_dict()
    raise TypeError(f"{type(setting).__name__} is not JSON")


def _num_labels(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**63):
        return value
    raise ShortlistError(f"num_labels must be a whole number from 1 to 2^63 - 1, got {value!r}")


def members(inside: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Set sizes and labels of a (rows, labels) membership matrix."""
    if isinstance(inside, DeviceArray):
        labels = inside.nonzero()[1]
        return on_host(inside.sum(-1)), on_host(labels.astype(np.int32) if inside.shape[1] <= 2**31 else labels)
    return members_at(inside.reshape(-1).nonzero()[0], *inside.shape)


def members_at(flat: NDArray[Any], rows: int, num_labels: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same, of the flat positions of the members, ascending."""
    if rows == 1:
        return np.array([flat.size]), flat
    bounds = np.searchsorted(flat, np.arange(rows + 1) * num_labels)
    return np.diff(bounds), flat - np.repeat(np.arange(rows) * num_labels, np.diff(bounds))


def number(value: Any, name: str, wanted: str = "", fits: Callable[[float], bool] = lambda _: True) -> float:
    """A plain float from any real number that ``fits`` what is ``wanted``; bools, text and NaN are refused."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__") or math.isnan(float(value)):
        raise ShortlistError(f"{name} must be a number, got {value!r}")
    if not fits(float(value)):
        raise ShortlistError(f"{name} must be {wanted}, got {value!r}")
    return float(value)


def share(value: Any, name: str) -> float:
    """A number between 0 and 1."""
    return number(value, name, "between 0 and 1, both excluded", lambda x: 0 < x < 1)


def not_negative(value: Any, name: str) -> float:
    return number(value, name, "a finite number that is not negative", lambda x: 0 <= x < math.inf)


def unpack(text: str, dtype: str, most: int | None = None) -> NDArray[Any]:
    """The array that ``pack`` wrote: at most ``most`` entries, or as many as ``SetRule.max_unpacked`` allows."""
    limit = max(SetRule.max_unpacked, 64 * len(text)) if most is None else most * np.dtype(dtype).itemsize
    return packed.unpack(text, dtype, limit)


def pack_float(value: float) -> float | str:
    """JSON has no infinities: they are written as text."""
    return value if math.isfinite(value) else str(value)
