"""SetClassifier: settings that are wrong, or that nothing has a use for."""

import math
import warnings
from typing import Any

import pytest

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import SetClassifier
from shortlist.nn import SmoothTopKLoss
from shortlist.sets import TopK
from tests.estimators.made import X, Y, classifier


def test_a_solver_that_cannot_is_named() -> None:
    with pytest.raises(ValueError, match=r"\"lbfgs\" is for linear models.*hidden is \(4,\)"):
        SetClassifier(solver="lbfgs", hidden=(4,)).fit(X, Y)
    with pytest.raises(ValueError, match="solver must be"):
        SetClassifier(solver="sgd").fit(X, Y)


@pytest.mark.parametrize("params", [{"rule": "top-k:k=2"}, {"objective": "smooth-topk:tau=2"}, {"rule_options": [1]}])
def test_options_beside_a_name_have_their_own_place(params: dict[str, Any]) -> None:
    with pytest.raises(ShortlistError, match=r"(_options must be a dict| must be a name, with)"):
        SetClassifier(**params).fit(X, Y)


def test_a_broken_k_of_exactly_k_labels_is_told() -> None:
    with pytest.warns(ShortlistWarning, match=r'k=1.5 with rule "top-k": every set will hold 2'):
        model = SetClassifier(k=1.5, rule="top-k", weight_decay=1.0).fit(X, Y)
    assert set(model.predict_sets(X).sizes) == {2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a rule may have a k of its own
        SetClassifier(k=2, rule="top-k", rule_options={"k": 1}, weight_decay=1.0).fit(X, Y)


def test_a_dropout_without_hidden_layers_is_told() -> None:
    with pytest.warns(ShortlistWarning, match=r"dropout=0.5 is of hidden layers, and there are none"):
        SetClassifier(dropout=0.5, weight_decay=1.0).fit(X, Y)


def test_a_weight_decay_alone_is_that_of_all_rows_at_once() -> None:
    model = SetClassifier(weight_decay=2.0, random_state=0).fit(X, Y)
    assert (model.solver_, model.weight_decay_, model.hidden_) == ("lbfgs", 2.0, ())


def test_settings_of_batches_are_told_where_nothing_is_done_in_batches() -> None:
    with pytest.warns(ShortlistWarning, match=r'"lbfgs" .* has no use for epochs=3, lr=0.1: .*"adamw"'):
        SetClassifier(solver="lbfgs", weight_decay=1.0, epochs=3, lr=0.1).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "cross-entrpy"}, "no objective 'cross-entrpy'.*cross-entropy"),
        ({"rule": "average"}, "rule.*no rule 'average'.*average-k"),
        ({"rule_options": {"kk": 2}}, "rule.kk: there is no such key"),
        ({"objective_options": {"smoothing": 0.1}}, "smoothing: there is no such key.*label_smoothing"),
        ({"k": 0}, "k must be a number above 0, or None, got 0"),
        ({"k": "5"}, "k must be a number above 0, or None, got '5'"),
        ({"epochs": 0}, "epochs: input should be greater than 0, got 0"),
        ({"lr": -1}, "lr: input should be greater than 0, got -1"),
        ({"hidden": 64}, "hidden must hold the sizes"),
        ({"hidden": (0,)}, "layer sizes of at least 1"),
        ({"hidden": "none"}, "hidden must hold the sizes"),
        ({"hidden": (2.5,)}, "hidden must hold the sizes"),
        ({"dropout": "half"}, "dropout must be a share"),
        ({"calibration": 1.0}, "calibration must be a share"),
        ({"preprocess": "standard"}, "preprocess must be"),
        ({"weight_decay": -1}, "weight_decay must be a number of at least 0"),
        ({"weight_decay": math.inf}, "weight_decay must be a number of at least 0"),
        ({"batch_size": "large"}, "batch_size: .*got 'large'"),
    ],
)
def test_a_wrong_setting_is_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(**params).fit(X, Y)


@pytest.mark.parametrize("options", [{"rule": TopK(k=2)}, {"objective": SmoothTopKLoss(k=2)}])
def test_rules_and_objectives_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ShortlistError, match=r"must be a name, with its options in .*, got .*TopK"):
        SetClassifier(**options).fit(X, Y)
