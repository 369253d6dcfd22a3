"""PASCAL VOC."""

import pytest
import torch

from shortlist.data import read_voc
from tests.data.readers.made_files import assert_found, image, text, truncated


@pytest.fixture
def voc(tmp_path):
    root = tmp_path / "VOCdevkit" / "VOC2012"
    main = root / "ImageSets" / "Main"
    text(main / "train.txt", "2008_000008\n2008_000015\n2008_000019\n")
    text(main / "val.txt", "2008_000002\n")
    # the official files align the numbers with two spaces
    text(main / "aeroplane_train.txt", "2008_000008 -1\n2008_000015  1\n2008_000019  0\n")
    text(main / "horse_train.txt", "2008_000008  1\n2008_000015 -1\n2008_000019 -1\n")
    text(main / "aeroplane_val.txt", "2008_000002  1\n")
    text(main / "aeroplane_trainval.txt", "2008_000002  1\n2008_000008 -1\n")
    for name in ("2008_000008", "2008_000015", "2008_000019", "2008_000002"):
        image(root / "JPEGImages" / f"{name}.jpg")
    return root


def test_labels_are_present_absent_or_unknown_where_all_objects_are_difficult(voc):
    data = read_voc(voc, size=16)
    assert data.vocabulary == ("aeroplane", "horse")
    assert data.target.tolist() == [[0, 1], [1, 0], [-1, 0]]
    assert data.ids == ("2008_000008", "2008_000015", "2008_000019")
    assert data.batch(torch.tensor([2, 0]))[0].shape == (2, 3, 16, 16)


def test_each_part_reads_its_own_lists(voc):
    data = read_voc(voc, part="val")
    assert (data.vocabulary, data.target.tolist(), data.name) == (("aeroplane",), [[1]], "voc2012-val")


def test_every_problem_is_found_in_one_pass(voc):
    main = voc / "ImageSets" / "Main"
    text(main / "train.txt", "2008_000008\n2008_000015\n2008_000019\n2008_000008\n2008_999999\n")
    text(main / "horse_train.txt", "2008_000008  1\n2008_000015 2\n2008_000019 -1\n2008_000019 -1\n2010_000001 1\n")
    truncated(voc / "JPEGImages" / "2008_000015.jpg")
    assert_found(
        "voc",
        [
            ("train.txt", 4, "the image 2008_000008 is a duplicate"),
            ("train.txt", 5, "no such image"),
            ("train.txt", 2, "cannot decode the image"),
            ("horse_train.txt", 2, "1, -1 or 0 (difficult), got '2008_000015 2'"),
            ("horse_train.txt", 4, "duplicate"),
            ("horse_train.txt", 5, "not in the list of images"),
            ("horse_train.txt", None, "1 images have no label here, the first is 2008_999999"),
            ("aeroplane_train.txt", None, "1 images have no label here"),
        ],
        path=voc,
    )


def test_a_folder_that_is_not_voc_is_reported(tmp_path):
    expected = [("train.txt", None, "no such file"), ("Main", None, "there are no label files")]
    assert_found("voc", expected, path=tmp_path)
