"""CIFAR in the official layouts. The python one is a pickle of Python 2, which is written here opcode by opcode."""

import os
import pickle
import struct

import numpy as np
import pytest

from shortlist.data import DataError, read_cifar
from tests.data.readers.made_files import assert_found, text

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 3072), dtype=np.uint8)


def python2(value) -> bytes:
    """What Python 2's pickler makes of dictionaries, lists, str, int and uint8 arrays, without the frame."""
    if isinstance(value, bytes):
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
    shape = b"(" + b"".join(map(python2, value.shape)) + b"t"
    empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + b"(" + python2(0) + b"tU\x01btR"
    kind = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return empty + b"(K\x01" + shape + kind + b"\x89" + python2(value.tobytes()) + b"tb"


def write_pickle(path, value):
    path.write_bytes(b"\x80\x02" + python2(value) + b".")


NAMES10 = [f"class{label}" for label in range(10)]
FINE, COARSE = [f"fine{label}" for label in range(100)], [f"coarse{label}" for label in range(20)]


@pytest.fixture
def cifar10_python(tmp_path):
    write_pickle(tmp_path / "batches.meta", {b"label_names": [name.encode() for name in NAMES10], b"num_vis": 3072})
    for number in range(1, 6):
        batch = {b"batch_label": b"one of 5", b"data": PIXELS[number : number + 1], b"labels": [number]}
        write_pickle(tmp_path / f"data_batch_{number}", batch)
    write_pickle(tmp_path / "test_batch", {b"data": PIXELS[:1], b"labels": [9]})
    return tmp_path


@pytest.fixture
def cifar10_binary(tmp_path):
    text(tmp_path / "batches.meta.txt", "\n".join(NAMES10) + "\n\n")
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(bytes([number]) + PIXELS[number].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(bytes([9]) + PIXELS[0].tobytes())
    return tmp_path


LABELS100 = [(3, 30), (4, 41), (3, 30), (0, 1), (19, 99)]


@pytest.fixture
def cifar100_python(tmp_path):
    names = {"fine_label_names": FINE, "coarse_label_names": COARSE}
    write_pickle(tmp_path / "meta", {key.encode(): [n.encode() for n in value] for key, value in names.items()})
    for part in ("train", "test"):
        coarse, fine = map(list, zip(*LABELS100, strict=True))
        write_pickle(tmp_path / part, {b"data": PIXELS[:5], b"coarse_labels": coarse, b"fine_labels": fine})
    return tmp_path


@pytest.fixture
def cifar100_binary(tmp_path):
    text(tmp_path / "fine_label_names.txt", "\n".join(FINE))
    text(tmp_path / "coarse_label_names.txt", "\n".join(COARSE))
    records = [bytes(labels) + row.tobytes() for labels, row in zip(LABELS100, PIXELS, strict=False)]
    for part in ("train", "test"):
        (tmp_path / f"{part}.bin").write_bytes(b"".join(records))
    return tmp_path


@pytest.mark.parametrize("layout", ["cifar10_python", "cifar10_binary"])
def test_cifar10_has_its_pixels_labels_and_names_in_both_layouts(layout, request):
    path = request.getfixturevalue(layout)
    data = read_cifar(path)
    assert data.target.tolist() == [1, 2, 3, 4, 5]
    assert data.vocabulary == tuple(NAMES10)
    # a row holds the red plane, then the green, then the blue one
    assert np.array_equal(data.inputs[0], PIXELS[1].reshape(3, 32, 32).transpose(1, 2, 0))
    test = read_cifar(path, part="test")
    assert (test.target.tolist(), test.name) == ([9], "cifar10-test")


@pytest.mark.parametrize("layout", ["cifar100_python", "cifar100_binary"])
def test_cifar100_has_its_pixels_labels_and_names_in_both_layouts(layout, request):
    data = read_cifar(request.getfixturevalue(layout), part="test")
    assert data.target.tolist() == [30, 41, 30, 1, 99]
    assert data.vocabulary == tuple(FINE)
    assert np.array_equal(data.inputs.source, PIXELS[:5].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def test_cifar100_has_coarse_groups_when_every_label_occurs(cifar100_binary):
    records = [bytes([label // 5, label]) + PIXELS[0].tobytes() for label in range(100)]
    (cifar100_binary / "train.bin").write_bytes(b"".join(records))
    data = read_cifar(cifar100_binary)
    assert data.groups.tolist() == [label // 5 for label in range(100)]
    assert data.group_names == tuple(COARSE)
    assert read_cifar(cifar100_binary, part="test").groups is None


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_pickles_written_by_python_3_are_read_too(cifar10_python, protocol):
    content = pickle.dumps({b"data": PIXELS[:2], b"labels": [7, 8]}, protocol=protocol)
    (cifar10_python / "test_batch").write_bytes(content)
    data = read_cifar(cifar10_python, part="test")
    assert data.target.tolist() == [7, 8]
    assert np.array_equal(data.inputs[1], PIXELS[1].reshape(3, 32, 32).transpose(1, 2, 0))


class Attack:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_no_code_in_a_pickle_is_run(cifar10_python, tmp_path, protocol):
    marker = tmp_path / "ran"
    content = {b"data": PIXELS[:1], b"labels": [Attack(marker)]}
    (cifar10_python / "test_batch").write_bytes(pickle.dumps(content, protocol=protocol))
    refused = [("test_batch", None, "which is not loaded from data files")]
    assert_found("cifar", refused, path=cifar10_python, part="test")
    assert not marker.exists()


def test_an_array_of_objects_in_a_pickle_is_refused(cifar10_python):
    content = pickle.dumps({b"data": np.array([[None]]), b"labels": [0]}, protocol=4)
    (cifar10_python / "test_batch").write_bytes(content)
    assert_found("cifar", [("test_batch", None, "not of bytes")], path=cifar10_python, part="test")


def test_every_problem_of_the_python_layout_is_found_in_one_pass(cifar10_python):
    write_pickle(cifar10_python / "data_batch_1", {b"data": PIXELS[[0, 0]], b"labels": [3, 10]})
    content = (cifar10_python / "data_batch_2").read_bytes()
    (cifar10_python / "data_batch_2").write_bytes(content[: len(content) // 2])
    (cifar10_python / "data_batch_3").unlink()
    write_pickle(cifar10_python / "data_batch_4", {b"data": PIXELS[4:5], b"labels": [1, 2]})
    write_pickle(cifar10_python / "data_batch_5", {b"data": PIXELS[5:, :3000], b"labels": [1]})
    write_pickle(cifar10_python / "batches.meta", {b"label_names": [b"cat"] * 10})
    assert_found(
        "cifar",
        [
            ("data_batch_1", 1, "label 10 is outside the vocabulary"),
            ("data_batch_1", 1, "this image is a duplicate"),
            ("data_batch_2", None, "cannot be read as a pickle"),
            ("data_batch_3", None, "no such file"),
            ("data_batch_4", None, "2 labels for 1 images"),
            ("data_batch_5", None, "(N, 3072)"),
            ("batches.meta", None, "must name 10 different labels"),
        ],
        path=cifar10_python,
    )


def test_every_problem_of_the_binary_layout_is_found_in_one_pass(cifar100_binary):
    content = (cifar100_binary / "train.bin").read_bytes()
    content = content[:3074] + bytes([20, 100]) + PIXELS[0].tobytes() + content[2 * 3074 : -7]
    (cifar100_binary / "train.bin").write_bytes(content)
    (cifar100_binary / "coarse_label_names.txt").unlink()
    assert_found(
        "cifar",
        [
            ("train.bin", 1, "label 20 is outside the vocabulary"),
            ("train.bin", 1, "label 100 is outside the vocabulary"),
            ("train.bin", 1, "this image is a duplicate"),
            ("train.bin", 4, "is truncated"),
            ("coarse_label_names.txt", None, "no such file"),
        ],
        path=cifar100_binary,
    )


def test_a_fine_label_with_two_coarse_labels_is_reported(cifar100_binary):
    records = [bytes([coarse, 30]) + PIXELS[coarse].tobytes() for coarse in (1, 2)]
    (cifar100_binary / "test.bin").write_bytes(b"".join(records))
    with pytest.raises(DataError, match=r"test.bin, row 0: the fine label 30 has the coarse label 1"):
        read_cifar(cifar100_binary, part="test")


def test_a_folder_without_cifar_is_reported(tmp_path):
    assert_found("cifar", [(tmp_path.name, None, "none of the files of CIFAR")], path=tmp_path)
    assert_found("cifar", [("no", None, "no such folder")], path=tmp_path / "no")


def test_a_pickle_cut_off_anywhere_is_reported_and_not_read(cifar10_python):
    content = (cifar10_python / "test_batch").read_bytes()
    for end in range(0, len(content), 101):
        (cifar10_python / "test_batch").write_bytes(content[:end])
        problem = ("test_batch", None, "cannot be read as a pickle of plain data")
        assert_found("cifar", [problem], path=cifar10_python, part="test")


def unfolding(levels: int) -> bytes:
    """Each dictionary holds the one before twice."""
    content = b"\x80\x02}q\x00"
    for level in range(1, levels):
        before = bytes([level - 1])
        content += b"}q" + bytes([level]) + b"(U\x01ah" + before + b"U\x01bh" + before + b"u"
    return content + b"."


def hash_of_tuples(levels: int) -> bytes:
    """A key that is a tuple of a tuple twice, of a tuple twice, ...: to hash it takes 2 ** levels steps."""
    content = b"\x80\x02}K\x00\x85q\x00"
    for level in range(1, levels):
        content += b"0h" + bytes([level - 1]) + b"h" + bytes([level - 1]) + b"\x86q" + bytes([level])
    return content + b"K\x01s."


def one_text_many_times(length: int, times: int) -> bytes:
    """Bytes made of the same text again and again: quadratic in the size of the file."""
    text = b"X" + length.to_bytes(4, "little") + b"a" * length + b"q\x00"
    again = b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"
    return b"\x80\x02](" + text + again * times + b"e."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (unfolding(60), "in more than one place"),
        (hash_of_tuples(60), "in more than one place"),
        (one_text_many_times(100_000, 900), "more than the file holds"),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "numbers a value 2147483647"),
        (b"\x80\x04}\x8e\x00\x00\x00\x00\x00\x01\x00\x00.", "expected 1099511627776 bytes"),
        (b"\x80\x02)" + b"\x85" * 5000 + b".", "more than 1000 tuples"),
        (b"\x80\x02}2.", "holds DUP"),
    ],
    ids=["dictionaries", "hashes", "texts", "memo", "length", "tuples", "opcode"],
)
def test_a_pickle_that_would_unfold_is_refused_at_once(cifar10_python, content, reason):
    (cifar10_python / "test_batch").write_bytes(content)
    assert_found("cifar", [("test_batch", None, reason)], path=cifar10_python, part="test")
