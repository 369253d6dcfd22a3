"""The readers, on small files in the real formats."""

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from shortlist.data import DataError, problems, read
from shortlist.errors import ShortlistError
from shortlist.scenes import placed_shapes

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data"
MAN, HAT, DOG = ([10, 90, 20, 60], 0), ([10, 30, 30, 50], 1), ([50, 90, 70, 99], 2)  # ymin, ymax, xmin, xmax


def relation(subject, predicate, thing):
    return {
        "predicate": predicate,
        "subject": {"category": subject[1], "bbox": subject[0]},
        "object": {"category": thing[1], "bbox": thing[0]},
    }


@pytest.fixture
def vrd(tmp_path):
    content = {
        "1.jpg": [relation(MAN, 1, HAT), relation(MAN, 0, HAT), relation(MAN, 1, HAT), relation(DOG, 2, MAN)],
        "2.jpg": [],
        "3.jpg": [relation(DOG, 0, DOG), relation(HAT, 2, DOG)],
    }
    (tmp_path / "annotations_train.json").write_text(json.dumps(content))
    (tmp_path / "objects.json").write_text(json.dumps(["man", "hat", "dog"]))
    (tmp_path / "predicates.json").write_text(json.dumps(["on", "wears", "near"]))
    return tmp_path / "annotations_train.json"


def triples(data, image):
    """What is recorded of an image, in words."""
    scenes = data.inputs.subset([image])
    names = [scenes.class_names[number] for number in scenes.classes]
    return {(names[s], data.vocabulary[p], names[o]) for s, o, p in scenes.relations.tolist()}


def test_boxes_of_vrd_are_shares_of_the_images_where_these_are_there(vrd, tmp_path):
    for name in ("1.jpg", "2.jpg", "3.jpg"):
        Image.new("RGB", (400, 200)).save(tmp_path / name)
    data = read("vrd", path=vrd, images=tmp_path)
    assert data.inputs.sizes.tolist() == [[400, 200]] * 3
    torch.testing.assert_close(data.batch(torch.arange(3))[0].boxes, data.inputs.boxes / torch.tensor([400, 200] * 2))
    (tmp_path / "2.jpg").write_bytes(b"no image")
    with pytest.raises(ShortlistError, match=r"2\.jpg cannot be read: it is no image that Pillow reads, or damaged"):
        read("vrd", path=vrd, images=tmp_path)


def test_vrd_annotations_become_objects_and_relations(vrd):
    data = read("vrd", path=vrd)
    assert data.ids == ("1.jpg", "2.jpg", "3.jpg")
    assert data.inputs.object_offsets.diff().tolist() == [3, 0, 2]  # the same class and box is the same object
    assert triples(data, 0) == {("man", "wears", "hat"), ("man", "on", "hat"), ("dog", "near", "man")}
    assert triples(data, 2) == {("hat", "near", "dog")}  # the dog on itself is dropped
    man = data.inputs.boxes[data.inputs.classes == 0][0].tolist()
    assert man == [20, 10, 60, 90]  # xmin, ymin, xmax, ymax
    assert len(data.answers.entries) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["object"].pop("bbox"), "image '1.jpg', relation 1: the object has no bbox of four numbers"),
        (lambda r: r["subject"].update(bbox=[9, 3, 20, 60]), "relation 1: the subject's box has the size 40 x -6"),
        (lambda r: r["subject"].update(bbox=[1, 2, "x", 3]), "relation 1: the subject has no bbox of four numbers"),
        (lambda r: r.update(predicate=7), r"relation 1: the predicate 7 is none of 0\.\.2"),
        (lambda r: r["object"].update(category=-1), r"relation 1: the object's class -1 is none of 0\.\.2"),
        (lambda r: r.update(predicate=1.5), r"relation 1: the predicate must be a whole number, got 1\.5"),
        (lambda r: r["object"].update(category=1e300), "relation 1: the object's category must be a whole number"),
        (lambda r: r["object"].update(bbox=[1, 10**400, 1, 3]), "relation 1: the object has no bbox of four numbers"),
        (lambda r: r["object"].update(bbox=[1, 1e300, 1, 3]), "relation 1: the object's box has the size 2 x inf"),
        (lambda r: r.pop("subject"), "relation 1: a relation has a predicate, a subject and an object"),
    ],
)
def test_what_is_wrong_with_an_annotation_names_image_and_relation(vrd, change, message):
    content = json.loads(vrd.read_text())
    change(content["1.jpg"][1])
    vrd.write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"annotations_train.json: .*{message}"):
        read("vrd", path=vrd)


@pytest.mark.parametrize("names", [["man", "hat", "man"], [1, 2, 3]])
@pytest.mark.parametrize("file", ["objects.json", "predicates.json"])
def test_names_are_different_texts(vrd, file, names):
    (vrd.parent / file).write_text(json.dumps(names))
    with pytest.raises(DataError, match=f"{file}: must be a list of different names, got "):
        read("vrd", path=vrd)


def test_every_wrong_relation_is_listed(vrd):
    content = json.loads(vrd.read_text())
    content["1.jpg"][0]["predicate"] = 9
    content["3.jpg"][1]["predicate"] = 8
    vrd.write_text(json.dumps(content))
    assert [problem.message.split(":")[0] for problem in problems("vrd", path=vrd)] == [
        "image '1.jpg', relation 0", "image '3.jpg', relation 1",
    ]  # fmt: skip


@pytest.fixture
def pairs(vrd):
    """The same annotations packed."""
    y = np.zeros((4, 3), dtype=np.uint8)
    y[[0, 0, 1, 2, 3], [0, 1, 2, 0, 2]] = 1
    ends = [(MAN, HAT), (DOG, MAN), (DOG, DOG), (HAT, DOG)]
    arrays = {
        "image": np.array([0, 0, 2, 2], dtype=np.int32),
        "subj": np.array([s[1] for s, _ in ends], dtype=np.uint8),
        "obj": np.array([o[1] for _, o in ends], dtype=np.uint8),
        "subj_box_ymin_ymax_xmin_xmax": np.array([s[0] for s, _ in ends], dtype=np.int32),
        "obj_box_ymin_ymax_xmin_xmax": np.array([o[0] for _, o in ends], dtype=np.int32),
        "Y": y,
        "image_names": np.array(["1.jpg", "2.jpg", "3.jpg"]),
        "image_wh": np.array([[100, 100], [50, 50], [-1, -1]], dtype=np.int32),
    }
    return vrd.parent / "pairs.npz", {f"train_{key}": value for key, value in arrays.items()}


def test_packed_pairs_give_the_same_scenes_as_the_annotations(vrd, pairs):
    path, arrays = pairs
    np.savez(path, **arrays, object_word2vec=np.ones((3, 5), dtype=np.float16))
    packed, annotated = read("vrd-pairs", path=path), read("vrd", path=vrd)
    assert torch.equal(packed.inputs.boxes, annotated.inputs.boxes)
    assert torch.equal(packed.answers.entries, annotated.answers.entries)
    assert packed.inputs.word_vectors.shape == (3, 5)
    assert packed.inputs.sizes[0].tolist() == [100, 100]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("obj_box_ymin_ymax_xmin_xmax", [5, 5, 1, 2], "row 1, image 1.jpg: the object's box has the size 1 x 0"),
        ("subj", 3, r"row 1, image 1.jpg: the subject's class 3 is none of 0\.\.2"),
        ("image", 3, r"row 1: the image 3 is none of 0\.\.2"),
    ],
)
def test_a_wrong_row_is_named_with_its_image(pairs, key, value, message):
    path, arrays = pairs
    arrays[f"train_{key}"][1] = value
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        read("vrd-pairs", path=path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train_image", [0, 0.5, 2, 2], "train_image must be whole numbers"),
        ("train_subj", ["man"] * 4, "train_subj must be whole numbers"),
        ("train_obj_box_ymin_ymax_xmin_xmax", [["a"] * 4] * 4, "train_obj_box_ymin_ymax_xmin_xmax must be numbers"),
        ("train_Y", np.full((4, 3), 2), "train_Y must be 0 and 1"),
        ("train_image_wh", np.full((3, 2), np.nan), "train_image_wh must be whole numbers"),
        ("train_image_names", ["1.jpg"] * 3, "train_image_names must be different names"),
        ("object_word2vec", np.full((3, 5), np.nan), "object_word2vec must be finite numbers of 32 bits"),
    ],
)
def test_arrays_of_something_else_are_named(pairs, key, value, message):
    path, arrays = pairs
    np.savez(path, **{**arrays, key: np.array(value)})
    with pytest.raises(DataError, match=message):
        read("vrd-pairs", path=path)


def test_arrays_that_are_missing_or_do_not_fit_are_named(pairs):
    path, arrays = pairs
    np.savez(path, **{**arrays, "train_Y": arrays["train_Y"][:, :2]})
    with pytest.raises(DataError, match=r"train_Y must have the shape \(4, 3\), got \(4, 2\)"):
        read("vrd-pairs", path=path)
    with pytest.raises(DataError, match="there is no 'test_image'"):
        read("vrd-pairs", path=path, part="test")


# ---- Visual Genome

VG = {
    "split": [0, 0, 2, 0, 0],
    "labels": [[1], [2], [2], [3], [1], [2], [1], [3]],
    "boxes_1024": [[50, 60, 40, 20]] * 8,  # middle x and y, width, height
    "img_to_first_box": [0, 2, 4, -1, 6],
    "img_to_last_box": [1, 3, 5, -1, 7],
    "predicates": [[1], [2], [2], [1], [1]],
    "relationships": [[0, 1], [0, 1], [3, 2], [4, 5], [6, 6]],
    "img_to_first_rel": [0, 2, 3, -1, 4],
    "img_to_last_rel": [1, 2, 3, -1, 4],
}


@pytest.fixture
def genome(tmp_path):
    dicts = {"label_to_idx": {"man": 1, "hat": 2, "dog": 3}, "predicate_to_idx": {"near": 2, "wears": 1}}
    dicts |= {"idx_to_label": {"1": "man", "2": "hat", "3": "dog"}, "idx_to_predicate": {"1": "wears", "2": "near"}}
    dicts |= {"object_count": {"man": 3, "hat": 3, "dog": 2}, "predicate_count": {"wears": 3, "near": 2}}
    (tmp_path / "VG-SGG-dicts.json").write_text(json.dumps(dicts))
    images = [{"image_id": 100 + row, "width": 400, "height": 800} for row in range(5)]
    (tmp_path / "image_data.json").write_text(json.dumps(images))

    def write(**changes):
        with h5py.File(tmp_path / "VG-SGG.h5", "w") as file:
            file["boxes_512"] = np.array(VG["boxes_1024"], dtype=np.int32) // 2  # the file has these too
            file["active_object_mask"] = np.ones((8, 1), dtype=bool)
            for name, values in {**VG, **changes}.items():
                if values is not None:
                    file[name] = values if isinstance(values, np.ndarray) else np.array(values, dtype=np.int32)
        return tmp_path / "VG-SGG.h5"

    return write


def test_visual_genome_has_the_published_parts(genome):
    path = genome()
    options = {"path": path, "image_data": path.parent / "image_data.json", "validation": 1}
    train, held, test = (read("visual-genome", part=part, **options) for part in ("train", "validation", "test"))
    assert (held.ids, train.ids, test.ids) == (("100.jpg",), ("101.jpg", "104.jpg"), ("102.jpg",))
    assert triples(held, 0) == {("man", "wears", "hat"), ("man", "near", "hat")}
    assert triples(train, 0) == {("dog", "near", "hat")}
    assert triples(train, 1) == set()  # the relation of an object with itself is dropped
    assert held.vocabulary == ("wears", "near")
    assert held.inputs.boxes[0].tolist() == [30, 50, 70, 70]
    assert held.inputs.sizes.tolist() == [[512, 1024]]


def test_images_without_relations_are_kept_on_request(genome):
    path = genome(img_to_first_rel=[0, 2, 3, -1, -1], img_to_last_rel=[1, 2, 3, -1, -1])
    assert read("visual-genome", path=path, validation=0).ids == ("0", "1")
    assert read("visual-genome", path=path, validation=0, empty=True).ids == ("0", "1", "4")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predicates": [[1], [9], [2], [1], [1]]}, r"image 0: relation 1 has the predicate 9: allowed are 1\.\.2"),
        ({"boxes_1024": [[50, 60, 40, 20]] * 3 + [[50, 60, -4, 20]] * 5}, "image 1: box 3 has the size -4 x 20"),
        ({"labels": [[0], [2], [2], [3], [1], [2], [1], [3]]}, r"image 0: box 0 has the label 0: allowed are 1\.\.3"),
        ({"relationships": [[0, 4], [0, 1], [3, 2], [4, 5], [6, 6]]}, "image 0: relation 0 is between boxes of"),
        ({"img_to_last_box": [99, 3, 5, -1, 7]}, "image 0: img_to_first_box and img_to_last_box are 0 and 99"),
        ({"boxes_1024": None}, "there is no array 'boxes_1024'"),
        ({"labels": [1, 2]}, r"labels must have the shape \(rows, 1\), got \(2,\)"),
        ({"labels": [[1], [2]]}, "boxes_1024 has 8 rows, labels has 2"),
        ({"predicates": [[1]]}, "predicates has 1 rows, relationships has 5"),
        ({"img_to_last_rel": [1, 2]}, "img_to_last_rel has 2 rows, split has 5"),
        ({"labels": np.array([[b"man"]] * 8)}, r"labels must be whole numbers, got \|S3"),
        ({"boxes_1024": np.array([[50, np.nan, 40, 20.0]] * 8)}, "image 0: box 0 .* its middle at 50 x nan"),
        ({"boxes_1024": np.array([[1e300, 60, 40, 20]] * 8)}, r"image 0: box 0 .* its middle at 1e\+300 x 60"),
    ],
)
def test_what_is_wrong_with_the_file_names_image_and_row(genome, changes, message):
    with pytest.raises(DataError, match=message):
        read("visual-genome", path=genome(**changes), validation=0)


def test_options_that_do_not_go_with_the_file_are_told(genome, tmp_path):
    path = genome()
    with pytest.raises(ShortlistError, match="all of its 3 training images are validation images: lower validation"):
        read("visual-genome", path=path)
    with pytest.raises(ShortlistError, match="validation must be a whole number of at least 0, got -1"):
        read("visual-genome", path=path, validation=-1)
    with pytest.raises(ShortlistError, match=r"which are in image_data\.json: set image_data"):
        read("visual-genome", path=path, validation=0, images=tmp_path)


def test_the_four_images_that_could_not_be_opened_are_in_the_list_and_not_in_the_file(genome):
    path = genome()
    listed = json.loads((path.parent / "image_data.json").read_text())
    for place, number in ((0, 1592), (3, 1722), (4, 4616), (9, 4617)):
        listed.insert(place, {"image_id": number, "width": 10, "height": 10})
    (path.parent / "image_data.json").write_text(json.dumps(listed))
    data = read("visual-genome", path=path, image_data=path.parent / "image_data.json", validation=0)
    assert data.ids == ("100.jpg", "101.jpg", "104.jpg")


@pytest.mark.parametrize("image", [
    {"image_id": 7, "width": 5},
    {"image_id": 7, "width": 5, "height": 0},
    {"image_id": 7, "width": 5, "height": 10**400},
    {"image_id": [7], "width": 5, "height": 5},
    7,
])  # fmt: skip
def test_an_image_of_the_list_without_a_size_is_named_with_its_row(genome, image):
    path = genome()
    listed = json.loads((path.parent / "image_data.json").read_text())
    listed[2] = image
    (path.parent / "image_data.json").write_text(json.dumps(listed))
    with pytest.raises(DataError, match=r"image_data.json, row 2: an image has an image_id, a width and a height"):
        read("visual-genome", path=path, image_data=path.parent / "image_data.json")


def test_an_image_that_is_listed_twice_is_named_with_both_rows(genome):
    path = genome()
    listed = json.loads((path.parent / "image_data.json").read_text())
    (path.parent / "image_data.json").write_text(json.dumps([*listed[:3], listed[1], *listed[4:]]))
    with pytest.raises(DataError, match=r"image_data.json, row 3: the image_id 101 is that of row 1 too"):
        read("visual-genome", path=path, image_data=path.parent / "image_data.json")


def test_numbers_without_a_sign_are_numbers_too(genome):
    path = genome(img_to_first_box=np.array([0, 2, 4, 6, 6], dtype=np.uint64))
    assert read("visual-genome", path=path, part="test").inputs.relations.tolist() == [[0, 1, 0]]


def test_relations_of_boxes_that_do_not_overlap_are_left_out_on_request(genome):
    boxes = [[50, 60, 40, 20]] * 8
    boxes[3] = [150, 60, 40, 20]  # of the second image, whose only relation it has
    path = genome(boxes_1024=boxes)
    assert read("visual-genome", path=path, validation=0).ids == ("0", "1", "4")
    train = read("visual-genome", path=path, validation=0, overlapping=True)
    assert train.ids == ("0",)
    assert triples(train, 0) == {("man", "wears", "hat"), ("man", "near", "hat")}
    kept = read("visual-genome", path=path, validation=0, overlapping=True, empty=True)
    assert (kept.ids, kept.inputs.relation_offsets.diff().tolist()) == (("0", "1", "4"), [2, 0, 0])


def test_a_file_that_is_not_hdf5_is_an_error(genome):
    path = genome()
    path.write_bytes(b"not HDF5")
    with pytest.raises(DataError, match="cannot be read"):
        read("visual-genome", path=path)


# ---- made-up and real scenes


def test_placed_shapes_are_the_same_for_the_same_seed_and_parts_are_apart():
    assert torch.equal(placed_shapes(20, seed=1).inputs.boxes, placed_shapes(20, seed=1).inputs.boxes)
    assert not torch.equal(placed_shapes(5).inputs.boxes[:5], placed_shapes(5, part="val").inputs.boxes[:5])


def test_what_is_recorded_of_placed_shapes_is_true():
    data = placed_shapes(30, recorded=1.0)
    for image in range(30):
        scenes = data.inputs.subset([image])
        for subject, thing, predicate in scenes.relations.tolist():
            a, b = scenes.boxes[subject].tolist(), scenes.boxes[thing].tolist()
            name = data.vocabulary[predicate]
            assert name != "left of" or a[2] <= b[0]
            assert name != "above" or a[3] <= b[1]
            assert name != "inside" or (a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3])


@pytest.mark.skipif(not (SHARED / "vrd").exists(), reason="the shared data folder is not here")
def test_the_packed_vrd_has_the_counts_of_its_provenance():
    path = SHARED / "vrd" / "vrd_pairs.npz"
    train, test = (read("vrd-pairs", path=path, part=part) for part in ("train", "test"))
    assert (len(train), len(test)) == (4000, 1000)
    assert (train.num_labels, len(train.inputs.class_names), train.in_shape[2]) == (70, 100, 300)
    assert (len(train.answers.entries), len(test.answers.entries)) == (29778, 7452)  # 83 and 26 with itself dropped


# ---- what a detector says


@pytest.mark.parametrize("reader", ["vrd", "vrd-pairs"])
def test_vrd_takes_the_features_and_the_boxes_of_a_detector(reader, vrd, pairs, tmp_path):
    packed, arrays = pairs
    np.savez(packed, **arrays)
    path = vrd if reader == "vrd" else packed
    plain = read(reader, path=path)
    images = np.repeat(plain.ids, plain.inputs.object_offsets.diff().numpy())
    content = {"image": images, "box": plain.inputs.boxes.numpy(), "features": np.eye(len(images), 7)}
    content["probabilities"] = np.eye(3)[plain.inputs.classes.numpy()] * 0.8 + 0.05  # no background
    np.savez(tmp_path / "found.npz", **content)
    seen = read(reader, path=path, features=tmp_path / "found.npz", task="sgcls").inputs
    assert (seen.task, seen.shape[3]) == ("sgcls", 7)
    assert torch.equal(seen.class_scores[:, :3].argmax(1), plain.inputs.classes)
    found = read(reader, path=path, detections=tmp_path / "found.npz", task="sgdet")
    assert triples_of_recorded(found, 0) == triples(plain, 0)
    assert torch.equal(found.inputs.features, seen.features)
    assert torch.equal(found.target, plain.target)


def triples_of_recorded(data, image):
    from dataclasses import replace

    return triples(replace(data, inputs=data.inputs.recorded), image)


def test_visual_genome_takes_features_of_boxes_and_of_pairs_from_hdf5(genome, tmp_path):
    path = genome(boxes_1024=[[50 + 9 * row, 60, 40, 20] for row in range(8)])
    plain = read("visual-genome", path=path, part="test")
    names, boxes = [], []
    for row, name in enumerate(plain.ids):
        own = plain.inputs.subset([row])
        around = [own.boxes[[s, o]] for s, o in own.pairs().tolist()]
        around = [torch.cat([both[:, :2].amin(0), both[:, 2:].amax(0)]) for both in around]
        names += [name] * (len(own.boxes) + len(around))
        boxes += [*own.boxes, *around]
    with h5py.File(tmp_path / "seen.h5", "w") as file:
        file["image"], file["box"] = np.array(names, dtype="S"), torch.stack(boxes).numpy()
        file["features"] = np.stack([box.numpy().sum(keepdims=True) for box in boxes]).astype(np.float16)
    scenes = read("visual-genome", path=path, part="test", features=tmp_path / "seen.h5").inputs
    batch, _ = scenes.batch(torch.arange(len(scenes)))
    assert torch.allclose(batch.features[:, 0], plain.inputs.boxes.sum(1), rtol=1e-3)
    assert batch.union_features.shape == (len(batch.subjects), 1)
