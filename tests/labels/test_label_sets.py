"""LabelSets against plain Python sets."""

import copy
import json
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from shortlist import optional
from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.labels.label_set_files import write_csv, write_jsonl, write_parquet

ANIMALS = ("cat", "dog", "owl")


@st.composite
def label_sets(draw: st.DrawFn, count: int | None = None, num_labels: int | None = None) -> LabelSets:
    num_labels = num_labels or draw(st.integers(1, 12))
    size = st.integers(0, 8) if count is None else st.just(count)
    rows = draw(size.flatmap(lambda n: st.lists(st.sets(st.integers(0, num_labels - 1)), min_size=n, max_size=n)))
    names = st.lists(st.text(max_size=6), min_size=num_labels, max_size=num_labels, unique=True)
    return LabelSets.from_lists(rows, num_labels, draw(st.none() | names))


@st.composite
def two_with_the_same_examples(draw: st.DrawFn) -> tuple[LabelSets, LabelSets]:
    first = draw(label_sets())
    rows = st.sets(st.integers(0, first.num_labels - 1))
    other = draw(st.lists(rows, min_size=len(first), max_size=len(first)))
    return first, LabelSets.from_lists(other, first.num_labels, first.vocabulary)


def animals(*rows: list[int]) -> LabelSets:
    return LabelSets.from_lists(rows, vocabulary=ANIMALS)


# ---- building


@given(st.lists(st.lists(st.integers(0, 9), max_size=15), max_size=8))
def test_lists_become_sorted_sets(rows: list[list[int]]) -> None:
    assert LabelSets.from_lists(rows, num_labels=10).to_lists() == [sorted(set(row)) for row in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [[2, 0], [1]],
        ({2, 0}, (1,)),
        [np.array([2, 0]), np.array([1], dtype=np.uint8)],
        [torch.tensor([2, 0]), torch.tensor([1])],
        [["owl", "cat"], ["dog"]],
        [np.array(["owl", "cat"]), ("dog",)],
        (row for row in ([2, 0], [1])),
    ],
    ids=["lists", "sets", "numpy", "torch", "names", "numpy names", "generator"],
)
def test_every_kind_of_collection_is_read(rows: object) -> None:
    assert LabelSets.from_lists(rows, 3, ANIMALS) == LabelSets([0, 2, 3], [0, 2, 1], 3, ANIMALS)  # type: ignore[arg-type]


@given(label_sets())
def test_dense_sparse_and_lists_are_read_back_alike(sets: LabelSets) -> None:
    vocabulary = sets.vocabulary
    dense = sets.to_dense()
    assert dense.shape == (len(sets), sets.num_labels)
    assert [np.flatnonzero(row).tolist() for row in dense] == sets.to_lists()
    assert np.array_equal(sets.to_sparse().toarray(), dense)
    assert LabelSets.from_dense(dense, vocabulary) == sets
    assert LabelSets.from_dense(torch.from_numpy(dense).float(), vocabulary) == sets
    assert LabelSets.from_sparse(sets.to_sparse(), vocabulary) == sets
    assert LabelSets.from_sparse(sparse.coo_matrix(dense.astype(float)), vocabulary) == sets
    assert LabelSets.from_lists(sets.to_lists(), sets.num_labels, vocabulary) == sets
    if vocabulary is not None:
        assert LabelSets.from_lists(sets.names, vocabulary=vocabulary) == sets


def test_a_sparse_matrix_is_left_as_it_was_and_its_stored_zeros_are_no_members() -> None:
    matrix = sparse.csr_array((np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    assert LabelSets.from_sparse(matrix).to_lists() == [[0, 2]]
    assert matrix.data.tolist() == [1, 0, 1]
    assert matrix.indices.tolist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_scores_that_reach_the_threshold_are_in(dtype: torch.dtype) -> None:
    scores = torch.tensor([[0.1, 0.5, -1.0], [float("inf"), 0.25, float("-inf")]], dtype=dtype, requires_grad=True)
    assert LabelSets.from_scores(scores, 0.1).to_lists() == [[0, 1], [0, 1]]
    assert LabelSets.from_scores(scores, torch.tensor([1.0, 0.3, -1.0])).to_lists() == [[1, 2], [0]]


def test_numpy_scores_and_whole_number_scores_are_read() -> None:
    assert LabelSets.from_scores(np.float32([[0.1, 0.09]]), 0.1).to_lists() == [[0]]
    assert LabelSets.from_scores([[1, 2, 3]], 1.5, ANIMALS).names == [["dog", "owl"]]
    assert LabelSets.from_scores(np.zeros((0, 4)), 0.5) == LabelSets([0], [], 4)


def test_labels_are_int32_until_there_are_too_many() -> None:
    assert LabelSets([0, 1], np.array([2**31 - 1]), num_labels=2**31).indices.dtype == np.int32
    many = LabelSets([0, 1, 3], np.array([2**31, 0, 2**40]), num_labels=2**41)
    assert many.indices.dtype == np.int64
    assert (many | many).to_lists() == [[2**31], [0, 2**40]]


def test_the_arrays_are_copies_that_cannot_be_written_to() -> None:
    offsets, indices = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
    sets = LabelSets(offsets, indices, 2)
    indices[0] = 0
    offsets[1] = 2
    assert sets.to_lists() == [[1], [0]]
    for again in (sets, pickle.loads(pickle.dumps(sets)), copy.deepcopy(sets)):
        assert again == sets
        for array in (again.offsets, again.indices):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    with pytest.raises(AttributeError):
        sets.num_labels = 3  # type: ignore[misc]
    matrix = sets.to_sparse()
    matrix.indices[0] = 0
    assert sets.to_lists() == [[1], [0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LabelSets([], [], 3), "offsets must begin with 0"),
        (lambda: LabelSets([1, 2], [0, 1], 3), "offsets must begin with 0, got [1]"),
        (lambda: LabelSets([0, 2, 1, 3], [0, 1, 2], 3), "offsets must not decrease: row 1 begins at 2 and ends at 1"),
        (lambda: LabelSets([0, 2], [0, 1, 2], 3), "the last offset must be the number of indices, 3, got 2"),
        (lambda: LabelSets([0.0, 1.0], [0], 3), "offsets must be whole numbers in one dimension"),
        (lambda: LabelSets([0, 1], [[0]], 3), "indices must be whole numbers in one dimension"),
        (lambda: LabelSets([0, 0, 2], [1, 3], 3), "row 1 holds label 3: allowed are 0..2"),
        (lambda: LabelSets([0, 0, 2], [-1, 2], 3), "row 1 holds label -1: allowed are 0..2"),
        (lambda: LabelSets([0, 1, 3], [2, 2, 1], 3), "row 1 holds label 2 and then 1: labels must increase"),
        (lambda: LabelSets([0, 0, 2], [1, 1], 3), "row 1 holds label 1 and then 1: labels must increase"),
        (lambda: LabelSets([0], [], 0), "num_labels must be a whole number of at least 1, got 0"),
        (lambda: LabelSets([0], [], True), "num_labels must be a whole number of at least 1, got True"),
        (lambda: LabelSets([0], [], 3, ["a", "b"]), "vocabulary has 2 names for num_labels=3"),
        (lambda: LabelSets([0], [], 2, ["a", "a"]), "vocabulary[1] is 'a', as is vocabulary[0]"),
        (lambda: LabelSets([0], [], 2, ["a", 7]), "vocabulary[1] must be a string, got 7"),
        (lambda: LabelSets([0], [], 2, "ab"), "vocabulary must be a sequence of label names, got 'ab'"),
        (lambda: LabelSets([0], [], 1, ["\ud800"]), "vocabulary[0] is '\\ud800', which is not valid unicode"),
        (lambda: LabelSets.from_lists([[0]]), "num_labels is needed when there is no vocabulary"),
        (lambda: LabelSets.from_lists([[0], [1, 5]], 5), "row 1 holds label 5: allowed are 0..4"),
        (lambda: LabelSets.from_lists([[0], [], [2, -1]], 5), "row 2 holds label -1: allowed are 0..4"),
        (lambda: LabelSets.from_lists([[0], [2**70]], 5), f"row 1 holds label {2**70}: allowed are 0..4"),
        (lambda: LabelSets.from_lists([[0], [1.0]], 5), "row 1 holds 1.0 (float): labels are all whole numbers"),
        (lambda: LabelSets.from_lists([[0], [True]], 5), "row 1 holds True (bool): labels are all whole numbers"),
        (lambda: LabelSets.from_lists([["cat"], [0]], 3, ANIMALS), "row 1 holds 0 (int): labels are all whole numbers"),
        (lambda: LabelSets.from_lists([["cat"]], 3), "given by name: vocabulary=[...] is needed"),
        (lambda: LabelSets.from_lists([[], ["cow"]], 3, ANIMALS), "row 1 holds 'cow', which is not in the vocabulary"),
        (lambda: LabelSets.from_lists([[0], 1], 3), "row 1 must be a collection of labels, got 1"),
        (lambda: LabelSets.from_lists(["cat"], 3, ANIMALS), "row 0 must be a collection of labels, got 'cat'"),
        (lambda: LabelSets.from_lists("cat", 3, ANIMALS), "one collection of labels per example, got a str"),
        (lambda: LabelSets.from_dense([[0, 1], [1, -1]]), "matrix[1, 1] is -1: allowed are True and False, or 1 and 0"),
        (lambda: LabelSets.from_dense([[0.5, float("nan")]]), "matrix[0, 0] is 0.5"),
        (lambda: LabelSets.from_dense([True]), "must have shape (examples, labels), at least one label, got (1,)"),
        (lambda: LabelSets.from_dense([["a"]]), "matrix must hold bools or numbers"),
        (lambda: LabelSets.from_dense(sparse.eye_array(2)), "the matrix is sparse: use from_sparse"),
        (lambda: LabelSets.from_sparse(np.eye(2)), "must be a scipy sparse one, got ndarray"),
        (lambda: LabelSets.from_sparse(sparse.csr_array([[0, 0], [0, 3]])), "matrix[1, 1] is 3: allowed are"),
        (lambda: LabelSets.from_scores([[0.0], [float("nan")]], 0), "scores[1, 0] is NaN"),
        (lambda: LabelSets.from_scores([0.0, 1.0], 0), "scores must have shape (examples, labels)"),
        (lambda: LabelSets.from_scores([[0.0, 1.0]], [0, 0, 0]), "one per label (2), without NaN, got shape (3,)"),
        (lambda: LabelSets.from_scores([[0.0, 1.0]], float("nan")), "without NaN, got shape () with NaN"),
        (lambda: animals([0]).contains([3]), "labels[0] is 3: allowed are 0..2, or -1 for unknown"),
        (lambda: animals([0]).contains([0, 1]), "one for each of the 1 examples, got shape (2,)"),
        (lambda: animals([0]).contains([0.5]), "labels must be whole numbers, got dtype float64"),
        (lambda: 1 in animals([0]), "`in` looks for a whole set, got 1; for one label use contains(1)"),
        (lambda: LabelSets([0], [], 3).names, "have no vocabulary"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(build: object, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        build()  # type: ignore[operator]
    assert message in str(error.value)


# ---- the sets as a sequence


@given(label_sets(), st.data())
def test_choosing_examples_equals_choosing_lists(sets: LabelSets, data: st.DataObject) -> None:
    lists = sets.to_lists()
    assert (len(sets), list(sets), sets.sizes.tolist()) == (len(lists), lists, list(map(len, lists)))
    part = data.draw(st.slices(len(sets)))
    assert sets[part].to_lists() == lists[part]
    assert sets[part].vocabulary == sets.vocabulary
    mask = data.draw(st.lists(st.booleans(), min_size=len(sets), max_size=len(sets)))
    kept = [row for row, keep in zip(lists, mask, strict=True) if keep]
    assert sets[mask].to_lists() == sets[torch.tensor(mask, dtype=torch.bool)].to_lists() == kept
    if lists:
        positions = data.draw(st.lists(st.integers(-len(lists), len(lists) - 1)))
        assert sets[positions].to_lists() == sets[np.array(positions, dtype=np.int32)].to_lists()
        assert sets[positions].to_lists() == [lists[i] for i in positions]
        for i in positions:
            assert sets[i] == sets[np.int64(i)] == sets[torch.tensor(i)] == lists[i]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (2, "there is no set 2: there are 2"),
        (-3, "there is no set -3: there are 2"),
        ([0, 5], "there is no set 5: there are 2"),
        ([True], "the mask has 1 entries for 2 sets"),
        (0.5, "sets are chosen by a whole number"),
        (True, "sets are chosen by a whole number"),
        ("cat", "sets are chosen by a whole number"),
        ([[0]], "positions in one dimension"),
    ],
)
def test_an_example_that_is_not_there_is_an_index_error(key: object, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        animals([0], [1])[key]  # type: ignore[call-overload]


@given(st.lists(label_sets(num_labels=7).map(lambda s: LabelSets(s.offsets, s.indices, 7)), min_size=1, max_size=4))
def test_concatenation_equals_that_of_lists(parts: list[LabelSets]) -> None:
    joined = LabelSets.concatenate(parts)
    assert joined.to_lists() == [row for part in parts for row in part]
    assert LabelSets.concatenate([joined[:0], *(joined[i : i + 1] for i in range(len(joined)))]) == joined


def test_parts_must_agree_in_their_labels() -> None:
    named, unnamed = animals([0]), LabelSets.from_lists([[1]], 3)
    assert LabelSets.concatenate([unnamed, named]).names == [["dog"], ["cat"]]
    with pytest.raises(ValueError, match="at least one LabelSets"):
        LabelSets.concatenate([])
    with pytest.raises(ValueError, match="part 1 has num_labels=4, the first has 3"):
        LabelSets.concatenate([named, LabelSets([0], [], 4)])
    with pytest.raises(ValueError, match="vocabularies differ at label 2: 'owl', and 'cow' in part 2"):
        LabelSets.concatenate([unnamed, named, LabelSets([0], [], 3, ["cat", "dog", "cow"])])


# ---- sets combined and compared


@given(two_with_the_same_examples())
def test_union_and_intersection_equal_those_of_python_sets(pair: tuple[LabelSets, LabelSets]) -> None:
    a, b = pair
    rows = [(set(x), set(y)) for x, y in zip(a, b, strict=True)]
    assert (a | b) == LabelSets.from_lists([x | y for x, y in rows], a.num_labels, a.vocabulary)
    assert (a & b) == LabelSets.from_lists([x & y for x, y in rows], a.num_labels, a.vocabulary)


def test_sets_that_do_not_match_do_not_combine() -> None:
    with pytest.raises(ValueError, match="example by example: got 1 examples and 2"):
        animals([0]) | animals([0], [1])
    with pytest.raises(ValueError, match="the other has num_labels=4, the first has 3"):
        animals([0]) & LabelSets([0, 0], [], 4)
    with pytest.raises(ValueError, match="vocabularies differ at label 0: 'cat', and 'dog' in the other"):
        animals([0]) & LabelSets([0, 0], [], 3, ["dog", "cat", "owl"])
    with pytest.raises(ValueError, match="combine with LabelSets, got set"):
        animals([0]) | {0}  # type: ignore[operator]


@given(label_sets(), st.data())
def test_contains_asks_each_set_for_its_label(sets: LabelSets, data: st.DataObject) -> None:
    label = st.integers(-1, sets.num_labels - 1)
    labels = data.draw(st.lists(label, min_size=len(sets), max_size=len(sets)))
    expected = [x in row for x, row in zip(labels, sets, strict=True)]
    assert sets.contains(labels).tolist() == sets.contains(torch.tensor(labels, dtype=torch.int64)).tolist() == expected
    one = data.draw(label)
    assert sets.contains(one).tolist() == [one in row for row in sets]


def test_in_looks_for_a_whole_set() -> None:
    sets = animals([2, 0], [])
    assert {0, 2} in sets
    assert ["owl", "cat"] in sets
    assert [] in sets
    assert {0} not in sets


def test_equality_needs_the_same_sets_labels_and_names() -> None:
    sets = animals([0, 2], [1])
    assert sets == animals([0, 2], [1])
    assert sets != animals([0, 2], [2])
    assert sets != animals([0], [1, 2])
    assert sets != LabelSets.from_lists([[0, 2], [1]], 3)
    assert LabelSets([0], [], 3) != LabelSets([0], [], 4)
    assert sets != [[0, 2], [1]]
    with pytest.raises(TypeError, match="unhashable"):
        hash(sets)


def test_repr_shows_the_first_sets_by_name_and_stays_short() -> None:
    assert repr(animals([0, 2], [])) == "LabelSets(2 sets over 3 labels, mean size 1: {cat, owl}, {})"
    assert repr(LabelSets([0], [], 3)) == "LabelSets(0 sets over 3 labels)"
    many = LabelSets.from_dense(np.ones((10_000, 1000), dtype=bool))
    assert repr(many) == (
        "LabelSets(10000 sets over 1000 labels, mean size 1e+03: "
        "{0, 1, 2, 3, 4, ...}, {0, 1, 2, 3, 4, ...}, {0, 1, 2, 3, 4, ...}, ...)"
    )


# ---- files

FORMATS = [(LabelSets.to_parquet, LabelSets.from_parquet), (LabelSets.to_jsonl, LabelSets.from_jsonl)]


@pytest.mark.parametrize(("write", "read"), FORMATS, ids=["parquet", "jsonl"])
@given(sets=label_sets())
@settings(max_examples=60)
def test_files_lose_nothing(write: object, read: object, sets: LabelSets) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(sets, Path(folder) / "file")  # type: ignore[operator]
        assert read(Path(folder) / "file") == sets  # type: ignore[operator]


@pytest.mark.parametrize(("write", "read"), FORMATS, ids=["parquet", "jsonl"])
def test_awkward_names_no_examples_and_many_labels_survive(write: object, read: object, tmp_path: Path) -> None:
    names = ["", "a\nb", "c\r\nd", "\u2028\x85\x0b", '"], ["', "犬 🦉", "0", "null", "\x00"]
    for sets in (
        LabelSets.from_lists([range(9), [], [3]], vocabulary=names),
        LabelSets([0], [], 9, names),
        LabelSets([0], [], 4),
        LabelSets([0, 0], [], 4),
        LabelSets([0, 1], [2**40], 2**41),
    ):
        write(sets, str(tmp_path / "file"))  # type: ignore[operator]
        assert read(str(tmp_path / "file")) == sets  # type: ignore[operator]


def test_the_corel5k_labels_go_through_every_form(tmp_path: Path) -> None:
    shared = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[2] / "shared"))
    path = shared / "data" / "mulan_multilabel" / "corel5k.npz"
    if not path.exists():
        pytest.skip(f"the Mulan data sets are not at {path}")
    with np.load(path) as z:
        parts = (z["Y_train_data"], z["Y_train_indices"], z["Y_train_indptr"])
        matrix, names = sparse.csr_array(parts, shape=z["Y_train_shape"]), z["label_names"]
    sets = LabelSets.from_sparse(matrix, names)
    assert (len(sets), sets.num_labels, round(float(sets.sizes.mean()), 2)) == (4500, 374, 3.52)
    assert np.array_equal(sets.to_dense(), matrix.toarray() == 1)
    assert LabelSets.from_lists(sets.names, vocabulary=names) == sets
    for write, read in FORMATS:
        write(sets, tmp_path / "file")
        assert read(tmp_path / "file") == sets


def test_parquet_of_another_tool_that_kept_the_metadata_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    animals([0], [], [1, 2]).to_parquet(path)
    table = pa.parquet.read_table(path)
    rewritten = pa.table({"labels": pa.array([[0], [], [1, 2]], pa.list_(pa.int64()))}, metadata=table.schema.metadata)
    pa.parquet.write_table(rewritten, path, row_group_size=2)
    assert LabelSets.from_parquet(path) == animals([0], [], [1, 2])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[0], None]), "row 1 is null: an empty set is an empty list"),
        (pa.array([[0], [None]], pa.list_(pa.int32())), "a set holds a null"),
        (pa.array([["a"]]), "must hold lists of whole numbers, it holds list<"),
        (pa.array([1]), "must hold lists of whole numbers, it holds int64"),
        (pa.array([[0], [3]]), "row 1 holds label 3: allowed are 0..2"),
        (pa.array([[0], [1, 1]]), "row 1 holds label 1 and then 1"),
    ],
)
def test_a_wrong_parquet_file_is_named_with_its_row(column: pa.Array, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    animals([0]).to_parquet(path)
    metadata = pa.parquet.read_schema(path).metadata
    pa.parquet.write_table(pa.table({"labels": column}, metadata=metadata), path)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        LabelSets.from_parquet(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_a_file_of_something_else_is_not_read_as_sets(tmp_path: Path) -> None:
    path = tmp_path / "other"
    pa.parquet.write_table(pa.table({"labels": pa.array([[0]])}), path)
    with pytest.raises(ValueError, match=r"other: not a file of LabelSets\.to_parquet"):
        LabelSets.from_parquet(path)
    path.write_text("no parquet")
    with pytest.raises(ValueError, match="other: "):
        LabelSets.from_parquet(path)
    with pytest.raises(ValueError, match="other: line 1 is not JSON"):
        LabelSets.from_jsonl(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        LabelSets.from_jsonl(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "the first line promises 2 sets, 1 follow: was it cut short?"),
        (lambda lines: lines[1:], "not a file of LabelSets.to_jsonl"),
        (lambda lines: [*lines[:2], '{"labels": ["c'], "line 3 is not JSON"),
        (lambda lines: [*lines[:2], "[0]"], "line 3 must be a JSON object, got [0]"),
        (lambda lines: [*lines[:2], '{"label": [0]}'], 'line 3 must be {"labels": [...]}, got {"label": [0]}'),
        (lambda lines: [*lines[:2], '{"labels": ["cow"]}'], "row 1 holds 'cow', which is not in the vocabulary"),
        (lambda lines: [*lines[:2], '{"labels": [3]}'], "row 1 holds 3 (int): labels are all whole numbers, or all"),
        (lambda lines: [lines[0].replace("[", "3}#["), *lines[1:]], "line 1 is not JSON"),
        (lambda lines: ['{"num_sets": 0, "num_labels": 3, "vocabulary": 3}'], "vocabulary must be a sequence"),
    ],
)
def test_a_wrong_jsonl_file_is_named_with_its_line(change: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sets.jsonl"
    animals([0], [1, 2]).to_jsonl(path)
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")  # type: ignore[operator]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        LabelSets.from_jsonl(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_a_parquet_file_of_a_few_bytes_for_very_many_labels_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    LabelSets(np.arange(2**20 + 1), np.zeros(2**20, np.int64), 1).to_parquet(path, ids=["same"] * 2**20)
    assert path.stat().st_size < 2**16
    with pytest.raises(ShortlistError, match="1,048,576 labels in 1,048,576 sets, max_labels=1,000"):
        LabelSets.from_parquet(path, max_labels=1000)
    assert len(LabelSets.from_parquet(path, max_labels=2**20)) == 2**20


def test_a_damaged_parquet_file_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    sets = LabelSets.from_lists([[0, 2], [1]] * 50, num_labels=3)
    sets.to_parquet(path)
    whole = path.read_bytes()
    end_of_pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged = [whole[: end_of_pages - 1] + bytes([whole[end_of_pages - 1] ^ 1]) + whole[end_of_pages:]]
    for content in [*damaged, *(whole[:length] for length in range(0, len(whole), 20))]:
        path.write_bytes(content)
        with pytest.raises(ShortlistError, match=r"sets\.parquet: not a parquet file, or damaged"):
            LabelSets.from_parquet(path)


@pytest.mark.parametrize("change", ["num_labels", "deep"])
@pytest.mark.parametrize(("to", "back"), FORMATS)
def test_a_file_with_more_labels_than_there_can_be_or_nested_deeply_is_a_message(
    to: Any, back: Any, change: str, tmp_path: Path
) -> None:
    path = tmp_path / "sets"
    LabelSets.from_lists([[0, 1], [1]], num_labels=2).to_jsonl(path)
    header = '{"num_sets": 2, "num_labels": %s, "vocabulary": null}'
    header %= 10**30 if change == "num_labels" else "[" * 100_000
    if to is LabelSets.to_parquet:
        table = pa.table({"labels": [[0, 1], [1]]}).replace_schema_metadata({"shortlist.LabelSets": header})
        pa.parquet.write_table(table, path)
    else:
        path.write_text("\n".join([header, *path.read_text().splitlines()[1:]]) + "\n")
    message = "num_labels must be a whole number" if change == "num_labels" else "nested too deeply"
    with pytest.raises(ShortlistError, match=message):
        back(path)


def test_examples_times_labels_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ShortlistError, match=r"product must be < 2\^63"):
        LabelSets.from_lists([[1], [0]] * 2, num_labels=2**62)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sets.parquet"
    animals([0]).to_parquet(path)
    before = path.read_bytes()

    def write_nothing(self: object, table: pa.Table) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pa.parquet.ParquetWriter, "write_table", write_nothing)
    with pytest.raises(OSError, match="no space left"):
        animals([1]).to_parquet(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["sets.parquet"]


def test_a_link_keeps_pointing_at_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    animals([1]).to_jsonl(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert LabelSets.from_jsonl(tmp_path / "real") == animals([1])


def test_a_missing_folder_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot write .*sets\.jsonl: there is no folder .*nowhere"):
        animals([1]).to_jsonl(tmp_path / "nowhere" / "sets.jsonl")


def test_a_missing_extra_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(optional.__dict__, "import_module", _no_module)
    with pytest.raises(ImportError, match=r"needs scipy, which is not installed: pip install 'shortlist\[train\]'"):
        animals([1]).to_sparse()


def _no_module(name: str) -> None:
    raise ModuleNotFoundError(name)


# ---- ids beside the sets


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_ids_stand_in_the_file_of_their_sets(ending: str, tmp_path: Path) -> None:
    sets, file = LabelSets.from_lists([[0], []], vocabulary=["cat", "dog"]), tmp_path / f"sets.{ending}"
    ids = ['a "b"', "ü\u2028"]
    getattr(sets, f"to_{ending}")(file, ids=ids)
    assert getattr(LabelSets, f"from_{ending}")(file) == sets
    if ending == "parquet":
        found = pandas.read_parquet(file)
        assert found["id"].tolist() == ids
        assert [list(labels) for labels in found["labels"]] == [[0], []]
    else:
        lines = [json.loads(line) for line in file.read_text("utf-8").split("\n")[1:-1]]
        assert lines == [{"id": ids[0], "labels": ["cat"]}, {"id": ids[1], "labels": []}]


def test_a_csv_of_labels_that_hold_the_separator_has_lists_as_json_writes_them(tmp_path: Path) -> None:
    sets = LabelSets.from_lists([[1], [0, 1], []], vocabulary=["dog", 'sad|"blue"'])
    sets.to_csv(tmp_path / "sets.csv", beside=("probabilities", np.array([0.5, 0.75, 0.25])))
    found = pandas.read_csv(tmp_path / "sets.csv")
    assert found["labels"].map(json.loads).tolist() == [['sad|"blue"'], ["dog", 'sad|"blue"'], []]
    assert found["probabilities"].map(json.loads).tolist() == [[0.5], [0.75, 0.25], []]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_every_form_has_the_rows_numbers_for_ids_and_the_best_label_first(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"sets.{ending}"
    first = animals([0, 2], [1])
    parts = [(first, None, ("odds", np.array([1.0, 3.0, 2.0]))), (animals([]), None, ("odds", np.zeros(0)))]
    if ending == "jsonl":
        write_jsonl(file, parts, None)
        found = pandas.read_json(file, lines=True)
        names = [list(cell) for cell in found["labels"]]
    elif ending == "parquet":
        write_parquet(file, parts)
        found = pandas.read_parquet(file)
        names = [list(cell) for cell in found["names"]]
        assert LabelSets.from_parquet(file) == animals([0, 2], [1], [])
    else:
        write_csv(file, parts)
        found = pandas.read_csv(file, keep_default_na=False)
        names = [cell.split("|") if cell else [] for cell in found["labels"]]
    assert found["id"].tolist() == [0, 1, 2]
    assert names == [[first.vocabulary[2], first.vocabulary[0]], [first.vocabulary[1]], []]


def test_lines_of_examples_alone_are_read_with_the_vocabulary(tmp_path: Path) -> None:
    sets, file = animals([0, 2], [1], []), tmp_path / "sets.jsonl"
    write_jsonl(file, [(sets, None, None)], None)
    assert LabelSets.from_jsonl(file, vocabulary=sets.vocabulary) == sets
    with pytest.raises(ShortlistError, match="give the vocabulary"):
        LabelSets.from_jsonl(file)
    write_jsonl(file, [(sets[:0], None, None)], None)
    assert len(LabelSets.from_jsonl(file, vocabulary=sets.vocabulary)) == 0


def test_ids_that_do_not_fit_the_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ShortlistError, match="one id for each of the 2 sets, got 1"):
        LabelSets.from_lists([[0], []], num_labels=2).to_jsonl(tmp_path / "x.jsonl", ids=["a"])
    assert not any(tmp_path.iterdir())
