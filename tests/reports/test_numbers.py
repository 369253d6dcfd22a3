"""The numbers of the page against the rules, the metrics and plain loops."""

import dataclasses
import re

import numpy as np
import pytest
import torch

from shortlist.labels import LabelSets
from shortlist.metrics import functional as M
from shortlist.reports import ReportData, RunResult, from_scores
from shortlist.reports.contents import contents
from shortlist.reports.examples import image_uri, pick
from shortlist.reports.numbers import Examples, average_k_curve, k_grid, measure, over_seeds, top_k_curve
from shortlist.reports.per_label import label_columns
from shortlist.sets import AverageK, TopK
from tests.reports.made_up import LABELS, ROWS, made_up_report, made_up_run, scores_and_truth


def test_sizes_and_accuracy_are_those_of_the_metrics() -> None:
    data = made_up_report()
    run = data.runs[0]
    sets = AverageK(2).fit(run.calibration).predict(run.scores)
    found = measure(sets, Examples(data))
    assert found["size"] == pytest.approx(float(M.set_size(sets)))
    assert found["accuracy"] == pytest.approx(float(M.set_coverage(sets, run.target)))
    assert found["exact"] == pytest.approx(float(M.exact_match(sets, data.truth)))
    assert found["covers"] == np.mean([set(right) <= set(given) for right, given in zip(data.truth, sets, strict=True)])


def test_the_histogram_counts_sets_of_each_size() -> None:
    data = made_up_report()
    sets = TopK(3).predict(data.runs[0].scores)
    shares = measure(sets, Examples(data))["histogram"]
    assert shares.tolist() == [0, 0, 0, 1] + [0] * (LABELS - 3)


def test_mean_set_size_is_taken_over_examples_of_equal_ambiguity() -> None:
    data = made_up_report()
    examples = Examples(data)
    sets = data.runs[0].average_k(2).predict(data.runs[0].scores)
    expected = [np.mean([len(s) for s, t in zip(sets, data.truth, strict=True) if len(t) == n]) for n in (1, 2, 4)]
    assert examples.levels == ["1", "2", "4"]
    np.testing.assert_allclose(measure(sets, examples)["level_size"], expected)


def test_shot_groups_follow_the_training_counts_of_the_right_label() -> None:
    data = made_up_report()
    run, examples = data.runs[0], Examples(data)
    sets = TopK(2).predict(run.scores)
    held = sets.contains(run.target)
    few, medium, many = (np.isin(run.target, labels) for labels in (range(3), range(3, 7), range(7, 12)))
    found = measure(sets, examples)["shot_accuracy"]
    np.testing.assert_allclose(found, [held[few].mean(), held[medium].mean(), held[many].mean()])


def test_sizes_by_ambiguity_keep_their_place_where_the_last_sets_are_empty() -> None:
    truth = LabelSets.from_lists([[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]], num_labels=4)
    scores = np.array([[9.0, 9, -9, -9], [9, 9, -9, -9], [9, 9, -9, -9], [-9, -9, -9, -9]])
    found = contents(from_scores(scores, np.zeros(4, dtype=int), link="none", k=1.5, truth=truth))
    assert found["models"][0]["average"]["level_size"][found["start"]] == [2, 2, 2, 0]


def test_shot_groups_without_examples_are_left_out() -> None:
    run = made_up_run(train_counts=np.array([5] * 6 + [50] * 6))
    found = contents(ReportData("report", [run]))
    assert [shot["name"] for shot in found["shots"]] == ["few", "medium"]
    assert found["headline"]["columns"][-2:] == ["Accuracy, few shots", "Accuracy, medium shots"]
    assert len(found["headline"]["models"][0]["rows"][0]["cells"]) == 6


def test_a_single_shot_group_is_nothing_to_compare() -> None:
    assert contents(ReportData("report", [made_up_run(train_counts=np.full(12, 500))]))["shots"] == []


def test_an_example_of_several_labels_is_in_the_group_of_its_rarest() -> None:
    target = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]])
    data = from_scores(np.zeros((3, 3)), target, train_counts=np.array([5, 50, 500]))
    assert Examples(data).shot.tolist() == [0, 2, -1]


def test_a_label_matrix_with_gaps_is_not_the_whole_truth() -> None:
    scores, target = np.zeros((2, 3)), np.array([[1, 0, 1], [0, 1, 0]])
    assert Examples(from_scores(scores, target)).truth == LabelSets.from_lists([[0, 2], [1]], num_labels=3)
    target[0, 1] = -1
    assert Examples(from_scores(scores, target)).truth is None


def test_recall_of_a_label_matrix_leaves_unknown_rows_out() -> None:
    target = np.array([[1, 1, 0], [-1, -1, -1], [0, 1, -1]])
    data = from_scores(np.array([[3.0, 0, 1], [0, 0, 1], [0, 5, 0]]), target, k=1)
    sets = TopK(1).predict(data.runs[0].scores)
    assert measure(sets, Examples(data))["accuracy"] == float(M.set_coverage(sets, target)) == 0.75


def test_the_curve_is_the_calibrated_rule_at_every_k() -> None:
    data = made_up_report()
    run, examples, grid = data.runs[0], Examples(data), [1.0, 1.75, 4.0]
    for k, found in zip(grid, average_k_curve(run, grid, examples), strict=True):
        sets = AverageK(k).fit(run.calibration).predict(run.scores)
        assert found["size"] == sets.sizes.mean()
        assert found["accuracy"] == sets.contains(run.target).mean()


def test_without_calibration_scores_the_mean_size_is_k() -> None:
    run = made_up_run(calibration=None)
    data = ReportData("report", [run])
    sizes = [found["size"] for found in average_k_curve(run, [1.5, 2.0], Examples(data))]
    assert sizes == [1.5, 2.0]


def test_top_k_between_two_whole_numbers_is_their_mixture() -> None:
    data = made_up_report()
    run = data.runs[0]
    one, middle, two = top_k_curve(run, [1.0, 1.25, 2.0], Examples(data))
    assert one["accuracy"] == pytest.approx(float(M.top_k_accuracy(run.scores, run.target, 1)))
    assert middle["size"] == 1.25
    assert middle["accuracy"] == pytest.approx(0.75 * one["accuracy"] + 0.25 * two["accuracy"])


@pytest.mark.parametrize(("num_labels", "start"), [(1, 1), (3, 2), (10, 2.4), (100, 2), (100, 5), (5000, 30)])
def test_the_grid_is_increasing_within_the_labels_and_holds_the_start(num_labels: int, start: float) -> None:
    grid = k_grid(num_labels, start)
    assert start in grid
    assert grid[0] == 1
    assert grid[-1] <= num_labels
    assert grid == sorted(set(grid))
    assert all(float(k) in grid for k in range(1, min(10, num_labels) + 1))


def test_spread_over_seeds_is_the_standard_deviation_and_none_for_one_seed() -> None:
    mean, spread = over_seeds([{"a": np.float64(1)}, {"a": np.float64(3)}])
    assert mean["a"] == 2
    assert spread["a"] == pytest.approx(np.std([1, 3], ddof=1))
    assert over_seeds([{"a": np.float64(1)}])[1] == {}


def test_the_label_table_counts_what_plain_loops_count() -> None:
    data = made_up_report()
    runs = list(data.runs[:2])
    found = label_columns(runs, 2, Examples(data))
    label = 7
    held, listed, sizes, first = [], [], [], []
    for run in runs:
        sets = run.average_k(2).predict(run.scores)
        for row, members in enumerate(sets):
            if run.target[row] == label:
                held.append(label in members)
                sizes.append(len(members))
                if run.scores[row].argmax() != label:
                    first.append(int(run.scores[row].argmax()))
            if label in members:
                listed.append(run.target[row] == label)
    assert found["held"][label] == pytest.approx(np.mean(held))
    assert found["precision"][label] == pytest.approx(np.mean(listed))
    assert found["size"][label] == pytest.approx(np.mean(sizes))
    assert first.count(found["taken"][label]) == max(map(first.count, first))


def test_a_label_without_examples_has_no_rates() -> None:
    data = from_scores(np.eye(3), np.array([0, 1, 1]), k=1)
    found = label_columns(data.runs, 1, Examples(data))
    assert found["count"] == [1, 2, 0]
    assert found["held"][2] is None
    assert found["taken"] == [-1, 2, -1]


def test_the_most_ambiguous_examples_have_the_largest_sets() -> None:
    data = made_up_report()
    sizes = [card["size"] for card in pick(data.runs[0], 2, data, Examples(data))["ambiguous"]]
    every = np.sort(data.runs[0].average_k(2).predict(data.runs[0].scores).sizes)[::-1]
    assert sizes == every[: len(sizes)].tolist()


def test_the_most_confused_example_is_surest_of_a_wrong_label() -> None:
    scores = np.array([[9.0, 0, 0], [0, 4.0, 0], [0, 0, 1.0]])
    data = from_scores(scores, np.array([1, 0, 2]), ["a", "b", "c"], k=1)
    cards = pick(data.runs[0], 1, data, Examples(data))["confused"]
    assert [card["name"] for card in cards] == ["Example 0", "Example 1"]  # the third is right
    assert [bar["name"] for bar in cards[0]["bars"] if bar["right"]] == ["b"]


def test_scores_of_minus_infinity_are_taken() -> None:
    scores = np.array([[-np.inf, 1.0, -np.inf], [-np.inf, -np.inf, 2.0]])
    data = from_scores(scores, np.array([0, 2]), link="none", k=1)
    cards = pick(data.runs[0], 1, data, Examples(data))["confused"]
    assert [card["name"] for card in cards] == ["Example 0"]


def test_the_right_label_is_shown_even_at_the_last_rank() -> None:
    data = from_scores(np.arange(20.0)[None], np.array([0]), k=2)
    card = pick(data.runs[0], 2, data, Examples(data))["ambiguous"][0]
    assert [bar["rank"] for bar in card["bars"]] == [1, 2, 3, 4, 5, 20]


def test_large_images_are_made_smaller_and_small_files_stay_as_they_are() -> None:
    import base64
    import io

    from PIL import Image

    large = image_uri(np.zeros((300, 600), dtype=np.uint8))
    picture = Image.open(io.BytesIO(base64.b64decode(large.partition(",")[2])))
    assert picture.size == (192, 96)
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "JPEG")
    assert image_uri(file.getvalue()) == f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


@pytest.mark.parametrize("bad", [b"GIF89a...", np.zeros((2, 2)), np.zeros((2, 2, 2), dtype=np.uint8)])
def test_an_image_of_another_kind_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"images? must (give|be the bytes of)"):
        image_uri(bad)  # type: ignore[arg-type]


def test_the_headline_gives_mean_and_spread_over_seeds() -> None:
    data = made_up_report()
    row = next(row for row in contents(data)["headline"]["models"][0]["rows"] if row["rule"] == "AverageK")
    values = [float(M.set_coverage(run.rules["AverageK"].predict(run.scores), run.target)) for run in data.runs[:3]]
    every = [M.set_summary(run.rules["AverageK"].predict(run.scores), run.target) for run in data.runs[:3]]
    ends = np.mean([found["coverage"][1:] for found in every], 0)
    assert row["cells"][1] == {
        "value": f"{100 * np.mean(values):.1f}\u202f%",
        "spread": f"± {100 * np.std(values, ddof=1):.1f}",
        "interval": f"{100 * ends[0]:.1f}–{100 * ends[1]:.1f}",
    }


def test_the_first_sentence_is_about_a_rule_that_was_calibrated() -> None:
    data = made_up_report()
    assert contents(data)["lead"].startswith("The AverageK sets of ")
    runs = [dataclasses.replace(run, rules={"the best two": TopK(2), "one": TopK(1)}) for run in data.runs]
    lead = contents(dataclasses.replace(data, runs=runs))["lead"]
    said = r"The sets of (.*) by the best two, 2\.00 labels on average, hold .* (\d+\.\d)\u202f% of .*"
    found = re.fullmatch(said, lead)
    assert found is not None, lead
    held = [float(M.set_coverage(TopK(2).predict(run.scores), run.target)) for run in runs if run.name == found[1]]
    assert found[2] == f"{100 * np.mean(held):.1f}"


def test_examples_without_any_known_label_still_make_a_report() -> None:
    found = contents(from_scores(np.random.default_rng(0).normal(size=(6, 4)), np.full(6, -1), k=2))
    assert "No example has a known label" in found["lead"]
    assert found["models"][0]["average"]["accuracy"][0] is None


def test_torch_and_half_precision_scores_are_taken() -> None:
    scores, target, _ = scores_and_truth(0)
    run = from_scores(torch.from_numpy(scores).to(torch.bfloat16), torch.from_numpy(target), k=2).runs[0]
    assert run.scores.dtype == np.float32
    np.testing.assert_array_equal(run.scores, torch.from_numpy(scores).bfloat16().float().numpy())


@pytest.mark.parametrize("target", [np.arange(3), np.eye(3)])
def test_targets_in_the_byte_order_of_other_machines_are_taken(target: np.ndarray) -> None:
    run = from_scores(np.eye(3), target.astype(target.dtype.newbyteorder()), k=1).runs[0]
    np.testing.assert_array_equal(run.target, target)


def test_rules_default_to_five_labels_or_all_there_are() -> None:
    assert from_scores(np.eye(3), np.arange(3)).start_k == 3
    assert from_scores(np.eye(30), np.arange(30)).start_k == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((2, 3, 4))}, r"must have the shape \(examples, labels\)"),
        ({"scores": np.full((2, 3), np.nan)}, "row 0, label 0 is NaN"),
        ({"target": np.array([0, 3])}, r"target\[1\] is 3: allowed are 0\.\.2"),
        ({"target": np.array([0.0, 1.0])}, "whole numbers, or a label matrix"),
        ({"target": np.zeros(3, dtype=int)}, r"target of shape \(3,\) does not fit"),
        ({"target": np.full((2, 3), 2)}, r"x\[0, 0\] is 2"),
        ({"link": "probit"}, "link must be one of"),
        ({"train_counts": np.zeros(2)}, "train_counts must be 3 numbers"),
        ({"calibration": np.zeros((2, 4))}, r"calibration of run 'r' must have the shape \(examples, 3\)"),
    ],
)
def test_wrong_input_is_refused_with_what_is_allowed(change: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"scores": np.eye(3)[:2], "target": np.array([0, 1])}
    with pytest.raises(ValueError, match=message):
        RunResult("r", "r", **{**fields, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs": []}, "at least one run"),
        ({"vocabulary": ["a"]}, "vocabulary must have 12 entries"),
        ({"ids": ["a"]}, f"ids must have {ROWS} entries"),
        ({"truth": LabelSets.from_lists([[0]], num_labels=LABELS)}, f"truth must have {ROWS} entries"),
        ({"truth": LabelSets.from_lists([[0]] * ROWS, num_labels=3)}, "truth has 3 labels"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made_up_report(**change)


def test_runs_on_different_examples_are_refused() -> None:
    other = made_up_run(target=np.zeros(ROWS, dtype=int))
    with pytest.raises(ValueError, match="same examples"):
        made_up_report(runs=[made_up_run(), other])


def test_k_beyond_the_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 3"):
        from_scores(np.eye(3), np.arange(3), k=4)
