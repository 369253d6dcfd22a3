"""Given the same scores, onnxruntime gives the sets that the rule gives: 10,000 rows of every rule, with and without
ties."""

import numpy as np
import onnx
import pytest

from shortlist.errors import ShortlistError
from shortlist.exporting.model import run_model
from shortlist.exporting.nodes import HASH_OPSET, PLAIN_OPSET, Graph
from shortlist.exporting.rules import sets_of
from shortlist.links import ScaledLink
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

ROWS, LABELS = 10_000, 30
VECTOR = ScaledLink("vector", "softmax", scale=tuple(np.linspace(0.5, 1.5, LABELS)), shift=(0.1,) * LABELS)
RULES = [
    TopK(5),
    AverageK(3.5),
    AverageK(2, link="none"),
    AverageK(2.5, link="sigmoid", min_size=2),
    AverageK(3.5, min_size=1, max_size=6),
    Threshold(0.1),
    Threshold(0.1, link=VECTOR),
    Threshold(0.5, link="sigmoid"),
    Penalized(0.2),
    PointwiseError(0.1),
    *(Conformal(0.1, score=score) for score in ("lac", "aps", "raps", "saps", "top-k", "margin")),
    *(Conformal(0.1, score=score, seed=3) for score in ("aps", "raps", "saps", "top-k")),
    Conformal(0.1, per_class=True),
    Conformal(0.1, score="aps", per_class=True),
    Conformal(0.1, score="raps", clusters=4),
    Conformal(0.1, labels="multi"),
    Conformal(0.7, min_size=1),
    Conformal(0.7, score="saps", seed=3, min_size=1),
    Conformal(0.8, per_class=True, min_size=1),
    Conformal(0.8, labels="multi", min_size=1),
    RiskControl("recall", 0.1),
    RiskControl("precision", 0.3, delta=0.1),
    RiskControl("recall", 0.1, per_label=True),
    RiskControl("false-positives", 2, max_size=6),
]


def scores_of(rows: int, seed: int, tied: bool) -> np.ndarray:
    scores = 2 * np.random.default_rng(seed).normal(size=(rows, LABELS))
    return (np.round(scores) if tied else scores).astype(np.float32)


def fitted(rule: SetRule, tied: bool) -> SetRule:
    scores = scores_of(2000, 1, tied)
    random = np.random.default_rng(2)
    if isinstance(rule, RiskControl) or getattr(rule, "labels", "") == "multi":
        target = (random.random(scores.shape) < 1 / (1 + np.exp(2 - scores))).astype(np.int8)
    else:
        target = (scores + random.gumbel(size=scores.shape)).argmax(1)
    return rule.fit(scores, target if rule.needs_target else None)


def rule_model(rule: SetRule, num_labels: int) -> onnx.ModelProto:
    """The sets of a rule alone: from ``scores`` to ``sets``."""
    graph, shape, value = Graph(), ["rows", num_labels], onnx.helper.make_tensor_value_info
    graph.named(sets_of(graph, rule, "scores", num_labels), "sets")
    inputs, outputs = [value("scores", onnx.TensorProto.FLOAT, shape)], [value("sets", onnx.TensorProto.BOOL, shape)]
    made = onnx.helper.make_graph(graph.nodes, "shortlist", inputs, outputs, graph.constants)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", graph.opset)], ir_version=10)


@pytest.mark.parametrize("tied", [False, True], ids=["few ties", "many ties"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_graph_gives_the_sets_of_the_rule(rule: SetRule, tied: bool) -> None:
    fitted(rule, tied)
    new = scores_of(ROWS, 3, tied)
    new[0], new[1, :3] = 0, -0.0  # all labels alike
    found = run_model(rule_model(rule, LABELS), {"scores": new})["sets"]
    assert (found == rule.predict(new).to_dense()).all()


def test_only_a_rule_that_breaks_ties_needs_a_new_runtime() -> None:
    assert rule_model(fitted(AverageK(3), False), LABELS).opset_import[0].version == PLAIN_OPSET
    assert rule_model(TopK(3), LABELS).opset_import[0].version == HASH_OPSET


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ShortlistError, match="not fitted"):
        rule_model(AverageK(3), LABELS)
    with pytest.raises(ShortlistError, match="cannot be exported: only TopK"):
        rule_model(OnlineConformal(), LABELS)
    grouped = Conformal(0.1, by_group=True)
    grouped.fit(scores_of(100, 1, False), np.arange(100) % LABELS, groups=["a", "b"] * 50)
    with pytest.raises(ShortlistError, match="the group of every row"):
        rule_model(grouped, LABELS)
