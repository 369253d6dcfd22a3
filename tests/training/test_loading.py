"""Batches made ready ahead of time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from shortlist.data import Dataset, Images
from shortlist.training.loading import loaded

CPU = torch.device("cpu")
PARTS = [torch.tensor([3, 1]), torch.tensor([6]), torch.tensor([0, 2, 5])]


def image_files(folder: Path) -> Dataset:
    for number in range(7):
        Image.fromarray(np.full((4, 4, 3), 30 * number, np.uint8)).save(folder / f"{number}.png")
    images = Images(tuple(str(folder / f"{number}.png") for number in range(7)), size=(4, 4))
    return Dataset(images, torch.arange(7) % 2, ("a", "b"))


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_are_the_same_with_any_workers_and_training_draws_the_same(tmp_path: Path, workers: int) -> None:
    data = image_files(tmp_path)
    torch.manual_seed(0)
    found = list(loaded(data, PARTS, CPU, workers))
    drawn = torch.rand(3)
    assert len(found) == len(PARTS)
    for rows, (inputs, target) in zip(PARTS, found, strict=True):
        assert torch.equal(inputs, data.batch(rows)[0])
        assert torch.equal(target, data.target[rows])
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(3))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_cannot_be_decoded_is_named_in_one_line(tmp_path: Path, workers: int) -> None:
    data = image_files(tmp_path)
    (tmp_path / "6.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"cannot decode the image .*6.png: [^\n]*$"):
        list(loaded(data, PARTS, CPU, workers))


SCRIPT = """
import signal, sys, time, multiprocessing, torch
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, such as these tests, ignores it
from tests.training.test_loading import image_files, PARTS, CPU
from shortlist.training.loading import loaded
for batch in loaded(image_files(Path(sys.argv[1])), PARTS, CPU, 2):
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
def test_an_interrupted_training_leaves_no_worker_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        pids = process.stdout.readline().split()
        assert len(pids) == 2
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(timeout=60) != 0
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {pids}")
