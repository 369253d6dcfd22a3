"""SetClassifier among scikit-learn's own: its checks, pipelines, searches and scorers."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist.errors import ShortlistWarning
from shortlist.estimators import SetClassifier, set_scorer
from tests.estimators.made import MX, MY, X, Y, classifier


@parametrize_with_checks(
    [
        SetClassifier(random_state=0),
        SetClassifier("cross-entropy", preprocess=None, epochs=12, lr=0.1, random_state=0),
        SetClassifier("binary", rule="threshold", solver="lbfgs", weight_decay=0.1, random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_methods_subset_invariance": "BLAS adds up float32 in an order that depends on the number of rows: 1e-6",
        "check_sample_weight_equivalence_on_dense_data": "rows are drawn for folds and batches; float32 rounds",
        "check_sample_weight_equivalence_on_sparse_data": "rows are drawn for folds and batches; float32 rounds",
    },
)
def test_scikit_learns_own_checks(estimator: SetClassifier, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_a_grid_search_over_k_scores_the_sets() -> None:
    pipeline = make_pipeline(StandardScaler(), SetClassifier(random_state=0))
    search = GridSearchCV(pipeline, {"setclassifier__k": [1, 4, 7]}, scoring=set_scorer("f1"), cv=2).fit(X, Y)
    assert search.best_params_ == {"setclassifier__k": 1}
    search = GridSearchCV(SetClassifier(), {"k": [0.5, 1, 4]}, scoring=set_scorer("coverage", largest=1.5), cv=2)
    assert search.fit(X, Y).best_params_ == {"k": 1}


@pytest.mark.parametrize("tried", [{"k": [1, 2]}, {"rule": ["top-k", "average-k"]}])
def test_a_search_that_does_not_see_the_sets_is_told(tried: dict[str, Any]) -> None:
    with pytest.warns(ShortlistWarning, match=f"a search over {min(tried)} needs scoring=.*set_scorer"):
        GridSearchCV(SetClassifier(random_state=0), tried, cv=2).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "tried"),
    [({"epochs": 1}, {"weight_decay": [0.1, 1.0]}), ({"objective": "topk-hinge", "epochs": 1}, {"k": [1, 2]})],
)
def test_a_search_over_what_changes_scores_is_not_warned_of(options: dict[str, Any], tried: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortlistWarning)
        GridSearchCV(SetClassifier(random_state=0, **options), tried, cv=2, error_score="raise").fit(X, Y)


def test_a_grid_search_over_rules_scores_the_sets_of_each() -> None:
    """Sets of two labels, one of which is right: F1 is 2/3 always; those of 1.2 labels on average do better."""
    tried = {"rule": ["top-k", "average-k"], "k": [1.2, 2]}
    search = GridSearchCV(SetClassifier(random_state=0), tried, scoring=set_scorer("micro-f1"), cv=2).fit(X, Y)
    found = {
        (one["rule"], one["k"]): score
        for one, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    assert found["top-k", 2] <= 2 / 3 + 1e-6 < found["average-k", 1.2] < found["top-k", 1.2]
    model = SetClassifier(k=1.2, rule_options={"min_size": 1}, random_state=0).fit(X, Y)
    assert model.predict_sets(X).sizes.min() == 1


def test_a_scorer_sees_the_sets_of_a_search_within_a_pipeline_and_the_other_way_round() -> None:
    tried = {"setclassifier__k": [1, 2]}
    search = GridSearchCV(make_pipeline(classifier()), tried, cv=2, scoring=set_scorer("coverage"))
    model = make_pipeline(StandardScaler(), search).fit(X, Y)
    assert search.best_params_ == {"setclassifier__k": 2}
    sets = search.best_estimator_[-1].predict_sets(model[0].transform(X))
    assert set_scorer("coverage")(model, X, Y) == np.mean(sets.to_dense()[np.arange(300), Y])


def test_a_scorer_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="no set metric 'f2'"):
        set_scorer("f2")
    with pytest.raises(ValueError, match="needs an estimator with predict_sets, got LogisticRegression"):
        set_scorer()(LogisticRegression(), X, Y)


def test_a_class_that_training_rows_lack_is_in_no_set_of_the_scorer() -> None:
    y = np.array(["a", "b"])[np.arange(40) % 2]
    model = SetClassifier(rule="top-k", k=1).fit(np.eye(2)[np.arange(40) % 2], y)
    assert set_scorer("coverage")(model, np.eye(2), ["a", "new"]) == 0.5
    model = SetClassifier("binary", rule="top-k", k=1).fit(np.eye(2)[np.arange(40) % 2], [[name] for name in y])
    assert set_scorer("coverage")(model, np.eye(2), [["a", "new"], ["b"]]) == 0.75


def test_a_grid_search_over_a_pipeline_chooses_the_objective_by_ranking() -> None:
    pipeline = make_pipeline(StandardScaler(), classifier("binary", k=None, epochs=3))
    grid = {"setclassifier__objective": ["binary", "lsep"], "setclassifier__hidden": [(), (8,)]}
    y = MY.copy()
    y[::7, 0] = -1
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(MX, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.6
    assert search.predict(MX).shape == y.shape


def test_the_score_of_several_labels_is_scikit_learns_ranking_precision() -> None:
    model = classifier("binary").fit(MX, MY)
    rows = MY.any(1)
    expected = label_ranking_average_precision_score(MY[rows], model.decision_function(MX[rows]))
    assert model.score(MX[rows], MY[rows]) == pytest.approx(expected, rel=1e-5)
