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
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from shortlist import LabelSets, ShortlistError, runs
from shortlist.sets import Block, TopK
from tests.cli.command import ENVIRONMENT, run_here

ray = pytest.importorskip("ray")

CONFIG = {
    "data": {"train": {"reader": "ambiguous-numbers", "size": 8000}, "validation": 2500, "test": 4500},
    "objective": {"name": "smooth-topk", "k": 3},
    "epochs": 1,
}
RULES = ["average-k:k=3", "conformal:alpha=0.2,score=aps,clusters=3"]


class Slow(TopK):
    """So slow that a node can be killed in the middle of a shard."""

    def sets_of(self, block: Block) -> Any:
        time.sleep(0.5)
        return super().sets_of(block)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  Ray's workers give way to everything else, and would wait for long
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100 << 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = runs.train(CONFIG, tmp_path_factory.mktemp("runs") / "first")
    runs.calibrate(done["run"], rules=RULES)
    return Path(done["run"])


def test_rules_metrics_and_sets_are_those_of_one_process(cluster: Any, run: Path, tmp_path: Path) -> None:
    whole = runs.calibrate(run, rules=RULES, out=tmp_path / "one")
    shared = runs.calibrate(run, rules=RULES, out=tmp_path / "many", engine=runs.Ray(workers=2))
    assert {**shared, "written": 0} == {**whole, "written": 0}
    for file in sorted((tmp_path / "one").iterdir()):
        one, many = (json.loads((tmp_path / name / file.name).read_text()) for name in ("one", "many"))
        if "counts" in one["state"]:
            del one["state"]["counts"], many["state"]["counts"]  # which buckets are open depends on the way there
        assert many == one
    metrics = ["ndcg@3", "topk-accuracy@1", "propensity-precision@1"]
    one, many = (runs.evaluate(run, "test", metrics=metrics, engine=engine) for engine in (None, "ray"))
    assert many["metrics"] == pytest.approx(one["metrics"], rel=1e-6)
    assert {**many, "metrics": 0} == {**one, "metrics": 0}


def kill_a_worker() -> None:
    """One that holds the model, by its number; its machine lives on."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                os.kill(int(process.name), signal.SIGKILL)
                return
    raise AssertionError("no worker was found")


def test_a_killed_worker_and_a_killed_node_lose_nothing_and_repeat_nothing(
    cluster: Any, run: Path, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    runs.Run(run).save_rules({"slow": Slow(2)})
    heard: list[tuple[int, int]] = []
    options: dict[str, Any] = {"rule": "slow", "allow_import": [__name__]}
    one = runs.predict(run, "test", out=tmp_path / "one.parquet", **options)
    died: list[str] = []

    def kill_in_the_middle() -> None:
        while not list(tmp_path.glob(".many.parquet.*.tmp/part-*.parquet")):
            time.sleep(0.02)
        kill_a_worker()
        died.append("worker")
        cluster.remove_node(node, allow_graceful=False)
        died.append("node")

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    engine = runs.Ray(workers=3, progress=lambda what, done, total: heard.append((done, total)))
    many = runs.predict(run, "test", out=tmp_path / "many.parquet", engine=engine, **options)
    killer.join()
    (run / "rules" / "slow.json").unlink()
    assert died == ["worker", "node"]
    assert {**many, "written": 0} == {**one, "written": 0}
    assert LabelSets.from_parquet(tmp_path / "many.parquet") == LabelSets.from_parquet(tmp_path / "one.parquet")
    parts = sorted((tmp_path / "many.parquet").iterdir())
    assert [part.name for part in parts] == [f"part-{number:06}.parquet" for number in range(5)]
    together = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert together == pq.read_table(tmp_path / "one.parquet").to_pylist()
    assert heard[-1] == (4500, 4500)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)  # what is done again is told once


# ---- tables, of which each worker reads its rows


def made_table(rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(rows, 3))
    kind = np.digitize(numbers[:, 0] + generator.normal(scale=0.5, size=rows), [-1, 0, 1])
    return pa.table(
        {
            "name": [f"row {number}" for number in range(rows)],
            **{f"f{place}": numbers[:, place] for place in range(3)},
            "code": generator.choice(["1", "2", "007", "x"], rows, p=[0.4, 0.4, 0.199, 0.001]),
            "kind": [f"kind {number}" for number in kind],
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on a table, whose calibration data is another one, and with new rows in three forms."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(made_table(3000, 0), folder / "train.csv")
    pq.write_table(made_table(2500, 1), folder / "held.parquet", row_group_size=700)
    new = made_table(2500, 2)
    write_csv(new, folder / "new.csv")
    pq.write_table(new, folder / "new.parquet", row_group_size=2500)
    (folder / "many").mkdir()
    for part in range(2):  # whole batches, so that the arithmetic is the same
        pq.write_table(new.slice(2048 * part, 2048), folder / "many" / f"{part}.parquet")
    options = {"labels_key": "kind", "ids_key": "name"}
    source = {"reader": "features", **options}
    data = {"train": {**source, "path": str(folder / "train.csv")}, "validation": 500}
    data["calibration"] = {**source, "path": str(folder / "held.parquet")}
    done = runs.train({"data": data, "epochs": 2, "backbone": {"name": "mlp", "hidden": [8]}}, folder / "run")
    runs.calibrate(done["run"], rules=["average-k:k=2"])
    return folder


def test_tables_that_workers_read_give_what_one_process_gives(cluster: Any, tables: Path, tmp_path: Path) -> None:
    run, engine = tables / "run", runs.Ray(workers=2)
    one, many = (
        runs.calibrate(run, rules=["average-k:k=2"], out=tmp_path / name, engine=how)
        for name, how in (("one", None), ("many", engine))
    )
    assert {**many, "written": 0} == {**one, "written": 0}
    rules = [json.loads((tmp_path / name / "average-k-2.json").read_text()) for name in ("one", "many")]
    assert rules[0]["state"]["threshold"] == rules[1]["state"]["threshold"]
    one = runs.predict(run, tables / "new.csv", out=tmp_path / "one.parquet")
    for place in ("new.csv", "many"):
        out = f"file://{tmp_path}/sets-{place}.parquet" if place == "many" else tmp_path / "sets.parquet"
        many = runs.predict(run, tables / place, out=out, engine=engine)
        assert {**many, "written": 0} == {**one, "written": 0}
        found, wanted = (pq.read_table(path) for path in (str(out).removeprefix("file://"), tmp_path / "one.parquet"))
        assert found.to_pylist() == wanted.to_pylist()
    one, many = (runs.evaluate(run, tables / "new.parquet", engine=how) for how in (None, engine))
    assert many["metrics"] == pytest.approx(one["metrics"], rel=1e-6)
    assert {**many, "metrics": 0} == {**one, "metrics": 0}


@pytest.fixture
def broken_tables(tables: Path) -> Path:
    (tables / "none.csv").write_text("name,f0,f1,f2,code,kind\n")
    (tables / "short.csv").write_text("name,f0,f1,code,kind\nrow 0,1,2,x,kind 0\n")
    (tables / "unseen.csv").write_text("name,f0,f1,f2,code,kind\nrow 0,1,2,3,x,kind 9\n")
    (tables / "file.parquet").write_text("a file of the user's own")
    (tables / "folder.parquet").mkdir(exist_ok=True)
    (tables / "folder.parquet" / "notes.txt").write_text("of the user's own")
    return tables


@pytest.mark.parametrize(
    ("verb", "data", "options", "message"),
    [
        ("predict", "none.csv", {}, r"none\.csv: no rows: the file only names the columns"),
        ("predict", "short.csv", {}, r"short\.csv: there is no column 'f2'"),
        ("evaluate", "unseen.csv", {}, r"unseen\.csv, line 2: label 'kind 9' is outside the vocabulary"),
        ("predict", "nothing.csv", {}, "there is no .*nothing.csv"),
        ("predict", "s3:bucket", {}, "there is no"),
        ("predict", "new.csv", {"out": "file.parquet"}, "file.parquet is a file: a folder is written here"),
        ("predict", "new.csv", {"out": "folder.parquet"}, "the folder holds 'notes.txt', which is no part of sets"),
        ("predict", "new.csv", {"out": "no/folder/sets.parquet"}, "cannot write .*there is no folder"),
        ("predict", "new.csv", {"engine": runs.Ray(gpus_per_worker=1)}, "the cluster has 0 graphics cards"),
        ("predict", "new.csv", {"engine": runs.Ray(workers=99)}, "--workers 99: the cluster has"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    verb: str, data: str, options: dict[str, Any], message: str, cluster: Any, broken_tables: Path
) -> None:
    given: dict[str, Any] = {"engine": "ray", **options}
    if verb == "predict":
        given["out"] = broken_tables / given.get("out", "sets.parquet")
    with pytest.raises(ShortlistError, match=message):
        getattr(runs, verb)(broken_tables / "run", broken_tables / data, **given)
    assert not [file for file in broken_tables.iterdir() if file.name.endswith(".tmp")]
    assert not (broken_tables / "sets.parquet").exists()


# ---- a process of its own


def test_ctrl_c_ends_all_of_it_and_leaves_nothing(run: Path) -> None:
    runs.Run(run).save_rules({"slow": Slow(2)})
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


def test_an_address_that_nobody_answers_at_is_told_in_a_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from shortlist import runs, ShortlistError\n"
        "try: runs.evaluate(sys.argv[1], 'test', engine=runs.Ray('127.0.0.1:1'))\n"
        "except ShortlistError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], env=ENVIRONMENT, text=True, capture_output=True, check=True
    )
    assert done.stdout.startswith("there is no Ray cluster at 127.0.0.1:1: ")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_what_is_wrong_with_a_row_is_told_as_one_process_tells_it_and_leaves_no_file(
    cluster: Any, run: Path, tmp_path: Path
) -> None:
    features = np.zeros((2100, 128), np.float32)
    features[2050] = 3e38  # finite, but not what the model makes of it
    np.save(tmp_path / "new.npy", features)
    told = []
    for engine in (None, runs.Ray(workers=1)):
        with pytest.raises(ShortlistError) as error:
            runs.predict(run, tmp_path / "new.npy", rule="average-k-3", out=tmp_path / "sets.parquet", engine=engine)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert "row 2050" in told[0]
    assert [file.name for file in tmp_path.iterdir()] == ["new.npy"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: runs.evaluate(run, "test", engine="spark"), "engine must be 'ray'"),
        (lambda run: runs.Ray(workers=0), "workers must be at least 1"),
        (lambda run: runs.predict(run, "test", out="sets.csv", engine="ray"), "a folder of files: -o sets.parquet"),
        (lambda run: runs.predict(run, "test", explain="why.jsonl", engine="ray"), "without --engine"),
    ],
)
def test_what_an_engine_cannot_do_is_said_before_any_work(
    call: Callable[[Path], Any], message: str, run: Path
) -> None:
    with pytest.raises(ShortlistError, match=message):
        call(run)


@pytest.mark.parametrize("options", [["--address", "here:1"], ["--engine", "spark"]])
def test_the_command_line_says_which_options_go_together(
    options: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_here(capsys, "evaluate", run, "test", *options)
    assert result.code == 2
    assert "--engine" in result.err
