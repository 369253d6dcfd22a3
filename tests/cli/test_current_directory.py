"""What lies in the current directory is data, never code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ENVIRONMENT, finish, start

HOSTILE = "from pathlib import Path; (Path(__file__).parent / 'was-run').touch()"
NAMES = (
    "benchmarks/__init__.py",
    "benchmarks/__main__.py",
    "benchmarks/rivals/__init__.py",
    "benchmarks/rivals/smooth_topk.py",
    "benchmarks/rivals/summation.py",
    "difftopk.py",
    "matplotlib.py",
    "shortlist_recipes.py",
    "torch.py",
    "typer.py",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(HOSTILE)
    return tmp_path


def was_run(folder: Path) -> list[Path]:
    return [*folder.rglob("was-run"), *folder.rglob("*.pyc")]


@pytest.mark.parametrize(
    "arguments", [("bench", "--quick", "--only", "lml"), ("recipe", "top-k-timing", "--scale", "smoke")], ids=str
)
def test_python_files_beside_the_user_are_not_run(hostile: Path, arguments: tuple[str, ...]) -> None:
    result = finish(start(*arguments, cwd=hostile))
    assert result.code == 0, result.err
    assert not was_run(hostile)


def test_nor_does_the_installed_script_run_them(hostile: Path) -> None:
    script = Path(sys.executable).with_name("shortlist")
    if not script.exists():
        pytest.skip("shortlist was installed without its script")
    command = [script, "bench", "--quick", "--only", "lml"]
    result = subprocess.run(command, cwd=hostile, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not was_run(hostile)
