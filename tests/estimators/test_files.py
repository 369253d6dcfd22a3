"""SetClassifier: saved models, and files that are damaged or of something else."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from shortlist.estimators import SetClassifier
from shortlist.objectives import OBJECTIVES
from tests.estimators.made import MX, MY, NAMES, X, Y, classifier


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not name.startswith("scene-")])
def test_every_objective_fits_and_travels(name: str, tmp_path: Path) -> None:
    kind = OBJECTIVES[name]
    x, y = (X, Y) if "indices" in kind.accepts or kind.one_positive else (MX, MY)
    model = classifier(name, k=2, epochs=1, hidden=(8,)).fit(x, y)
    sets = model.predict_sets(x)
    assert len(sets) == len(x)
    model.save(tmp_path / "model.safetensors")
    assert SetClassifier.load(tmp_path / "model.safetensors").predict_sets(x) == sets
    assert pickle.loads(pickle.dumps(model)).predict_sets(x) == sets


def test_a_saved_classifier_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = classifier(hidden=(5,), objective_options={"label_smoothing": 0.1}).fit(frame, NAMES[Y])
    model.save(path)
    loaded = SetClassifier.load(path)
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    loaded.partial_fit(frame, NAMES[Y])
    assert clone(loaded).get_params() == model.get_params()


def test_a_file_that_names_code_runs_none(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    model = classifier().fit(X, Y)
    model.save(path)
    key, text = "shortlist.SetClassifier", header(path)
    facts = json.loads(text)
    facts["model"]["objective"] = "os:system"
    save_file(load_file(path), path, {key: json.dumps(facts)})
    with pytest.raises(ValueError, match=r"model\.safetensors: .*'os:system'"):
        SetClassifier.load(path)
    save_file({name: value[:1] for name, value in model.learner_.weights().items()}, path, {key: text})
    with pytest.raises(ValueError, match="must have shape"):
        SetClassifier.load(path)


def header(path: Path) -> str:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata()["shortlist.SetClassifier"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        SetClassifier.load(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match=r"text: this is not a safetensors file, or it is damaged"):
        SetClassifier.load(tmp_path / "text")


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    classifier(epochs=1).fit(X, Y).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"model\.safetensors: the file is damaged: .* checksum"):
        SetClassifier.load(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors: .*damaged"):
        SetClassifier.load(path)


def test_a_file_of_an_earlier_version_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    model = classifier(epochs=1).fit(X, Y)
    model.save(path)
    save_file(load_file(path), path, {"shortlist.SetClassifier": header(path)})
    assert SetClassifier.load(path).predict_sets(X) == model.predict_sets(X)


def nest(facts: dict[str, Any]) -> str:
    return "[" * 100_000


def set_in(*keys: Any) -> Any:
    """Change one entry of nested facts."""

    def change(facts: dict[str, Any]) -> str:
        *path, last, value = keys
        part: Any = facts
        for key in path:
            part = part[key]
        part[last] = value
        return json.dumps(facts)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("model", "num_labels", 10**9), "it states 1000000000 labels, and names 8"),
        (set_in("model", "in_features", 10**9), "and its model takes 1000000000"),
        (set_in("model", "hidden", [10**9]), "must have shape (1000000000, 6), in the file: missing"),
        (set_in("model", "hidden", [10**30]), "not a file that SetClassifier.save wrote"),
        (set_in("model", "hidden", [1] * 1000), "it states 1000 hidden layers, and has 2 tensors"),
        (set_in("classes_dtype", "(100000000,)f8"), "classes are numbers or text"),
        (nest, "nested too deeply"),
    ],
)
def test_stated_sizes_are_compared_with_the_weights_before_anything_is_made(
    change: Any, message: str, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    classifier(epochs=1).fit(X, Y).save(path)
    save_file(load_file(path), path, {"shortlist.SetClassifier": change(json.loads(header(path)))})
    with pytest.raises(ValueError, match=re.escape(message)):
        SetClassifier.load(path)
