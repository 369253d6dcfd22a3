"""Kernels for GPUs, compiled for GPUs that are not there.

Here every operator is compiled for every target, in registers and streamed: each of its calls, with its largest k, with
one length in turn; and the table of docs/gpu-kernels.md has a line for everything that is launched, with the numbers
found here. Without ``--few`` the same command compiles every k and every length: that is for whoever changes a kernel.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="triton is not installed")
COMMAND = [sys.executable, "docs/tools/gpu_kernels.py", "--check", "--few", "--processes", "1"]


@pytest.fixture
def tool_itself() -> Any:
    """docs/tools/gpu_kernels.py."""
    path = Path(__file__).parents[3] / "docs" / "tools" / "gpu_kernels.py"
    spec = importlib.util.spec_from_file_location("gpu_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tool(tool_itself: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The same with a page of its own, which compiles nothing."""
    module = tool_itself
    page = tmp_path / "page.md"
    page.write_text(module.PAGE.read_text())
    monkeypatch.setattr(module, "PAGE", page)
    monkeypatch.setattr(module, "rows", lambda *_: ())
    return module


@pytest.mark.parametrize("option", ["--check", "--few"])
def test_a_check_writes_nothing(tool: Any, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tool.PAGE.read_text()
    monkeypatch.setattr(sys, "argv", ["gpu_kernels.py", option])
    tool.main()
    assert tool.PAGE.read_text() == before


def test_the_page_s_table_is_compared_number_by_number(tool: Any) -> None:
    block = tool.PAGE.read_text().partition(tool.BEGIN)[2].partition(tool.END)[0]
    lines = block.splitlines()
    assert tool.stale(block, block) is None
    begin, number, end = lines[-1].rsplit(" | ", 2)[0], *lines[-1].rsplit(" | ", 2)[1:]
    other = "\n".join([*lines[:-1], f"{begin} | {int(number) + 1} | {end}"])
    assert tool.stale(other, block) is not None
    assert tool.stale("\n".join(lines[:-1]), block) is not None
    not_compiled = "\n".join([*lines[:-1], f"{begin} | - | {end}"])
    assert tool.stale(block, not_compiled) is None


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_every_kernel_compiles_and_nothing_is_spilled(target: str, tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [*COMMAND, "--target", target]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_few_calls_reach_every_kernel_in_registers_in_pieces_and_streamed(tool_itself: Any) -> None:
    def reached(few: bool) -> set[tuple[str, str, bool, bool]]:
        chosen = tool_itself.rows(few=few)
        return {
            (tool_itself.kernel_name(launch), target, labels > 8192, launch.constants.get("HELD", 0) > 1)
            for name, special, labels, target in chosen
            for launch in tool_itself.launches_of(name, special, labels)
            if tool_itself.kernel_name(launch) not in ("index_shares", "reduce_rows")  # the same everywhere
        }

    assert reached(few=True) == reached(few=False)


def test_no_launch_asks_for_more_registers_than_there_are(tool_itself: Any) -> None:
    asked = [
        32 * launch.warps * launch.registers
        for name, special in tool_itself.CALLS
        for labels in tool_itself.lengths(name, special)
        for launch in tool_itself.launches_of(name, special, labels)
        if launch.registers is not None
    ]
    assert asked
    assert max(asked) <= 65536
