"""Kernels for GPUs, compiled for GPUs that are not there.

Here each call of each operator is compiled once, for one target and one length, in turn; and the table of
docs/gpu-kernels.md has a line for everything that is launched. Without ``--few`` the same command compiles everything
for every target: that is for whoever changes a kernel.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton is not installed")
COMMAND = [sys.executable, "docs/tools/gpu_kernels.py", "--check", "--few", "--processes", "1"]


def test_kernels_compile_and_nothing_is_spilled(tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(COMMAND, cwd=Path(__file__).parents[3], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for target in ("sm_80", "sm_90", "sm_100", "gfx942"):
        assert target in done.stdout
