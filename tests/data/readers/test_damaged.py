"""Files of every format, cut off or with wrong bytes: always an error that names the file."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from shortlist.data import problems
from tests.data.readers.made_files import image

FEATURES = np.random.default_rng(0).normal(size=(6, 3)).astype("f4")
VISUAL_GENOME = {"split": (3,), "labels": (5, 1), "boxes_1024": (5, 4), "predicates": (2, 1), "relationships": (2, 2),
                 "img_to_first_box": (3,), "img_to_last_box": (3,), "img_to_first_rel": (3,),
                 "img_to_last_rel": (3,)}  # fmt: skip


def write_npz(path: Path) -> tuple[str, dict]:
    np.savez(path, X=FEATURES, y=np.arange(6) % 3)
    return "features", {"path": path, "num_labels": 3}


def write_packed_npz(path: Path) -> tuple[str, dict]:
    np.savez_compressed(path, X=FEATURES, y=np.eye(6, 3, dtype=int))
    return "features", {"path": path}


def write_csr(path: Path) -> tuple[str, dict]:
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.eye(6, 3)))
    np.savez(path.with_name("labels.npz"), y=np.arange(6) % 3)
    return "features", {"path": path, "labels": path.with_name("labels.npz"), "num_labels": 3}


def write_npy(path: Path) -> tuple[str, dict]:
    np.save(path, FEATURES)
    np.savez(path.with_name("labels.npz"), y=np.arange(6) % 3)
    return "features", {"path": path, "labels": path.with_name("labels.npz"), "num_labels": 3}


def write_parquet(path: Path) -> tuple[str, dict]:
    pq.write_table(pa.table({"X": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1], "id": ["a", "b"]}), path)
    return "features", {"path": path, "num_labels": 3, "ids_key": "id"}


def write_hdf5(path: Path) -> tuple[str, dict]:
    with h5py.File(path, "w") as file:
        for name, shape in VISUAL_GENOME.items():
            file.create_dataset(name, data=np.ones(shape, dtype="i4"))
    names = {"label_to_idx": {"cat": 1}, "predicate_to_idx": {"sees": 1}}
    path.with_name("VG-SGG-dicts.json").write_text(json.dumps(names))
    return "visual-genome", {"path": path}


def write_picture(path: Path) -> tuple[str, dict]:
    image(path, size=(40, 30))
    return "image-folder", {"path": path.parent.parent}


FORMATS: dict[str, Callable[[Path], tuple[str, dict]]] = {
    "all.npz": write_npz,
    "packed.npz": write_packed_npz,
    "csr.npz": write_csr,
    "X.npy": write_npy,
    "all.parquet": write_parquet,
    "VG-SGG.h5": write_hdf5,
    "a.png": write_picture,
    "a.jpg": write_picture,
    "a.webp": write_picture,
    "a.gif": write_picture,
}


def damaged(content: bytes, cases: int, seed: int) -> Iterator[bytes]:
    draw = random.Random(seed)
    for case in range(cases):
        if case % 2:
            yield content[: draw.randrange(len(content))]
        else:
            wrong = bytearray(content)
            for _ in range(draw.choice((1, 2, 8))):
                wrong[draw.randrange(len(wrong))] = draw.randrange(256)
            yield bytes(wrong)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, about metadata of damaged images
def test_a_damaged_file_is_a_problem_with_its_name_and_never_another_exception(tmp_path, name):
    path = tmp_path / "label" / name
    path.parent.mkdir()
    reader, options = FORMATS[name](path)
    assert problems(reader, **options) == []
    content, found = path.read_bytes(), 0
    for wrong in damaged(content, 100, seed=len(content)):
        path.write_bytes(wrong)
        for problem in problems(reader, **options):  # any other exception fails the test
            assert name in problem.file or name in problem.message
            found += 1
    assert found > 20


@pytest.mark.parametrize("reader", ["coco", "vrd"])
def test_json_nested_too_deep_is_a_problem_of_the_file(tmp_path, reader):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for name in ("objects", "predicates"):
        (tmp_path / f"{name}.json").write_text("[]")
    options = {"images": tmp_path} if reader == "coco" else {}
    [problem] = problems(reader, path=tmp_path / "deep.json", **options)
    assert "deep.json" in problem.file
    assert "too deep" in problem.message
