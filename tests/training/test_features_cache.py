"""Features of a backbone on disk."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from shortlist.data import Dataset, Images, MappedRows
from shortlist.errors import ShortlistError
from shortlist.training.features_cache import cached_features
from tests.data.readers.made_files import image


class Counting(nn.Module):
    """A backbone that knows how often it ran."""

    def __init__(self, fail_at=None):
        super().__init__()
        self.linear = nn.Linear(12, 5)
        self.drop = nn.Dropout(0.5)
        self.calls = 0
        self.fail_at = fail_at

    def forward(self, inputs):
        self.calls += 1
        if self.calls == self.fail_at:
            raise RuntimeError("the power went out")
        return self.drop(self.linear(inputs.flatten(1)))


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return Counting()


def dataset(inputs=None):
    inputs = torch.arange(120.0).reshape(10, 12) if inputs is None else inputs
    return Dataset(inputs, torch.arange(10) % 2, ("a", "b"))


def test_features_are_those_of_the_backbone_in_evaluation_mode(tmp_path, backbone):
    data = dataset()
    found = cached_features(data, backbone.train(), tmp_path, batch_size=3)
    assert backbone.training
    torch.testing.assert_close(found.inputs, backbone.linear(data.inputs).detach())
    assert torch.equal(found.target, data.target)


def test_the_backbone_runs_once(tmp_path, backbone):
    one = cached_features(dataset(), backbone, tmp_path, batch_size=4)
    assert backbone.calls == 3
    again = cached_features(dataset(), backbone, tmp_path, batch_size=4)
    assert backbone.calls == 3
    assert torch.equal(one.inputs, again.inputs)


def test_other_weights_inputs_or_identities_give_other_files(tmp_path, backbone):
    cached_features(dataset(), backbone, tmp_path)
    cached_features(dataset(), backbone, tmp_path, identity="other options")
    changed = torch.arange(120.0).reshape(10, 12)
    changed[9, 11] += 1
    cached_features(dataset(changed), backbone, tmp_path)
    with torch.no_grad():
        backbone.linear.bias[4] += 1e-6
    cached_features(dataset(), backbone, tmp_path)
    assert len(list(tmp_path.iterdir())) == backbone.calls == 4


def test_labels_do_not_matter(tmp_path, backbone):
    cached_features(dataset(), backbone, tmp_path)
    other = Dataset(dataset().inputs, torch.zeros(10, dtype=torch.int64), ("a", "b"))
    cached_features(other, backbone, tmp_path)
    assert backbone.calls == 1


def test_a_changed_image_file_gives_new_features(tmp_path, backbone):
    paths = [str(image(tmp_path / f"{row}.png", (row, 0, 0))) for row in range(10)]
    images = dataset(Images(paths, size=(2, 2)))
    first = cached_features(images, backbone, tmp_path / "cache")
    image(tmp_path / "9.png", (200, 0, 0))
    second = cached_features(images, backbone, tmp_path / "cache")
    assert torch.equal(first.inputs[:9], second.inputs[:9])
    assert not torch.equal(first.inputs[9], second.inputs[9])
    other_size = dataset(Images(paths, size=(2, 2), mean=(0.5,) * 3))
    assert not torch.equal(cached_features(other_size, backbone, tmp_path / "cache").inputs, second.inputs)


@pytest.mark.parametrize("kind", ["csr", "mapped", "pixels"])
def test_every_kind_of_input_is_told_apart_by_its_content(tmp_path, backbone, kind):
    values = np.arange(120).reshape(10, 12).astype(np.float32)
    other = values.copy()
    other[3, 3] = 100
    make = {"csr": sp.csr_matrix, "mapped": MappedRows, "pixels": lambda x: Images(x.astype("u1").reshape(10, 2, 2, 3))}
    for inputs in (values, values, other):
        cached_features(dataset(make[kind](inputs)), backbone, tmp_path)
    assert backbone.calls == 2


def test_a_failure_leaves_no_file_and_the_next_try_starts_over(tmp_path):
    torch.manual_seed(0)
    backbone = Counting(fail_at=2)
    with pytest.raises(RuntimeError, match="power"):
        cached_features(dataset(), backbone, tmp_path, batch_size=5)
    assert list(tmp_path.iterdir()) == []
    assert cached_features(dataset(), backbone, tmp_path, batch_size=5).inputs.shape == (10, 5)


def test_progress_is_told_after_each_batch(tmp_path, backbone):
    seen = []
    cached_features(dataset(), backbone, tmp_path, batch_size=4, progress=lambda *told: seen.append(told))
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_a_backbone_that_gives_no_features_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must return features \(10, D\), got shape \(10, 12, 1\)"):
        cached_features(dataset(), nn.Unflatten(1, (12, 1)), tmp_path)


def test_images_are_scaled_as_the_backbone_says(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (10, 2, 2, 3), dtype=np.uint8)
    backbone = nn.Flatten()
    backbone.pixel_mean, backbone.pixel_std = (127 / 255,) * 3, (128 / 255,) * 3
    found = cached_features(dataset(Images(pixels)), backbone, tmp_path)
    expected = (torch.from_numpy(pixels).permute(0, 3, 1, 2).flatten(1).double() - 127) / 128
    torch.testing.assert_close(found.inputs.double(), expected, atol=1e-6, rtol=0)


def test_broken_images_are_named_all_at_once_or_left_out(tmp_path, backbone):
    paths = [image(tmp_path / f"{row}.png", size=(2, 2)) for row in range(10)]
    for row in (1, 7):
        (tmp_path / f"{row}.png").write_bytes((tmp_path / f"{row}.png").read_bytes()[:40])
    data = dataset(Images.from_files(paths, 2, False))
    with pytest.raises(ShortlistError, match=r"2 of 10 images cannot be used: mend them.*1\.png.*7\.png"):
        cached_features(data, backbone, tmp_path / "features", batch_size=3)
    broken, calls = {}, backbone.calls
    found = cached_features(data, backbone, tmp_path / "features", batch_size=3, broken=broken)
    assert backbone.calls == calls  # the reasons are found again beside the features that are kept
    assert list(broken) == [str(tmp_path / "1.png"), str(tmp_path / "7.png")]
    kept = found.without_broken()
    assert len(kept) == 8
    assert torch.isfinite(kept.inputs).all()
    assert list(kept.skipped.values()) == list(broken.values())
    assert kept.pictures.source == tuple(str(path) for row, path in enumerate(paths) if row not in (1, 7))
