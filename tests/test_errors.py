"""Errors: what is meant for the user is one line, everything else keeps its traceback."""

from pathlib import Path

import pytest

import shortlist as sl
from tests.cli.command import run_here


def test_a_users_error_is_a_value_error_with_a_public_name() -> None:
    with pytest.raises(sl.ShortlistError) as caught:
        sl.sets.TopK(0)
    assert isinstance(caught.value, ValueError)
    assert sl.ShortlistError.__module__ == "shortlist"


def test_a_missing_file_is_a_file_not_found_error_too(tmp_path: Path) -> None:
    from shortlist.files import written_whole

    with pytest.raises(FileNotFoundError, match="there is no folder") as caught, written_whole(tmp_path / "no" / "x"):
        pass
    assert isinstance(caught.value, sl.ShortlistError)


def test_a_defect_in_the_users_own_objective_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(".")
    Path("wrong_objective.py").write_text(
        "from shortlist.objectives import LinearObjective\n"
        "class Wrong(LinearObjective):\n"
        "    name, accepts, link, monitor = 'wrong', ('indices',), 'softmax', 'topk-accuracy'\n"
        "    def score_loss(self, scores, target):\n"
        "        return (scores @ scores).mean()\n"
    )
    Path("config.yaml").write_text(
        "data: {train: {reader: ambiguous-numbers, size: 100}}\nobjective: 'wrong_objective:Wrong'\nepochs: 1\n"
    )
    result = run_here(capsys, "train", "config.yaml", "--allow-import", "wrong_objective", "--out", "run")
    assert result.code == 1
    assert "return (scores @ scores).mean()" in result.err
    assert "please report" in result.err
