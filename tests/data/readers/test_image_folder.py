"""A folder of images for each label."""

import pytest

from shortlist.data import read_image_folder
from shortlist.errors import ShortlistWarning
from tests.data.readers.made_files import assert_found, image, text, truncated


@pytest.fixture
def folder(tmp_path):
    for name in ("owl/2.png", "owl/deep/1.JPG", "cat/9.png"):
        image(tmp_path / name)
    text(tmp_path / "owl" / "notes.txt", "not an image")
    text(tmp_path / "owl" / ".hidden.png", "not an image")
    return tmp_path


def test_labels_are_the_folders_and_images_may_lie_deeper(folder):
    data = read_image_folder(folder, size=8)
    assert data.vocabulary == ("cat", "owl")
    assert data.ids == ("cat/9.png", "owl/2.png", "owl/deep/1.JPG")
    assert data.target.tolist() == [0, 1, 1]


def test_a_vocabulary_sets_the_order_and_may_hold_labels_without_images(folder):
    data = read_image_folder(folder, vocabulary=["owl", "emu", "cat"])
    assert data.label_counts().tolist() == [2, 0, 1]


def test_a_folder_that_is_called_unsure_is_a_label_and_told(folder):
    image(folder / "Unsure" / "1.png")
    with pytest.warns(ShortlistWarning, match="'Unsure' is taken as a label: move its folder elsewhere if that means"):
        assert read_image_folder(folder).vocabulary == ("Unsure", "cat", "owl")


def test_every_problem_is_found_in_one_pass(folder):
    truncated(folder / "cat" / "half.png")
    (folder / "cat" / "copy.png").write_bytes((folder / "cat" / "9.png").read_bytes())
    image(folder / "stray.png")
    image(folder / "wolf" / "1.png")
    assert_found(
        "image-folder",
        [
            ("half.png", None, "cannot decode the image"),
            ("copy.png", None, "is a duplicate, seen before at"),
            ("stray.png", None, "in no label's folder"),
            ("wolf", None, "label 'wolf' is outside the vocabulary"),
        ],
        path=folder,
        vocabulary=["cat", "emu", "owl"],
    )


def test_folders_without_images_are_left_out_with_a_note(folder):
    labels = read_image_folder(folder).vocabulary
    for name in ("__MACOSX", "emu"):
        (folder / name).mkdir()
    (folder / "__MACOSX" / "._9.png").write_bytes(b"what an archive of a Mac holds")
    found = read_image_folder(folder)
    assert found.vocabulary == labels
    assert found.notes[0] == "folders without images are left out: '__MACOSX', 'emu'"
    for image_file in [*folder.rglob("*.png"), *folder.rglob("*.JPG")]:
        image_file.unlink()
    assert_found("image-folder", [(folder.name, None, "there are no images in its folders")], path=folder)


def test_no_file_and_no_further_folder_goes_unmentioned(folder):
    image(folder / "cat" / "new.JFIF")
    text(folder / "cat" / "phone.HEIC", "what this Pillow does not read")
    for other in ("Thumbs.db", "scan", "scan2"):
        text(folder / "cat" / other, "no image")
    found = read_image_folder(folder)
    assert found.ids == ("cat/9.png", "cat/new.JFIF", "cat/phone.HEIC", "owl/2.png", "owl/deep/1.JPG")
    assert found.notes == (
        "images in further folders count for the label's: 'deep'",
        "files that are no images by their names are left out: 2 without an ending, 1 .txt",
    )


def test_hidden_folders_are_no_part_of_a_labels_and_links_to_folders_are(folder, tmp_path_factory):
    image(folder / "cat" / ".trash" / "3.png")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    image(elsewhere / "4.png")
    (folder / "cat" / "more").symlink_to(elsewhere, target_is_directory=True)
    (folder / "cat" / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "owl" / "deep" / "loop").symlink_to(folder / "owl", target_is_directory=True)
    assert read_image_folder(folder).ids == ("cat/9.png", "cat/more/4.png", "owl/2.png", "owl/deep/1.JPG")


def test_a_link_to_nothing_is_an_image_that_is_not_there(folder):
    (folder / "cat" / "gone.png").symlink_to(folder / "nowhere.png")
    assert read_image_folder(folder).ids[:2] == ("cat/9.png", "cat/gone.png")
    assert_found("image-folder", [("gone.png", None, "no such image")], path=folder)


def test_a_missing_or_empty_folder_is_reported(tmp_path):
    assert_found("image-folder", [("no", None, "no such folder")], path=tmp_path / "no")
    text(tmp_path / "images.csv", "path,label")
    assert_found("image-folder", [("images.csv", None, "is a file, not a folder")], path=tmp_path / "images.csv")
    (tmp_path / "empty").mkdir()
    assert_found("image-folder", [("empty", None, "there is no folder in this folder")], path=tmp_path / "empty")
