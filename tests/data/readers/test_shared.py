"""The shared real data, through the readers' options alone."""

import pytest
import torch

from shortlist.data import read
from tests.data.readers.made_files import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")


@pytest.mark.parametrize(
    ("name", "examples", "features", "labels", "cardinality"),
    [("emotions", 391, 72, 6, 1.81), ("bibtex", 4880, 1836, 159, 2.38), ("corel5k", 4500, 499, 374, 3.52)],
)
def test_mulan(name, examples, features, labels, cardinality):
    path = SHARED / "mulan_multilabel" / f"{name}.npz"
    data = read("features", path=path, inputs_key="X_train", labels_key="Y_train", vocabulary_key="label_names")
    assert (len(data), data.in_features, data.num_labels) == (examples, features, labels)
    assert data.describe()["cardinality"] == pytest.approx(cardinality, abs=0.005)


def test_voc2012_features_with_difficult_objects_unknown():
    folder = SHARED / "voc2012_multilabel"
    data = read(
        "features",
        path=folder / "val_feats_fp16_512.npy",
        labels=folder / "labels.npz",
        labels_key="val_labels",
        unknown_key="val_difficult",
        vocabulary_key="class_names",
        ids_key="val_image_names",
    )
    assert (len(data), data.in_features, data.num_labels) == (5823, 512, 20)
    assert (data.vocabulary[0], data.ids[0]) == ("person", "2008_000002.jpg")
    assert 0 < data.describe()["share_unknown"] < 0.01


def test_cifar100_features_with_coarse_groups_on_disk():
    data = read(
        "features",
        path=SHARED / "cifar100_features" / "train_feats_fp16_256.npy",
        labels=SHARED / "cifar100" / "labels.npz",
        labels_key="train_fine",
        vocabulary_key="fine_names",
        groups_key="fine_to_coarse",
        group_names_key="coarse_names",
        memory_map=True,
    )
    assert data.label_counts().tolist() == [500] * 100
    assert torch.bincount(data.groups).tolist() == [5] * 20
    assert data.batch(torch.tensor([49_999]))[0].shape == (1, 256)
