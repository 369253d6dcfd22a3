"""What a scorer is given besides what is recorded: files of features and of detections, word vectors, images."""

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from shortlist.data import DataError, read
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError
from shortlist.scenes import Scenes, placed_shapes
from shortlist.scenes.readers.box_table import read_box_table
from shortlist.scenes.readers.given import detected
from shortlist.scenes.stored_rows import StoredRows
from shortlist.scenes.task import SceneTask
from shortlist.scenes.union_boxes import union_boxes

SIZE = 4


def rows_of(data, unions=False):
    """Image, box and three numbers of every object, and of the box around every pair; in another order."""
    images, boxes = [], []
    for row, name in enumerate(data.ids):
        batch, _ = data.inputs.batch(torch.tensor([row]))
        own = data.inputs.subset([row]).boxes
        found = torch.cat([own, union_boxes(own, batch.subjects, batch.objects)]) if unions else own
        images += [name] * len(found)
        boxes.append(found)
    boxes = torch.cat(boxes).numpy()
    order = np.random.default_rng(0).permutation(len(boxes))
    features = np.stack([boxes[:, 0], boxes[:, 3], np.arange(len(boxes))], 1).astype(np.float32)
    return {"image": np.array(images)[order], "box": boxes[order] + 0.4, "features": features[order]}


def written(content, path):
    if path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for key, value in content.items():
                file[key] = np.array(value, dtype="S") if key == "image" else value
    else:
        columns = {key: value.tolist() for key, value in content.items()}
        pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("name", ["seen.npz", "seen.h5", "seen.parquet"])
def test_features_of_boxes_and_of_pairs_are_found_by_image_and_box(name, tmp_path):
    plain = placed_shapes(SIZE)
    path = written(rows_of(plain, unions=True), tmp_path / name)
    scenes = read("placed-shapes", size=SIZE, features=str(path)).inputs
    batch, _ = scenes.batch(torch.tensor([2, 0]))
    whole, _ = plain.inputs.batch(torch.tensor([2, 0]))
    boxes = plain.inputs.subset([2, 0]).boxes
    assert torch.equal(batch.features[:, :2], boxes[:, [0, 3]])
    assert torch.equal(batch.union_features[:, :2], union_boxes(boxes, whole.subjects, whole.objects)[:, [0, 3]])
    assert scenes.shape == (6, 6, 0, 3, 3, 0, 0)
    assert scenes.in_memory == (name != "seen.h5")


def test_a_file_without_union_boxes_gives_features_of_boxes_alone(tmp_path):
    path = written(rows_of(placed_shapes(SIZE)), tmp_path / "seen.npz")
    scenes = placed_shapes(SIZE, features=path).inputs
    assert scenes.union_features is None
    assert scenes.shape == (6, 6, 0, 3)


def test_features_of_an_h5_stay_on_disk(tmp_path):
    path = written(rows_of(placed_shapes(SIZE)), tmp_path / "seen.h5")
    features = placed_shapes(SIZE, features=path).inputs.features
    assert isinstance(features, StoredRows)
    assert features[[3, 1, 1]].float().tolist() == [features[[row]].float()[0].tolist() for row in (3, 1, 1)]


def test_boxes_that_the_file_lacks_are_named(tmp_path):
    content = rows_of(placed_shapes(SIZE))
    content = {key: value[1:] for key, value in content.items()}
    path = written(content, tmp_path / "seen.npz")
    with pytest.raises(DataError, match=r"seen.npz: image 'train-\d': there is no row for the box \["):
        placed_shapes(SIZE, features=path)


def test_some_union_boxes_are_not_enough(tmp_path):
    content = rows_of(placed_shapes(SIZE), unions=True)
    last = content["features"][:, 2].argmax()  # the box around the last pair, and the pair turned round
    keep = (content["box"] != content["box"][last]).any(1)
    path = written({key: value[keep] for key, value in content.items()}, tmp_path / "seen.npz")
    with pytest.raises(DataError, match=r"of the boxes around .* pairs, .* have no row: list all of them, or none"):
        placed_shapes(SIZE, features=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("box"), "it must have 'image' and 'box'"),
        (lambda c: c.update(box=c["box"][:, :3]), r"'box' must be \(rows, 4\)"),
        (lambda c: c["box"].__setitem__((1, 2), 0.0), "xmin < xmax and ymin < ymax must hold"),
        (lambda c: c.update(features=c["features"][1:]), "'features' must be"),
        (lambda c: c.update(features=c["features"][:, :0]), r"'features' must be \(rows, numbers\) .* 0\)"),
        (lambda c: c.update(scores=np.full((len(c["box"]), 3), np.nan)), "must be finite"),
        (lambda c: c.update(features=c["features"].astype("S8")), r"'features' must be numbers, got \|S8"),
        (lambda c: c.update(probabilities=np.full((len(c["box"]), 3), 1.5)), "row 0: the probabilities .* from 0 to 1"),
        (lambda c: c.update(image=c["image"][:, None]), "'image' must be the name or number of one image in each row"),
        (lambda c: c.update(image=np.full(len(c["box"]), b"\xff")), "'image' must be text in UTF-8, or numbers"),
        (lambda c: c.update(box=c["box"].astype(float) * 1e300), "row 0: the box .* finite numbers of 32 bits"),
        (lambda c: c.update(scores=np.full((len(c["box"]), 3), 1e300)), "row 0: the scores .* finite numbers of 32"),
    ],
)
@pytest.mark.parametrize("name", ["seen.npz", "seen.h5"])
def test_what_is_wrong_with_a_file_of_boxes_is_said(name, change, message, tmp_path):
    content = rows_of(placed_shapes(SIZE))
    change(content)
    path = written(content, tmp_path / name)
    with pytest.raises(DataError, match=f"{name}.*{message}"):
        placed_shapes(SIZE, features=path)


@pytest.mark.parametrize("name", ["seen.npz", "seen.h5", "seen.parquet"])
def test_features_that_are_not_finite_are_found(name, tmp_path):
    content = rows_of(placed_shapes(SIZE))
    content["features"][3, 1] = np.nan
    path = written(content, tmp_path / name)
    with pytest.raises(ShortlistError, match=f"{name}, row 3: the features must be finite numbers"):
        placed_shapes(SIZE, features=path).inputs.batch(torch.arange(SIZE))


def test_a_file_without_anything_seen_is_told(tmp_path):
    content = rows_of(placed_shapes(SIZE))
    content.pop("features")
    with pytest.raises(ShortlistError, match=r"seen.npz: it has neither 'features' nor 'scores' or 'probabilities'"):
        placed_shapes(SIZE, features=written(content, tmp_path / "seen.npz"))


def test_data_with_fewer_features_than_the_training_data_is_refused(tmp_path):
    content = rows_of(placed_shapes(SIZE))
    trained = placed_shapes(SIZE, features=written(content, tmp_path / "seen.npz")).inputs.facts()
    fewer = written({**content, "features": content["features"][:, :2]}, tmp_path / "fewer.npz")
    for options, here in (({"features": fewer}, 2), ({}, 0)):
        with pytest.raises(ShortlistError, match=f"test: {here} numbers .* seen in a box, in the training data 3"):
            SceneTask().same_kind(trained, placed_shapes(SIZE, **options), "test")


@pytest.mark.parametrize("key", ["image", "box", "scores", "features"])
def test_a_group_where_an_array_should_be_is_told(key, tmp_path):
    path = written(rows_of(placed_shapes(SIZE)), tmp_path / "seen.h5")
    with h5py.File(path, "r+") as file:
        if key in file:
            del file[key]
        file.create_group(key)
    with pytest.raises(DataError, match=f"seen.h5: '{key}' must be an array, got a group"):
        placed_shapes(SIZE, features=path)


def test_a_detector_in_other_pixels_leaves_nothing_to_learn_from(tmp_path):
    content = rows_of(placed_shapes(SIZE))
    content["box"] = content["box"] + 5000
    content["scores"] = np.zeros((len(content["box"]), len(placed_shapes(SIZE).inputs.class_names)))
    found = placed_shapes(SIZE, task="sgdet", detections=written(content, tmp_path / "found.npz"))
    with pytest.raises(ShortlistError, match=r"no two boxes of the detector lie on .* in the pixels of the reader's"):
        SceneTask().start(torch.nn.Identity(), found)


def test_the_tasks_say_what_they_need(tmp_path):
    with pytest.raises(ShortlistError, match="the task sgdet needs the boxes of a detector: set detections"):
        placed_shapes(SIZE, task="sgdet")
    with pytest.raises(ShortlistError, match="the task predcls goes without detections"):
        placed_shapes(SIZE, detections=tmp_path / "x.npz")
    with pytest.raises(ShortlistError, match=r"got 'sgclas'; did you mean 'sgcls'\?"):
        placed_shapes(SIZE, task="sgclas")
    with pytest.raises(ShortlistError, match="set images to the folder"):
        placed_shapes(SIZE, features={"name": "convnet"})


def test_word_vectors_come_from_a_text_file(tmp_path):
    (tmp_path / "glove.txt").write_text("circle 1 0\nlamp 0 2\nstar 3 3\n")
    scenes = placed_shapes(SIZE, word_vectors=tmp_path / "glove.txt").inputs
    assert scenes.word_vectors.tolist() == [[1, 0], [0, 0], [3, 3], [0, 0], [0, 0], [0, 2]]
    assert scenes.shape == (6, 6, 2, 0)


def test_a_backbone_sees_what_is_in_the_boxes(tmp_path):
    plain = placed_shapes(2)
    for row, name in enumerate(plain.ids):
        canvas = np.zeros((240, 240, 3), np.uint8)
        for x, y, x1, y1 in plain.inputs.subset([row]).boxes.int().tolist()[:1]:
            canvas[y:y1, x:x1] = 255
        Image.fromarray(canvas).save(tmp_path / name, "PNG")
    torch.manual_seed(0)
    options = {"name": "convnet", "widths": [4, 8], "size": 64}
    data = placed_shapes(2, features=options, images=tmp_path)
    assert data.inputs.shape == (6, 6, 0, 8, 8, 0, 0)
    assert data.pictures.source[1].endswith(plain.ids[1])
    features = data.inputs.subset([0]).features
    assert not torch.allclose(features[0], features[-1])
    torch.manual_seed(1)  # the backbone has weights of its own
    assert torch.equal(placed_shapes(2, features=options, images=tmp_path).inputs.features, data.inputs.features)
    with pytest.raises(DataError, match="there is no image 'train-2' in it"):
        placed_shapes(3, images=tmp_path)


# ---- detections


def detections(data, path, extra=1, noise=1.0, classes=6):
    """Every box a little away from its place and rather sure of its class; and some that lie on nothing."""
    random = np.random.default_rng(1)
    images, boxes, scores = [], [], []
    for row, name in enumerate(data.ids):
        own = data.inputs.subset([row])
        for box, number in zip(own.boxes.numpy(), own.classes.tolist(), strict=True):
            images.append(name)
            boxes.append(box + random.normal(0, noise, 4))
            scores.append(np.where(np.arange(classes) == number, 4.0, 0.0))
        for _ in range(extra):
            images.append(name)
            boxes.append(np.array([0.0, 0.0, 3.0, 3.0]))
            scores.append(np.zeros(classes))
    content = {"image": np.array(images), "box": np.stack(boxes), "scores": np.stack(scores)}
    return written(content, path)


@pytest.mark.parametrize("name", ["found.npz", "found.h5", "found.parquet"])
def test_detections_take_classes_and_relations_of_what_they_lie_on(name, tmp_path):
    plain = placed_shapes(SIZE)
    path = detections(plain, tmp_path / name)
    scenes = placed_shapes(SIZE, task="sgdet", detections=path).inputs
    counts = plain.inputs.object_offsets.diff()
    assert (scenes.task, scenes.shape[4:]) == ("sgdet", (0, 1, 1))
    assert scenes.object_offsets.diff().tolist() == (counts + 1).tolist()
    ends = zip(counts, scenes.object_offsets[1:], strict=True)
    own = torch.cat([torch.arange(end - count - 1, end - 1) for count, end in ends])
    assert torch.equal(scenes.classes[own], plain.inputs.classes)
    assert (scenes.classes == 6).sum() == SIZE  # background
    assert torch.equal(scenes.answers_of_relations(), plain.inputs.answers_of_relations())
    assert torch.equal(scenes.recorded.boxes, plain.inputs.boxes)
    assert scenes.class_scores.shape == (len(scenes.classes), 7)
    assert bool((scenes.class_scores[:, 6] == 0).all())  # no worse than the class that is least likely


@pytest.mark.parametrize(("options", "most"), [({}, 64), ({"most_boxes": 9}, 9)])
def test_only_the_best_boxes_of_an_image_are_kept(options, most, tmp_path):
    plain = placed_shapes(SIZE)
    path = detections(plain, tmp_path / "found.npz", extra=100)
    scenes = placed_shapes(SIZE, task="sgdet", detections=path, **options).inputs
    assert scenes.object_offsets.diff().tolist() == [most] * SIZE
    assert (scenes.classes < 6).sum() == len(plain.inputs.classes)  # those that are rather sure
    with pytest.raises(ShortlistError, match="most_boxes must be a whole number of at least 1, got 0"):
        placed_shapes(SIZE, task="sgdet", detections=path, most_boxes=0)


def test_a_detection_stands_for_all_boxes_of_its_class_on_which_it_lies(tmp_path):
    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 10], [0, 1, 10, 10]])  # two men, a hat, a hat
    relations = torch.tensor([[0, 2, 0], [1, 2, 1], [3, 2, 0]])
    recorded = Scenes(boxes, torch.tensor([0, 0, 1, 1]), torch.tensor([0, 4]), relations, torch.tensor([0, 3]),
                      ("man", "hat"), 2, torch.tensor([[40, 40]]))  # fmt: skip
    found = {"image": np.array(["1.jpg"] * 2), "box": boxes[[0, 2]].numpy(), "scores": np.eye(2)}
    table = read_box_table(written(found, tmp_path / "found.npz"), Findings())
    scenes = detected(recorded, ["1.jpg"], table, most=64)
    assert scenes.classes.tolist() == [0, 1]
    assert scenes.relations.tolist() == [[0, 1, 0], [0, 1, 1]]  # not that of the hat under the man


@pytest.mark.parametrize("option", ["detections", "features"])
def test_a_file_of_other_images_is_told_by_the_names_on_both_sides(option, tmp_path):
    path = detections(placed_shapes(SIZE, part="test"), tmp_path / "found.npz")
    task = "sgdet" if option == "detections" else "predcls"
    with pytest.raises(ShortlistError, match=r"it calls its images 'test-0', .*, the data has 'train-0', 'train-1'"):
        placed_shapes(SIZE, task=task, **{option: path})
    with np.load(path) as found:
        np.savez(tmp_path / "none.npz", **{key: values[:0] for key, values in found.items()})
    with pytest.raises(ShortlistError, match=r"none.npz has no boxes of these images: it calls its images nothing"):
        placed_shapes(SIZE, task=task, **{option: tmp_path / "none.npz"})


def test_images_are_found_by_their_numbers_whatever_kind_of_number_that_is(tmp_path):
    box = np.array([[0.0, 0, 4, 4]] * 3)
    for number, kind in enumerate((np.int32, np.float64, str)):
        path = written({"image": np.array([2343729] * 3).astype(kind), "box": box}, tmp_path / f"{number}.npz")
        assert list(read_box_table(path, Findings()).rows_of_images()) == ["2343729"]


def test_detections_need_scores_of_these_classes(tmp_path):
    path = detections(placed_shapes(SIZE), tmp_path / "found.npz", classes=9)
    with pytest.raises(ShortlistError, match=r"there are 6 object classes, so that a box has 6 scores.* got 9"):
        placed_shapes(SIZE, task="sgdet", detections=path)
    path = written(rows_of(placed_shapes(SIZE)), tmp_path / "seen.npz")
    with pytest.raises(ShortlistError, match="detections need 'scores' or 'probabilities'"):
        placed_shapes(SIZE, task="sgdet", detections=path)
