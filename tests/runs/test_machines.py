"""Machines that train one run must see its place: each is asked, and all are told."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from shortlist import ShortlistError
from shortlist.runs import machines
from shortlist.runs.machines import check_shared


class Process:
    """What Fabric tells one of two processes, which are threads here."""

    world_size = 2

    def __init__(self, rank: int, shared: dict[str, Any], meeting: threading.Barrier) -> None:
        self.global_rank, self.shared, self.meeting = rank, shared, meeting
        self.is_global_zero = rank == 0

    def broadcast(self, value: str) -> str:
        if self.is_global_zero:
            self.shared["value"] = value
        self.barrier()
        return str(self.shared["value"])

    def barrier(self) -> None:
        self.meeting.wait(60)


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls it in two processes with these places of the run, and gives what each of them raised."""
    shared: dict[str, Any] = {}
    meeting, here = threading.Barrier(2), threading.local()

    def gather(everybody: list[Any], said: str) -> None:
        shared[here.rank] = said
        meeting.wait(60)
        everybody[:] = [shared[0], shared[1]]

    def call(rank: int, run: Path) -> str:
        here.rank = rank
        try:
            check_shared(Process(rank, shared, meeting), run)
        except ShortlistError as error:
            return str(error)
        return ""

    monkeypatch.setattr(dist, "all_gather_object", gather)
    monkeypatch.setattr(machines, "_PATIENCE", 0.3)
    with ThreadPoolExecutor(2) as both:
        yield lambda *runs: list(both.map(call, range(2), runs))


def test_machines_that_share_the_place_of_the_run_go_on_and_leave_nothing(check: Any, tmp_path: Path) -> None:
    assert check(tmp_path / "new" / "run", tmp_path / "new" / "run") == ["", ""]
    assert list(tmp_path.iterdir()) == []


def test_machines_that_do_not_share_the_place_of_the_run_are_all_told_who_does_not_see_it(
    check: Any, tmp_path: Path
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    for said in check(tmp_path / "here" / "run", tmp_path / "there" / "run"):
        assert "must be on a file system that all machines see, under the same path: process 1 on" in said
        assert "it does not see what process 0 has written in" in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["here", "there"]


def test_a_place_where_the_first_process_cannot_write_is_told_to_all(check: Any, monkeypatch: Any) -> None:
    def touch(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", touch)
    said = check(Path("/run"), Path("/run"))
    assert said[0] == said[1]
    assert "process 0 on" in said[0]
    assert "cannot write: Permission denied" in said[0]
