"""A fitted SetClassifier in one safetensors file: the weights as tensors, everything else as JSON in the header."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from shortlist.errors import ShortlistError, errors_name
from shortlist.files import written_whole
from shortlist.optional import require
from shortlist.sets import SetRule

if TYPE_CHECKING:
    from shortlist.estimators.set_classifier import SetClassifier

    Classifier = TypeVar("Classifier", bound=SetClassifier)

_KEY = "shortlist.SetClassifier"


def write(path: str | os.PathLike[str], classifier: SetClassifier) -> None:
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
        "k": classifier._k,
        "seed": classifier._seed,
        "history": classifier.history_,
        "rule": classifier.rule_.to_json(),
    }
    header = {_KEY: json.dumps(facts, default=_plain, ensure_ascii=False)}
    with written_whole(path) as file:
        file.write(require("safetensors.torch").save(classifier.learner_.weights(), header))


def read(path: str | os.PathLike[str], kind: type[Classifier]) -> Classifier:
    safetensors = require("safetensors")
    if not os.path.isfile(path):
        raise ShortlistError(f"there is no file {os.fspath(path)}")
    with errors_name(path):
        try:
            with safetensors.safe_open(os.fspath(path), framework="pt") as file:
                facts = json.loads((file.metadata() or {})[_KEY])
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return _rebuilt(kind, facts, weights)
        except (safetensors.SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
            raise ShortlistError(f"this is not a file that SetClassifier.save wrote: {error}") from error


def _rebuilt(kind: type[Classifier], facts: dict[str, Any], weights: dict[str, Any]) -> Classifier:
    params: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["params"].items()
    }
    classifier = kind(**params)
    state = {
        **classifier.__dict__,
        "classes_": np.array(facts["classes"], dtype=np.dtype(facts["classes_dtype"])),
        "n_features_in_": facts["n_features_in"],
        "is_multilabel_": facts["is_multilabel"],
        "history_": facts["history"],
        "rule_": SetRule.from_json(facts["rule"]),
        "_model": facts["model"],
        "_k": facts["k"],
        "_seed": facts["seed"],
        "_held": [],
        "learner_": weights,
    }
    if facts["feature_names_in"] is not None:
        state["feature_names_in_"] = np.array(facts["feature_names_in"], dtype=object)
    classifier.__setstate__(state)
    return classifier


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ShortlistError(f"{value!r} cannot be saved: parameters must be numbers, text, lists or dicts")
