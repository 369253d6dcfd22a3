"""CUB-200-2011 attributes."""

import pytest

from shortlist.data import DataError, read_cub
from tests.data.readers.made_files import assert_found, image, text, truncated

ALBATROSS = "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg"
NAMES = (ALBATROSS, ALBATROSS.replace("0046_18", "0009_34"), "002.Laysan_Albatross/Laysan_Albatross_0002_1027.jpg")


@pytest.fixture
def cub(tmp_path):
    root = tmp_path / "CUB_200_2011"
    text(root / "images.txt", "".join(f"{number} {name}\n" for number, name in enumerate(NAMES, start=1)))
    text(root / "train_test_split.txt", "1 1\n2 0\n3 1\n")
    attributes = "1 has_bill_shape::dagger\n2 has_bill_shape::hooked_seabird\n3 has_wing_color::blue\n"
    text(tmp_path / "attributes.txt", attributes)  # the archive has it beside the folder
    text(
        root / "attributes" / "image_attribute_labels.txt",
        "1 1 0 3 27.708\n1 2 1 4 27.708\n1 3 0 1 27.708\n"
        "2 1 1 3 2.5\n2 2 0 3 2.5\n2 3 1 2 2.5\n"
        "3 1 1 0 2 4.1\n3 2 0 3 4.1\n",  # one line is too long, as some official ones are, and one is missing
    )
    for name in NAMES:
        image(root / "images" / name)
    return root


def test_attributes_are_labels_and_those_not_given_are_unknown(cub):
    data = read_cub(cub, certainty=1)
    assert data.vocabulary == ("has_bill_shape::dagger", "has_bill_shape::hooked_seabird", "has_wing_color::blue")
    assert data.ids == (NAMES[0], NAMES[2])
    assert data.target.tolist() == [[0, 1, 0], [1, 0, -1]]
    assert (data.groups.tolist(), data.group_names) == ([0, 0, 1], ("has_bill_shape", "has_wing_color"))


def test_the_species_is_the_side_label_and_stays_with_its_image(cub):
    data = read_cub(cub, part="all")
    assert data.side.tolist() == [0, 0, 1]
    assert data.subset([2, 0]).side.tolist() == [1, 0]


def test_parts_are_those_of_the_authors(cub):
    assert read_cub(cub, part="test").target.tolist() == [[1, 0, 1]]
    assert len(read_cub(cub, part="all")) == 3


@pytest.mark.parametrize(
    ("certainty", "target"),
    [(2, [[0, 1, -1], [1, 0, -1]]), (3, [[0, 1, -1], [-1, 0, -1]]), (4, [[-1, 1, -1], [-1, -1, -1]])],
)
def test_labels_of_less_certainty_are_unknown(cub, certainty, target):
    assert read_cub(cub, certainty=certainty).target.tolist() == target


def test_what_was_not_visible_is_unknown_or_absent(cub):
    assert read_cub(cub).target.tolist() == [[0, 1, -1], [1, 0, -1]]
    assert read_cub(cub, not_visible="absent").target.tolist() == [[0, 1, 0], [1, 0, -1]]
    with pytest.raises(ValueError, match="not_visible must be one of 'unknown', 'absent'"):
        read_cub(cub, not_visible="maybe")


@pytest.mark.parametrize(
    ("line", "certainty", "label"),
    [
        ("3 3 1 0 4 9.5", 4, 1),  # a field too many before the certainty
        ("3 3 1 3 0 9.5", 3, 1),  # or behind it
        ("3 3 1 0 0 9.5", 2, 1),  # or no certainty at all: guessed
        ("3 3 1 0 0 9.5", 3, -1),
    ],
)
def test_lines_with_a_field_too_many_keep_their_certainty(cub, line, certainty, label):
    with open(cub / "attributes" / "image_attribute_labels.txt", "a") as file:
        file.write(f"{line}\n")
    assert read_cub(cub, certainty=certainty).target[1, 2] == label


def test_a_certainty_that_there_is_not_is_named_with_its_line(cub):
    with open(cub / "attributes" / "image_attribute_labels.txt", "a") as file:
        file.write("3 3 1 9 2.5\n")
    with pytest.raises(DataError, match=r"labels.txt, line \d+: the certainty must be from 1 to 4, .* 9"):
        read_cub(cub)


def test_every_problem_is_found_in_one_pass(cub):
    with open(cub / "images.txt", "a") as file:
        file.write(f"3 again.jpg\n4 {NAMES[0]}\n5 nowhere.jpg\nsix\n")
    text(cub / "train_test_split.txt", "1 1\n2 0\n3 1\n4 1\n5 2\n")
    with open(cub / "attributes" / "image_attribute_labels.txt", "a") as file:
        file.write("1 1 0 3 1.0\n1 4 0 3 1.0\n9 1 0 3 1.0\n1 2 x 3 1.0\n")
    truncated(cub / "images" / NAMES[2])
    file = "image_attribute_labels.txt"
    assert_found(
        "cub",
        [
            ("images.txt", 3, "cannot decode the image"),
            ("images.txt", 4, "the number 3 is a duplicate of line 3"),
            ("images.txt", 5, "is a duplicate, seen before at"),
            ("images.txt", 6, "no such image"),
            ("images.txt", 7, "a line must be a number and a name"),
            ("train_test_split.txt", None, "image 5 must be 1 (train) or 0 (test)"),
            (file, 9, "attribute 1 of image 1 is a duplicate"),
            (file, 10, "outside what there is: '1 4 0 3 1.0'"),
            (file, 11, "outside what there is: '9 1 0 3 1.0'"),
            (file, 12, "four whole numbers"),
        ],
        path=cub,
    )


@pytest.mark.parametrize("file", ["images.txt", "train_test_split.txt", "attributes.txt"])
def test_an_empty_list_is_named(cub, file):
    place = next(folder / file for folder in (cub, cub / "attributes", cub.parent) if (folder / file).is_file())
    place.write_text("")
    with pytest.raises(DataError, match=f"{file}: there is nothing in it"):
        read_cub(cub)
