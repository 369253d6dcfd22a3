"""Small images stacked into large files."""

import numpy as np
import pytest
from PIL import Image

from shortlist.data import read_stacked_images
from tests.data.readers.made_files import SHARED, assert_found, truncated

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 8, 8, 3), dtype=np.uint8)


def stack(path, images):
    Image.fromarray(images.reshape(-1, images.shape[2], 3)).save(path, lossless=True)


@pytest.fixture
def folder(tmp_path):
    for number, begin in enumerate(range(0, 7, 3)):
        stack(tmp_path / f"train_{number:03}.webp", PIXELS[begin : begin + 3])
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2], dtype=np.uint8)
    np.savez(tmp_path / "labels.npz", fine=labels, names=["a", "b", "c"], groups=[0, 0, 1], group_names=["x", "y"])
    return tmp_path


def options(folder):
    return {"path": folder, "pattern": "train_*.webp", "labels": folder / "labels.npz", "labels_key": "fine"}


def test_images_and_labels_go_together_by_position(folder):
    data = read_stacked_images(
        **options(folder), vocabulary_key="names", groups_key="groups", group_names_key="group_names"
    )
    assert np.array_equal(data.inputs.source, PIXELS)
    assert data.target.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert (data.vocabulary, data.groups.tolist(), data.name) == (("a", "b", "c"), [0, 0, 1], "train")


def test_images_need_not_be_square(folder):
    stack(folder / "wide_0.png", PIXELS[0].reshape(2, 4, 8, 3))
    data = read_stacked_images(**{**options(folder), "pattern": "wide_*"}, num_labels=3, height=4)
    assert (len(data), data.in_shape) == (2, (3, 4, 8))


def test_files_come_in_the_order_of_their_numbers(tmp_path):
    for number in range(12):
        stack(tmp_path / f"part{number}.png", np.full((1, 8, 8, 3), number, dtype=np.uint8))
    np.savez(tmp_path / "labels.npz", y=np.arange(12))
    data = read_stacked_images(tmp_path, labels=tmp_path / "labels.npz", pattern="part*.png", num_labels=12)
    assert data.inputs.source[:, 0, 0, 0].tolist() == data.target.tolist()


def test_every_problem_is_found_in_one_pass(folder):
    truncated(folder / "train_001.webp")
    stack(folder / "train_002.webp", PIXELS[[0]])
    Image.new("RGB", (8, 12)).save(folder / "train_003.webp")
    stack(folder / "train_005.webp", PIXELS[[6]])
    assert_found(
        "stacked-images",
        [
            ("train_001.webp", None, "cannot decode the image"),
            ("train_002.webp", 0, "this image is a duplicate, seen before at"),
            ("train_003.webp", None, "12 x 8 pixels are not a stack of images like the others"),
            ("train_005.webp", None, "the file number 4 is missing before it"),
            ("labels.npz", 2, "label 2 is outside the vocabulary"),
            ("labels.npz", 5, "label 2 is outside the vocabulary"),
            ("labels.npz", 8, "label 2 is outside the vocabulary"),
        ],
        **options(folder),
        num_labels=2,
    )


def test_a_short_stack_in_the_middle_and_too_few_labels_are_reported(folder):
    stack(folder / "train_001.webp", PIXELS[3:5])
    np.savez(folder / "labels.npz", fine=[0, 1])
    assert_found(
        "stacked-images",
        [
            ("train_001.webp", None, "holds 2 images, but train_000.webp holds 3"),
            ("labels.npz", None, "'fine' has 2 labels, but there are 6 images"),
        ],
        **options(folder),
        num_labels=2,
    )


def test_a_folder_without_such_files_is_reported(folder):
    wrong = {**options(folder), "pattern": "test_*"}
    assert_found("stacked-images", [(folder.name, None, "there are no files 'test_*'")], **wrong, num_labels=3)
    assert read_stacked_images(**options(folder)).vocabulary == ("0", "1", "2")


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")
def test_the_shared_cifar100_images_are_read(tmp_path):
    data = read_stacked_images(
        SHARED / "cifar100" / "images",
        pattern="test_*.webp",
        labels=SHARED / "cifar100" / "labels.npz",
        labels_key="test_fine",
        vocabulary_key="fine_names",
        groups_key="fine_to_coarse",
        group_names_key="coarse_names",
    )
    assert (len(data), data.in_shape, data.num_labels) == (2000, (3, 32, 32), 100)
    assert data.vocabulary[data.target[0]] == "mountain"
    # the first test image of CIFAR-100: a blue sky above a mountain
    red, _, blue = data.inputs[0][:8].reshape(-1, 3).mean(0)
    assert blue > red
