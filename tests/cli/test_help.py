"""The overview imports nothing heavy, which is what makes it quick; every command explains itself."""

import re
import subprocess
import sys

import pytest

from shortlist.cli import COMMANDS
from tests.cli.command import ENVIRONMENT, run_here

HEAVY = {"torch", "numpy", "pydantic", "yaml", "lightning_fabric"}
HEAVY |= {"shortlist.training", "shortlist.runs", "shortlist.data"}
HERE = list(COMMANDS)


def test_the_overview_imports_neither_torch_nor_any_command() -> None:
    code = (
        "import sys\nfrom shortlist.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: print('modules:', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    overview, modules = done.stdout.split("modules: ")
    assert not HEAVY & set(modules.split())
    assert not {f"shortlist.cli.{name}" for name in COMMANDS} & set(modules.split())
    assert all(name in overview for name in COMMANDS)


@pytest.mark.parametrize("name", HERE)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_here(capsys, name, "--help")
    assert result.code == 0
    assert f"shortlist {name}" in result.out


@pytest.mark.parametrize("name", ["fit", "train", "calibrate", "evaluate", "predict", "report", "tune", "export"])
def test_where_a_result_goes_has_one_short_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(r"--out +-o ", run_here(capsys, name, "--help").out)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from shortlist import __version__

    assert run_here(capsys, "--version").out == f"shortlist {__version__}\n"


def test_an_unknown_command_is_a_usage_error_with_a_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_here(capsys, "evalute")
    assert result.code == 2
    assert "evaluate" in result.err


def test_a_command_of_another_room_that_is_missing_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "dance", ("shortlist.cli.dance:dance", "Dance."))
    result = run_here(capsys, "dance")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: shortlist dance is not part of this installation (shortlist.cli.dance is missing)\n"


def test_the_help_of_fit_names_the_extra_that_images_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert "shortlist[backbone]" in run_here(capsys, "fit", "--help").out.replace("\n", "")
