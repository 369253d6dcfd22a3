"""The Pl@ntNet-300K layout."""

import json

import pytest

from shortlist.data import read_plantnet
from tests.data.readers.made_files import SHARED, assert_found, found, image, text, truncated

NAMES = {
    "1355868": "Lactuca virosa L.",
    "1355920": "Pelargonium capitatum (L.) L'Hér.",
    "1355932": "Pelargonium graveolens L'Hér.",
    "1999999": "Lactuca virosa L.",
    "1000000": "Rosa canina L.",
}


@pytest.fixture
def plantnet(tmp_path):
    text(tmp_path / "plantnet300K_species_id_2_name.json", json.dumps(NAMES))
    for name in ("train/1355868/a.jpg", "train/1355868/b.jpg", "train/1355932/c.jpg", "train/1999999/d.jpg",
                 "val/1355868/e.jpg", "test/1355920/f.jpg"):  # fmt: skip
        image(tmp_path / "images" / name)
    return tmp_path


def test_labels_are_the_species_of_all_parts_and_groups_their_genera(plantnet):
    data = read_plantnet(plantnet)
    assert data.vocabulary == (
        "Lactuca virosa L. (1355868)",
        "Pelargonium capitatum (L.) L'Hér.",
        "Pelargonium graveolens L'Hér.",
        "Lactuca virosa L. (1999999)",
    )
    assert data.target.tolist() == [0, 0, 2, 3]
    assert [data.group_names[group] for group in data.groups] == ["Lactuca", "Pelargonium", "Pelargonium", "Lactuca"]


def test_every_part_has_the_same_labels(plantnet):
    test = read_plantnet(plantnet, part="test")
    assert test.vocabulary == read_plantnet(plantnet).vocabulary
    assert (test.target.tolist(), test.ids) == ([1], ("test/1355920/f.jpg",))


def test_every_problem_is_found_in_one_pass(plantnet):
    truncated(plantnet / "images" / "train" / "1355868" / "half.jpg")
    copy = plantnet / "images" / "train" / "1355868" / "copy.jpg"
    copy.write_bytes((plantnet / "images" / "train" / "1355868" / "b.jpg").read_bytes())
    image(plantnet / "images" / "val" / "42" / "x.jpg")
    names = "plantnet300K_species_id_2_name.json"
    assert_found(
        "plantnet",
        [
            ("half.jpg", None, "cannot decode the image"),
            ("copy.jpg", None, "is a duplicate"),
            (names, None, "there is no name for the species 42"),
        ],
        path=plantnet,
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "must be a JSON object, got list"), ('{"1": 2}', "must be a JSON object from species ids to names")],
)
def test_a_file_of_names_that_is_not_one_is_reported(plantnet, content, message):
    names = text(plantnet / "plantnet300K_species_id_2_name.json", content)
    assert (names.name, None, message) in found("plantnet", path=plantnet)
    text(names, '{"1355868": ')
    assert found("plantnet", path=plantnet)[0][2].startswith("is not JSON")


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")
def test_the_official_names_are_read(tmp_path):
    names = (SHARED / "longtail" / "plantnet300K_species_id_2_name.json").read_text()
    text(tmp_path / "plantnet300K_species_id_2_name.json", names)
    for species in json.loads(names):
        (tmp_path / "images" / "test" / species).mkdir(parents=True)
    image(tmp_path / "images" / "test" / "1355868" / "a.jpg")
    data = read_plantnet(tmp_path, part="test")
    assert (data.num_labels, data.vocabulary[data.target[0]]) == (1088, "Lactuca virosa L.")
