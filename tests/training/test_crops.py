"""Prediction from several crops."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from shortlist.data import Dataset, Images
from shortlist.functional import multi_crop_probabilities
from shortlist.objectives import build
from shortlist.training.crops import combined, crops_of, larger
from shortlist.training.learner import Learner, score


class Corner(nn.Module):
    """Features: the pixel in the upper left corner."""

    out_features = 3

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs[:, :, 0, 0]


def test_crops_are_the_corners_the_middle_and_their_mirror_images() -> None:
    image = torch.arange(36.0).view(1, 1, 6, 6)
    found = crops_of(image, (4, 4), 10)[0, :, 0]
    assert found[:5, 0, 0].tolist() == [0, 2, 12, 14, 7]
    assert torch.equal(found[5:], found[:5].flip(2))
    assert torch.equal(crops_of(image, (4, 4), 5)[0, :, 0], found[:5])


def test_the_scores_of_all_crops_decide() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    data = Dataset(Images(pixels), torch.arange(6) % 4, tuple("abcd"))
    learner = Learner(Corner(), build("smooth-topk", {"k": 2}, in_features=3, num_labels=4))
    found = score(learner, data, batch_size=20, crops=10)
    crops = crops_of(data.batch(torch.arange(6))[0], (16, 16), 10)
    by_crop = learner.scores(crops.flatten(0, 1)).detach().unflatten(0, (6, 10))
    torch.testing.assert_close(found.exp() * 2, multi_crop_probabilities(by_crop, 2))
    assert not torch.allclose(found.softmax(-1), score(learner, data).softmax(-1))


def test_files_are_decoded_larger(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    data = Dataset(Images.from_files([tmp_path / "a.png"], 28, True), torch.tensor([0]), ("a",))
    assert larger(data).in_shape == (3, 32, 32)
    middle = crops_of(larger(data).batch(torch.tensor([0]))[0], (28, 28), 5)[:, 4]
    torch.testing.assert_close(middle, data.batch(torch.tensor([0]))[0], rtol=0, atol=0.1)  # what one crop shows


def test_probabilities_of_labels_by_themselves_are_averaged_and_none_are_left_alone() -> None:
    crops = torch.randn(3, 5, 7) * 30
    torch.testing.assert_close(combined(crops[:, :1], "sigmoid", 1), crops[:, 0])
    torch.testing.assert_close(combined(crops, "sigmoid", 1).sigmoid(), crops.sigmoid().mean(1))
    torch.testing.assert_close(combined(crops, "none", 1), crops.mean(1))


def test_crops_of_features_are_refused() -> None:
    learner = Learner(nn.Identity(), build("cross-entropy", in_features=3, num_labels=2))
    with pytest.raises(ValueError, match="crops are of images, the data has features: set crops=1"):
        score(learner, Dataset(torch.eye(3), torch.tensor([0, 1, 1]), ("a", "b")), crops=5)
