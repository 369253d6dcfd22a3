"""Run directories: whatever interrupts a write, the run reads as it was before or as it is after."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.reports.write import put
from shortlist.runs.config import parse_config
from shortlist.runs.run import Run
from shortlist.sets import AverageK, TopK
from shortlist.sets.rule_files import load_rules, save_rules

CONFIG = parse_config("data: {train: {reader: ambiguous-numbers}}")


def saved(run: Run, epoch: int, best: int | None = None) -> None:
    records = [{"epoch": number, "loss": 1 / number} for number in range(1, epoch + 1)]
    run.save_epoch({"w": torch.full((3,), float(epoch))}, {"optimizer": {"step": epoch}}, records, best)


def seen(run: Run) -> Any:
    state = run.state()
    return None if state is None else (
        run.checkpoint["last"], float(run.weights("last")["w"][0]), float(run.weights("best")["w"][0]),
        state["optimizer"]["step"], len(run.records()),
    )  # fmt: skip


def test_a_new_run_holds_config_environment_and_facts(tmp_path: Path) -> None:
    facts = {"in_shape": [4], "single": True, "vocabulary": ["a"], "num_examples": 2, "class_counts": [1]}
    run = Run.create(tmp_path / "deep" / "run", CONFIG, facts)
    assert Run(run.path).config == CONFIG
    assert run.facts == facts
    found = json.loads((run.path / "environment.json").read_text())
    assert found["torch"] == torch.__version__
    assert found["kernels"] in ("torch", "baseline", "avx2", "avx512")


def test_a_directory_that_is_taken_is_refused(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", CONFIG, {})
    with pytest.raises(ValueError, match="is a run already: continue it with shortlist train --resume"):
        Run.create(tmp_path / "run", CONFIG, {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="not an empty directory"):
        Run.create(tmp_path / "other", CONFIG, {})
    with pytest.raises(ValueError, match="is not a run: there is no such folder"):
        Run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"is not a run: it has no config\.yaml"):
        Run(tmp_path / "other")


def test_a_run_before_its_first_epoch_says_so(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {})
    assert (run.state(), run.records(), run.checkpoint) == (None, [], {})
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        run.weights()


def test_the_best_and_the_last_checkpoint_are_kept_and_no_others(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {})
    for epoch, best in ((1, 1), (2, 2), (3, 2), (4, 2)):
        saved(run, epoch, best)
    assert sorted(file.name for file in (run.path / "checkpoints").iterdir()) == [
        "epoch-0002.safetensors", "epoch-0004.pt", "epoch-0004.safetensors",
    ]  # fmt: skip
    assert seen(run) == (4, 4.0, 2.0, 4, 4)


class Killed(BaseException):
    """What no handler expects."""


@pytest.mark.parametrize("moment", range(8))
def test_an_epoch_is_saved_completely_or_not_at_all(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted before or after each of the renames and deletions."""
    run = Run.create(tmp_path / "run", CONFIG, {})
    saved(run, 1, 1)
    before = seen(run)
    calls = 0

    def dying(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > moment:  # and nothing is done after that
                raise Killed
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying(os.replace))
        patched.setattr(Path, "unlink", dying(Path.unlink))
        with suppress(Killed):
            saved(run, 2, 2)
    after = seen(Run(run.path))
    assert after in (before, (2, 2.0, 2.0, 2, 2))
    assert (moment < 4) == (after == before)  # weights, state, metrics, checkpoint.json: the fourth decides
    run.clear_leftovers()
    assert seen(run) == after
    assert not list(run.path.rglob(".*.tmp"))
    assert len(list((run.path / "checkpoints").iterdir())) == 2


def test_a_report_that_was_killed_is_not_in_the_way(tmp_path: Path) -> None:
    def write_and_die(place: Path) -> None:
        if not (child := os.fork()):  # a process that need import nothing
            os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            try:
                put(place, "page", {"a.svg": b"1"})
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    run = Run.create(tmp_path / "run", CONFIG, {})
    saved(run, 1, 1)
    before = seen(run)
    for folder in (run.path, tmp_path / "new"):
        folder.mkdir(exist_ok=True)
        write_and_die(folder / "report")
        assert [path.is_dir() for path in folder.glob(".*.tmp")] == [True]
    run.clear_leftovers()
    assert seen(run) == before
    assert not list(run.path.glob(".*.tmp"))
    Run.check_new(tmp_path / "new")


def test_the_state_is_read_without_running_code_from_it(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {})
    run.save_epoch({"w": torch.zeros(1)}, {"optimizer": Path("code")}, [{"epoch": 1}], None)
    with pytest.raises(ShortlistError, match="missing or damaged") as caught:
        run.state()
    assert "eights_only" in str(caught.value.__cause__)


def test_rules_are_written_and_read_back(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {})
    scores = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    save_rules(run.path / "rules", {"average-k-2": AverageK(2).fit(scores), "top-k-1": TopK(1)})
    found = run.rules()
    assert list(found) == ["average-k-2", "top-k-1"]
    assert found["average-k-2"].predict(scores) == AverageK(2).fit(scores).predict(scores)
    (run.path / "rules" / "broken.json").write_text("{}")
    with pytest.raises(ValueError, match=r"broken\.json: this is not the JSON of a set rule"):
        load_rules(run.path / "rules")


# ---- format


def a_run(folder: Path) -> Run:
    return Run.create(folder, parse_config("data: {train: {reader: ambiguous-numbers}}"), facts={})


def test_a_run_says_its_format(tmp_path: Path) -> None:
    assert json.loads((a_run(tmp_path / "run").path / "format.json").read_text())["format"] == 1


def test_a_run_without_a_format_is_of_the_first(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    (run.path / "format.json").unlink()
    assert Run(run.path).config == run.config


def test_a_newer_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    (run.path / "format.json").write_text('{"format": 2, "shortlist": "7.0"}')
    with pytest.raises(ShortlistError, match=r"format 2, written by shortlist 7\.0; .* up to 1: pip install --upgrade"):
        Run(run.path)


@pytest.mark.parametrize("content", ['{"format": 0}', '{"format": true}', "[1]"])
def test_a_format_that_is_none_is_refused_with_the_command_that_mends_it(content: str, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    (run.path / "format.json").write_text(content)
    with pytest.raises(ShortlistError, match=r"shortlist train .*config\.yaml --out .*-again"):
        Run(run.path)
