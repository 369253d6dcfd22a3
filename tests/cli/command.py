"""Running the command line: inside this process, which is quick, or as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from shortlist.cli import main

# one thread: the data is tiny, and the tests' machine has other work
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_inside(*arguments: Any) -> Result:
    """For fixtures that several tests share, which have no capsys."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err, pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return Result(int(end.value.code or 0), out.getvalue(), err.getvalue())


def run_here(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Result:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Result(int(end.value.code or 0), captured.out, captured.err)


def start(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
    """A process that Ctrl-C interrupts, also where the tests themselves run in the background and ignore it."""
    command = [sys.executable, "-m", "shortlist.cli", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # children inherit it
    try:
        return subprocess.Popen(command, text=True, env=ENVIRONMENT, **pipes, **options)
    finally:
        signal.signal(signal.SIGINT, before)


def finish(process: subprocess.Popen[str]) -> Result:
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()  # does nothing to one that has ended
    return Result(process.returncode, out, err)
