"""Triton's kernels of label matrices, and of one label per row: interpreted in a process of its own (whether kernels
are interpreted is settled when they are imported), and on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

CONTRACT = Path(__file__).with_name("labels_contract.py")
pytest.importorskip("triton", reason="triton is not installed")


def run(**environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(CONTRACT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_interpreted() -> None:
    run(TRITON_INTERPRET="1")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_on_a_gpu() -> None:
    run(TRITON_INTERPRET="0")
