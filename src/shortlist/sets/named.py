"""Set rules by name, fitted on held-out scores."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.labels.counts import cardinality, usual_k
from shortlist.labels.sparse_labels import joined
from shortlist.named import Named
from shortlist.options import check_call, errors_at
from shortlist.sets import (
    AverageK,
    Conformal,
    OnlineConformal,
    Penalized,
    PointwiseError,
    RiskControl,
    SetRule,
    Threshold,
    TopK,
)
from shortlist.sets._rule import RULES, fit_together
from shortlist.sets.fitting import Elsewhere, Fitting
from shortlist.sets.scaling import check_scaling, fit_scaling

Batch = tuple[Tensor, Any, Mapping[str, Any]]  # scores, target, groups and weights
Batches = Callable[[], Iterator[Batch]]

_SCALED = 1 << 26  # scores that a scaling of batches is fitted on, at most

RULES |= {
    "top-k": TopK,
    "average-k": AverageK,
    "conformal": Conformal,
    "online-conformal": OnlineConformal,
    "risk-control": RiskControl,
    "threshold": Threshold,
    "pointwise-error": PointwiseError,
    "penalized": Penalized,
}


def make_rule(place: str, rule: Named, link: str, single: bool, allow_import: Sequence[str] = ()) -> SetRule:
    """The rule of this name and options; a ``link`` and (of conformal rules) ``labels`` that are not given follow from
    the objective and the target.

    >>> make_rule("rules.0", Named.of("average-k", k=2), link="sigmoid", single=False)
    AverageK(k=2.0, link='sigmoid')
    """
    kind = RULES.find(rule.name, allow_import, f"{place}.name")
    options = check_call(place, kind, rule.options)
    parameters = inspect.signature(kind).parameters
    if "link" in parameters and options.get("link") is None:
        options["link"] = link
    if kind is Conformal and "labels" not in options:
        options["labels"] = "single" if single else "multi"
    with errors_at(place):
        return kind(**options)


def check_rule(place: str, rule: Named, allow_import: Sequence[str] = ()) -> None:
    """Raise a ShortlistError where a config asks for a rule that there is not, or with options that it does not have.

    >>> check_rule("rules.0", Named.of("conformal", alpha=0.2, scaling="temperature"))
    >>> check_rule("rules.0", Named.of("conformal", scaling="platt"))
    Traceback (most recent call last):
    shortlist.ShortlistError: rules.0: scaling must be one of 'temperature', 'vector', 'isotonic', got 'platt'
    """
    bare, kind = _without_scaling(rule)
    made = make_rule(place, bare, "softmax", single=True, allow_import=allow_import)
    with errors_at(place):
        if kind is not None:
            check_scaling(kind)
            _check_link(made)


def fit_rules(
    rules: Sequence[Named],
    scores: Any,
    target: Any,
    link: str,
    fitted_on: str | None = None,
    allow_import: Sequence[str] = (),
    rows: Mapping[str, Any] | None = None,
    left_out: dict[str, str] | None = None,
    truth: Any = None,
) -> dict[str, SetRule]:
    """The rules, fitted on these scores, under the names of their files. ``fitted_on``: what the data is called, which
    the rules that learn from it remember. ``rows``: the "groups" and "weights" of the rows, for rules that need them.
    ``left_out``: where rules are noted that need some which are not there, name -> why; without it they are an error.
    ``truth``: the votes of the rows (or their right labels, ``LabelSets``), for conformal rules with labels="votes".

    ``scores`` may be a function that returns batches (scores, target, {"groups": ..., "weights": ...}), the same each
    time: rules share the passes over them, and keep no more than they need. Or they are ``Elsewhere``.

    A rule's option ``scaling`` ("temperature", "vector", "isotonic") calibrates the probabilities of its link on every
    other row (of batches: on as many of these as have 64 million scores), and the rule on the rest.

    >>> import torch
    >>> fitted = fit_rules([Named.of("average-k", k=2)], torch.randn(9, 5), None, "softmax")
    >>> list(fitted), fitted["average-k-2"].predict(torch.zeros(1, 5)).num_labels
    (['average-k-2'], 5)
    """
    single = target is None or target.ndim == 1
    fitted: dict[str, SetRule] = {}
    learning: dict[tuple[str, ...], list[tuple[str, SetRule]]] = {}  # those that need the same of the rows
    today = datetime.now(UTC).date().isoformat()
    remembered: dict[str, tuple[str | None, str | None]] = {}
    for number, given in enumerate(rules):
        rule, kind = _without_scaling(given)
        place = f"rules.{number}"
        made = make_rule(place, rule, link, single, allow_import)
        on_votes = getattr(made, "labels", None) == "votes"
        answers = (truth.to_dense() if isinstance(truth, LabelSets) else truth) if on_votes else target
        if made.needs_target and answers is None:
            wanted = "votes: give them as the truth" if on_votes else "labelled data: give the labels"
            raise ShortlistError(f"{place}: {rule.name} is fitted on {wanted}")
        name, learns = file_name(given, allow_import), not made.is_fitted
        lacking = _lacking(made, rows)
        if lacking and left_out is not None:
            left_out[name] = f"it {lacking}"
            continue
        name = f"{name}-{number}" if name in fitted else name
        with errors_at(place):
            own = needed(made, rows)
            if kind is None:
                fitted[name] = made
                if on_votes:  # which batches do not carry
                    made.fit(_whole(scores), answers)
                else:
                    learning.setdefault(made.needs, []).append((place, made))
            else:
                fitted[name] = fit_scaled(made, kind, _whole(scores) if on_votes else scores, target, own, answers)
        remembered[name] = (fitted_on, today) if learns else (None, None)
    for needs, group in learning.items():
        places, together = [place for place, _ in group], [made for _, made in group]
        if isinstance(scores, Elsewhere):
            scores.fit(Fitting(together, needs, places))
        elif callable(scores):
            fit_together(together, _batches(scores, needs), places=places)
        else:
            learns_target = any(made.needs_target for made in together)
            facts = {name: (rows or {}).get(name) for name in needs}
            fit_together(together, scores, target if learns_target else None, places=places, **facts)
    for name, made in fitted.items():
        made.fitted_on, made.fitted_at = remembered[name]
    return fitted


def _without_scaling(rule: Named) -> tuple[Named, str | None]:
    """The rule without its option ``scaling``, which is the link's, and that option."""
    options = dict(rule.options)
    kind = options.pop("scaling", None)
    return Named.of(rule.name, **options), kind


def _check_link(rule: SetRule, target: Any = ()) -> None:
    if target is None or not hasattr(rule, "link"):
        raise ShortlistError("scaling calibrates the link of a rule: it needs labels, and a rule that has a link")


def fit_scaled(
    rule: SetRule,
    kind: Any,
    scores: Any,
    target: Any,
    rows: Mapping[str, Any] | None = None,
    answers: Any = None,
) -> SetRule:
    """The rule with its link scaled (``kind``: see `fit_scaling`). Every other row calibrates the probabilities, the
    others the rule: its promise needs rows of its own. ``scores`` as for ``fit_rules``; ``answers``: what the rule is
    fitted on, where that is not the target.

    >>> import torch
    >>> scores, labels = torch.randn(200, 3), torch.randint(3, (200,))
    >>> fit_scaled(Conformal(0.2), "vector", scores, labels).link
    ScaledLink(vector of softmax)
    """
    _check_link(rule, target)
    if isinstance(scores, Elsewhere):
        raise ShortlistError("a scaling is fitted on scores in one place: calibrate this rule without an engine")
    some, labels = _first_of(_every_other(scores, 0)) if callable(scores) else (scores[::2], target[::2])
    rule.link = fit_scaling(kind, some, labels, rule.link)  # type: ignore[attr-defined]
    made: SetRule = type(rule)(**rule._settings())
    if callable(scores):
        return made.fit(_batches(partial(_every_other, scores, 1), made.needs))
    own = {name: values[1::2] for name, values in (rows or {}).items()}
    answers = target if answers is None else answers
    return made.fit(scores[1::2], answers[1::2] if made.needs_target else None, **own)


def _whole(scores: Any) -> Any:
    """All scores at once, also where they come in batches."""
    if isinstance(scores, Elsewhere):
        raise ShortlistError("rules for votes are fitted on scores in one place: calibrate them without an engine")
    return torch.cat([part for part, *_ in scores()]) if callable(scores) else scores


def _batches(batches: Batches, needs: Sequence[str]) -> Callable[[], Iterator[Batch]]:
    """The same batches with what some rules need of their rows."""
    return lambda: ((scores, target, {name: rows.get(name) for name in needs}) for scores, target, rows in batches())


def _every_other(batches: Batches, first: int) -> Iterator[Batch]:
    """Every other row of all batches together."""
    seen = 0
    for scores, target, rows in batches():
        start = (first + seen) % 2
        seen += len(scores)
        yield scores[start::2], target[start::2], {name: values[start::2] for name, values in rows.items()}


def _first_of(batches: Iterator[Batch]) -> tuple[Tensor, Any]:
    """The first rows of the batches, with their targets: no more than fit into memory."""
    parts, targets, count = [], [], 0
    for scores, target, _ in batches:
        parts.append(scores)
        targets.append(target)
        count += scores.numel()
        if count >= _SCALED:
            break
    return torch.cat(parts), joined(targets)


def needed(rule: SetRule, rows: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the rule needs of the rows beside their scores, for its ``fit`` and ``predict``."""
    lacking = _lacking(rule, rows)
    if lacking:
        raise ShortlistError(f"{type(rule).__name__} {lacking}")
    return {name: (rows or {}).get(name) for name in rule.needs}


def _lacking(rule: SetRule, rows: Mapping[str, Any] | None) -> str:
    lacking = [name for name in rule.needs if (rows or {}).get(name) is None]
    if not lacking:
        return ""
    options, arguments = (" ".join(form.format(name) for name in lacking) for form in ("--{} FILE", "{}="))
    return f"needs the {' and '.join(lacking)} of the rows: give {options} (in Python {arguments})"


def no_answer(rule: SetRule, rows: Mapping[str, Any] | None = None) -> str:
    """Why the rule cannot answer: it needs groups or weights of the rows, or no threshold keeps its promise. Nothing
    where it can.

    >>> no_answer(Conformal(0.1, by_group=True)), no_answer(TopK(2))
    ('it needs the groups of the rows: give --groups FILE (in Python groups=)', '')
    """
    lacking = _lacking(rule, rows)
    if lacking:
        return f"it {lacking}"
    return rule.concern if rule.is_fitted and getattr(rule, "threshold", 0.0) is None else ""


def file_name(rule: Named, allow_import: Sequence[str] = ()) -> str:
    """The rule's name, its main setting, where it is given, then its score, whom its promise is for, and its scaling,
    likewise: two promises do not take each other's place.

    >>> file_name(Named.of("average-k", k=5)), file_name(Named.of("risk-control", risk="recall", alpha=0.1))
    ('average-k-5', 'risk-control-recall')
    >>> file_name(Named.of("conformal", alpha=0.1, score="aps", per_class=True, scaling="temperature"))
    'conformal-0.1-aps-per-class-temperature'
    """
    name = rule.name.rpartition(":")[2]
    options = inspect.signature(RULES.find(rule.name, allow_import)).parameters
    main = next(iter(options), "")
    value = rule.options.get(main)
    parts = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
    for option, usual in options.items():
        given = rule.options.get(option)
        if option == "score" and given not in (None, usual.default):
            parts.append(given)
        elif option != main and given is True:
            parts.append(option.replace("_", "-"))
    parts += [rule.options["scaling"]] if rule.options.get("scaling") is not None else []
    return "-".join([name, *(f"{part:g}" if isinstance(part, int | float) else str(part) for part in parts)])


def usual_rules(target: Any, num_labels: int, k: float | None, link: str) -> list[Named]:
    """What to calibrate where nothing is asked for: k labels always, k on average, and 90% coverage.

    Without a k, single labels get the usual number, and a label matrix its own mean number of present labels.

    >>> import torch
    >>> [(rule.name, rule.options) for rule in usual_rules(torch.tensor([0, 1]), 10, 3, "softmax")]
    [('top-k', {'k': 3}), ('average-k', {'k': 3}), ('conformal', {'alpha': 0.1})]
    """
    single = target.ndim == 1
    if k is None:
        k = usual_k(num_labels) if single else round(cardinality(target), 2)
    k = min(max(k, 1 / max(1, len(target))), num_labels)
    k = int(k) if k == int(k) else k
    rules = [Named.of("top-k", k=min(max(1, round(k)), num_labels)), Named.of("average-k", k=k)]
    rules.append(Named.of("conformal", alpha=0.1))
    if link == "sigmoid" and not single:
        rules.append(Named.of("threshold", value=0.5))
    return rules
