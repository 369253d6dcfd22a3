"""Scores on a device: rules learn and predict there as they do on a CPU, and the scores are not copied to the host.

Here by a device that is pretended (`tests.pretend_device`), where sets are the same to the bit; with ``-m gpu`` on a
GPU, whose softmax and exp round differently: there, nearly all sets are.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from shortlist.device_arrays import DeviceArray
from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.sets import AverageK, Conformal, OnlineConformal, RiskControl, SetRule, Threshold, TopK, fit_scaling
from tests.pretend_device import moved, pretending
from tests.sets.test_every_rule import RULES

ROWS, LABELS = 330, 210
FEW = 20_000  # fractions that may travel, of 69,300 scores: what rules keep of each row's labels, quantiles
GPU = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]
)
EVERY = [
    *RULES,
    Conformal(0.2, score="top-k"),
    Conformal(0.2, score="raps", clusters=2),
    Conformal(0.2, score="aps", by_group=True),
    Conformal(0.2, score="margin", weighted=True),
    Conformal(0.2, score="margin", per_class=True),
    Conformal(0.2, labels="votes"),
    RiskControl("f1", 0.9, 0.2),
    RiskControl("recall", 0.3, 0.2, bound="waudby-smith-ramdas"),
    RiskControl("false-positives", 0.6, per_label=True),
    RiskControl("false-positives", 2.0, max_size=3),
    RiskControl(lambda inside, target: (inside & (target == 0)).any(-1), 0.99, 0.5),
]
every_rule = pytest.mark.parametrize("rule", EVERY, ids=repr)


@pytest.fixture(params=["pretended", GPU])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with pretending(most=FEW) if request.param == "pretended" else nullcontext():
        yield request.param


def on(device: str, array: Any) -> Any:
    """Scores and label matrices on the device; what belongs to whole rows stays on the host."""
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        return array
    tensor = torch.from_numpy(array)
    return moved(tensor) if device == "pretended" else tensor.cuda()


def scores_of(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(ROWS, LABELS)) * 2
    if kind != "any":
        scores = scores.round() / 2  # many ties
    if kind == "masked":
        scores[rng.random(scores.shape) < 0.3] = -np.inf
    return scores.astype({"float16": np.float16, "float64": np.float64}.get(kind, np.float32))


def facts_of(rule: SetRule) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    own = {"groups": rng.integers(0, 3, ROWS), "weights": rng.random(ROWS)}
    facts = {name: own[name] for name in rule.needs}
    if getattr(rule, "labels", "") == "single":
        return rng.integers(-1, LABELS, ROWS), facts
    if getattr(rule, "labels", "") == "votes":
        return (rng.random((ROWS, LABELS)) < 0.02) * rng.integers(1, 4, (ROWS, LABELS)), facts
    matrix = np.where(rng.random((ROWS, LABELS)) < 0.03, rng.choice([1, 1, -1], (ROWS, LABELS)), 0)
    return (matrix.astype(np.int8) if rule.needs_target else None), facts


def same(device: str, found: LabelSets, expected: LabelSets) -> bool:
    if device == "pretended":
        return found == expected
    alike = [a == b for a, b in zip(found.to_lists(), expected.to_lists(), strict=True)]
    return sum(alike) >= 0.95 * len(alike)


@every_rule
@pytest.mark.parametrize("kind", ["any", "ties", "masked", "float16", "float64"])
@pytest.mark.filterwarnings("ignore")
def test_sets_are_those_of_the_cpu_and_scores_stay_on_the_device(rule: SetRule, kind: str, device: str) -> None:
    if kind == "masked" and "none" in repr(rule) and "false-positives" in repr(rule):
        pytest.skip("a threshold of -inf lists every label")
    scores, (target, facts), rule = scores_of(kind), facts_of(rule), deepcopy(rule)
    rule.fit(scores, target, **facts)
    try:
        expected = rule.predict(scores, **facts)
    except ShortlistError as error:  # no threshold keeps the promise: on the device there is none either
        rule.fit(on(device, scores), on(device, target), **facts)
        with pytest.raises(ShortlistError, match=str(error)[:20]):
            rule.predict(on(device, scores), **facts)
        return
    rule.fit(on(device, scores), on(device, target), **facts)
    assert same(device, rule.predict(on(device, scores), **facts), expected)


@every_rule
@pytest.mark.filterwarnings("ignore")
def test_targets_on_the_host_and_blocks_of_rows(rule: SetRule, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, (target, facts), rule = scores_of("ties"), facts_of(rule), deepcopy(rule)
    rule.fit(scores, target, **facts)
    if getattr(rule, "threshold", 0) is None:
        pytest.skip("no threshold keeps the promise")
    expected = rule.predict(scores, **facts)
    monkeypatch.setattr(type(rule), "block_size", 50 * LABELS)
    rule.fit(on(device, scores), target, **facts)
    assert same(device, rule.predict(on(device, scores), **facts), expected)
    none = rule.predict(on(device, scores[:0]), **{name: values[:0] for name, values in facts.items()})
    assert len(none) == 0


def test_bfloat16_is_read_as_it_is(device: str) -> None:
    scores = torch.from_numpy(scores_of("ties"))
    there = on(device, scores.numpy()).bfloat16()
    assert TopK(3).predict(there) == TopK(3).predict(scores.bfloat16())


@pytest.mark.parametrize("kind", ["temperature", "vector", "isotonic"])
@pytest.mark.parametrize("single", [True, False])
def test_scalings_are_fitted_on_the_device_and_serve_there(kind: Any, single: bool, device: str) -> None:
    scores = scores_of("any")
    target, _ = facts_of(Conformal() if single else Conformal(labels="multi"))
    here, there = fit_scaling(kind, scores, target), fit_scaling(kind, on(device, scores), on(device, target))
    expected = Threshold(0.01, link=here).predict(scores)
    found = Threshold(0.01, link=there).predict(on(device, scores))
    assert abs(found.sizes.mean() - expected.sizes.mean()) < 0.05
    assert same(device, Threshold(0.01, link=here).predict(on(device, scores)), expected)


def test_p_values_and_sets_row_after_row(device: str) -> None:
    scores, target = scores_of("ties")[:, :20], facts_of(Conformal())[0]
    target = np.minimum(target, 19)
    rule = OnlineConformal(0.2, score="aps").fit(scores, target)
    expected_p, expected = rule.p_values(scores), rule.observe(scores, target)
    rule.fit(on(device, scores), target)
    np.testing.assert_allclose(rule.p_values(on(device, scores)), expected_p, atol=0 if device == "pretended" else 0.05)
    assert same(device, rule.observe(on(device, scores), target), expected)


def test_json_and_merging_of_rules_that_learned_on_the_device(device: str) -> None:
    scores, (target, _) = scores_of("any"), facts_of(RiskControl("precision", 0.9, 0.2))
    assert target is not None
    halves = [
        RiskControl("precision", 0.9, 0.2).fit(on(device, scores[part]), on(device, target[part]))
        for part in (slice(0, ROWS // 2), slice(ROWS // 2, None))
    ]
    merged = halves[0].merge(halves[1])
    assert merged.threshold == pytest.approx(RiskControl("precision", 0.9, 0.2).fit(scores, target).threshold)
    small = Conformal(0.2).fit(on(device, scores), facts_of(Conformal())[0])
    assert SetRule.from_json(small.to_json()).predict(scores) == small.predict(scores)


def test_what_is_wrong_is_told_as_on_a_cpu(device: str) -> None:
    scores = scores_of("any")
    scores[3, 5] = np.nan
    for rule in (TopK(2), Threshold(0.1), Threshold(0.1, link="sigmoid"), AverageK(2)):
        with pytest.raises(ShortlistError, match="row 3, label 5 is NaN"):
            rule.fit(on(device, scores)).predict(on(device, scores))
    matrix = np.zeros((ROWS, LABELS), np.int64)
    matrix[7, 9] = 4
    with pytest.raises(ShortlistError, match="target row 7, label 9 is 4"):
        Conformal(labels="multi").fit(on(device, scores_of("any")), on(device, matrix))
    with pytest.raises(ShortlistError, match="must be floating point, got dtype int64"):
        TopK(2).predict(on(device, matrix))


class Numpys(SetRule):
    """A rule of somebody's own, who knows nothing of devices."""

    def sets_of(self, block: Any) -> Any:
        best = np.asarray(block.scores).argmax(-1)
        return np.ones(len(best), int), best


def test_a_rule_of_ones_own_is_given_numpy_arrays() -> None:
    scores = scores_of("any")
    with pretending(most=scores.size):
        assert Numpys().predict(moved(torch.from_numpy(scores))) == TopK(1).predict(scores)


def test_a_device_array_does_not_come_to_the_host_by_itself() -> None:
    with pretending(most=0):
        array = DeviceArray(moved(torch.zeros(3)))
        with pytest.raises(TypeError, match="does not come to the host"):
            np.asarray(array)
        with pytest.raises(TypeError):
            np.linalg.norm(array)


def test_the_pretended_device_is_strict() -> None:
    with pretending(most=3):
        there: Tensor = moved(torch.zeros(4))
        with pytest.raises(AssertionError, match="a copy of 4 numbers"):
            there.cpu()
        with pytest.raises(AssertionError, match="two devices"):
            there + torch.ones(4)
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
    with pretending(most=3, waits=False), pytest.raises(AssertionError, match="waits"):
        moved(torch.zeros(())).item()
