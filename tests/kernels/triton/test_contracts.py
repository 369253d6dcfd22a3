"""Triton's kernels of the top-k family, of label matrices and of one label per row: interpreted in a process of its own
(whether kernels are interpreted is settled when they are imported), and on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed")
CONTRACTS = pytest.mark.parametrize("contract", ["topk_contract.py", "labels_contract.py", "half_contract.py"])


def run(contract: str, **environment: str) -> None:
    file, root = Path(__file__).with_name(contract), Path(__file__).parents[3]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@CONTRACTS
def test_interpreted(contract: str) -> None:
    run(contract, TRITON_INTERPRET="1")


@pytest.mark.gpu
@CONTRACTS
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_on_a_gpu(contract: str) -> None:
    run(contract, TRITON_INTERPRET="0")
