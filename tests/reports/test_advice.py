"""Which rule for which wish, in words that follow the figures; and what the figures are not."""

import re

import numpy as np
import pytest

from shortlist.errors import ShortlistWarning
from shortlist.metrics.functional import set_summary
from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports import ReportData, RunResult, from_scores
from shortlist.reports.advice import advise, cautions
from shortlist.reports.contents import contents
from shortlist.sets import AverageK, Conformal, SetRule, Threshold, TopK
from tests.reports.made_up import made_up_report, scores_and_truth


def advice_of(rules: dict[str, SetRule], rows: int = 240) -> dict[str, tuple[str, str]]:
    scores, target, _ = scores_and_truth(0, rows)
    worth = {name: set_summary(rule.predict(scores), target) for name, rule in rules.items()}
    return {wish: (rule, why) for wish, rule, why in advise(rules, worth, rows)}


def held_out(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    scores, target, _ = scores_and_truth(seed, 300)
    return scores, target


def test_every_wish_gets_the_rule_that_serves_it_with_its_figures() -> None:
    scores, target = held_out()
    rules = {"two": TopK(2), "about two": AverageK(2).fit(scores), "sure": Conformal(0.1).fit(scores, target)}
    found = advice_of(rules)
    assert [rule for rule, _ in found.values()] == ["two", "about two", "sure", "about two"]
    assert "2 labels every time" in found["always the same number of labels"][1]
    assert "it promises to hold 90.0\u202f% of them" in found["to miss few right labels"][1]


def test_one_label_is_spoken_of_as_one() -> None:
    assert "1 label every time, which holds " in advice_of({"one": TopK(1)})["always the same number of labels"][1]


def test_the_best_balance_is_the_highest_f1() -> None:
    rules = {"one": TopK(1), "five": TopK(5)}
    scores, target, _ = scores_and_truth(0)
    worth = {name: set_summary(rule.predict(scores), target)["f1"].value for name, rule in rules.items()}
    found = advice_of(rules)
    assert found["the best balance of right and wrong labels"][0] == max(worth, key=worth.__getitem__)


def test_sizes_that_differ_are_not_compared_and_differences_within_the_intervals_are_called_so() -> None:
    scores, _ = held_out()
    wish = "more labels where more may be right, fewer where it is clear"
    assert "top" not in advice_of({"top": TopK(4), "average": AverageK(2).fit(scores)})[wish][1]
    assert "not clearly different" in advice_of({"top": TopK(2), "average": AverageK(2).fit(scores)}, 30)[wish][1]


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.8, 0.9, "more than"), (0.3, 0.4, "less than"), (0.5, 0.6, "not clearly")]
)
def test_two_rules_are_compared_by_their_intervals(low: float, high: float, verdict: str) -> None:
    def worth(low: float, high: float) -> dict[str, Estimate]:
        names = ("size", "coverage", "precision", "recall", "f1")
        return {name: Estimate((low + high) / 2, low, high) for name in names}

    rules = {"top": TopK(2), "average": AverageK(2)}
    average = worth(low, high) | {"size": Estimate(0.525, 0.5, 0.55)}
    found = advise(rules, {"top": worth(0.5, 0.55), "average": average}, 100)
    assert f"that is {verdict}" in found[1].why


def test_one_name_is_one_figure_where_examples_without_a_label_make_coverage_and_recall_differ() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(-2, 2, size=(600, 5)).astype(np.float32)
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    target[::3] = 0
    sure = Conformal(0.1, labels="multi").fit(scores[:300], target[:300])
    rules = {"average": AverageK(1.1, "sigmoid").fit(scores[:300]), "sure": sure}
    worth = {name: set_summary(rule.predict(scores[300:]), target[300:]) for name, rule in rules.items()}
    assert worth["sure"]["coverage"].value - worth["sure"]["recall"].value > 0.02
    found = {wish: (rule, why) for wish, rule, why in advise(rules, worth, 300)}
    for name, why in found.values():
        recall, coverage = (worth[name][key].value for key in ("recall", "coverage"))
        shares = re.findall(r"holds? (\d+\.\d)\u202f%[^%]*? of the right labels", why)
        assert shares == [f"{100 * recall:.1f}"], why
        if "promises" in why:
            assert f"nothing is missed); here that is {100 * coverage:.1f}" in why


def test_a_rule_that_holds_less_than_another_of_its_size_is_not_recommended() -> None:
    scores = 9 * np.eye(3)[np.arange(300) % 3] + np.random.default_rng(0).normal(size=(300, 3))
    target = np.arange(300) % 3  # every first label is right, and a tenth of the conformal sets is empty
    rules = {"one": TopK(1), "sure": Conformal(0.1).fit(scores, target)}
    worth = {name: set_summary(rule.predict(scores), target) for name, rule in rules.items()}
    found = {wish: (rule, why) for wish, rule, why in advise(rules, worth, 300)}
    rule, why = found["to miss few right labels"]
    assert rule == "one"
    assert "100.0\u202f% (98.7 to 100.0) of the right labels, more than sure: it promises to hold 90.0" in why
    never = {"one": TopK(1), "sure": Conformal(0.1, min_size=1).fit(scores, target)}
    worth = {name: set_summary(rule.predict(scores), target) for name, rule in never.items()}
    assert advise(never, worth, 300)[1].rule == "sure"


def test_a_promise_that_is_not_kept_and_one_that_cannot_be_are_told() -> None:
    scores, target = held_out()
    shifted = Conformal(0.05).fit(20 * scores.clip(max=0) + 50 * np.eye(12)[target], target)
    why = advice_of({"sure": shifted})["to miss few right labels"][1]
    assert "fewer than promised, which chance alone does about once in 40 times" in why
    with pytest.warns(ShortlistWarning):
        few = Conformal(0.1).fit(scores[:8], target[:8])
    assert "needs at least 9 calibration rows, and it had 8" in advice_of({"sure": few})["to miss few right labels"][1]
    assert any("conformal" in said for said in cautions(500, {"sure": few}))


def test_few_rows_and_rows_with_another_use_are_warned_of() -> None:
    assert cautions(100, {}) == []
    assert cautions(100, {}, knows_absent=False)[0].startswith("No label is known to be absent here")
    assert cautions(99, {})[0].startswith("Only 99 examples judge")
    assert "chose the epoch" in cautions(500, {}, ["choosing the epoch"])[0]
    assert "trained on" in cautions(500, {}, ["training"])[0]


def test_a_rule_that_was_fitted_on_the_judging_data_is_named() -> None:
    rule = AverageK(2).fit(held_out()[0])
    rule.fitted_on = "validation"
    again = SetRule.from_json(rule.to_json())
    assert "also calibrated mine" in cautions(500, {"mine": again, "half": Threshold(0.5)}, on="validation")[0]
    assert cautions(500, {"mine": again}, on="test") == []
    assert again.fit(held_out()[0]).fitted_on is None


def test_the_page_warns_where_scores_set_their_own_threshold() -> None:
    scores, target, _ = scores_and_truth(0)
    assert "also calibrated AverageK" in contents(from_scores(scores, target, k=2))["cautions"][0]
    assert contents(from_scores(scores, target, k=2, calibration=scores[:50]))["cautions"] == []
    assert "Only 50 examples" in contents(from_scores(scores[:50], target[:50], calibration=scores, k=2))["cautions"][0]


def test_every_run_of_a_page_has_its_advice() -> None:
    models = contents(made_up_report())["headline"]["models"]
    assert [len(model["wishes"]) for model in models] == [4, 4]
    nothing = contents(from_scores(np.eye(3), np.full(3, -1), k=1))
    assert nothing["headline"]["models"][0]["wishes"] == []


# ---- what is unknown is not absent


def partial() -> ReportData:
    scores = np.array([[9.0, 3, 1, -4], [1, 9, 2, 3], [1, 2, 9, 3], [1, 2, 3, 9]])
    target = np.array([[-1, 1, -1, 0], [-1] * 4, [0, 0, -1, 0], [0, 0, 0, 0]])
    return from_scores(scores, target, ["jeans", "shirt", "hat", "shoes"], k=2)


def cards_by_name(data: ReportData) -> dict[str, dict]:  # type: ignore[type-arg]
    return {card["name"]: card for card in contents(data)["examples"][0]["ambiguous"]}


def test_cards_tell_unknown_from_absent() -> None:
    cards = cards_by_name(partial())
    known = [cards[f"Example {row}"]["known"] for row in range(4)]
    partly = "no label known to be right, 1 label unknown"
    assert known == ["2 labels unknown", "all labels unknown", partly, "no label is right"]
    states = {bar["name"]: (bar["right"], bar["unknown"]) for bar in cards["Example 0"]["bars"]}
    assert states == {"jeans": (False, True), "shirt": (True, False), "hat": (False, True), "shoes": (False, False)}
    single = from_scores(np.eye(3), np.array([0, 1, -1]), k=1)
    assert cards_by_name(single)["Example 2"]["known"] == "label unknown"


def test_bars_of_right_labels_stand_by_their_scores_also_below_the_best() -> None:
    scores = np.array([[-3.0, -2, 1, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4, 1, -2, -3]])
    data = from_scores(scores, (np.arange(9) < 3)[None].repeat(2, 0).astype(int), list("abcdefghi"), k=2)
    assert "".join(bar["name"] for bar in cards_by_name(data)["Example 0"]["bars"]) == "ihgfecb"


def test_tables_count_what_is_unknown_and_facts_say_what_judges() -> None:
    found = contents(partial())
    assert found["labels"]["unknown"] == [2, 1, 3, 1]
    assert found["about"]["Known entries of the matrix"] == "9 of 16; unknown ones judge nothing"
    assert "labels known to be right" in found["words"]["means"]
    assert contents(from_scores(np.eye(3), np.arange(3), k=1))["labels"]["unknown"] is None


def test_the_page_never_calls_unknown_labels_absent(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from shortlist.reports import write

    page = write(partial(), tmp_path / "report").read_text("utf-8")
    assert "no known label" not in page
    assert 'aria-label="unknown whether it is right">?' in page


def test_scores_that_only_rank_are_not_shown_as_percentages() -> None:
    scores, target, _ = scores_and_truth(0)
    run = RunResult("warp", "warp", scores, target, "sigmoid", probabilities=False)
    card = contents(ReportData("report", [run]))["examples"][0]["ambiguous"][0]
    highest = scores[int(card["name"].removeprefix("Example "))].max()
    assert card["bars"][0]["score"] == f"{highest:.3g}"
    probable = contents(from_scores(scores, target))["examples"][0]["ambiguous"][0]
    assert all(bar["score"].endswith("%") for bar in probable["bars"])


def test_empty_conformal_sets_are_spoken_of_once_with_what_to_do() -> None:
    sharp = np.eye(3)[np.arange(300) % 3] * 8
    rules: dict[str, SetRule] = {"sure": Conformal(0.1).fit(sharp, np.arange(300) % 3), "two": TopK(2)}
    assert cautions(500, rules, empty={"sure": 0, "two": 0}) == []
    (said,) = cautions(500, rules, empty={"sure": 3, "two": 1})
    assert said.startswith("sure: 3 sets are empty: no label of such a row is likely enough at alpha=0.1")
    assert "score=aps" in said
    doubtful = np.concatenate([sharp[:200], np.zeros((100, 3))])
    assert int((rules["sure"].predict(doubtful).sizes == 0).sum()) == 100
    data = from_scores(doubtful, np.arange(300) % 3, rules=rules)
    assert "sure: 100 sets are empty" in str(contents(data)["cautions"])
