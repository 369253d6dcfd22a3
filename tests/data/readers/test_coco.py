"""COCO instances."""

import json

import pytest

from shortlist import ShortlistError, runs
from shortlist.data import read_coco
from shortlist.runs.guess import guess_source
from tests.data.readers.made_files import assert_found, found, image, text, truncated


def content():
    return {
        "info": {"year": 2014},
        "images": [
            {"id": 9, "file_name": "COCO_train2014_000000000009.jpg", "height": 480, "width": 640},
            {"id": 25, "file_name": "COCO_train2014_000000000025.jpg", "height": 426, "width": 640},
        ],
        "annotations": [
            {"id": 1, "image_id": 9, "category_id": 90, "iscrowd": 0, "bbox": [1, 2, 3, 4], "area": 12.0},
            {"id": 2, "image_id": 9, "category_id": 90, "iscrowd": 0, "bbox": [5, 2, 3, 4], "area": 12.0},
            {"id": 3, "image_id": 9, "category_id": 1, "iscrowd": 1, "bbox": [5, 2, 3, 4], "area": 12.0},
        ],
        "categories": [
            {"id": 90, "name": "toothbrush", "supercategory": "indoor"},
            {"id": 1, "name": "person", "supercategory": "person"},
            {"id": 2, "name": "bicycle", "supercategory": "vehicle"},
        ],
    }


@pytest.fixture
def folder(tmp_path):
    for listed in content()["images"]:
        image(tmp_path / "train2014" / listed["file_name"])
    text(tmp_path / "instances.json", json.dumps(content()))
    return tmp_path


def test_a_category_is_present_where_there_is_an_object_of_it(folder):
    data = read_coco(folder / "instances.json", images=folder / "train2014")
    assert data.vocabulary == ("person", "bicycle", "toothbrush")
    assert data.target.tolist() == [[1, 0, 1], [0, 0, 0]]
    assert [data.group_names[group] for group in data.groups] == ["person", "vehicle", "indoor"]


def test_a_file_without_annotations_has_no_labels_present(folder):
    empty = {**content(), "annotations": []}
    text(folder / "instances.json", json.dumps(empty))
    assert read_coco(folder / "instances.json", images=folder / "train2014").target.tolist() == [[0, 0, 0]] * 2


def test_every_problem_is_found_in_one_pass(folder):
    broken = content()
    broken["images"] += [
        {"id": 9, "file_name": "again.jpg"},
        {"id": 30, "file_name": "nowhere.jpg"},
        {"id": 31, "file_name": "COCO_train2014_000000000009.jpg"},
        {"id": 32},
    ]
    broken["annotations"] += [{"id": 4, "image_id": 77, "category_id": 12}, "no object"]
    broken["categories"] += [{"id": 2, "name": "bike"}, {"name": "car"}]
    text(folder / "instances.json", json.dumps(broken))
    truncated(folder / "train2014" / "COCO_train2014_000000000025.jpg")
    file = "instances.json"
    assert_found(
        "coco",
        [
            (file, 2, "images[2] has the id 9, a duplicate of images[0]"),
            (file, 3, "no such image"),
            (file, 4, "is a duplicate, seen before at"),
            (file, 5, "images[5] has no text 'file_name'"),
            (file, 1, "cannot decode the image"),
            (file, 3, "annotations[3] is of an image that is not listed, 77"),
            (file, 3, "annotations[3] is of the category 12, which is outside the vocabulary"),
            (file, 4, "annotations[4] is of an image that is not listed, None"),
            (file, 4, "annotations[4] is of the category None"),
            (file, 3, "categories[3] has the id 2, a duplicate of categories[2]"),
            (file, 4, "categories[4] has no whole number 'id'"),
        ],
        path=folder / "instances.json",
        images=folder / "train2014",
    )


@pytest.mark.parametrize(
    ("written", "message"), [('{"images": [', "is not JSON"), ("[]", "must be a JSON object"), ("{}", "a list of")]
)
def test_a_file_that_is_not_coco_is_reported(folder, written, message):
    problems = found("coco", path=text(folder / "bad.json", written), images=folder)
    assert problems
    assert all(message in problem[2] for problem in problems)


def test_fit_knows_the_file_and_asks_for_the_images(folder):
    """Its longest list of objects was read as a table before, and a model of its boxes was trained."""
    path = folder / "instances.json"
    guess = guess_source(path, images=folder / "train2014")
    assert guess.images
    assert guess.source == {"reader": "coco", "path": str(path), "images": str(folder / "train2014")}
    with pytest.raises(ShortlistError, match="it holds COCO's annotations: give the folder of the images, --images"):
        guess_source(path)
    with pytest.raises(ShortlistError, match="it has no columns for --labels: the labels are COCO's categories"):
        guess_source(path, images=folder, labels=["category_id"])
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert guess_source(path, images=folder / "train2014") == guess


def test_a_run_on_such_a_file_is_evaluated_on_and_predicts_another_one(folder):
    source = {"reader": "coco", "path": str(folder / "instances.json"), "images": str(folder / "train2014"), "size": 8}
    data = {"train": source, "validation": 1, "calibration": None}
    config = {"data": data, "backbone": {"name": "mlp", "hidden": [4]}, "objective": "binary", "epochs": 1}
    run = runs.train(config, folder / "run")["run"]
    text(folder / "new.json", json.dumps(content()))
    assert runs.evaluate(run, folder / "new.json")["judged"]["labels"] == 6
    (folder / "train2014").rename(folder / "moved")
    done = runs.predict(run, folder / "new.json", images=folder / "moved", rule="top-k:k=1")
    assert [one["id"] for one in done["first"]] == [one["file_name"] for one in content()["images"]]
