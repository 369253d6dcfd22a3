"""The same table, whichever program wrote it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

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
    "pandas.json": lambda path: FRAME.to_json(path),
    "columns.json": lambda path: path.write_text(json.dumps({"a": [1.5, None, 2.0], "kind": ["owl", "cat", "owl"]})),
    "lines.json": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "lines.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
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
