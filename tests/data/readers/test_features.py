"""Features and labels from array files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from shortlist import LabelSets, ShortlistError
from shortlist.data import Dataset, read_features
from shortlist.data.write_features import write_features
from tests.data.readers.made_files import assert_found, found

X = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0], [0, 6, 0]], dtype=np.float32)
MATRIX = np.array([[1, 0], [0, 1], [-1, -1], [0, 0]])
SETS = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=np.uint8)


def pieces(key, matrix):
    csr = sp.csr_matrix(matrix)
    names = ("data", "indices", "indptr", "shape")
    return {f"{key}_{name}": np.asarray(getattr(csr, name)) for name in names}


def everything(data):
    return data.batch(torch.arange(len(data)))[0].tolist(), data.target.tolist()


def test_one_npz_with_indices(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=np.array([1, 0, -1, 1], dtype=np.int16), names=["cat", "dog"])
    data = read_features(tmp_path / "all.npz", vocabulary_key="names")
    assert everything(data) == (X.tolist(), [1, 0, -1, 1])
    assert (data.vocabulary, data.name) == (("cat", "dog"), "all")


def test_one_npz_with_dense_label_matrix(tmp_path):
    np.savez(tmp_path / "all.npz", a=X.astype(np.float64), b=MATRIX)
    data = read_features(tmp_path / "all.npz", inputs_key="a", labels_key="b")
    assert everything(data) == (X.tolist(), MATRIX.tolist())
    assert (data.inputs.dtype, data.target.dtype, data.vocabulary) == (torch.float32, torch.int8, ("0", "1"))


def test_csr_matrices_in_pieces_of_one_npz(tmp_path):
    np.savez(tmp_path / "all.npz", **pieces("X", X), **pieces("y", SETS))
    data = read_features(tmp_path / "all.npz")
    assert sp.issparse(data.inputs)
    assert everything(data) == (X.tolist(), SETS.tolist())


def test_csr_matrices_as_scipy_writes_them(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.csr_matrix(X))
    sp.save_npz(tmp_path / "y.npz", sp.csr_matrix(SETS))
    data = read_features(tmp_path / "x.npz", labels=tmp_path / "y.npz")
    assert everything(data) == (X.tolist(), SETS.tolist())


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_pair_of_npy(tmp_path, memory_map):
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    np.save(tmp_path / "y.npy", np.array([2, 0, 1, 1]))
    data = read_features(tmp_path / "x.npy", labels=tmp_path / "y.npy", num_labels=3, memory_map=memory_map)
    assert everything(data) == (X.tolist(), [2, 0, 1, 1])
    assert str(data.inputs.dtype).endswith("float16")


def test_parquet_with_lists_and_names(tmp_path):
    table = {"X": X.tolist(), "y": ["dog", "cat", None, "dog"], "id": ["a", "b", "c", "d"]}
    pq.write_table(pa.table(table), tmp_path / "all.parquet")
    data = read_features(tmp_path / "all.parquet", ids_key="id")
    assert everything(data) == (X.tolist(), [1, 0, -1, 1])
    assert (data.vocabulary, data.ids) == (("cat", "dog"), ("a", "b", "c", "d"))


def test_parquet_with_a_column_per_feature_and_label(tmp_path):
    columns = {f"x_{j}": X[:, j] for j in range(3)} | {"y_cat": [1.0, 0.0, None, 0.0], "y_dog": [0.0, 1.0, None, 0.0]}
    pq.write_table(pa.table(columns), tmp_path / "all.parquet")
    data = read_features(tmp_path / "all.parquet", inputs_key="x", coding="nan")
    assert everything(data) == (X.tolist(), MATRIX.tolist())
    assert data.vocabulary == ("cat", "dog")


def test_parquet_with_a_label_matrix_of_lists(tmp_path):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    pq.write_table(pa.table({"X": fixed, "y": MATRIX.tolist()}), tmp_path / "all.parquet")
    assert everything(read_features(tmp_path / "all.parquet")) == (X.tolist(), MATRIX.tolist())


def test_a_label_matrix_in_another_coding_is_converted_by_its_name(tmp_path):
    np.savez(tmp_path / "all.npz", X=X[:1], y=np.array([[1, -1, 0]]))
    assert read_features(tmp_path / "all.npz", coding="signed").target.tolist() == [[1, 0, -1]]
    np.savez(tmp_path / "all.npz", X=X[:1], y=np.array([[1, 0, np.nan]]))
    assert read_features(tmp_path / "all.npz", coding="nan").target.tolist() == [[1, 0, -1]]
    assert_found("features", [("all.npz", 0, "label 2 is nan")], path=tmp_path / "all.npz")


def test_labels_marked_unknown_are_unknown_whatever_they_say(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=SETS, difficult=np.eye(4, 2))
    data = read_features(tmp_path / "all.npz", unknown_key="difficult")
    assert data.target.tolist() == [[-1, 0], [1, -1], [0, 0], [0, 1]]


def test_groups_and_their_names_are_read(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=SETS, g=np.array([1, 0], dtype=np.uint8), gn=["wild", "tame"])
    data = read_features(tmp_path / "all.npz", groups_key="g", group_names_key="gn")
    assert (data.groups.tolist(), data.group_names) == ([1, 0], ("wild", "tame"))


def test_a_column_given_as_the_file_of_labels_is_told_its_option(tmp_path):
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,y\n")
    with pytest.raises(ShortlistError, match="labels is a file; a column of the table is named by labels_key=kind"):
        read_features(tmp_path / "t.csv", labels="kind")


def test_every_problem_is_found_in_one_pass(tmp_path):
    bad = X.copy()
    bad[1, 1], bad[3, 0] = np.nan, np.inf
    np.savez(tmp_path / "all.npz", X=bad, y=[0, 5, 1, -2], names=["cat", "dog"], ids=["a", "b", "a", "c"])
    assert_found(
        "features",
        [
            ("all.npz", 1, "not a finite number"),
            ("all.npz", 3, "not a finite number"),
            ("all.npz", 1, "label 5 is outside the vocabulary: allowed are 0..1, -1"),
            ("all.npz", 3, "label -2 is outside the vocabulary"),
            ("all.npz", 2, "the id 'a' is a duplicate, seen before in row 0"),
        ],
        path=tmp_path / "all.npz",
        vocabulary_key="names",
        ids_key="ids",
    )


def test_a_number_that_is_not_finite_is_found_in_csr_and_memory_maps_too(tmp_path):
    bad = X.copy()
    bad[2, 0] = np.nan
    np.savez(tmp_path / "all.npz", **pieces("X", bad), y=SETS)
    assert_found("features", [("all.npz", 2, "not a finite number")], path=tmp_path / "all.npz")
    np.save(tmp_path / "x.npy", bad)
    np.save(tmp_path / "y.npy", SETS)
    options = {"path": tmp_path / "x.npy", "labels": tmp_path / "y.npy", "memory_map": True}
    assert_found("features", [("x.npy", 2, "not a finite number")], **options)


def test_arrays_that_do_not_fit_together_are_reported(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=SETS[:3], d=np.zeros((4, 2)))
    expected = [("all.npz", None, "'y' has 3 rows"), ("all.npz", None, "'d' has shape (4, 2), the label matrix (3, 2)")]
    assert_found("features", expected, path=tmp_path / "all.npz", unknown_key="d")
    assert_found("features", [("all.npz", None, "'y' has 3 rows"), ("all.npz", None, "2 columns for 3 labels")],
                 path=tmp_path / "all.npz", vocabulary=["a", "b", "c"])  # fmt: skip
    np.savez(tmp_path / "flat.npz", X=X[0], y=SETS)
    assert_found("features", [("flat.npz", None, "features must be numbers (N, D)")], path=tmp_path / "flat.npz")


def test_files_that_cannot_be_read_are_reported(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=np.array([[None]] * 4, dtype=object))
    assert found("features", path=tmp_path / "all.npz")[0][2].startswith("'y' cannot be read: Object arrays")
    assert_found("features", [("all.npz", None, "there is no 'Z'; the file has 'X', 'y'"),
                              ("all.npz", None, "'y' cannot be read")],
                 path=tmp_path / "all.npz", inputs_key="Z")  # fmt: skip
    (tmp_path / "all.npz").write_bytes((tmp_path / "all.npz").read_bytes()[:50])
    assert_found("features", [("all.npz", None, "cannot be read")], path=tmp_path / "all.npz")
    assert_found("features", [("x.mat", None, "no such file")], path=tmp_path / "x.mat")
    (tmp_path / "x.mat").touch()
    assert_found("features", [("x.mat", None, "must be .npy, .npz, .csv, .tsv, ")], path=tmp_path / "x.mat")


def test_a_broken_csr_matrix_is_reported(tmp_path):
    broken = pieces("X", X) | {"X_indices": np.array([0, 9, 0, 0, 0, 0])}
    np.savez(tmp_path / "all.npz", **broken, y=SETS)
    assert found("features", path=tmp_path / "all.npz")[0][2].startswith("'X' cannot be read")


def test_parquet_lists_of_different_lengths_are_reported_with_the_row(tmp_path):
    pq.write_table(pa.table({"X": [[1.0, 2.0], [1.0]], "y": [0, 1]}), tmp_path / "all.parquet")
    message = "the features are 1 values in row 1 and 2 in row 0"
    assert_found("features", [("all.parquet", None, message)], path=tmp_path / "all.parquet", num_labels=2)


def test_options_that_do_not_fit_are_refused(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="num_labels=3 was given, but there are 2 names"):
        read_features(tmp_path / "all.npz", num_labels=3, vocabulary=["cat", "dog"])
    with pytest.raises(ValueError, match=r"memory_map needs a \.npy file"):
        read_features(tmp_path / "all.npz", num_labels=3, memory_map=True)
    np.savez(tmp_path / "all.npz", X=X, y=SETS)
    with pytest.raises(ValueError, match="coding must be one of"):
        read_features(tmp_path / "all.npz", coding="guess")


def test_blank_labels_of_a_table_are_unknown_in_every_coding(tmp_path):
    pq.write_table(pa.table({"X": X.tolist(), "y": [1, None, 0, 1]}), tmp_path / "all.parquet")
    assert read_features(tmp_path / "all.parquet", num_labels=2).target.tolist() == [1, -1, 0, 1]
    columns = {"X": X[:2].tolist(), "y_cat": [1, None], "y_dog": [-1, 0]}
    pq.write_table(pa.table(columns), tmp_path / "all.parquet")
    assert read_features(tmp_path / "all.parquet").target.tolist() == [[1, -1], [-1, 0]]
    assert read_features(tmp_path / "all.parquet", coding="signed").target.tolist() == [[1, 0], [-1, -1]]
    np.savez(tmp_path / "all.npz", X=X[:2], y=[0, np.nan])
    options = {"path": tmp_path / "all.npz", "num_labels": 2}
    assert_found("features", [("all.npz", 1, "coding='nan' takes NaN as unknown")], **options)
    assert read_features(**options, coding="nan").target.tolist() == [0, -1]


def test_the_other_columns_of_a_parquet_table_are_features_where_none_is_called_x(tmp_path):
    columns = {"a": [1, 2], "note": ["n", "m"], "b": [0.5, 3.0], "cat": [1, None]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = read_features(tmp_path / "t.parquet", label_columns=["cat"])
    assert everything(data) == ([[1, 0.5], [2, 3]], [[1], [-1]])


def test_groups_and_names_that_do_not_fit_are_reported_with_the_file(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=SETS, g=[0, 1, 2], half=[0.5, 1], names=["cat", "cat"])
    path = tmp_path / "all.npz"
    assert_found("features", [("all.npz", None, "groups must be int64 of shape (2,)")], path=path, groups_key="g")
    assert_found("features", [("all.npz", None, "groups must be whole numbers")], path=path, groups_key="half")
    assert_found("features", [("all.npz", None, "names must differ")], path=path, vocabulary_key="names")


def test_a_file_that_is_wrong_throughout_is_not_listed_throughout(tmp_path):
    np.savez(tmp_path / "all.npz", X=np.zeros((1500, 1)), y=np.full(1500, 9))
    problems = found("features", path=tmp_path / "all.npz", num_labels=2)
    assert len(problems) == 1001
    assert problems[-1][2] == "500 more rows have the same problem as row 999"


# ---- side labels and the truth


def test_side_labels_are_read_by_number_or_by_name(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=SETS, species=[2, -1, 0, 0], names=["owl", "emu", "owl", "cat"])
    assert read_features(tmp_path / "all.npz", side_key="species").side.tolist() == [2, -1, 0, 0]
    assert read_features(tmp_path / "all.npz", side_key="names").side.tolist() == [2, 1, 2, 0]
    np.savez(tmp_path / "bad.npz", X=X, y=SETS, s=[0, -2, 0, 0], half=[0.5, 0, 0, 0], short=[1])
    assert_found("features", [("bad.npz", 1, "the side label is -2")], path=tmp_path / "bad.npz", side_key="s")
    assert_found("features", [("bad.npz", None, "must be classes")], path=tmp_path / "bad.npz", side_key="half")
    assert_found("features", [("bad.npz", None, "'short' has 1 rows")], path=tmp_path / "bad.npz", side_key="short")


def test_the_truth_is_read_from_a_dense_or_sparse_matrix_or_from_names(tmp_path):
    names = ["cat", "cat|dog", "", "dog"]
    np.savez(tmp_path / "all.npz", X=X, y=[0, 1, -1, 1], t=SETS, n=names, v=["cat", "dog"], **pieces("s", SETS))
    for key in "tsn":
        data = read_features(tmp_path / "all.npz", vocabulary_key="v", truth_key=key)
        assert data.truth.to_lists() == [[0], [0, 1], [], [1]]
    options = {"path": tmp_path / "all.npz", "vocabulary": ["cat", "owl"], "truth_key": "n"}
    assert_found("features", [("all.npz", None, "truth: ")], **options)


def test_what_data_features_writes_is_read_back_whole(tmp_path):
    truth = LabelSets.from_lists([[0], [0, 1], [], [1]], vocabulary=("cat", "dog"))
    whole = Dataset(
        torch.from_numpy(X),
        torch.tensor([0, 1, -1, 1]),
        ("cat", "dog"),
        groups=torch.tensor([0, 0]),
        group_names=("tame",),
        truth=truth,
        ids=("a", "b", "c", "d"),
        side=torch.tensor([7, -1, 0, 7]),
    )
    options = write_features(whole, tmp_path / "all.npz")
    data = read_features(tmp_path / "all.npz", **options)
    assert everything(data) == everything(whole)
    assert (data.vocabulary, data.group_names, data.ids) == (whole.vocabulary, whole.group_names, whole.ids)
    assert (data.side.tolist(), data.truth, data.groups.tolist()) == ([7, -1, 0, 7], truth, [0, 0])
