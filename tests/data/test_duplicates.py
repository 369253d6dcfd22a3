"""The same example in two parts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image

from shortlist.data import Dataset, Images, shared_examples
from shortlist.data.duplicates import labelled_otherwise
from shortlist.data.table_rows import TableRows

ROWS = np.array([[1, 0, 2], [0, 3, 0], [1, 0, 2], [4, 4, 4]], dtype=np.float32)


def dataset(inputs, ids=None):
    return Dataset(inputs, torch.zeros(len(ids) if ids else inputs.shape[0], dtype=torch.int64), ("a",), ids=ids)


@pytest.mark.parametrize("form", [torch.from_numpy, scipy.sparse.csr_matrix])
def test_rows_with_the_same_features_are_named(form):
    inputs = form(ROWS)
    one = dataset(inputs[[0, 1]])
    two = dataset(inputs[[2, 3, 0]], ids=("x", "y", "z"))
    (shared,) = shared_examples({"train": one, "test": two})
    assert shared == ("test", "train", 2, (("x", "row 0"), ("z", "row 0")))
    assert shared_examples({"train": one, "test": dataset(inputs[[3]])}) == []


def test_every_pair_of_parts_is_compared_and_three_examples_are_shown():
    parts = {name: dataset(torch.zeros(5, 2)) for name in ("train", "validation", "test")}
    found = shared_examples(parts)
    assert [(one.part, one.other, one.total) for one in found] == [
        ("validation", "train", 5), ("test", "train", 5), ("test", "validation", 5)
    ]  # fmt: skip
    assert str(found[0]) == (
        "5 of the examples in validation are in train too (row 0 = row 0, row 1 = row 0, row 2 = row 0, ...)"
    )


def test_pixels_in_memory_are_compared():
    pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    one, two = dataset(Images(pixels), ids=("a", "b")), dataset(Images(pixels[1:].copy()), ids=("c",))
    assert shared_examples({"train": one, "test": two})[0].examples == (("c", "b"),)


def test_image_files_are_compared_by_their_bytes_under_any_name(tmp_path):
    for number in range(3):
        Image.fromarray(np.full((4, 4, 3), 50 * number, np.uint8)).save(tmp_path / f"{number}.bmp")
    (tmp_path / "copy.bmp").write_bytes((tmp_path / "1.bmp").read_bytes())

    def part(*names):
        return dataset(Images.from_files([tmp_path / name for name in names], 4, False), ids=names)

    (shared,) = shared_examples({"train": part("0.bmp", "1.bmp"), "test": part("2.bmp", "copy.bmp")})
    assert (shared.total, shared.examples) == (1, (("copy.bmp", "1.bmp"),))


def test_images_with_another_label_are_told_within_a_part_and_between_parts():
    pixels = np.arange(5, dtype=np.uint8).reshape(5, 1, 1, 1).repeat(3, axis=3)
    images = Images(np.concatenate([pixels, pixels[:3]]))
    whole = Dataset(images, torch.tensor([0, 0, 0, 0, 0, 1, 0, -1]), ("cat", "dog"), ids=tuple("abcdefgh"))
    (said,) = labelled_otherwise({"train": whole})
    assert said.startswith("1 image is there again with another label (f = a): mend them, or, if an image may have")
    assert labelled_otherwise({"train": whole.subset([0, 1, 2]), "test": whole.subset([5, 6, 7])}) == [said]
    assert labelled_otherwise({"train": whole.subset([0, 1, 2]), "test": whole.subset([6, 7])}) == []


def test_rows_of_a_table_have_one_mark_where_pandas_finds_them_alike():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{place}": draw.integers(0, 2, 300) for place in range(4)})
    frame["big"] = 2**60 + draw.integers(0, 2, 300)  # one float
    frame["part"] = np.where(draw.random(300) < 0.5, np.nan, 0.5)
    frame["name"] = draw.choice(["oak", None], 300)
    marks = pd.Series(TableRows(frame).marks())
    assert 0 < marks.duplicated().sum() < 299
    np.testing.assert_array_equal(marks.duplicated(), frame.duplicated())
