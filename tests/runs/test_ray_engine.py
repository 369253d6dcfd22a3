"""Workers of Ray find what one process finds, on a cluster of two nodes here; workers and nodes are killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shortlist import LabelSets, ShortlistError, runs
from shortlist.sets import Block, TopK
from shortlist.sets.rule_files import save_rules
from tests.cli.command import ENVIRONMENT, run_here

ray = pytest.importorskip("ray")


class Slow(TopK):
    """So slow that a node can be killed in the middle of a shard."""

    def sets_of(self, block: Block) -> Any:
        time.sleep(0.3)
        return super().sets_of(block)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  Ray's workers give way to everything else, and would wait for long
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On a small table; its test part has more batches than states are merged at a time."""
    folder = tmp_path_factory.mktemp("runs")
    numbers = np.random.default_rng(0).normal(size=(13_000, 4)).astype(np.float32)
    labels = (np.abs(numbers[:, 0]) * 3).astype(np.int64) % 4
    for part, rows in (("train", slice(0, 1000)), ("held", slice(1000, 3500)), ("test", slice(3500, None))):
        table = {f"f{place}": numbers[rows, place] for place in range(4)}
        pq.write_table(pa.table({**table, "label": labels[rows]}), folder / f"{part}.parquet")
    source = {"reader": "features", "labels_key": "label", "num_labels": 4}
    data: dict[str, Any] = {part: {**source, "path": str(folder / f"{part}.parquet")} for part in ("train", "test")}
    data |= {"calibration": {**source, "path": str(folder / "held.parquet")}, "validation": 200}
    done = runs.train({"data": data, "backbone": {"name": "mlp", "hidden": [8]}, "epochs": 1}, folder / "run")
    return Path(done["run"])


def test_a_cluster_finds_the_rules_and_metrics_of_one_process(cluster: Any, run: Path, tmp_path: Path) -> None:
    one, many = (
        runs.calibrate(run, rules=["average-k:k=2"], out=tmp_path / name, engine=engine)
        for name, engine in (("one", None), ("many", runs.Ray(workers=1)))
    )
    assert many["metrics"] == pytest.approx(one["metrics"], rel=1e-6)
    assert {**many, "written": 0, "metrics": 0} == {**one, "written": 0, "metrics": 0}
    rules = [json.loads((tmp_path / name / "average-k-2.json").read_text()) for name in ("one", "many")]
    assert rules[0]["state"]["threshold"] == rules[1]["state"]["threshold"]


def kill_a_worker(cluster: Any) -> None:
    """One of the first machine that holds the model; its machine lives on."""
    parent = cluster.head_node.all_processes["raylet"][0].process.pid
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::MapWorker"):
            os.kill(int(pid), signal.SIGKILL)
            return
    raise AssertionError("no worker was found")


def test_a_killed_worker_and_a_killed_node_lose_nothing_and_repeat_nothing(
    cluster: Any, run: Path, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    save_rules(run / "rules", {"slow": Slow(2)})
    heard: list[tuple[int, int]] = []
    options: dict[str, Any] = {"rule": "slow", "allow_import": [__name__]}
    one = runs.predict(run, "test", out=tmp_path / "one.parquet", **options)
    died: list[str] = []

    def kill_in_the_middle() -> None:
        while not list(tmp_path.glob(".many.parquet.*.tmp/part-*.parquet")):
            time.sleep(0.02)
        kill_a_worker(cluster)
        died.append("worker")
        cluster.remove_node(node, allow_graceful=False)
        died.append("node")

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    engine = runs.Ray(workers=2, progress=lambda what, done, total: heard.append((done, total)))
    many = runs.predict(run, "test", out=tmp_path / "many.parquet", engine=engine, **options)
    killer.join()
    (run / "rules" / "slow.json").unlink()
    assert died == ["worker", "node"]
    assert {**many, "written": 0} == {**one, "written": 0}
    assert LabelSets.from_parquet(tmp_path / "many.parquet") == LabelSets.from_parquet(tmp_path / "one.parquet")
    parts = sorted((tmp_path / "many.parquet").iterdir())
    assert [part.name for part in parts] == [f"part-{number:06}.parquet" for number in range(10)]
    together = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert together == pq.read_table(tmp_path / "one.parquet").to_pylist()
    assert heard[-1] == (9500, 9500)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)  # what is done again is told once


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (runs.Ray(gpus_per_worker=1), "the cluster has 0 graphics cards"),
        (runs.Ray(workers=99), "--workers 99: the cluster has"),
    ],
)
def test_what_a_cluster_does_not_have_is_told_in_a_line(
    engine: runs.Ray, message: str, cluster: Any, run: Path, tmp_path: Path
) -> None:
    with pytest.raises(ShortlistError, match=message):
        runs.predict(run, "test", rule="top-k:k=1", out=tmp_path / "sets.parquet", engine=engine)
    assert list(tmp_path.iterdir()) == []


# ---- a process of its own


def test_ctrl_c_ends_all_of_it_and_leaves_nothing(run: Path) -> None:
    save_rules(run / "rules", {"slow": Slow(2)})
    folder = tempfile.mkdtemp(prefix="r")  # short: Ray's sockets lie below it
    mark = f"RAY_TMPDIR={folder}"
    where = {**ENVIRONMENT, "RAY_TMPDIR": folder, "RAY_worker_niceness": "0"}
    where["PYTHONPATH"] = os.pathsep.join(["src", "."])
    command = [sys.executable, "-m", "shortlist.cli", "predict", run, "test", "--rule", "slow", "--engine", "ray"]
    command += ["--workers", "1", "--allow-import", __name__, "-o", f"{folder}/sets.parquet"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            list(map(str, command)),
            env=where,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        until = time.monotonic() + 300
        while not list(Path(folder).glob(".sets.parquet.*.tmp/part-*.parquet")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=120)
        until = time.monotonic() + 30
        while (left := processes_with(mark)) and time.monotonic() < until:
            time.sleep(0.1)
        assert left == []
        assert process.returncode in (130, -signal.SIGINT)
        assert (out, err) in (("", ""), ("", "Aborted.\n"), ("", "\nAborted.\n"))
        assert [path.name for path in Path(folder).glob("*parquet*")] == []
    finally:
        process.kill()
        for pid in processes_with(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        (run / "rules" / "slow.json").unlink(missing_ok=True)


def processes_with(mark: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found


@pytest.mark.parametrize("options", [["--address", "here:1"], ["--engine", "spark"]])
def test_the_command_line_says_which_options_go_together(
    options: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_here(capsys, "evaluate", run, "test", *options)
    assert result.code == 2
    assert "--engine" in result.err
