"""The label matrix and its converters."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from shortlist.labels import (
    LabelSets,
    check_label_matrix,
    from_chexpert,
    from_indices,
    from_nan,
    from_sets,
    from_signed,
)

NAN = float("nan")
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)
LABEL_MATRICES = hnp.arrays(np.int8, SHAPES, elements=st.sampled_from([1, 0, -1]))
NUMPY_TYPES = [np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
TORCH_TYPES = [torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def same(found: object, expected: np.ndarray) -> bool:
    """The right values, as int8, in the family that was asked for."""
    if isinstance(found, torch.Tensor):
        return found.dtype == torch.int8 and np.array_equal(found.numpy(), expected)
    return isinstance(found, np.ndarray) and found.dtype == np.int8 and np.array_equal(found, expected)


# ---- the check


@given(LABEL_MATRICES, st.sampled_from(NUMPY_TYPES), st.sampled_from(TORCH_TYPES))
def test_label_matrices_pass_in_every_type(labels: np.ndarray, numpy_type: type, torch_type: torch.dtype) -> None:
    check_label_matrix(labels.astype(numpy_type))
    check_label_matrix(torch.from_numpy(labels).to(torch_type))
    check_label_matrix(labels == 1)
    check_label_matrix(torch.from_numpy(labels) == 1)


@given(LABEL_MATRICES.filter(lambda x: x.size > 0), st.sampled_from([2.0, -2.0, 0.5, NAN, np.inf]), st.data())
def test_the_first_wrong_entry_is_named(labels: np.ndarray, value: float, data: st.DataObject) -> None:
    flat = data.draw(st.lists(st.integers(0, labels.size - 1), min_size=1))
    wrong = labels.astype(np.float32)
    wrong.flat[flat] = value
    position = ", ".join(map(str, np.unravel_index(min(flat), labels.shape)))
    for x in (wrong, torch.from_numpy(wrong)):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            check_label_matrix(x)
        blank = "; labels.from_nan takes NaN as unknown" if value != value else ""
        assert str(error.value) == f"x[{position}] is {value}: allowed are 1 (present), 0 (absent), -1 (unknown){blank}"


@pytest.mark.parametrize("x", [np.array([[0, 255]], dtype=np.uint8), torch.tensor([[0, 255]], dtype=torch.uint8)])
def test_255_is_not_taken_for_minus_one(x: object) -> None:
    with pytest.raises(ValueError, match=r"x\[0, 1\] is 255"):
        check_label_matrix(x)
    with pytest.raises(ValueError, match=r"x\[0, 1\] is 255"):
        from_signed(x)


@pytest.mark.parametrize("x", [np.array([["a"]]), np.array([[None]]), np.ones((1, 1), complex), np.int8(1), 1j])
@pytest.mark.parametrize("convert", [check_label_matrix, from_signed, from_nan])
def test_what_is_not_an_array_of_numbers_is_refused(convert: object, x: object) -> None:
    with pytest.raises(ValueError, match="x must hold bools or numbers, one per label, got shape"):
        convert(x)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"torch\.complex64"):
        convert(torch.ones(1, dtype=torch.complex64))  # type: ignore[operator]


# ---- signed and NaN-coded matrices


@given(LABEL_MATRICES, st.sampled_from(NUMPY_TYPES), st.sampled_from(TORCH_TYPES))
def test_signed_labels_become_the_label_matrix(labels: np.ndarray, numpy_type: type, torch_type: torch.dtype) -> None:
    signed = np.array([-1, 1, 0])[labels]  # what absent, present and unknown are called there
    before = signed.copy()
    assert same(from_signed(signed.astype(numpy_type)), labels)
    assert same(from_signed(torch.from_numpy(signed).to(torch_type)), labels)
    assert same(from_signed(signed.tolist()), labels) or signed.size == 0
    assert np.array_equal(signed, before)


@given(LABEL_MATRICES)
def test_nan_coded_labels_become_the_label_matrix(labels: np.ndarray) -> None:
    coded = np.array([0.0, 1.0, NAN], dtype=np.float32)[labels]
    assert same(from_nan(coded), labels)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert same(from_nan(torch.from_numpy(coded).to(dtype)), labels)


@given(hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.sampled_from([1, 0, -1])))
def test_sparse_matrices_give_what_dense_ones_give(signed: np.ndarray) -> None:
    for layout in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        assert same(from_signed(layout(signed)), from_signed(signed))
        check_label_matrix(layout(signed))
        assert same(from_nan(layout(abs(signed))), abs(signed))


@pytest.mark.parametrize(
    ("convert", "x", "message"),
    [
        (from_signed, [[1, -1], [0, 2]], "x[1, 1] is 2: allowed are 1 (present), -1 (absent), 0 (unknown)"),
        (from_signed, [[1, NAN]], "x[0, 1] is nan: allowed are 1 (present), -1 (absent), 0 (unknown)"),
        (from_signed, [[0, 0], [0, 3]], "x[1, 1] is 3: allowed are"),
        (from_nan, [[1, 0], [-1, NAN]], "x[1, 0] is -1.0: allowed are 1 (present), 0 (absent), nan (unknown)"),
        (from_nan, [[1, 0.5]], "x[0, 1] is 0.5: allowed are"),
    ],
)
def test_a_value_of_another_coding_is_named(convert: object, x: list[list[float]], message: str) -> None:
    for given_as in (np.array(x), torch.tensor(x), sparse.csr_array(np.array(x))):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            convert(given_as)  # type: ignore[operator]
        assert message in str(error.value)


@pytest.mark.parametrize("x", [np.array([[True]]), torch.tensor([[True]]), sparse.csr_array([[True]])])
def test_bools_are_not_signed_labels(x: object) -> None:
    with pytest.raises(ValueError, match="x is bool, which has no -1"):
        from_signed(x)


# ---- class indices


@given(st.integers(1, 9), st.data())
def test_indices_become_one_present_label_per_row(num_labels: int, data: st.DataObject) -> None:
    y = data.draw(hnp.arrays(np.int64, SHAPES, elements=st.integers(-1, num_labels - 1)))
    expected = np.zeros((*y.shape, num_labels), dtype=np.int8)
    for position in np.ndindex(y.shape):
        if y[position] == -1:
            expected[position] = -1
        else:
            expected[position][y[position]] = 1
    assert same(from_indices(y, num_labels), expected)
    assert same(from_indices(y.astype(np.int16), num_labels), expected)
    assert same(from_indices(torch.from_numpy(y), num_labels), expected)
    assert same(from_indices(torch.from_numpy(y).to(torch.int32), num_labels), expected)


def test_an_empty_list_of_indices_is_an_empty_matrix() -> None:
    assert from_indices([], 3).shape == (0, 3)


@pytest.mark.parametrize("family", [np.array, torch.tensor])
def test_an_index_out_of_range_is_named(family: object) -> None:
    with pytest.raises(ValueError, match=r"y\[1\] is 3: allowed are 0\.\.2, or -1 \(or -100\) for an unknown row"):
        from_indices(family([0, 3, 4]), 3)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"y\[0, 1\] is -2: allowed are 0\.\.2"):
        from_indices(family([[0, -2]]), 3)  # type: ignore[operator]
    with pytest.raises(ValueError, match="y must hold class indices of an integer type, got shape"):
        from_indices(family([0.0]), 3)  # type: ignore[operator]
    with pytest.raises(ValueError, match="y must hold class indices of an integer type, got shape"):
        from_indices(family([True]), 3)  # type: ignore[operator]
    with pytest.raises(ValueError, match="num_labels must be a whole number of at least 1, got 0"):
        from_indices(family([0]), 0)  # type: ignore[operator]


def test_unsigned_indices_do_not_wrap_around_to_unknown() -> None:
    with pytest.raises(ValueError, match=r"y\[0\] is 255"):
        from_indices(torch.tensor([255], dtype=torch.uint8), 3)
    with pytest.raises(ValueError, match=rf"y\[0\] is {2**64 - 1}"):
        from_indices(np.array([2**64 - 1], dtype=np.uint64), 3)


# ---- sets


@pytest.mark.parametrize("rest", [0, -1])
def test_sets_in_every_form_give_the_same_matrix(rest: int) -> None:
    names = ["cat", "dog", "owl"]
    expected = np.array([[1, rest, 1], [rest, rest, rest]], dtype=np.int8)
    sets = LabelSets.from_lists([[0, 2], []], 3, names)
    assert same(from_sets([{0, 2}, ()], 3, rest=rest), expected)  # type: ignore[arg-type]
    assert same(from_sets([["owl", "cat"], []], vocabulary=names, rest=rest), expected)  # type: ignore[arg-type]
    assert same(from_sets(sets, rest=rest), expected)  # type: ignore[arg-type]
    assert same(from_sets(sets, 3, vocabulary=names, rest=rest), expected)  # type: ignore[arg-type]
    assert same(from_sets(sets.to_sparse(), 3, rest=rest), expected)  # type: ignore[arg-type]
    tensors = from_sets([torch.tensor([0, 2]), torch.tensor([], dtype=torch.int64)], 3, rest=rest)  # type: ignore[arg-type]
    assert isinstance(tensors, torch.Tensor)
    assert same(tensors, expected)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[0], [3]], 3), {}, "row 1 holds label 3: allowed are 0..2"),
        (([["cow"]],), {"vocabulary": ["cat"]}, "row 0 holds 'cow', which is not in the vocabulary"),
        (([[0]], 3), {"rest": 1}, "rest must be 0 (labels outside the set are absent) or -1 (unknown), got 1"),
        (([[0]], 3), {"rest": False}, "rest must be 0"),
        (([[0]],), {}, "num_labels is needed"),
        ((LabelSets([0], [], 3), 4), {}, "num_labels=4 was given, but the sets have 3 labels"),
        ((LabelSets([0], [], 1, ["a"]),), {"vocabulary": ["b"]}, "vocabulary of their own, and it differs"),
    ],
)
def test_wrong_sets_are_refused(arguments: tuple[object, ...], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        from_sets(*arguments, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


# ---- CheXpert


def chest_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Path": ["a.jpg", "b.jpg", "c.jpg", "d.jpg"],
            "Sex": ["Female", "Male", "Male", "Female"],
            "Age": [68, 87, 83, 41],
            "Frontal/Lateral": ["Frontal", "Frontal", "Lateral", "Frontal"],
            "AP/PA": ["AP", "AP", None, "PA"],
            "Edema": [1.0, 0.0, -1.0, None],
            "Fracture": [-1, 1, 0, 0],
        }
    )


@pytest.mark.parametrize(
    ("policy", "edema", "fracture"),
    [
        ({}, [1, 0, -1, -1], [-1, 1, 0, 0]),
        ({"uncertain": "present"}, [1, 0, 1, -1], [1, 1, 0, 0]),
        ({"uncertain": "absent"}, [1, 0, 0, -1], [0, 1, 0, 0]),
        ({"blank": "absent"}, [1, 0, -1, 0], [-1, 1, 0, 0]),
        ({"uncertain": "absent", "blank": "absent"}, [1, 0, 0, 0], [0, 1, 0, 0]),
        ({"uncertain": {"Edema": "present"}}, [1, 0, 1, -1], [-1, 1, 0, 0]),
        ({"uncertain": {"Edema": "present", "Fracture": "absent"}}, [1, 0, 1, -1], [0, 1, 0, 0]),
    ],
)
def test_the_policy_decides_what_uncertain_and_blank_become(
    policy: dict[str, str], edema: list[int], fracture: list[int]
) -> None:
    expected = np.array([edema, fracture]).T
    assert same(from_chexpert(chest_table(), **policy), expected)  # type: ignore[arg-type]
    assert same(from_chexpert(chest_table(), ["Fracture", "Edema"], **policy), expected[:, ::-1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([1, None, -1, 0], dtype="Int64"),
        pd.Series([1, None, -1, 0], dtype="Float32"),
        pd.Series([1, None, -1, 0], dtype=object),
        pd.Series(["1.0", "", "-1.0", "0"]),
        pd.Series(["1.0", None, "-1.0", "0"], dtype="string"),
    ],
    ids=["Int64", "Float32", "object", "str", "string"],
)
def test_every_column_type_of_pandas_is_read(cells: pd.Series) -> None:
    expected = np.array([[1], [0], [-1], [0]])
    assert same(from_chexpert(pd.DataFrame({"Edema": cells}), blank="absent"), expected)


def test_a_table_without_rows_has_its_labels() -> None:
    assert from_chexpert(chest_table()[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"Edema": [1, 0, 2, 0]}, {}, "column 'Edema' is 2 in row 2: allowed are 1 (positive), 0 (negative), -1"),
        ({"Edema": [1, 0.5, 2, 0]}, {}, "column 'Edema' is 0.5 in row 1"),
        ({"Edema": ["1", "0", "", "yes"]}, {}, "column 'Edema' is 'yes' in row 3"),
        ({"Device": ["x", "y", "z", None]}, {}, "column 'Device' is 'x' in row 0"),
        ({}, {"labels": ["Oedema"]}, "labels names 'Oedema', which is not one of the columns ['Path', 'Sex',"),
        ({}, {"uncertain": {"Oedema": "present"}}, "uncertain names 'Oedema', which is not one of the columns ['Ed"),
        ({}, {"uncertain": "positive"}, "uncertain for 'Edema' must be one of 'present', 'absent', 'unknown', got"),
        ({}, {"blank": 0}, "blank must be one of 'present', 'absent', 'unknown', got 0"),
    ],
)
def test_a_wrong_cell_column_or_policy_is_named(
    change: dict[str, object], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        from_chexpert(chest_table().assign(**change), **options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_only_a_frame_with_different_columns_is_a_table() -> None:
    with pytest.raises(ValueError, match="df must be a pandas DataFrame, got dict"):
        from_chexpert({"Edema": [1]})
    with pytest.raises(ValueError, match="there are several columns 'Edema'"):
        from_chexpert(pd.DataFrame([[1, 0]], columns=["Edema", "Edema"]))


@pytest.mark.parametrize("x", [np.array([[1, np.nan]]), torch.tensor([[1, float("nan")]])])
def test_nan_in_a_label_matrix_names_the_converter_that_takes_it(x):
    with pytest.raises(ValueError, match=r"x\[0, 1\] is nan: .*labels.from_nan takes NaN as unknown"):
        check_label_matrix(x)
