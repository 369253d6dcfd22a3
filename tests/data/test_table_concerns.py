"""What a table may hold and will hardly do what is wanted; every remedy that is named works."""

from pathlib import Path
from typing import Any

import pytest

from shortlist.data import Dataset, read_features
from shortlist.data.table_concerns import table_concerns


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(content: str, ending: str = "csv", **options: Any) -> Dataset:
        path = tmp_path / f"table.{ending}"
        path.write_text(content)
        return read_features(path, **options)

    return read


def test_every_column_has_a_use_or_a_reason(read: Any) -> None:
    data = read("id,a,city,day,y,\n1,2,Oslo,3,owl,9\n", ids_key="id", other_columns=["day"])
    assert data.columns.lines() == [
        "features (1): a",
        "labels (1): y",
        "ids (1): id",
        "others (1): day (named in other_columns)",
        "ignored (2): city (it holds no numbers), (no name) (it has no name)",
    ]


def test_a_text_column_is_a_warning_that_other_columns_ends(read: Any) -> None:
    table = "a,city,note,y\n1,Oslo,x,owl\n2,Rome,y,cat\n"
    (concern,) = table_concerns(read(table))
    assert concern.startswith("2 columns are left out, because they hold no numbers: 'city', 'note'")
    assert table_concerns(read(table, other_columns=["city", "note"])) == []


def test_decimal_commas_are_a_warning_that_decimal_ends(read: Any) -> None:
    table = "a\tb\ty\n1,5\t1\towl\n2,25\t2\tcat\n"
    (concern,) = table_concerns(read(table, "tsv"))
    assert "'a': give decimal=','" in concern
    mended = read(table, "tsv", decimal=",")
    assert (table_concerns(mended), mended.inputs.tolist()) == ([], [[1.5, 1], [2.25, 2]])


def test_labels_with_a_separator_are_a_warning_that_separator_ends(read: Any) -> None:
    table = "a,y\n1,joy|love\n2,joy\n3,\n"
    (concern,) = table_concerns(read(table))
    assert "1 of 2 labels holds '|': 'joy|love': give separator='|'" in concern
    mended = read(table, separator="|")
    assert (mended.vocabulary, mended.target.tolist()) == (("joy", "love"), [[1, 1], [1, 0], [0, 0]])
    assert table_concerns(mended) == []


def test_an_id_among_the_features_is_a_warning_that_ids_key_ends(read: Any) -> None:
    table = "key,a,y\n" + "".join(f"{900 - row},{row % 7},owl\n" for row in range(30))
    (concern,) = table_concerns(read(table))
    assert concern.endswith("if it is an id, give ids_key=key or other_columns=[key]")
    assert table_concerns(read(table, ids_key="key")) == table_concerns(read(table, other_columns=["key"])) == []


def test_hundreds_of_classes_that_occur_once_are_a_warning(read: Any) -> None:
    (concern,) = table_concerns(read("a,y\n" + "".join(f"{row % 5},text {row}\n" for row in range(150))))
    assert concern.startswith("150 of 150 labels occur once: is 'y' a text or an id?")


def test_arrays_have_no_columns_to_warn_of(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "all.npz", X=np.arange(60.0).reshape(30, 2), y=np.arange(30) % 3)
    data = read_features(tmp_path / "all.npz", num_labels=3)
    assert (data.columns, table_concerns(data)) == (None, [])
