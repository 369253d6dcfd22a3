"""How fast image files are decoded: by threads, as ever, and by worker processes. ``python -m benchmarks.loading``"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from shortlist.data import Dataset, Images
from shortlist.timing.turns import fastest
from shortlist.training.loading import loaded

COUNT, BATCH, SIZE = 128, 32, 224


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = photographs(Path(folder))
        workers = (0, 1, 2)
        steps: list[Callable[[], object]] = [partial(epoch, dataset, number) for number in workers]
        for number, seconds in zip(workers, fastest(steps, seconds=10), strict=True):
            print(f"workers {number}: {COUNT / seconds:.0f} images a second, {torch.get_num_threads()} torch threads")


if __name__ == "__main__":
    main()
