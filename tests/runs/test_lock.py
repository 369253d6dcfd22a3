"""One process at a time trains a run: the lock names its holder and dies with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shortlist import ShortlistError
from shortlist.runs.lock import locked

HOLDER = """
import sys, time
from shortlist.runs.lock import locked

with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of ``tmp_path``."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_lock_that_another_process_has_names_that_process(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    named = rf"is being trained by process {holder.pid} on .* since "
    with pytest.raises(ShortlistError, match=named), locked(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with locked(tmp_path):
        assert str(os.getpid()) in (tmp_path / ".lock").read_text()


def test_a_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path):
            pass
    assert (tmp_path / ".lock").read_text() == ""
