"""Runs on features of images show the images."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shortlist import runs
from tests.cli.command import run_here


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Wide images of two colours, in a folder for each."""
    folder = tmp_path / "images"
    for name, colour in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (folder / name).mkdir(parents=True)
        for number in range(20):
            noise = np.random.default_rng(number).integers(0, 50, (4, 8, 3))
            Image.fromarray((noise + colour).astype(np.uint8)).save(folder / name / f"{number}.png")
    return folder


def pictures_of(run: str) -> list[str]:
    return re.findall(r'<img src="(data:image/[^"]+)"', Path(runs.report(run)["written"]).read_text("utf-8"))


def test_features_that_the_encoder_of_a_run_makes_show_their_images(images: Path, tmp_path: Path) -> None:
    data = {"train": {"reader": "image-folder", "path": str(images), "size": 4}, "test": 10, "encoder": "identity"}
    config = {"data": {**data, "cache": str(tmp_path / "cache")}, "epochs": 1, "objective": "cross-entropy"}
    assert len(pictures_of(runs.train(config, tmp_path / "run")["run"])) >= 10


def test_features_in_a_file_show_the_images_that_are_still_there(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "features.npz"
    given = ("data", "features", "image-folder", f"path={images}", "size=4", "--backbone", "identity", "--json")
    made = run_here(capsys, *given, "-o", file, "--cache", tmp_path / "cache").json
    train = {"reader": "features", "path": str(file), **made["options"]}
    config = {"data": {"train": train, "test": 10}, "epochs": 1, "objective": "cross-entropy"}
    run = runs.train(config, tmp_path / "run")["run"]
    assert len(pictures_of(run)) >= 10
    shutil.rmtree(images)
    assert pictures_of(run) == []
