"""Open Images label files."""

import pytest

from shortlist.data import read_open_images
from tests.data.readers.made_files import assert_found, image, text, truncated

LABELS = """ImageID,Source,LabelName,Confidence
000026e7ee790996,verification,/m/04hgtk,0
000026e7ee790996,verification,/m/07j7r,1
000026e7ee790996,machine,/m/0cvnqh,0.9
000062a39995e348,crowdsource-verification,/m/0cvnqh,1
000062a39995e348,verification,/m/0cvnqh,0
0000c64e1253d68f,crowdsource-verification,/m/07j7r,1
0000c64e1253d68f,verification,/m/07j7r,1
000132c20b84269b,machine,/m/07j7r,0.3
"""
CLASSES = '/m/04hgtk,Head\n/m/07j7r,Tree\n/m/0cvnqh,"Bench, wooden"\n/m/0xyz,Tree\n'
IMAGES = ("000026e7ee790996", "000062a39995e348", "0000c64e1253d68f")


@pytest.fixture
def folder(tmp_path):
    text(tmp_path / "labels.csv", LABELS)
    text(tmp_path / "classes.csv", CLASSES)
    for name in IMAGES:
        image(tmp_path / "train" / f"{name}.jpg")
    return tmp_path


def options(folder):
    return {"path": folder / "labels.csv", "classes": folder / "classes.csv", "images": folder / "train"}


def test_verified_labels_are_known_and_all_others_unknown(folder):
    data = read_open_images(**options(folder))
    assert data.vocabulary == ("Head", "Tree", "Bench, wooden", "Tree (/m/0xyz)")
    assert data.ids == IMAGES  # the last one has no verified label
    # two people who disagree leave the label of the second image unknown
    assert data.target.tolist() == [[0, 1, -1, -1], [-1, -1, -1, -1], [-1, 1, -1, -1]]


def test_the_class_file_may_have_a_header(folder):
    text(folder / "classes.csv", "LabelName,DisplayName\n" + CLASSES)
    assert read_open_images(**options(folder)).num_labels == 4


def test_a_vocabulary_keeps_only_its_labels_and_their_images(folder):
    data = read_open_images(**options(folder), vocabulary=["Tree", "Head"])
    assert data.ids == (IMAGES[0], IMAGES[2])
    assert data.target.tolist() == [[1, 0], [1, -1]]


def test_every_problem_is_found_in_one_pass(folder):
    text(
        folder / "labels.csv",
        LABELS
        + "000026e7ee790996,verification,/m/07j7r,1\n"
        + "000026e7ee790996,verification,/m/nothing,1\n"
        + "000026e7ee790996,verification,/m/0xyz,0.7\n"
        + "ffffffffffffffff,verification,/m/07j7r,1\n"
        + "short\n",
    )
    text(folder / "classes.csv", CLASSES + "/m/04hgtk,Head\n")
    truncated(folder / "train" / "000062a39995e348.jpg")
    assert_found(
        "open-images",
        [
            ("classes.csv", 5, "the label /m/04hgtk is a duplicate"),
            ("labels.csv", 10, "duplicate of line 3"),
            ("labels.csv", 11, "the label '/m/nothing' is outside the vocabulary"),
            ("labels.csv", 12, "confidence '0.7'"),
            ("labels.csv", 13, "no such image"),
            ("labels.csv", 14, "has 1 cells"),
            ("labels.csv", 5, "cannot decode the image"),
        ],
        **options(folder),
    )


def test_a_missing_column_or_label_is_reported(folder):
    text(folder / "labels.csv", "ImageID,LabelName\n")
    expected = [("labels.csv", None, "there is no column 'Source'"), ("classes.csv", None, "there is no label 'Cat'")]
    assert_found("open-images", expected, **options(folder), vocabulary=["Cat"])
