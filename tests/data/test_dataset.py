"""Dataset and the memory-mapped rows it may hold."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from shortlist import labels
from shortlist.data import Dataset, Images, MappedRows
from shortlist.labels import LabelSets

FEATURES = torch.arange(12.0).reshape(4, 3)
INDICES = torch.tensor([1, 0, -1, 1])
MATRIX = torch.tensor([[1, 0], [0, 1], [-1, -1], [0, 0]])
NAMES = ("cat", "dog")


def every_kind_of_features():
    array = FEATURES.numpy()
    return {"tensor": FEATURES, "half": FEATURES.half(), "mapped": MappedRows(array), "csr": sp.csr_matrix(array)}


@pytest.mark.parametrize("kind", every_kind_of_features())
def test_features_of_every_kind_give_the_same_batches_and_subsets(kind):
    data = Dataset(every_kind_of_features()[kind], INDICES, NAMES)
    for index in (torch.tensor([2, 0, 2]), torch.tensor([], dtype=torch.int64)):
        inputs, target = data.batch(index)
        assert inputs.dtype == torch.float32
        assert torch.equal(inputs, FEATURES[index])
        assert torch.equal(target, INDICES[index])
    smaller = data.subset([3, 1]).subset([1])
    assert torch.equal(smaller.batch(torch.tensor([0]))[0], FEATURES[1:2])
    assert (data.kind, data.in_shape, data.in_features) == ("features", (3,), 3)


@pytest.mark.parametrize("index", [[0, 3], torch.tensor([0, 3]), np.array([True, False, False, True]), slice(0, 4, 3)])
def test_a_subset_takes_positions_a_mask_or_a_slice_and_keeps_everything_in_step(index):
    truth = LabelSets.from_lists([[0], [1], [], [0, 1]], 2)
    data = Dataset(FEATURES, MATRIX, NAMES, truth=truth, ids=("a", "b", "c", "d")).subset(index)
    assert torch.equal(data.inputs, FEATURES[[0, 3]])
    assert data.target.tolist() == [[1, 0], [0, 0]]
    assert (data.ids, data.truth.to_lists()) == (("a", "d"), [[0], [0, 1]])


def test_images_are_decoded_and_normalised_in_a_batch():
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    data = Dataset(Images(pixels, mean=(0.5, 0.4, 0.3), std=(0.1, 0.2, 0.3)), INDICES, NAMES)
    inputs, _ = data.batch(torch.tensor([3]))
    expected = (pixels[3] / 255 - [0.5, 0.4, 0.3]) / [0.1, 0.2, 0.3]
    assert torch.allclose(inputs[0], torch.from_numpy(expected).permute(2, 0, 1).float(), atol=1e-5)
    assert (data.kind, data.in_shape, data.in_features) == ("images", (3, 5, 6), 90)
    assert np.array_equal(data.subset([2]).inputs[0], pixels[2])


def test_a_description_counts_labels_and_what_is_unknown():
    single = Dataset(FEATURES, INDICES, NAMES).describe()
    assert single["label_counts"] == {"cat": 1, "dog": 2}
    assert (single["target"], single["share_unknown"], single["cardinality"]) == ("indices", 0.25, 0.75)
    several = Dataset(FEATURES, MATRIX, NAMES).describe()
    assert (several["share_unknown"], several["cardinality"], several["target"]) == (0.25, 0.5, "label-matrix")


def test_the_description_of_an_empty_data_set_divides_by_nothing():
    described = Dataset(FEATURES, INDICES, NAMES).subset([]).describe()
    assert (described["examples"], described["cardinality"], described["share_unknown"]) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": torch.tensor([0, 1, 2, 0])}, r"target\[2\] is 2: allowed are 0..1, or -1"),
        ({"target": torch.tensor([0, 1])}, "target has 2 rows for 4 inputs"),
        ({"target": torch.tensor([0.0, 1, 1, 1])}, "class indices"),
        ({"target": torch.zeros(4, 3)}, r"label matrix \(N, 2\), got shape \(4, 3\)"),
        ({"target": torch.full((4, 2), 5)}, r"x\[0, 0\] is 5"),
        ({"vocabulary": ("cat", "cat")}, "names must differ"),
        ({"ids": ("a",)}, "ids has 1 rows"),
        ({"truth": LabelSets.from_lists([[0]] * 4, 3)}, "truth has 3 labels"),
        ({"groups": torch.tensor([0])}, r"groups must be int64 of shape \(2,\)"),
        ({"groups": torch.tensor([0, 1]), "group_names": ("x",)}, "groups go to 1, but there are 1 group_names"),
        ({"groups": torch.tensor([0, -1])}, "groups must be 0 or more"),
        ({"inputs": torch.zeros(4)}, r"inputs must be features of shape \(N, D\)"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(change, message):
    parts = {"inputs": FEATURES, "target": INDICES, "vocabulary": NAMES}
    with pytest.raises(ValueError, match=message):
        Dataset(**{**parts, **change})


def test_a_position_that_is_not_there_is_refused():
    with pytest.raises(IndexError):
        Dataset(FEATURES, INDICES, NAMES).subset([4])


def test_a_data_set_survives_pickling_as_data_loaders_need():
    data = pickle.loads(pickle.dumps(Dataset(FEATURES, MATRIX, NAMES)))
    assert torch.equal(data.inputs, FEATURES)
    assert torch.equal(data.target, MATRIX)


def test_a_label_matrix_converted_from_indices_is_taken_as_it_is():
    data = Dataset(FEATURES, labels.from_indices(INDICES, 2), NAMES)
    assert data.target.tolist() == [[0, 1], [1, 0], [-1, -1], [0, 1]]


def test_rows_of_a_memory_map_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", FEATURES.numpy())
    mapped = MappedRows(np.load(tmp_path / "x.npy", mmap_mode="r"))
    smaller = mapped.subset([3, 0]).subset([1])
    assert isinstance(smaller.source, np.memmap)
    assert smaller[0:1].tolist() == FEATURES[:1].tolist()
    assert (smaller.shape, smaller.dtype) == ((1, 3), np.float32)


@pytest.mark.parametrize(
    "inputs", [torch.eye(3), MappedRows(np.eye(3)), Images(np.zeros((3, 2, 2, 3), dtype=np.uint8))]
)
def test_an_example_that_is_not_there_is_called_an_example(inputs):
    data = Dataset(inputs, torch.tensor([0, 1, 1]), ("cat", "dog"))
    with pytest.raises(IndexError, match="there is no example 7: there are 3"):
        data.subset([7])
    with pytest.raises(IndexError, match="the mask has 2 entries for 3 examples"):
        data.subset([True, False])
