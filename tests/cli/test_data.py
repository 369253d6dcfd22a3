"""``shortlist data`` on tables and paths: what it proposes, and what it writes for the features reader."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Result, run_here

Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_here(capsys, *arguments)


def test_a_table_with_blanks_is_described(cli: Cli) -> None:
    Path("labels.csv").write_text("id,a,b,cat,dog\nx,1,2,1,\ny,3,4,,0\n")
    options = ("features", "path=labels.csv", "label_columns=[cat,dog]")
    found = cli("data", "describe", *options, "--json").json
    assert (found["in_shape"], found["share_unknown"], found["label_counts"]) == ([2], 0.5, {"cat": 1, "dog": 0})
    assert cli("data", "check", *options).err.strip() == "no problems"


@pytest.mark.parametrize("command", ["check", "describe"])
def test_a_path_instead_of_a_reader_is_answered_with_the_reader_to_try(cli: Cli, command: str) -> None:
    Path("fruit").mkdir()
    Path("labels.csv").touch()
    folder, table = cli("data", command, "fruit"), cli("data", command, "labels.csv")
    assert (folder.code, table.code) == (2, 2)
    assert "try image-folder path=fruit" in folder.err
    assert "image-table path=labels.csv" in table.err


def test_a_table_without_rows_is_a_problem(cli: Cli) -> None:
    Path("images.csv").write_text("path,label\n")
    result = cli("data", "check", "image-table", "path=images.csv", "labels=name")
    assert (result.code, result.out) == (1, "images.csv: no rows: the file only names the columns 'path', 'label'\n")


def test_features_are_written_with_all_right_labels_and_how_to_read_them(cli: Cli) -> None:
    arguments = ("data", "features", "ambiguous-numbers", "size=40", "--backbone", "identity", "-o", "f.npz", "-q")
    keys: dict[str, Any] = cli(*arguments, "--json").json["options"]
    assert keys["truth_key"] == "truth"
    options = [f"{key}={name}" for key, name in keys.items()]
    assert f"features path=f.npz {' '.join(options)}" in cli(*arguments).err
    assert cli("data", "describe", "features", "path=f.npz", *options, "--json").json["true_cardinality"] == 2.0


HOSTILE = "label,x\n[/red],1\n\x1b[31mred,2\n:smile:,3\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_neither_markup_nor_commands_to_the_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    Path("labels.csv").write_text(HOSTILE)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    shown = cli("data", "describe", "features", "path=labels.csv", "labels_key=label")
    assert (shown.code, shown.err) == (0, "")
    assert all(name in shown.out for name in ("[/red]", "\\x1b[31mred", ":smile:"))
    assert "\x1b[31m" not in shown.out


def test_problems_and_errors_show_what_would_steer_the_terminal(cli: Cli) -> None:
    Path("labels.csv").write_text("path,label\n\x1b[2J.png,[/red]\n")
    checked = cli("data", "check", "image-table", "path=labels.csv", "labels=name")
    described = cli("data", "describe", "image-table", "path=labels.csv", "labels=name")
    assert checked.code == 1
    assert "no such image: \\x1b[2J.png" in checked.out
    assert described.code == 2
    assert "no such image: \\x1b[2J.png" in described.err
