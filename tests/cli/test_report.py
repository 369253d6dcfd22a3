"""``shortlist report`` on scores in files and on runs side by side."""

import json
from pathlib import Path

import numpy as np
import pytest

from shortlist.cli import main
from shortlist.runs.run import Run
from tests.reports.made_up import NAMES, scores_and_truth


def run_command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    code = stopped.value.code
    return code if isinstance(code, int) else 1


def numbers_of(page: Path) -> dict[str, object]:
    text = page.read_text("utf-8").partition('id="numbers">')[2].partition("</script>")[0]
    found: dict[str, object] = json.loads(text)
    return found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    scores, target, _ = scores_and_truth(0)
    np.save(tmp_path / "scores.npy", scores.astype(np.float16))
    np.save(tmp_path / "labels.npy", target)
    (tmp_path / "names.txt").write_text("\n".join(NAMES), "utf-8")
    return tmp_path


def test_scores_of_any_model_make_a_report(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--scores", files / "scores.npy", "--labels", files / "labels.npy", "--names", files / "names.txt")
    assert run_command("report", *given, "--k", 2, "--out", files / "out") == 0
    page = files / "out" / "index.html"
    assert str(page) in capsys.readouterr().err
    found = numbers_of(page)
    assert found["labels"]["names"] == list(NAMES)  # type: ignore[index]
    assert found["grid"][found["start"]] == 2  # type: ignore[index]


def test_held_out_scores_set_the_thresholds(files: Path) -> None:
    np.save(files / "held-out.npy", scores_and_truth(0, 160)[0])
    given = ("--scores", files / "scores.npy", "--labels", files / "labels.npy", "--out", files / "out")
    assert run_command("report", *given, "--calibration", files / "held-out.npy") == 0
    assert "held-out calibration scores" in (files / "out" / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one or more run directories, or --scores"),
        (("--scores", "s.npy"), "give both"),
        (("--scores", "s.npy", "--labels", "y.npy"), "--out DIR"),
        (("--scores", "s.npy", "--labels", "y.npy", "--out", "o", "--part", "test"), "does not go with --scores"),
        (("run", "--k", "2"), "--k goes with --scores"),
        (("nowhere",), "nowhere is not a run"),
    ],
)
def test_a_wrong_combination_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("report", *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two seeds of one config, and another objective."""
    folder = tmp_path_factory.mktemp("runs")
    config = folder / "numbers.yaml"
    config.write_text(
        "data:\n"
        "  train: {reader: ambiguous-numbers, size: 400}\n"
        "  validation: {reader: ambiguous-numbers, size: 100, part: val}\n"
        "  calibration: null\n"
        "  test: {reader: ambiguous-numbers, size: 100, part: test, form: features}\n"
        "epochs: 1\n"
    )
    made = []
    for objective, seed in (("cross-entropy", 0), ("cross-entropy", 1), ("smooth-topk", 0)):
        out = folder / f"{objective}-{seed}"
        arguments = ["train", config, f"objective.name={objective}", f"seed={seed}", "--out", out, "--quiet"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["shortlist", *map(str, arguments)])
            assert run_command(*arguments) == 0
        made.append(out)
    return made


def test_a_run_gets_its_report_inside(runs: list[Path]) -> None:
    assert run_command("report", runs[0]) == 0
    page = (runs[0] / "report" / "index.html").read_text("utf-8")
    assert "numbers.yaml objective.name=cross-entropy seed=0" in page  # the command that trained it
    assert "reader: ambiguous-numbers" in page  # its config
    assert 'id="ambiguity"' in page  # the data know all readings
    assert Run(runs[0]).records()  # the run is as it was


def test_runs_that_differ_only_in_their_seed_are_averaged(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("report", *runs, "--out", tmp_path / "all", "--title", "Side by side", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] == ["cross-entropy", "cross-entropy", "smooth-topk"]
    models = numbers_of(tmp_path / "all" / "index.html")["models"]
    assert [(model["name"], model["seeds"]) for model in models] == [("cross-entropy", 2), ("smooth-topk", 1)]  # type: ignore[attr-defined]


def test_the_same_run_twice_is_refused(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("report", runs[0], runs[0], "--out", tmp_path / "twice") == 2
    assert "more than once" in capsys.readouterr().err


def test_a_part_that_is_not_there_is_named(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("report", runs[0], "--part", "calibration") == 2
    assert "it has train, validation, test" in capsys.readouterr().err
