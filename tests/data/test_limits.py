"""Small files that ask for much memory are refused before any of it is allocated."""

import io
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from shortlist.data import DataError, read_features, read_image_folder
from shortlist.data.images import decode
from shortlist.data.limits import limit
from shortlist.errors import ShortlistError
from shortlist.scenes import read_visual_genome
from tests.data.readers.made_files import image


def png_of(path: Path, width: int, height: int) -> Path:
    """A valid image of one colour with one bit a pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([1, 0, 0, 0, 0])
    rows = zlib.compress(bytes((1 + (width + 7) // 8) * height), 9)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return path


def test_a_small_png_of_many_pixels_is_not_decoded(tmp_path):
    bomb = png_of(tmp_path / "bomb.png", 9000, 9000)
    assert bomb.stat().st_size < 21_000
    with pytest.raises(ShortlistError, match=r"bomb.png: 9000 x 9000 pixels .* SHORTLIST_MAX_PIXELS"):
        decode(bomb, (224, 224))


def test_the_limit_of_pixels_is_adjustable(tmp_path, monkeypatch):
    picture = image(tmp_path / "cat" / "1.png", size=(12, 8))
    monkeypatch.setenv("SHORTLIST_MAX_PIXELS", "95")
    with pytest.raises(ShortlistError, match="12 x 8 pixels are more than 95"):
        decode(picture)
    monkeypatch.setenv("SHORTLIST_MAX_PIXELS", "96")
    assert decode(picture).shape == (8, 12, 3)
    assert len(read_image_folder(tmp_path)) == 1


def test_a_large_jpeg_counts_as_what_it_is_shrunk_to(tmp_path, monkeypatch):
    Image.new("RGB", (1600, 1600)).save(tmp_path / "photo.jpg")
    monkeypatch.setenv("SHORTLIST_MAX_PIXELS", "250000")
    assert decode(tmp_path / "photo.jpg", (32, 32)).shape == (32, 32, 3)


@pytest.mark.parametrize("written", ["many", "0", "-5"])
def test_a_limit_that_is_no_number_is_refused(monkeypatch, written):
    monkeypatch.setenv("SHORTLIST_MAX_PIXELS", written)
    with pytest.raises(ShortlistError, match="SHORTLIST_MAX_PIXELS must be a whole number"):
        limit("SHORTLIST_MAX_PIXELS")


def npy(shape: str, content: bytes = b"") -> bytes:
    """A .npy whose header promises a shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_npy_that_promises_more_than_it_holds_is_named(tmp_path, memory_map):
    np.savez(tmp_path / "y.npz", y=[0, 1])
    (tmp_path / "X.npy").write_bytes(npy("(1000000000000, 4)", bytes(32)))
    with pytest.raises(DataError, match=r"X.npy: cannot be read: it says .* 16000000000000 bytes, but has 32"):
        read_features(tmp_path / "X.npy", labels=tmp_path / "y.npz", num_labels=2, memory_map=memory_map)


def test_an_npz_whose_array_promises_more_than_it_holds_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.npz", "w") as file:
        file.writestr("X.npy", npy("(1000000000000, 4)", bytes(32)))
        file.writestr("y.npy", npy("(2,)", bytes(8)))
    with pytest.raises(DataError, match=r"all.npz: 'X' cannot be read: it says .* 16000000000000 bytes"):
        read_features(tmp_path / "all.npz", num_labels=2)


def zeros_in_npz(path: Path, megabytes: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("X.npy", "w", force_zip64=True) as member:
            member.write(npy(f"({megabytes}, 250000)"))
            for _ in range(megabytes):
                member.write(bytes(1_000_000))
        labels = io.BytesIO()
        np.save(labels, np.zeros(megabytes, dtype=np.int64))
        file.writestr("y.npy", labels.getvalue())


def test_an_npz_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    zeros_in_npz(tmp_path / "all.npz", 20)
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "10000000")
    with pytest.raises(DataError, match=r"all.npz: 'X' cannot be read: it would unpack to 20000\d+ bytes"):
        read_features(tmp_path / "all.npz", num_labels=2)
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "30000000")
    assert read_features(tmp_path / "all.npz", num_labels=2).in_features == 250_000


def test_a_large_file_may_unpack_to_what_its_size_allows(tmp_path, monkeypatch):
    noise = np.random.default_rng(0).normal(size=(100, 1000)).astype("f4")
    np.savez_compressed(tmp_path / "all.npz", X=noise, y=np.zeros(100, dtype=int))
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "1000")
    assert len(read_features(tmp_path / "all.npz", num_labels=2)) == 100


def test_a_sparse_matrix_with_absurdly_many_columns_is_refused(tmp_path):
    pieces = {"y_data": np.ones(1), "y_indices": [0], "y_indptr": [0, 1], "y_shape": [1, 10**9]}
    np.savez(tmp_path / "all.npz", X=np.ones((1, 2)), **pieces)
    with pytest.raises(DataError, match=r"all.npz: 'y' cannot be read: it would unpack to 100000000000 bytes"):
        read_features(tmp_path / "all.npz")


def test_a_sparse_label_matrix_that_is_too_large_when_dense_is_refused(tmp_path):
    rows, columns = 100_000, 100_000
    indptr = np.zeros(rows + 1, dtype=np.int64)
    empty = {"y_data": np.ones(0), "y_indices": np.ones(0, dtype=int), "y_indptr": indptr, "y_shape": [rows, columns]}
    np.savez_compressed(tmp_path / "all.npz", X=np.ones((rows, 1), dtype="f4"), **empty)
    with pytest.raises(DataError, match=r"all.npz: the sparse label matrix: it would unpack to 80000000000 bytes"):
        read_features(tmp_path / "all.npz", coding="signed")
    assert read_features(tmp_path / "all.npz").target.shape == (rows, columns)  # a label matrix stays sparse


def test_a_parquet_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    pq.write_table(
        pa.table({"X_a": np.zeros(1_000_000), "y": np.zeros(1_000_000, dtype=int)}), tmp_path / "all.parquet"
    )
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "1000000")
    with pytest.raises(DataError, match=r"all.parquet: cannot be read: it would unpack to 16000000 bytes"):
        read_features(tmp_path / "all.parquet", num_labels=2)


def test_an_hdf5_file_that_promises_far_more_than_it_holds_is_refused(tmp_path):
    with h5py.File(tmp_path / "VG-SGG.h5", "w") as file:
        file.create_dataset("boxes_1024", shape=(10**12, 4), dtype="i4", chunks=(1000, 4))
    (tmp_path / "VG-SGG-dicts.json").write_text("{}")
    with pytest.raises(DataError, match=r"VG-SGG.h5: cannot be read: it would unpack to 16000000000000 bytes"):
        read_visual_genome(tmp_path / "VG-SGG.h5")
