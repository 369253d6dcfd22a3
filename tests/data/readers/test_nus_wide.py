"""NUS-WIDE lists."""

import pytest

from shortlist.data import read_nus_wide
from tests.data.readers.made_files import assert_found, image, text, truncated


@pytest.fixture
def nus(tmp_path):
    text(tmp_path / "ConceptsList" / "Concepts81.txt", "airport\nanimal\n")
    text(tmp_path / "ImageList" / "TrainImagelist.txt", "actor\\0001_2124494179.jpg\nadult\\0002_174174086.jpg\n")
    text(tmp_path / "ImageList" / "TestImagelist.txt", "zoo\\0003_1.jpg\n")
    labels = tmp_path / "Groundtruth" / "TrainTestLabels"
    text(labels / "Labels_airport_Train.txt", "0\n1\n")
    text(labels / "Labels_animal_Train.txt", "1\n1\n")
    text(labels / "Labels_airport_Test.txt", "1\n")
    text(labels / "Labels_animal_Test.txt", "0\n")
    for name in ("actor/0001_2124494179.jpg", "adult/0002_174174086.jpg", "zoo/0003_1.jpg"):
        image(tmp_path / "Flickr" / name)
    return tmp_path


def test_each_concept_has_its_own_file_of_labels(nus):
    data = read_nus_wide(nus)
    assert data.vocabulary == ("airport", "animal")
    assert data.target.tolist() == [[0, 1], [1, 1]]
    assert data.ids == ("actor/0001_2124494179.jpg", "adult/0002_174174086.jpg")
    assert read_nus_wide(nus, part="test").target.tolist() == [[1, 0]]


def test_labels_and_images_may_lie_elsewhere(nus):
    (nus / "Groundtruth" / "TrainTestLabels").rename(nus / "TrainTestLabels")
    (nus / "ConceptsList" / "Concepts81.txt").rename(nus / "Concepts81.txt")
    (nus / "Flickr").rename(nus / "photos")
    assert read_nus_wide(nus, images=nus / "photos").target.tolist() == [[0, 1], [1, 1]]


def test_images_without_labels_can_be_left_out(nus):
    text(nus / "Groundtruth" / "TrainTestLabels" / "Labels_animal_Train.txt", "0\n1\n")
    assert len(read_nus_wide(nus)) == 2
    data = read_nus_wide(nus, labelled_only=True)
    assert (data.target.tolist(), data.ids) == ([[1, 1]], ("adult/0002_174174086.jpg",))


def test_every_problem_is_found_in_one_pass(nus):
    text(
        nus / "ImageList" / "TrainImagelist.txt",
        "actor\\0001_2124494179.jpg\nadult\\0002_174174086.jpg\nactor\\0001_2124494179.jpg\nno\\9.jpg\n",
    )
    text(nus / "Groundtruth" / "TrainTestLabels" / "Labels_airport_Train.txt", "0\n2\n0\n0\n")
    text(nus / "ConceptsList" / "Concepts81.txt", "airport\nanimal\nbeach\n")
    truncated(nus / "Flickr" / "adult" / "0002_174174086.jpg")
    assert_found(
        "nus-wide",
        [
            ("TrainImagelist.txt", 2, "cannot decode the image"),
            ("TrainImagelist.txt", 3, "duplicate"),
            ("TrainImagelist.txt", 4, "no such image"),
            ("Labels_airport_Train.txt", 2, "label '2'"),
            ("Labels_animal_Train.txt", None, "has 2 labels, but there are 4 images"),
            ("Labels_beach_Train.txt", None, "no such file"),
        ],
        path=nus,
    )
