"""The same table, whichever program wrote it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from shortlist.data import read_features
from shortlist.data.readers.findings import Findings, may_be_empty
from shortlist.data.readers.tables import open_table
from shortlist.errors import ShortlistError

ROWS = [{"a": 1.5, "kind": "owl"}, {"a": None, "kind": "cat"}, {"a": 2.0, "kind": "owl"}]
FRAME = pd.DataFrame(ROWS)


def stream(path: Path) -> None:
    """As polars writes texts."""
    table = pa.table(FRAME).cast(pa.schema([("a", pa.float64()), ("kind", pa.string_view())]))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Path], object]] = {
    "records.json": lambda path: path.write_text(json.dumps(ROWS)),  # None is null
    "nan.json": lambda path: path.write_text(json.dumps(ROWS).replace("null", "NaN")),
    "indented.json": lambda path: path.write_text("\ufeff" + json.dumps(ROWS, indent=2), "utf-8"),
    "packed.json.gz": lambda path: path.write_bytes(gzip.compress(json.dumps(ROWS).encode())),
    "within.json": lambda path: path.write_text(json.dumps({"version": 1, "data": ROWS})),
    "deeper.json": lambda path: path.write_text(json.dumps({"status": {"ok": 1}, "response": {"docs": ROWS}})),
    "two lists.json": lambda path: path.write_text(json.dumps({"columns": [{"a": 1}, {"kind": 2}], "rows": ROWS})),
    "geo.json": lambda path: path.write_text(
        json.dumps({"features": [{"type": "Feature", "properties": row} for row in ROWS], "crs": {"properties": {}}})
    ),
    "esri.json": lambda path: path.write_text(  # which has more fields than rows
        json.dumps({"fields": [{"name": "a"}] * 9, "features": [{"attributes": row} for row in ROWS]})
    ),
    "pandas.json": lambda path: FRAME.to_json(path),
    "columns.json": lambda path: path.write_text(json.dumps({"a": [1.5, None, 2.0], "kind": ["owl", "cat", "owl"]})),
    "lines.json": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "lines.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "lines.ndjson": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "map.geojson": lambda path: path.write_text(json.dumps({"features": [{"properties": row} for row in ROWS]})),
    "table.tab": lambda path: FRAME.to_csv(path, sep="\t", index=False),
    "pandas.feather": lambda path: feather.write_feather(FRAME, path),
    "plain.arrow": lambda path: feather.write_feather(FRAME, path, compression="uncompressed"),
    "stream.arrow": stream,
    "views.parquet": lambda path: pq.write_table(
        pa.table(FRAME).cast(pa.schema([("a", pa.float64()), ("kind", pa.string_view())])), path
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_rows_are_read_from_every_format(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    data = read_features(tmp_path / name, labels_key="kind", as_table=True)
    assert (data.vocabulary, data.target.tolist()) == (("cat", "owl"), [1, 0, 1])
    pd.testing.assert_frame_equal(data.inputs.frame, FRAME[["a"]])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.json", "[1, 2]", "a .json must hold a list of objects"),
        ("t.json", "[1, 2", "it is no JSON"),
        ("t.json", "[]", "its list of objects is empty"),
        ("t.json", "  ", "the file is empty"),
        ("t.json", "[" * 100_000, "it is no JSON"),
        ("t.json", '{"a": 1}\n{"a": }', "each line must be a JSON object"),
        ("t.json", '{"a": [{"b": 1}], "c": [{"b": 2}]}', r"which list holds the rows\? .* 'a' \(1\), 'c' \(1\)"),
        ("t.feather", "text", "it is no file of Arrow's"),
        ("t.arrow", "", "it is no file of Arrow's"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ShortlistError, match=said):
        read_features(tmp_path / name, labels_key="kind")


def test_what_unpacks_to_more_than_allowed_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feather.write_feather(pd.DataFrame({"a": [0.0] * 100_000}), tmp_path / "t.feather", compression="zstd")
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "100000")
    with pytest.raises(ShortlistError, match="unpack"):
        read_features(tmp_path / "t.feather", labels_key="a")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_a_table_has_rows_unless_it_may_be_empty(tmp_path: Path, name: str) -> None:
    none = FRAME[:0]
    writers = {".csv": none.to_csv, ".parquet": none.to_parquet, ".feather": none.to_feather}
    writers[Path(name).suffix](tmp_path / name, **({"index": False} if name == "t.csv" else {}))
    findings = Findings()
    assert open_table(tmp_path / name, findings) is None
    assert "no rows" in str(findings.problems[0])
    with may_be_empty():
        table = open_table(tmp_path / name, Findings())
    assert table is not None
    assert (list(table.names), len(table.array("kind"))) == (["a", "kind"], 0)


KEYED = {"o1": {"a": 1.5, "kind": "owl"}, "c1": {"a": None, "kind": "cat"}, "o2": {"a": 2.0, "kind": "owl"}}


@pytest.mark.parametrize(
    "content",
    [KEYED, {**KEYED, "c1": {"kind": "cat"}}, dict(enumerate(KEYED.values()))],
    ids=["alike", "one-lacks-a-cell", "numbered"],
)
def test_an_object_with_a_key_for_each_row_is_a_table_with_a_note(tmp_path: Path, content: dict[str, Any]) -> None:
    (tmp_path / "t.json").write_text(json.dumps(content))
    data = read_features(tmp_path / "t.json", labels_key="kind", ids_key="key", as_table=True)
    assert (data.vocabulary, data.target.tolist()) == (("cat", "owl"), [1, 0, 1])
    assert data.ids == tuple(map(str, content))
    pd.testing.assert_frame_equal(data.inputs.frame, FRAME[["a"]])
    assert data.notes == ("the file is one object: each of its 3 keys is a row, and in the column 'key'",)


def test_columns_of_a_frame_that_has_names_of_rows_are_columns(tmp_path: Path) -> None:
    FRAME.set_index(pd.Index(["x", "y", "z"])).to_json(tmp_path / "t.json")
    data = read_features(tmp_path / "t.json", labels_key="kind", as_table=True)
    pd.testing.assert_frame_equal(data.inputs.frame, FRAME[["a"]])
    assert data.notes == ()


def test_an_object_of_lists_has_a_row_for_each_and_an_object_of_different_ones_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"smile": ["joy", "face"], "tear": ["sad"], "stone": []}')
    data = read_features(tmp_path / "t.json", labels_key="value", as_table=True)
    assert data.inputs.frame["key"].tolist() == ["smile", "tear", "stone"]
    assert data.target.tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    (tmp_path / "t.json").write_text('{"size": {"width": 2}, "place": {"north": 3}}')
    table = open_table(tmp_path / "t.json", Findings())
    assert table is not None
    assert table.names == ["size.width", "place.north"]


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_column_of_numbers_and_texts_holds_texts_as_in_a_csv_with_a_note(tmp_path: Path, name: str) -> None:
    rows = [
        {"title": "Up", "of": {"level": 1}, "kind": "a"},
        {"title": 1941, "of": {"level": "½"}, "kind": ["a", "b"]},
        {"title": None, "of": {"level": 2.5}, "kind": None},
    ]
    written = json.dumps(rows) if name == "t.json" else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_text(written)
    data = read_features(tmp_path / name, labels_key="kind", as_table=True)
    cells = data.inputs.frame.fillna("").to_dict("list")
    assert cells == {"title": ["Up", "1941", ""], "of.level": ["1", "½", "2.5"]}
    assert (data.vocabulary, data.target.tolist()) == (("a", "b"), [[1, 0], [1, 1], [0, 0]])
    assert data.notes[-1] == (
        "columns of several kinds of cells, which are all taken as texts or lists: 'title' (numbers, texts), "
        "'of.level' (numbers, texts), 'kind' (lists, texts)"
    )


def test_objects_beside_other_cells_are_refused_with_the_row(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"of": {"a": 1}, "y": "owl"}, {"of": 7, "y": "owl"}]')
    said = "row 1: the column 'of' holds 7, and in other rows objects: write all in one way"
    with pytest.raises(ShortlistError, match=said):
        read_features(tmp_path / "t.json")


def test_which_of_several_lists_holds_the_rows_is_noted_and_places_on_a_map_stay_columns(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({"about": [{"by": "me"}], "rows": ROWS}))
    table = open_table(tmp_path / "t.json", Findings())
    assert table is not None
    assert "rows: those of 'rows', the longest list of objects of 'about' (1), 'rows' (3)" in table.notes()
    places = [{"geometry": {"x": 1.5, "y": place}, "attributes": row} for place, row in enumerate(ROWS)]
    (tmp_path / "t.json").write_text(json.dumps({"features": places}))
    table = open_table(tmp_path / "t.json", Findings())
    assert table is not None
    assert list(table.names) == ["geometry.x", "geometry.y", "a", "kind"]


def test_a_huge_cell_is_not_quoted_whole(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"a": 1, "kind": [{"b": "x" * 9000}]}]))
    with pytest.raises(ShortlistError, match="allowed in a list are names") as caught:
        read_features(tmp_path / "t.json", labels_key="kind")
    assert len(str(caught.value)) < 1500
