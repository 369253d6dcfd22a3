"""``shortlist demo``, smaller than it is for people, through the real command line."""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shortlist.cli import demo
from tests.cli.command import Result, finish, run_here, run_inside, start

NAMES = ("cross-entropy", "smooth-topk", "average-k")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "new"


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    result = finish(start("demo", "--size", 4000, "--seeds", 1, "--json", "--out", folder))
    assert (result.code, result.err) == (0, "")
    return result.json


def row(found: Any, objective: str, rule: str) -> Any:
    return next(row for row in found["results"] if (row["objective"], row["rule"]) == (objective, rule))


def test_every_objective_and_the_best_possible_have_both_rules(found: Any) -> None:
    pairs = [(row["objective"], row["rule"]) for row in found["results"]]
    assert pairs == [(name, rule) for name in (*NAMES, "best possible") for rule in ("top-2", "average-2")]


def test_where_training_labels_are_vague_the_loss_matters(found: Any) -> None:
    """After 60 epochs cross-entropy has learned the labels by heart that were drawn among five."""
    accuracy = {(row["objective"], row["rule"]): row["accuracy"] for row in found["noisy"]["results"]}
    assert set(accuracy) == {(name, rule) for name in NAMES for rule in ("top-5", "average-5")}
    assert accuracy["smooth-topk", "top-5"] > accuracy["cross-entropy", "top-5"] + 0.03


def test_the_size_of_average_k_sets_follows_the_ambiguity(found: Any) -> None:
    """From 4,000 images cross-entropy learns to tell clear from ambiguous; 4 readings from 2 it learns from 10,000."""
    one, two, four = row(found, "smooth-topk", "average-2")["sizes"]
    assert one + 0.5 < two < four
    one, two, four = row(found, "cross-entropy", "average-2")["sizes"]
    assert one + 0.3 < min(two, four)


def test_average_k_sets_have_about_k_labels_on_average(found: Any) -> None:
    assert [row(found, name, "average-2")["size"] for name in NAMES] == pytest.approx([2, 2, 2], abs=0.25)


def test_top_k_returns_the_same_number_every_time(found: Any) -> None:
    assert [row(found, name, "top-2")["sizes"] for name in NAMES] == [[2, 2, 2]] * 3


def test_sizes_that_follow_the_ambiguity_are_exactly_right_more_often(found: Any) -> None:
    average, fixed = (row(found, "cross-entropy", rule) for rule in ("average-2", "top-2"))
    assert average["exact"] > fixed["exact"] + 0.1
    assert average["accuracy"] > fixed["accuracy"]


def test_the_best_possible_is_what_the_shares_of_readings_say(found: Any) -> None:
    """Half of the images have 1 reading, a quarter 2, a quarter 4."""
    fixed, average = (row(found, "best possible", rule) for rule in ("top-2", "average-2"))
    assert (fixed["covers"], fixed["exact"]) == (0.75, 0.25)
    assert fixed["accuracy"] == pytest.approx(1 / 2 + 1 / 4 + 1 / 8, abs=0.03)  # which reading is recorded is chance
    assert fixed["top1"] == pytest.approx(1 / 2 + 1 / 8 + 1 / 16, abs=0.03)
    assert (average["accuracy"], average["covers"], average["exact"]) == (1, 1, 1)
    assert average["sizes"] == [1, 2, 4]


def test_every_objective_has_the_same_budget(found: Any, folder: Path) -> None:
    from shortlist.runs.run import Run

    configs = [Run(folder / f"ambiguous-{name}-seed-0").config.model_dump(exclude={"objective"}) for name in NAMES]
    assert configs[0] == configs[1] == configs[2]


def test_its_runs_are_runs_that_evaluate_to_the_same_numbers(
    found: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = run_here(capsys, "evaluate", folder / "ambiguous-smooth-topk-seed-0", "test", "--json").json
    sets, shown = again["rules"]["average-k-2"], row(found, "smooth-topk", "average-2")
    assert sets["size"] == pytest.approx(shown["size"], rel=1e-6)
    assert sets["coverage"] == pytest.approx(shown["accuracy"], rel=1e-6)
    assert sets["truth-exact"] == pytest.approx(shown["exact"], rel=1e-6)
    assert again["metrics"]["topk-accuracy@1"] == pytest.approx(shown["top1"], rel=1e-6)


def test_the_report_shows_the_objectives_and_the_images(found: Any) -> None:
    page = Path(found["report"]).read_text("utf-8")
    assert all(name in page for name in NAMES)
    assert "data:image/png" in page


# ---- what is shown


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A small demo of few epochs and two seeds, where nobody said where it goes."""
    with chdir(tmp_path_factory.mktemp("here")), pytest.MonkeyPatch.context() as patch:
        for part in ("_NOISY", "_AMBIGUOUS"):
            patch.setattr(demo, part, replace(getattr(demo, part), epochs=2))
        return run_inside("demo", "--size", 200, "--seeds", 2)


def test_progress_is_a_line_for_each_step(shown: Result) -> None:
    steps = [line for line in shown.err.splitlines() if line.startswith("[")]
    expected = []
    for part in ("noisy", "ambiguous"):
        trained = [f"training {name} on {part} images, seed {seed}" for seed in (0, 1) for name in NAMES]
        expected += [f"making {part} images", *trained]
    expected.append("writing the report")
    assert steps == [f"[{number}/15] {name}" for number, name in enumerate(expected, 1)]


def test_the_tables_are_printed_and_explained(shown: Result) -> None:
    assert shown.code == 0
    assert "1. Vague labels, trained to the end: 80 test images, mean of 2 seeds" in shown.out
    assert "2. Several readings, clean labels: 80 test images, mean of 2 seeds" in shown.out
    in_one_line = " ".join(shown.out.split())
    assert in_one_line.count("sets hold the label most often after") == 4
    assert "How to read it" in shown.out
    assert "Standard deviation over seeds" in shown.out
    assert "Set size by the number of possible readings" in shown.out
    assert shown.out.count("best possible") >= 3


def test_the_report_goes_where_the_last_lines_say(shown: Result) -> None:
    path = next(line for line in shown.err.splitlines() if line.startswith("report: ")).removeprefix("report: ")
    assert Path(path).is_file()
    assert Path(path).parts[-4:] == ("runs", "demo", "report", "index.html")


def test_quiet_shows_no_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.reports.write", lambda data, folder: folder / "index.html")  # drawing takes seconds
    result = run_here(capsys, "demo", "--size", 100, "--seeds", 1, "--quiet", "--out", tmp_path / "new")
    assert result.code == 0
    assert "[" not in result.err
    assert "report: " in result.err


def test_a_directory_that_holds_something_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    result = run_here(capsys, "demo", "--out", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "is not an empty directory" in result.err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
