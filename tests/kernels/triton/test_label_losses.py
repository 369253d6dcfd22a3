"""Losses of label matrices through Triton's interpreter, in a process of its own: whether kernels are interpreted is
settled when they are imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
ROOT = Path(__file__).parents[3]


def test_in_the_interpreter() -> None:
    environment = os.environ | {"SHORTLIST_KERNELS": "triton", "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    path = Path(__file__).with_name("label_losses_interpreted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
