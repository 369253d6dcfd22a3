"""Tables that are cut: every run of rows is what it is in the whole file, and errors name the places of the whole."""

import csv
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shortlist import ShortlistError
from shortlist.data.readers import table_shards
from shortlist.data.readers.features import read_features
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.table_shards import CutFile, cut_table
from shortlist.data.readers.tables import open_table, parquet_table

CELLS = ["a", "b c", "x\ny", 'q""', '"', "1,2", "", "é"]


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_a_csv_are_cut_where_they_begin(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(table_shards, "_BLOCK", draw.choice([3, 7, 16, 64, 1 << 20]))  # rows lie across blocks
    every, end = draw.choice([1, 2, 5, 16]), draw.choice(["\n", "\r\n"])
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end)
    writer.writerow(["id", "text"])
    rows, lines = [], []
    for number in range(draw.randint(0, 40)):
        rows.append([str(number), draw.choice(CELLS).replace("\n", end)])
        lines.append(text.getvalue().count("\n") + 1)
        writer.writerow(rows[-1])
        if draw.random() < 0.1:
            text.write(end)  # a line with nothing in it
    content = text.getvalue().removesuffix(end if draw.random() < 0.5 else "nothing")
    path = tmp_path / "all.csv"
    path.write_bytes((b"\xef\xbb\xbf" if draw.random() < 0.3 else b"") + content.encode())
    (cut,) = cut_table(str(path), every, {}) or []
    assert cut.rows == len(rows)
    found = []
    for first in range(0, len(rows), every):
        assert cut.lines is not None
        assert cut.lines[first // every] == lines[first]
        with cut.rows_at(first, min(every, len(rows) - first)) as small:
            header, *some = csv.reader(io.StringIO(small.read_bytes().decode("utf-8-sig"), newline=""))
        assert header == ["id", "text"]
        found += [row for row in some if row]
    assert found == rows


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("all.csv", b"a,b\n1,five\" pipe\n", {}),  # a quote inside of a cell: where do rows end?
        ("all.csv", b'a,b\n1,"two\n', {}),
        ("all.csv", b"a,b\r1,2\r", {}),
        ("all.csv", "a,b\n1,2\n".encode("utf-16"), {}),
        ("all.csv", b"sep=;\na;b\n1;2\n", {}),
        ("all.csv", b"\n,\na,b\n1,2\n", {}),
        ("all.csv", b"a,b\n1,2\n", {"encoding": "cp1252"}),
        ("all.csv", b"a,b\n1,2\n", {"labels": "other.csv"}),
        ("all.jsonl", b'{"a": 1}\n', {}),
        ("all.txt", b"3 1:0.5\n", {}),
    ],
)
def test_what_cannot_be_cut_without_doubt_is_not_cut(
    name: str, content: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert cut_table(str(tmp_path / name), 4, options) is None


def test_a_column_without_a_header_line_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("1,2\n3,4\n5,6\n")
    (cut,) = cut_table(str(tmp_path / "all.csv"), 2, {"column_names": ["a", "b"]}) or []
    with cut.rows_at(2, 1) as small:
        assert (cut.rows, small.read_text()) == (3, "5,6\n")


def test_lines_of_text_are_cut_and_blank_ones_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("one\n\ntwo\n  \nthree\n")
    (cut,) = cut_table(str(tmp_path / "all.txt"), 2, {}, texts=True) or []
    with cut.rows_at(2, 1) as small:
        assert (cut.rows, small.read_text()) == (3, "three\n")


def test_a_folder_of_parquet_files_is_cut_across_their_groups(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for number, rows in enumerate([7, 0, 5]):
        table = pa.table({"a": np.arange(rows) + 100 * number, "b": ["x"] * rows})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=3)
    (folder / "_SUCCESS").touch()
    cut = cut_table(str(folder), 4, {}) or []
    assert [file.rows for file in cut] == [7, 0, 5]

    def read(file: CutFile, first: int, count: int) -> list[Any]:
        with file.rows_at(first, count) as small:
            table = open_table(small, Findings())
            assert table is not None
            return table.array("a").tolist()

    assert read(cut[0], 2, 4) == [2, 3, 4, 5]
    assert read(cut[0], 4, 3) == [4, 5, 6]
    assert read(cut[2], 0, 5) == [200, 201, 202, 203, 204]


def test_what_is_wrong_with_a_row_is_told_by_its_place_in_the_whole_file(tmp_path: Path) -> None:
    lines = [f"{number},left" for number in range(10)]
    lines[7] = "seven,left"
    path = tmp_path / "all.csv"
    path.write_text("\n".join(["a,kind", *lines]))
    told = []
    with pytest.raises(ShortlistError) as error:
        read_features(path, labels_key="kind", input_columns=["a"])
    told.append(str(error.value))
    (cut,) = cut_table(str(path), 3, {}) or []
    with pytest.raises(ShortlistError) as error, cut.rows_at(6, 3) as small:
        read_features(small, labels_key="kind", input_columns=["a"])
    told.append(str(error.value))
    assert told[0] == told[1]
    assert "line 9" in told[0]


def test_a_damaged_parquet_file_is_told_as_the_reader_of_whole_files_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(ShortlistError) as whole:
        parquet_table(path)
    with pytest.raises(ShortlistError, match=r"all\.parquet: cannot be read") as cut:
        cut_table(str(path), 4, {})
    assert str(whole.value) in str(cut.value)


def test_urls_are_opened_by_fsspec(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "all.parquet")
    for url in (f"file://{tmp_path}/all.parquet", f"file://{tmp_path}"):
        (cut,) = cut_table(url, 2, {}) or []
        assert (cut.rows, cut.path.startswith("file://")) == (3, True)
        with cut.rows_at(1, 2) as small:
            table = open_table(small, Findings())
            assert table is not None
            assert table.array("a").tolist() == [2, 3]
    with pytest.raises(ShortlistError, match="there is no file or folder"):
        cut_table(f"file://{tmp_path}/none.parquet", 2, {})
    with pytest.raises(ShortlistError, match="fsspec cannot open such a path"):
        cut_table("nowhere://all.parquet", 2, {})
