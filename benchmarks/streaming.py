"""A whole run with very many labels on one machine: train one epoch and validate, calibrate, evaluate, predict.

``python -m benchmarks.streaming`` makes a million rows with 5 of 100,000 labels each, and prints for each step its
time, that of the processors, and its peak memory beyond the features; the goal is 2 GB. It is run by hand, and is no
part of ``make bench``; ``--rows 100000 --labels 10000`` takes minutes.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import shortlist as sl
from benchmarks.memory import RESET_PEAK, peak_bytes, resident_bytes
from shortlist.data import Dataset

GIGABYTE = 1e9
RULES = ["average-k:k=5", "conformal:alpha=0.1"]
TOPICS, LISTED, LABELS_A_ROW = 1000, 12, 5


def made_data(rows: int, labels: int, features: int) -> Dataset:
    """The labels of a row are some of those that its hidden topic lists, so that a linear head can learn them; most
    labels are rare, as they are in real data."""
    generator = np.random.default_rng(0)
    topics = generator.normal(size=(TOPICS, features)).astype(np.float32)
    listed = np.sort((labels * generator.random((TOPICS, LISTED)) ** 3).astype(np.int32), axis=1)
    topic = generator.integers(TOPICS, size=rows)
    inputs = torch.from_numpy(topics[topic])
    inputs += torch.randn(inputs.shape, generator=torch.Generator().manual_seed(0))
    first = generator.integers(LISTED - LABELS_A_ROW + 1, size=rows)
    chosen = listed[topic[:, None], first[:, None] + np.arange(LABELS_A_ROW)]
    different = np.concatenate([np.ones((rows, 1), bool), np.diff(chosen, axis=1) > 0], axis=1)
    offsets = np.concatenate([[0], np.cumsum(different.sum(1))])
    names = tuple(map(str, range(labels)))
    return Dataset(inputs, sl.LabelSets(offsets, chosen[different], labels), names, name="made")


def measured(name: str, step: Callable[[], object], features: int) -> None:
    RESET_PEAK.write_text("5")
    started, worked = time.perf_counter(), time.process_time()
    step()
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    beyond = (peak_bytes() - features) / GIGABYTE
    times = f"{seconds:8.0f} s, {work:8.0f} s of the processors"
    print(f"{name:24} {times}   {beyond:6.2f} GB beyond the features", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.streaming", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=64)
    options = parser.parse_args()
    start = resident_bytes()
    data = made_data(options.rows, options.labels, options.features)
    size = data.inputs.nbytes
    print(f"{data}: {size / GIGABYTE:.2f} GB of features; before, the program itself has {start / GIGABYTE:.2f} GB")
    tenth = options.rows // 10
    parts = {
        "train": data.subset(slice(0, 8 * tenth)),
        "validation": data.subset(slice(8 * tenth, 9 * tenth)),
        "test": data.subset(slice(9 * tenth, None)),
    }
    config = {
        "data": {"train": {"reader": "features", "path": "made.npz"}},
        "objective": {"name": "binary"},
        "epochs": 1,
        "batch_size": 256,
    }
    del data
    with tempfile.TemporaryDirectory() as folder:
        run, sets = f"{folder}/run", Path(folder, "sets.parquet")
        measured("train, one epoch", lambda: sl.runs.train(config, run, parts=parts), size)
        measured("calibrate", lambda: sl.runs.calibrate(run, rules=RULES, data=parts["validation"]), size)
        measured("predict", lambda: sl.runs.predict(run, parts["train"], rule="average-k-5", out=sets), size)
        print(f"{sets.stat().st_size / 1e6:.0f} MB of sets")
        measured("evaluate", lambda: sl.runs.evaluate(run, parts["test"]), size)


if __name__ == "__main__":
    main()
