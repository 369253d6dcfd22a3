"""Ray's workers find what one process finds, on a cluster of two nodes on this machine, one of which is killed."""

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from shortlist import LabelSets, ShortlistError, runs
from shortlist.sets import Block, TopK
from tests.cli.command import run_here

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


def test_a_killed_node_loses_nothing_and_repeats_nothing(cluster: Any, run: Path, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    runs.Run(run).save_rules({"slow": Slow(2)})
    heard: list[tuple[int, int]] = []
    options: dict[str, Any] = {"rule": "slow", "allow_import": [__name__]}
    one = runs.predict(run, "test", out=tmp_path / "one.parquet", **options)

    def kill_in_the_middle() -> None:
        while not list(tmp_path.glob(".many.parquet.*.tmp/part-*.parquet")):
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    engine = runs.Ray(workers=3, progress=lambda what, done, total: heard.append((done, total)))
    many = runs.predict(run, "test", out=tmp_path / "many.parquet", engine=engine, **options)
    killer.join()
    (run / "rules" / "slow.json").unlink()
    assert {**many, "written": 0} == {**one, "written": 0}
    assert LabelSets.from_parquet(tmp_path / "many.parquet") == LabelSets.from_parquet(tmp_path / "one.parquet")
    parts = sorted((tmp_path / "many.parquet").iterdir())
    assert [part.name for part in parts] == [f"part-{number:06}.parquet" for number in range(len(parts))]
    together = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert together == pq.read_table(tmp_path / "one.parquet").to_pylist()
    assert len(parts) == 5
    assert heard[-1] == (4500, 4500)


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
