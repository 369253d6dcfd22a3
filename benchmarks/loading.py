"""How fast files are loaded. ``python -m benchmarks.loading images``: image files decoded by threads, as ever, and by
worker processes; ``python -m benchmarks.loading tables``: a table of a million rows, beside pyarrow alone."""

import gzip
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any

import numpy as np
import pyarrow.csv
import torch
from PIL import Image

from shortlist.data import Dataset, Images, read_features
from shortlist.timing.turns import fastest
from shortlist.training.loading import loaded

COUNT, BATCH, SIZE = 128, 32, 224
ROWS = 1_000_000


def photographs(folder: Path) -> Dataset:
    """JPEG files of 500 x 375 pixels, with detail of every scale."""
    random = np.random.default_rng(0)
    paths = [folder / f"{number}.jpg" for number in range(COUNT)]
    for path in paths:
        coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
        noisy = np.asarray(coarse, dtype=np.int16) + random.integers(-12, 13, (375, 500, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, quality=90)
    return Dataset(Images.from_files(paths, SIZE, True), torch.zeros(COUNT, dtype=torch.int64), ("a",))


def epoch(dataset: Dataset, workers: int) -> None:
    for _ in loaded(dataset, torch.arange(COUNT).split(BATCH), torch.device("cpu"), workers):
        pass


def images() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = photographs(Path(folder))
        workers = (0, 1, 2)
        steps: list[Callable[[], object]] = [partial(epoch, dataset, number) for number in workers]
        for number, seconds in zip(workers, fastest(steps, seconds=10), strict=True):
            print(f"workers {number}: {COUNT / seconds:.0f} images a second, {torch.get_num_threads()} torch threads")


def write_table(path: Path) -> None:
    """Ids, 14 columns of numbers, a column of names and a class in each row."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {"id": [f"row{number:08d}" for number in range(ROWS)]}
    columns |= {f"x{number}": np.round(random.normal(size=ROWS) * 10, 7) for number in range(14)}
    columns |= {"city": random.choice(["Oslo", "Rome", "Lima"], ROWS), "y": random.choice(["cat", "dog", "owl"], ROWS)}
    pyarrow.csv.write_csv(pyarrow.table(columns), path)


def timed(function: Callable[[], object]) -> float:
    return timeit(function, number=1)


def tables() -> None:
    """Three times each, in turn; the fastest counts."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHORTLIST_CACHE"] = f"{folder}/cache"
        plain, packed = Path(folder, "table.csv"), Path(folder, "table.csv.gz")
        write_table(plain)
        with open(plain, "rb") as content, gzip.open(packed, "wb", compresslevel=1) as file:
            shutil.copyfileobj(content, file)

        def ours(path: Path) -> object:
            return read_features(path, ids_key="id", as_table=True)

        found: dict[str, list[float]] = {}
        for _ in range(3):
            for path in (plain, packed):
                shutil.rmtree(f"{folder}/cache", ignore_errors=True)
                found.setdefault(f"pyarrow, {path.name}", []).append(timed(partial(pyarrow.csv.read_csv, path)))
                found.setdefault(f"features, {path.name}", []).append(timed(partial(ours, path)))
                found.setdefault(f"features, {path.name}, cached", []).append(timed(partial(ours, path)))
        print(f"{ROWS} rows, {plain.stat().st_size / 1e6:.0f} MB, packed {packed.stat().st_size / 1e6:.0f} MB")
        for what, seconds in found.items():
            print(f"{what}: {min(seconds):.2f} s")
        print(f"most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    {"images": images, "tables": tables}[sys.argv[1] if len(sys.argv) > 1 else "images"]()
