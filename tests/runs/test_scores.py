"""Scores and labels of other models: every format, and files that do not fit."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.runs import report
from shortlist.runs.scores import read_labels, read_scores, read_truth

SCORES = np.array([[0.5, 1.5, -1.0], [2.0, 0.0, 1.0]], dtype=np.float32)


def write(folder: Path, name: str, array: np.ndarray) -> Path:
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, array)
    elif name.endswith("two.npz"):
        np.savez(path, scores=array, labels=array, other=array[:1])
    elif name.endswith(".npz"):
        np.savez(path, anything=array)
    elif name.endswith("list.parquet"):
        pq.write_table(pa.table({"column": array.tolist()}), path)
    else:
        pq.write_table(pa.table({f"c{i}": column for i, column in enumerate(np.atleast_2d(array.T))}), path)
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "two.npz", "list.parquet", "columns.parquet"])
def test_scores_are_read_from_every_format(name: str, tmp_path: Path) -> None:
    assert torch.equal(read_scores(write(tmp_path, name, SCORES)).float(), torch.from_numpy(SCORES))


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "list.parquet", "columns.parquet"])
@pytest.mark.parametrize("labels", [[1, -1], [[1, 0, -1], [0, 1, 1]]])
def test_labels_are_read_from_every_format(name: str, labels: list[int], tmp_path: Path) -> None:
    found = read_labels(write(tmp_path, name, np.array(labels)), torch.from_numpy(SCORES))
    assert found.tolist() == labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([1, 3]), "row 1 is 3: class indices are 0..2"),
        (np.array([-2, 0]), "row 0 is -2"),
        (np.array([0.5, 1]), r"row 0 is 0\.5"),
        (np.array([1.0, 2.0]), None),
        (np.array([1, 2, 0]), r"labels of shape \(3,\) do not fit scores of shape \(2, 3\)"),
        (np.array([[0, 1, 2], [0, 0, 0]]), "2"),
        (np.array(["a", "b"]), "labels are numbers"),
        (np.array([np.nan, 1]), "row 0 is nan"),
    ],
)
def test_labels_that_do_not_fit_are_errors_that_name_file_and_row(
    labels: np.ndarray, message: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path, "y.npy", labels)
    if message is None:
        assert read_labels(path, torch.from_numpy(SCORES)).tolist() == [1, 2]
        return
    with pytest.raises(ValueError, match=rf"y\.npy: .*{message}"):
        read_labels(path, torch.from_numpy(SCORES))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("s.npy", np.zeros(3), "scores are numbers"),
        ("s.npy", np.zeros((0, 3)), "scores are numbers"),
        ("s.npy", np.array([["a"]]), "scores are numbers"),
        ("s.txt", None, "known endings"),
        ("missing.npy", None, "there is no file"),
    ],
)
def test_scores_that_cannot_be_read_are_errors_that_name_the_file(
    name: str, array: np.ndarray | None, message: str, tmp_path: Path
) -> None:
    if array is not None:
        np.save(tmp_path / name, array)
    elif name != "missing.npy":
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=message) as error:
        read_scores(tmp_path / name)
    assert name in str(error.value)


def test_an_npz_with_several_arrays_and_none_of_the_right_name_asks_which(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=SCORES, y=SCORES)
    with pytest.raises(ValueError, match=r"a\.npz: which array\? It has x, y"):
        read_scores(tmp_path / "a.npz")


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npy: .*allow_pickle"):
        read_scores(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "list.parquet", "columns.parquet"])
def test_the_truth_is_right_labels_or_votes(name: str, tmp_path: Path) -> None:
    scores = torch.from_numpy(SCORES)
    right = read_truth(write(tmp_path, name, np.array([[1, 0, 1], [0, 1, 0]])), scores)
    assert isinstance(right, LabelSets)
    assert right.to_lists() == [[0, 2], [1]]
    votes = read_truth(write(tmp_path, name, np.array([[3, 0, 1], [0, 1, 0]])), scores)
    assert isinstance(votes, np.ndarray)
    assert votes.tolist() == [[3, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        (np.zeros((2, 3)), "no right label and no vote in any row"),
        (np.full((2, 3), -1.0), "no right label and no vote in any row"),
        (np.array([0, 1]), r"the shape of the scores, \(2, 3\), got \(2,\)"),
        (np.array([[3.0, -2.0, 1.0], [0, 1, 0]]), r"votes\[0, 1\] is -2.0"),
        (np.array([["a", "b", "c"], ["a", "b", "c"]]), "votes are numbers"),
    ],
)
def test_a_truth_that_does_not_fit_names_its_file(truth: np.ndarray, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"t\.npy.*{said}"):
        read_truth(write(tmp_path, "t.npy", truth), torch.from_numpy(SCORES))


def test_names_that_are_no_text_in_utf_8_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(b"a\nb\n\xff")
    scores, labels = write(tmp_path, "s.npy", SCORES), write(tmp_path, "l.npy", np.array([0, 1]))
    with pytest.raises(ShortlistError, match=r"names\.txt: 'utf-8' codec"):
        report(scores=scores, labels=labels, names=tmp_path / "names.txt", out=tmp_path / "page")
