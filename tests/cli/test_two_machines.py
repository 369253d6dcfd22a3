"""Two machines train one run: two agents of torchrun, each with an address of its own, one of which is killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ENVIRONMENT

ADDRESSES = ("127.0.0.2", "127.0.0.3")  # the whole of 127.0.0.0/8 is this machine, where the system is Linux
CONFIG = """
data: {train: {reader: ambiguous-numbers, size: 400}}
backbone: {name: mlp, hidden: [8]}
epochs: 100000
batch_size: 50
accelerator: cpu
devices: 2
"""
PATIENCE = 600  # seconds, on a machine that does much else
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no address 127.0.0.2")


@contextmanager
def agents(*arguments: Any, folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """An agent on each machine, which share a folder; all that is left of them ends with the block."""
    with socket.socket() as free:
        free.bind((ADDRESSES[0], 0))
        port = free.getsockname()[1]
    started = []
    try:
        for rank, address in enumerate(ADDRESSES):
            where = ["--nnodes", "2", "--node-rank", str(rank), "--nproc-per-node", "1", "--local-addr", address]
            where += ["--master-addr", ADDRESSES[0], "--master-port", str(port)]
            command = [sys.executable, "-m", "torch.distributed.run", *where, "-m", "shortlist.cli"]
            command += map(str, arguments)
            log = (folder / f"machine-{rank}.log").open("w")
            environment = {**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "lo"}
            started.append(subprocess.Popen(command, stdout=log, stderr=log, text=True, env=environment, cwd=folder))
        yield started
    finally:
        for agent in started:
            kill_machine(agent)


def kill_machine(agent: subprocess.Popen[str]) -> None:
    """As a power cut does: the agent, and the process that it started, without a word."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
    pids = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    agent.kill()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    agent.wait(timeout=60)


def epochs_of(run: Path) -> list[int]:
    file = run / "metrics.jsonl"
    return [json.loads(line)["epoch"] for line in file.read_text().splitlines()] if file.exists() else []


def wait_for(what: Any, seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)


def test_when_one_of_two_machines_dies_training_ends_and_both_can_resume_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    run = tmp_path / "run"
    with agents("train", tmp_path / "config.yaml", "--out", run, folder=tmp_path) as (first, second):
        wait_for(lambda: len(epochs_of(run)) >= 2 or first.poll() is not None)
        assert first.poll() is None, (tmp_path / "machine-0.log").read_text()
        kill_machine(second)
        wait_for(lambda: first.poll() is not None)
        assert first.returncode != 0
    assert "2 processes on 2 machines, which all see the place of" in (tmp_path / "machine-0.log").read_text()
    done = len(epochs_of(run))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("epochs: 100000", f"epochs: {done + 1}"))  # which may change
    with agents("train", "--resume", run, "--json", folder=tmp_path) as both:
        for agent in both:
            assert agent.wait(timeout=PATIENCE) == 0, (tmp_path / "machine-0.log").read_text()
    assert epochs_of(run) == list(range(1, done + 2))
    assert f'"epochs": {done + 1},' in (tmp_path / "machine-0.log").read_text()
