"""One row as a model gives it, a float32 tensor (1, labels), goes a way of its own: its set is that of blocks of rows,
the way that the same row goes as an array."""

import numpy as np
import pytest
import torch

import shortlist as sl
from shortlist.errors import ShortlistError
from shortlist.kernels.row_sets import rows_served
from shortlist.labels import LabelSets
from shortlist.links import ScaledLink
from shortlist.sets import AverageK, Conformal, OnlineConformal, RiskControl, SetRule, Threshold, TopK
from tests.sets.test_every_rule import LABELS, RULES, fitted

SCALED = ScaledLink("vector", "sigmoid", scale=(2.0,) * LABELS, shift=(0.1,) * LABELS)
MORE = [
    TopK(LABELS),
    Threshold(0.3, link=SCALED),
    Threshold(1 / LABELS),
    Conformal(0.2, score="raps", penalty=0.03, free_rank=2),
    Conformal(0.3, score="aps", link="none"),
    Conformal(0.2, score="top-k"),
    Conformal(0.3, per_class=True),
    Conformal(0.01, score="aps"),
    RiskControl("false-positives", 0.4, per_label=True, link="none"),
]
QUICK = (TopK, Threshold, AverageK, Conformal, RiskControl)
needs_native = pytest.mark.skipif(rows_served() is None, reason="the build has no functions for single rows")


def many_rows() -> np.ndarray:
    """Rows of all kinds: usual ones, ties, extremes, infinities."""
    random = np.random.default_rng(5)
    rows = [random.normal(size=(300, LABELS)), random.integers(-2, 3, (300, LABELS)), np.zeros((1, LABELS))]
    rows += [random.normal(size=(50, LABELS)) * 1e3, np.full((1, LABELS), -1e30), -np.zeros((1, LABELS))]
    rows += [random.choice([0.0, -np.inf], (50, LABELS))]
    return np.concatenate(rows).astype(np.float32)


def answer(rule: SetRule, row: object) -> LabelSets | str:
    try:
        return rule.predict(row)
    except ShortlistError as error:
        return str(error)


@pytest.mark.parametrize("rule", RULES + MORE, ids=repr)
@pytest.mark.filterwarnings("ignore::shortlist.ShortlistWarning")
def test_a_row_alone_has_the_set_that_blocks_give_it(rule: SetRule) -> None:
    masses = getattr(rule, "score", "") == "aps" and rule.link == "none"
    if masses:
        scores, random = np.abs(many_rows()), np.random.default_rng(6)
        rule = Conformal(0.3, score="aps", link="none").fit(scores[:200], random.integers(0, LABELS, 200))
    else:
        rule = fitted(rule)
    rows = many_rows()
    for row in rows:
        assert answer(rule, torch.from_numpy(row[None])) == answer(rule, row[None]), row
    for strange in (np.nan, np.inf):
        row = rows[:1].copy()
        row[0, 3] = strange
        assert answer(rule, torch.from_numpy(row)) == answer(rule, row)


@needs_native
@pytest.mark.parametrize("rule", RULES + MORE, ids=repr)
@pytest.mark.filterwarnings("ignore::shortlist.ShortlistWarning")
def test_the_usual_rules_do_go_that_way(rule: SetRule) -> None:
    if type(rule) not in QUICK or (isinstance(rule, Conformal) and rule.link == "none"):
        return
    odd = getattr(rule, "seed", None) is not None or getattr(rule, "score", "") == "margin"
    odd |= (getattr(rule, "per_class", False) and rule.score != "lac")
    odd |= isinstance(rule, AverageK) and rule.min_size > 0
    row = torch.from_numpy(many_rows()[:1])
    rule = fitted(rule)
    assert (rule.labels_of_row(row) is None) == (odd or getattr(rule, "threshold", 0) is None)
    with sl.kernels.use("torch"):
        assert rule.labels_of_row(row) is None


@needs_native
def test_long_rows_and_views_of_other_rows() -> None:
    random = np.random.default_rng(7)
    scores = torch.from_numpy(random.normal(size=(400, 3000)).astype(np.float32))
    target = torch.from_numpy(random.integers(0, 3000, 400))
    for rule in (TopK(700), AverageK(30), Conformal(0.1, score="aps"), Conformal(0.1, score="raps"), Conformal(0.1)):
        rule.fit(scores, target if rule.needs_target else None)
        for row in (scores[3:4], scores[4][None], scores[5:6, ::2], scores[:, :1].T):
            if row.shape[1] == 3000:
                assert rule.predict(row) == rule.predict(row.numpy())
            else:
                with pytest.raises(ShortlistError, match="labels"):
                    rule.predict(row)
    assert TopK(3).predict(scores[5:6, ::2]) == TopK(3).predict(scores[5:6, ::2].numpy())


def test_an_online_rule_answers_at_its_present_level() -> None:
    random = np.random.default_rng(8)
    scores = random.normal(size=(200, 5)).astype(np.float32)
    rule = OnlineConformal(0.2, step=0.2).fit(scores, scores.argmax(1))
    before = rule.predict(torch.from_numpy(scores[:1])).sizes[0]
    rule.observe(scores[:8], np.argmin(scores[:8], axis=1))  # misses: sets grow
    assert rule.predict(torch.from_numpy(scores[:1])).sizes[0] == 5 > before


def test_a_rule_made_from_ours_is_asked_for_its_own_sets() -> None:
    class Never(Threshold):
        def sets_of(self, block):  # type: ignore[no-untyped-def]
            return np.zeros(len(block.scores), np.int64), np.zeros(0, np.int64)

    assert Never(0.1).predict(torch.zeros(1, 3)).to_lists() == [[]]


def test_one_set_cannot_be_written_to_and_has_names() -> None:
    sets = TopK(2).predict(torch.tensor([[0.1, 3.0, 2.0]]))
    assert [part.flags.writeable for part in (sets.indices, sets.offsets)] == [False, False]
    assert [part.dtype for part in (sets.indices, sets.offsets)] == [np.int32, np.int64]
    assert sets.named(["a", "b", "c"]).names == [["b", "c"]]
    assert sets.vocabulary is None
    assert sets == LabelSets.from_lists([[1, 2]], num_labels=3)
    assert LabelSets.concatenate([sets, sets]).to_lists() == [[1, 2], [1, 2]]
