"""Prediction by the workers of Ray (`--engine ray`) on made rows, by hand: it is no part of ``make bench``.

``python -m benchmarks.ray_rows memory`` predicts 10 million rows by a small model, and prints the most memory that any
worker had; the goal is 2 GB. ``python -m benchmarks.ray_rows cost`` measures the time for each row beside plain Ray
Data that reads the same parquet file, runs the same network, takes the 5 best labels and writes parquet: medians of 5,
with 1 and 2 workers. What starting takes is measured on a few rows, and taken off. The goal is 1.1x.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch
from torch import nn

import shortlist as sl
from shortlist.runs.ray_engine import connected

GIGABYTE = 1e9
FEATURES, LABELS, BATCH, K = 16, 100, 1024, 5
RULE = f"top-k:k={K}"
COLUMNS = [f"f{number}" for number in range(FEATURES)]
GROUP = 1 << 17  # rows of a group in the file


def write_rows(path: Path, rows: int, labelled: bool = False) -> None:
    """Numbers drawn at random, and perhaps a label that the first of them tells."""
    generator = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, GROUP):
        values = generator.standard_normal((min(GROUP, rows - first), FEATURES), dtype=np.float32)
        columns = dict(zip(COLUMNS, map(pa.array, values.T), strict=True))
        if labelled:
            columns["label"] = pa.array((np.abs(values[:, 0]) * 30).astype(np.int64) % LABELS)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def trained(folder: Path, hidden: list[int]) -> Path:
    """A run on such rows; what it has learnt does not matter here."""
    run = folder / f"run-{'-'.join(map(str, hidden))}"
    if not run.exists():
        write_rows(folder / "train.parquet", 4000, labelled=True)
        source = {"reader": "features", "path": str(folder / "train.parquet"), "labels_key": "label"}
        data = {"train": {**source, "num_labels": LABELS}}
        config = {"data": data, "backbone": {"name": "mlp", "hidden": hidden}, "epochs": 1}
        sl.runs.train(config, run)
    return run


# ---- memory


@contextlib.contextmanager
def watched(peaks: dict[int, int]) -> Iterator[None]:
    """Notes the peak of resident memory of every process of Ray's that runs Python, by its number."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, ValueError):
                    if b"Worker" in (process / "cmdline").read_bytes()[:80]:
                        lines = (process / "status").read_text().splitlines()
                        peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
                        peaks[int(process.name)] = max(peaks.get(int(process.name), 0), int(peak) * 1024)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def memory(folder: Path, rows: int, workers: int) -> None:
    data, run = folder / f"rows-{rows}.parquet", trained(folder, [64])
    if not data.exists():
        write_rows(data, rows)
    peaks: dict[int, int] = {}
    started = time.perf_counter()
    with watched(peaks):
        engine = sl.runs.Ray(workers=workers, progress=partial(told, peaks))
        done = sl.runs.predict(run, data, rule=RULE, out=folder / "sets.parquet", engine=engine)
    seconds = time.perf_counter() - started
    shown = ", ".join(f"{peak / GIGABYTE:.2f}" for peak in sorted(peaks.values(), reverse=True))
    print(f"{done['examples']:,} rows, {workers} workers: {seconds:.0f} s; peaks of workers: {shown} GB", flush=True)


def told(peaks: dict[int, int], what: str, done: int, total: int) -> None:
    print(f"{what} {done:,} of {total:,}; most so far {max(peaks.values(), default=0) / GIGABYTE:.2f} GB", flush=True)


# ---- cost


class Plain:
    """What somebody writes who has Ray Data, a network and nothing of ours."""

    def __init__(self, hidden: list[int]) -> None:
        sizes = [FEATURES, *hidden]
        layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        self.network = nn.Sequential(*layers, nn.Linear(sizes[-1], LABELS)).eval()

    @torch.no_grad()
    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        inputs = torch.from_numpy(np.stack([batch[name] for name in COLUMNS], axis=1))
        best = torch.softmax(self.network(inputs), 1).topk(K)
        return {"labels": best.indices.numpy(), "probabilities": best.values.numpy()}


def plain(data: Path, folder: Path, hidden: list[int], workers: int) -> None:
    rows = ray.data.read_parquet(str(data))
    pool = ray.data.ActorPoolStrategy(size=workers)
    found = rows.map_batches(Plain, batch_size=BATCH, compute=pool, fn_constructor_args=(hidden,), num_cpus=1)
    found.write_parquet(str(folder / f"plain-{time.time_ns()}"))


def cost(folder: Path, rows: int, times: int) -> None:
    hidden = [512, 512]
    run, data, few = trained(folder, hidden), folder / f"rows-{rows}.parquet", folder / "few.parquet"
    for path, count in ((data, rows), (few, BATCH)):
        if not path.exists():
            write_rows(path, count)
    torch.set_num_threads(1)
    network, batch = Plain(hidden), {name: np.zeros(BATCH, np.float32) for name in COLUMNS}
    seconds = min(timed(network, batch) for _ in range(10))
    print(f"the network takes {1e3 * seconds:.1f} ms for a batch of {BATCH} rows")
    for workers in (1, 2):
        engine = sl.runs.Ray(workers=workers)
        with connected(sl.runs.Ray(workers=workers + 1)):  # reading has a CPU of its own
            ways: dict[str, Callable[[Path], object]] = {
                "plain Ray Data": partial(plain, folder=folder, hidden=hidden, workers=workers),
                "shortlist": partial(sl.runs.predict, run, rule=RULE, out=folder / "sets.parquet", engine=engine),
            }
            found: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(times):  # in turn, so that both have the same neighbours
                for name, way in ways.items():
                    start = timed(way, few)
                    found[name].append((timed(way, data) - start) / (rows - BATCH))
        medians = {name: statistics.median(each) for name, each in found.items()}
        ratio = medians["shortlist"] / medians["plain Ray Data"]
        shown = ", ".join(f"{name} {1e6 * value:.2f} us a row" for name, value in medians.items())
        print(f"{workers} workers, medians of {times}: {shown}; {ratio:.2f}x", flush=True)


def timed(step: Callable[..., object], *given: Any) -> float:
    started = time.perf_counter()
    step(*given)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.ray_rows", description=__doc__)
    parser.add_argument("what", choices=["memory", "cost"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--workers", type=int, default=2, help="of memory")
    parser.add_argument("--times", type=int, default=5, help="of cost")
    parser.add_argument("--folder", type=Path, help="where rows and runs are kept for the next time")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if options.folder is None else options.folder.absolute()
        folder.mkdir(exist_ok=True)
        if options.what == "memory":
            memory(folder, options.rows or 10_000_000, options.workers)
        else:
            cost(folder, options.rows or 1_000_000, options.times)


if __name__ == "__main__":
    main()
