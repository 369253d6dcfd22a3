"""A fitted SetClassifier in one safetensors file: the weights as tensors, everything else as JSON in the header."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, errors_name
from shortlist.estimators.decisions import Decision
from shortlist.estimators.learner import new_learner
from shortlist.files import PathLike, parse_json, read_tensors, write_tensors
from shortlist.links import ScaledLink, rule_link, usual_link
from shortlist.objectives import OBJECTIVES
from shortlist.sets import SetRule

if TYPE_CHECKING:
    from shortlist.estimators.set_classifier import SetClassifier

    Classifier = TypeVar("Classifier", bound=SetClassifier)

_KEY = "shortlist.SetClassifier"
_CHOSEN = ("objective_", "solver_", "weight_decay_", "lr_", "epochs_", "selection_", "_unknown_is_absent")


def write(path: PathLike, classifier: SetClassifier) -> None:
    params = classifier.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = None  # a generator's state has no place in a file, and prediction does not need it
    classes = classifier.classes_
    facts = {
        "params": params,
        "model": classifier._model,
        "is_multilabel": classifier.is_multilabel_,
        "classes": classes.tolist(),
        "classes_dtype": "object" if classes.dtype == object else classes.dtype.str,
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": list(getattr(classifier, "feature_names_in_", [])) or None,
        "k": classifier.k_,
        "seed": classifier._seed,
        "history": classifier.history_,
        "rule": classifier.rule_.to_json(),
        "link": link.to_dict() if isinstance(link := classifier.link_, ScaledLink) else link,
        "preprocessor": classifier.preprocessor_.to_json() if hasattr(classifier, "preprocessor_") else None,
        "decision": dataclasses.asdict(classifier.decision_) if hasattr(classifier, "decision_") else None,
        "chosen": {name: getattr(classifier, name) for name in _CHOSEN if hasattr(classifier, name)},
    }
    header = {_KEY: json.dumps(facts, default=_without_numpy, ensure_ascii=False)}
    write_tensors(path, classifier.learner_.weights(), header)


def read(path: PathLike, kind: type[Classifier]) -> Classifier:
    """The classifier in a file. Sizes that the file states are compared with the weights in it before anything of that
    size is made; so that a file takes no more than a few times its length in memory."""
    weights, metadata = read_tensors(path)
    with errors_name(path):
        try:
            facts = parse_json(metadata[_KEY])
            _check_sizes(facts, weights)
            return _rebuilt(kind, facts, weights)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
            raise ShortlistError(f"this is not a file that SetClassifier.save wrote: {error}") from error


def _check_sizes(facts: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    model, classes = facts["model"], facts["classes"]
    if not isinstance(classes, list) or len(classes) != model["num_labels"]:
        raise ShortlistError(f"it states {model['num_labels']} labels, and names {len(classes)}")
    columns, features = facts["n_features_in"], facts["n_features_in"]
    if facts["preprocessor"] is not None:
        prepared = Preprocessor.from_json(facts["preprocessor"])
        columns, features = prepared.num_columns, prepared.width
    if facts["n_features_in"] != columns or features != model["in_features"]:
        raise ShortlistError(
            f"it states {facts['n_features_in']} columns; its preprocessing makes {features} features of {columns} "
            f"and its model takes {model['in_features']}"
        )
    if len(model["hidden"]) > len(weights):
        raise ShortlistError(f"it states {len(model['hidden'])} hidden layers, and has {len(weights)} tensors")
    with torch.device("meta"):  # shapes without memory
        wanted = new_learner(model).state_dict()
    for name, tensor in wanted.items():
        if name not in weights or weights[name].shape != tensor.shape:
            held = tuple(weights[name].shape) if name in weights else "missing"
            raise ShortlistError(f"the weights {name} must have shape {tuple(tensor.shape)}, in the file: {held}")


def _classes(names: list[Any], dtype: str) -> np.ndarray[Any, Any]:
    kind = np.dtype(dtype)
    if kind.kind not in "biufUSO" or kind.shape:
        raise ShortlistError(f"classes are numbers or text, not {dtype!r}")
    return np.array(names, dtype=kind.type if kind.kind in "US" else kind)  # text as wide as it is, whatever it states


def _rebuilt(kind: type[Classifier], facts: dict[str, Any], weights: dict[str, Any]) -> Classifier:
    params: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["params"].items()
    }
    classifier = kind(**params)
    state = {
        **classifier.__dict__,
        "classes_": _classes(facts["classes"], facts["classes_dtype"]),
        "n_features_in_": facts["n_features_in"],
        "is_multilabel_": facts["is_multilabel"],
        "history_": facts["history"],
        "rule_": SetRule.from_json(facts["rule"]),
        "link_": rule_link(facts["link"] if "link" in facts else _link_of_before(facts)),
        "_model": facts["model"],
        "k_": facts["k"],
        "_seed": facts["seed"],
        "_held": [],
        "learner_": weights,
    }
    state |= {name: value for name, value in facts["chosen"].items() if name in _CHOSEN}
    if facts["preprocessor"] is not None:
        state["preprocessor_"] = Preprocessor.from_json(facts["preprocessor"])
    if facts["decision"] is not None:
        state["decision_"] = Decision(float(facts["decision"]["threshold"]), bool(facts["decision"]["at_least_one"]))
    if facts["feature_names_in"] is not None:
        state["feature_names_in_"] = np.array(facts["feature_names_in"], dtype=object)
    classifier.__setstate__(state)
    return classifier


def _link_of_before(facts: dict[str, Any]) -> str:
    """Of a file that has no link, because there was no scaling yet."""
    sigmoid = facts["is_multilabel"] and OBJECTIVES.find(facts["model"]["objective"]).link == "sigmoid"
    return usual_link(single=not sigmoid)


def _without_numpy(value: Any) -> Any:
    """numpy's numbers as Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ShortlistError(f"{value!r} cannot be saved: parameters must be numbers, text, lists or dicts")
