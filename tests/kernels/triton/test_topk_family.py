"""Triton's kernels of the top-k family: interpreted in a process of its own, and on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

CONTRACT = Path(__file__).with_name("topk_contract.py")
pytest.importorskip("triton", reason="triton is not installed")


def run(**environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", str(CONTRACT)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_interpreted() -> None:
    run(TRITON_INTERPRET="1")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_on_a_gpu() -> None:
    run(TRITON_INTERPRET="0")
