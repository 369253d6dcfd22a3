"""COCO's captions: the most frequent words as labels."""

import json

import pytest

from shortlist.data import read_coco_words
from tests.data.readers.made_files import assert_found, image, text, truncated

FILES = ("COCO_train2014_000000000009.jpg", "COCO_train2014_000000000025.jpg")


def content():
    said = {
        9: ["A man's dog on a bench.", "The DOG sits, alone", "a T-shirt and a dog"],
        25: ["A cat next to a dog-house", "cat!", "A cat on the bench"],
    }
    numbered = [(image_id, caption) for image_id, captions in said.items() for caption in captions]
    return {
        "info": {"year": 2014},
        "images": [{"id": i, "file_name": name, "height": 8, "width": 12} for i, name in zip(said, FILES, strict=True)],
        "annotations": [{"id": n, "image_id": i, "caption": caption} for n, (i, caption) in enumerate(numbered)],
    }


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        image(tmp_path / "train2014" / name)
    text(tmp_path / "captions.json", json.dumps(content()))
    return tmp_path


def read(folder, **options):
    return read_coco_words(folder / "captions.json", images=folder / "train2014", **options)


def test_the_most_frequent_words_are_the_labels_and_present_where_a_caption_has_them(folder):
    data = read(folder, words=6)
    assert data.vocabulary == ("a", "cat", "dog", "bench", "on", "the")  # 7, 3, 3, 2, 2, 2 times
    assert data.target.tolist() == [[1, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1]]
    assert data.ids == FILES


def test_words_may_have_to_be_in_several_captions_and_the_others_be_unknown(folder):
    data = read(folder, words=4, captions=2, unmentioned="unknown")
    assert data.vocabulary == ("a", "cat", "dog", "bench")
    assert data.target.tolist() == [[1, -1, 1, -1], [1, 1, -1, -1]]


def test_test_data_has_the_words_of_the_training_captions(folder):
    fewer = {**content(), "annotations": [{"id": 1, "image_id": 25, "caption": "Nothing but a cat"}]}
    text(folder / "val.json", json.dumps(fewer))
    data = read_coco_words(
        folder / "val.json", images=folder / "train2014", words=3, vocabulary=folder / "captions.json"
    )
    assert data.vocabulary == ("a", "cat", "dog")
    assert data.target.tolist() == [[0, 0, 0], [1, 1, 0]]


def test_words_may_come_from_a_list_with_what_stands_behind_a_comma_left_out(folder):
    text(folder / "words.txt", "dog, NN, 12649\ncat, NN, 11720\nt-shirt, NN, 12\n")
    data = read(folder, vocabulary=folder / "words.txt")
    assert data.vocabulary == ("dog", "cat", "t-shirt")
    assert data.target.tolist() == [[1, 0, 1], [0, 1, 0]]
    text(folder / "words.txt", "dog\n, NN\nDog\n")
    options = {"path": folder / "captions.json", "images": folder / "train2014", "vocabulary": folder / "words.txt"}
    found = [("words.txt", 2, "there is no word before"), ("words.txt", 3, "the word 'dog' is a duplicate of line 1")]
    assert_found("coco-words", found, **options)


def test_every_problem_is_found_in_one_pass(folder):
    broken = content()
    broken["images"] += [{"id": 9, "file_name": "again.jpg"}, {"id": 30, "file_name": "nowhere.jpg"}]
    broken["annotations"] += [{"image_id": 77, "caption": "x"}, {"image_id": 9}, "no caption"]
    text(folder / "captions.json", json.dumps(broken))
    truncated(folder / "train2014" / FILES[1])
    file = "captions.json"
    assert_found(
        "coco-words",
        [
            (file, 1, "cannot decode the image"),
            (file, 2, "images[2] has the id 9, a duplicate of images[0]"),
            (file, 3, "no such image"),
            (file, 6, "annotations[6] is of an image that is not listed, 77"),
            (file, 7, "annotations[7] has no whole number 'image_id', or no text 'caption'"),
            (file, 8, "annotations[8] has no whole number 'image_id', or no text 'caption'"),
        ],
        path=folder / "captions.json",
        images=folder / "train2014",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": 0}, "words must be"),
        ({"unmentioned": "maybe"}, "unmentioned must be one of 'absent', 'unknown'"),
    ],
)
def test_options_out_of_range_are_errors(folder, options, message):
    with pytest.raises(ValueError, match=message):
        read(folder, **options)
