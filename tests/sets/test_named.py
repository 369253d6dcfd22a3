"""Rules by name, the usual rules, and results."""

import pytest
import torch

from shortlist.labels import LabelSets
from shortlist.labels.counts import cardinality
from shortlist.named import Named
from shortlist.runs.results import results_of
from shortlist.sets import AverageK, Conformal, Threshold, TopK
from shortlist.sets.named import fit_rules, make_rule, usual_rules


def some_scores() -> torch.Tensor:
    return torch.randn(200, 6, generator=torch.Generator().manual_seed(0))


def test_a_rule_takes_its_link_from_the_objective_unless_it_has_its_own() -> None:
    assert make_rule("r", Named.of("average-k", k=2), "sigmoid", True).link == "sigmoid"  # type: ignore[attr-defined]
    own = make_rule("r", Named.of("average-k", k=2, link="none"), "sigmoid", True)
    assert own.link == "none"  # type: ignore[attr-defined]


def test_conformal_follows_the_kind_of_target() -> None:
    assert make_rule("r", Named.of("conformal"), "softmax", True).labels == "single"  # type: ignore[attr-defined]
    assert make_rule("r", Named.of("conformal"), "sigmoid", False).labels == "multi"  # type: ignore[attr-defined]


def test_fitted_rules_are_those_of_the_sets_room() -> None:
    scores = some_scores()
    target = scores.argmax(1)
    wanted = [Named.of("top-k", k=2), Named.of("average-k", k=1.5), Named.of("conformal", alpha=0.2)]
    fitted = fit_rules(wanted, scores, target, "softmax")
    assert list(fitted) == ["top-k-2", "average-k-1.5", "conformal-0.2"]
    for found, rule in zip(fitted.values(), (TopK(2), AverageK(1.5), Conformal(0.2)), strict=True):
        expected = rule.fit(scores, target if rule.needs_target else None)
        assert found.predict(scores) == expected.predict(scores)


def test_rules_of_the_same_name_and_setting_get_different_files() -> None:
    wanted = [Named.of("average-k", k=2), Named.of("average-k", k=2, link="none")]
    assert list(fit_rules(wanted, some_scores(), None, "softmax")) == ["average-k-2", "average-k-2-1"]


def test_conformal_without_labels_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match=r"rules\.0: conformal is fitted on labelled data"):
        fit_rules([Named.of("conformal")], some_scores(), None, "softmax")


def test_cardinality_of_incomplete_labels_is_estimated_from_what_is_known() -> None:
    assert cardinality(torch.tensor([[1, 1], [0, -1], [1, -1], [0, -1]])) == pytest.approx(0.5 + 1.0)


def test_the_usual_rules_fit_the_data() -> None:
    matrix = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
    rules = {rule.name: rule.options for rule in usual_rules(matrix, 4, None, "sigmoid")}
    assert rules == {
        "top-k": {"k": 2},
        "average-k": {"k": 1.5},
        "conformal": {"alpha": 0.1},
        "threshold": {"value": 0.5},
    }
    few = {rule.name: rule.options for rule in usual_rules(torch.tensor([0, 1]), 2, None, "softmax")}
    assert few["top-k"] == few["average-k"] == {"k": 1}  # not all of them: that would always be right


def test_results_hold_what_can_be_counted_by_hand() -> None:
    scores = torch.tensor([[3.0, 2, 1], [1, 3, 2], [3, 1, 2], [1, 2, 3]])
    target = torch.tensor([0, 2, 1, -1])
    truth = LabelSets.from_lists([[0], [1, 2], [0, 2], [0]], num_labels=3)
    found = results_of(scores, target, "softmax", {"top": TopK(2)}, truth=truth, metrics=["topk-accuracy@1"])
    assert found["examples"] == 4
    assert found["metrics"] == {"topk-accuracy@1": pytest.approx(1 / 3)}
    # sets {0,1}, {1,2}, {0,2}, {1,2}: hold 0 and 2, not 1; all of the truth in rows 0, 1, 2; exactly it in 1 and 2
    assert found["judged"] == {"rows": 3, "labels": 9, "absent": 6, "unknown": 3}
    assert found["rules"]["top"] == {
        "size": 2.0, "coverage": pytest.approx(2 / 3), "exact": 0.0,
        "precision": pytest.approx(2 / 6), "recall": pytest.approx(2 / 3), "f1": pytest.approx(4 / 9),
        "truth-coverage": pytest.approx(3 / 4), "truth-exact": pytest.approx(1 / 2),
    }  # fmt: skip


def test_nothing_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="every label is unknown"):
        results_of(torch.zeros(2, 3), torch.tensor([-1, -1]), "softmax", {})


def test_a_threshold_of_one_half_on_a_label_matrix_is_measured() -> None:
    target = torch.tensor([[1, 0, -1], [1, 1, 0]])
    scores = torch.tensor([[1.0, -1, 5], [1, -1, -1]])
    found = results_of(scores, target, "sigmoid", {"half": Threshold(0.5, link="sigmoid")})
    assert set(found["metrics"]) == {"mean-average-precision", "mean-average-precision-sample"}
    counted = {"precision": 1.0, "recall": pytest.approx(2 / 3), "f1": 0.8}  # the unknown label counts in the size only
    assert found["rules"]["half"] == {"size": 1.5, "coverage": 0.75, "exact": 0.5, **counted}
    assert found["judged"] == {"rows": 2, "labels": 5, "absent": 2, "unknown": 1}
