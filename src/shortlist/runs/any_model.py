"""Any other model as a `Predictor`: `shortlist.calibrate` fits set rules on its scores of held-out data."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.data.column_use import listed
from shortlist.data.dataset import default_names
from shortlist.data.frame_columns import warn_of_order
from shortlist.errors import ShortlistError
from shortlist.labels import SparseLabels, from_sets
from shortlist.labels.label_set_inputs import check_stored
from shortlist.labels.sparse_labels import is_sparse
from shortlist.links import Link, usual_link
from shortlist.named import Named
from shortlist.runs.predictor import Predictor, as_module, tensor_of
from shortlist.runs.yaml_text import parse_named
from shortlist.sets import SetRule
from shortlist.sets.named import fit_rules, needed, usual_rules

_WHOLE = re.compile(r"-?\d+")
_NAMELESS = "the labels are names: give label_names, what the scores are of, in their order"


def calibrate(
    model: Any,
    data: Any,
    rule: str | Named | SetRule | Sequence[str | Named | SetRule] | None = None,
    *,
    link: Link | None = None,
    label_names: Sequence[str] | None = None,
    groups: Any = None,
    weights: Any = None,
) -> Predictor:
    """A `Predictor` of any model, its set rules fitted on data that the model was not trained on. A module that is in
    training mode stays in it, and is in evaluation mode whenever it is asked for scores.

    Args:
        model: scores (N, L), an array or a tensor; a module or function that gives scores of inputs; or a Predictor,
            whose rules are then others.
        data: with scores their labels: class indices (N,), their names (also where these are numbers, as in
            ``label_names=model.classes_``), a list or set of names for each row, a label matrix (N, L) of 1, 0 and -1,
            `LabelSets`, scipy CSR, or None where the rule needs none. With a model a pair (inputs, labels), or a
            `shortlist.data.Dataset`.
        rule: one rule or several: ``"average-k:k=3"``, ``"conformal:alpha=0.1"``, or a rule object; the usual ones if
            not given.
        link: what makes probabilities of scores; softmax for class indices, sigmoid for a label matrix if not given.
        label_names: what the labels are called; if not given, as the columns of a frame of scores, or else by number.
        groups, weights: one of each row, for rules that need them, such as ``"conformal:by_group=true"``.

    >>> import shortlist as sl
    >>> network = torch.nn.Linear(8, 3)
    >>> inputs, labels = torch.randn(100, 8), torch.randint(3, (100,))
    >>> predictor = sl.calibrate(network, (inputs, labels), rule=["average-k:k=1.5", "conformal:alpha=0.2"])
    >>> list(predictor.rules), float(predictor.predict_sets(inputs, "average-k-1.5").sizes.mean())
    (['average-k-1.5', 'conformal-0.2'], 1.5)
    """
    made: Predictor | None = model if isinstance(model, Predictor) else None
    names = None if label_names is None else tuple(map(str, label_names))
    if hasattr(model, "predict") and not callable(model):
        raise ShortlistError(
            f"a {type(model).__name__} is an estimator, and no function of inputs: give the logarithms of its "
            f"probabilities and the labels, sl.calibrate(np.log(model.predict_proba(X)), y)"
        )
    if isinstance(data, Dataset):
        inputs, target = data, data.target
        names = data.vocabulary if names is None else names
    elif callable(model):
        if not isinstance(data, tuple) or len(data) != 2:
            raise ShortlistError("with a model give data=(inputs, labels), or a Dataset")
        inputs, target = data
    else:
        inputs, target = model, data
    for other, name in ((target, "labels"), (groups, "groups"), (weights, "weights")):
        warn_of_order(inputs, other, name)
    _check_order(names if made is None else names or made.label_names, model, target)
    names = _columns(model) if names is None else names
    known = names if made is None else names or made.label_names
    if is_sparse(target):
        target = SparseLabels.of(target, "cpu").to_dense()
    if target is not None and not isinstance(data, Dataset):
        target = _indices(target, known)
    single = target is None or target.ndim == 1
    if made is None:
        scorer = Predictor(as_module(model), (), link=link or usual_link(single), single=single)
    else:
        scorer = made
        names, link = names or made.label_names, link or made.link
    scores = scorer.scores(inputs)
    if scores.ndim != 2:
        raise ShortlistError(f"scores must have the shape (rows, labels), got {tuple(scores.shape)}")
    names = default_names(scores.shape[1]) if names is None else tuple(names)
    if len(names) != scores.shape[1]:
        raise ShortlistError(f"there are {len(names)} label_names for {scores.shape[1]} scores a row")
    if target is not None and target.shape not in ((len(scores),), tuple(scores.shape)):
        raise ShortlistError(f"labels of shape {tuple(target.shape)} do not fit scores of shape {tuple(scores.shape)}")
    if target is not None and known is None:
        _check_counted_from_0(scores, target)
    link = link or usual_link(single)
    return Predictor(
        scorer.model,
        names,
        link=link,
        single=single,
        rules=_fitted(rule, scores, target, link, scorer._allow_import, {"groups": groups, "weights": weights}),
        inputs=scorer.inputs,
        crops=scorer.crops,
        allow_import=scorer._allow_import,
    )


def _fitted(
    rule: Any,
    scores: Tensor,
    target: Tensor | None,
    link: Link,
    allow_import: Sequence[str],
    rows: Mapping[str, Any],
) -> dict[str, SetRule]:
    if rule is None and target is None:
        raise ShortlistError("without labels say which rule to fit, such as rule='average-k:k=5'")
    given = [rule] if rule is None or isinstance(rule, str | Named | SetRule | Mapping) else list(rule)
    fitted: dict[str, SetRule] = {}
    for one in given:
        if isinstance(one, SetRule):
            copied = copy.deepcopy(one)  # the same rule may be fitted on other scores, too
            labels = target if one.needs_target else None
            made = {type(one).__name__: copied.fit(scores, labels, **needed(one, rows))}
        elif one is None:
            assert target is not None
            made = fit_rules(usual_rules(target, scores.shape[1], None, link), scores, target, link)
        else:
            made = fit_rules([parse_named(one)], scores, target, link, allow_import=allow_import, rows=rows)
        fitted |= {f"{name}-{len(fitted)}" if name in fitted else name: rule for name, rule in made.items()}
    return fitted


def _columns(frame: Any) -> tuple[str, ...] | None:
    """What the columns of a frame are called; None of anything else, as of a model."""
    found = None if callable(frame) else getattr(frame, "column_names", getattr(frame, "columns", None))
    return None if found is None else tuple(map(str, found))


def _check_order(names: Sequence[str] | None, scores: Any, labels: Any) -> None:
    """An error where columns of frames are the same labels in another order: rows are read by their place."""
    given = {"the label_names": names, "the scores": _columns(scores), "the labels": _columns(labels)}
    orders = [(what, list(order)) for what, order in given.items() if order is not None]
    for what, order in orders[1:]:
        first, wanted = orders[0]
        if order != wanted and sorted(order) == sorted(wanted):
            shown, expected = (listed([repr(name) for name in one]) for one in (order, wanted))
            raise ShortlistError(f"the columns of {what} are {shown}, and {first} {expected}: give one order")


def _check_counted_from_0(scores: Tensor, target: Tensor) -> None:
    """An error where whole numbers are classes that somebody counts from 1: they would all be the next column's."""
    known = target >= 0
    if target.ndim != 1 or not known.any() or target[known].min() != 1:
        return
    best, labels = scores.argmax(1)[known].cpu(), target[known].cpu()
    if labels.max() == scores.shape[1] or int((best == labels - 1).sum()) > int((best == labels).sum()):
        count = scores.shape[1]
        raise ShortlistError(
            f"the labels seem to be counted from 1 (no 0 is among them), and without names they are columns of the "
            f"scores, from 0: give what these stand for, such as label_names=range(1, {count + 1})"
        )


def _is_set(row: Any) -> bool:
    return isinstance(row, set | frozenset) or (isinstance(row, list | tuple) and any(isinstance(x, str) for x in row))


def _indices(labels: Any, names: Sequence[str] | None) -> Tensor:
    """Labels as numbers: names are found among ``names``, also where these are whole numbers; None is unknown."""
    check_stored(labels, "labels")
    if hasattr(labels, "isna") and labels.ndim == 1 and labels.isna().any():
        labels = labels.astype(object).where(labels.notna(), None)  # what pandas has for None
    rows = labels.tolist() if str(getattr(labels, "dtype", "")) == "object" else labels
    if isinstance(rows, list | tuple) and any(map(_is_set, rows)):
        if names is None:
            raise ShortlistError(_NAMELESS)
        return torch.from_numpy(from_sets(rows, vocabulary=names))
    written = labels if isinstance(labels, Tensor) else np.asarray(labels)
    is_whole = written.ndim == 1 and str(written.dtype).removeprefix("torch.").startswith(("int", "uint"))
    by_name = is_whole and names is not None and all(map(_WHOLE.fullmatch, names))
    if not by_name and (isinstance(written, Tensor) or written.ndim != 1 or written.dtype.kind not in "OU"):
        return tensor_of(written, "labels").cpu()
    if names is None:
        raise ShortlistError(_NAMELESS)
    unknown: dict[str | None, int] = {None: -1, "-1": -1, "-100": -100} if by_name else {None: -1}
    number = unknown | {name: place for place, name in enumerate(names)}
    found = [None if name is None else str(name) for name in written.tolist()]
    for row, name in enumerate(found):
        if name not in number:
            allowed = listed([repr(known) for known in names])
            raise ShortlistError(f"label {row} is {name!r}: allowed are {allowed}, None (unknown)")
    return torch.tensor([number[name] for name in found], dtype=torch.int64)
