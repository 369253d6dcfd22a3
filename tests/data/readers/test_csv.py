"""Text tables as people have them: what is right is read, what is not is said with its line."""

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.data import Dataset, read_beside, read_features
from shortlist.data.cells import NA_VALUES
from shortlist.data.frame_columns import read_column
from shortlist.data.readers import _csv, _table_cache
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.tables import open_table
from shortlist.errors import ShortlistError
from shortlist.files import reading_shown_by
from tests.data.readers.made_files import assert_found, text

Read = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(content: str | bytes, name: str = "table.csv", **options: Any) -> Dataset:
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_features(tmp_path / name, **options)

    return read


def shown(data: Dataset) -> tuple[list[list[float]], list[str]]:
    return data.inputs.tolist(), [data.vocabulary[label] for label in data.target.tolist()]


@pytest.mark.parametrize(
    "content",
    [
        "a,y\n1.5,owl\n2,cat\n",
        "\ufeffa,y\n1.5,owl\n2,cat\n",  # Excel's mark of UTF-8
        "a,y\r\n1.5,owl\r\n2,cat\r\n",
        "a,y\r1.5,owl\r2,cat",
        "a,y\n\n1.5,owl\n\n2,cat\n\n",
        ' a , y \n 1.5 , owl \n"2","cat"\n',
        '\ufeff"a",y\n+1.5,owl\n2.0e0,"cat"',
    ],
)
def test_line_ends_marks_blanks_and_quotes_change_nothing(read: Read, content: str) -> None:
    assert shown(read(content)) == ([[1.5], [2.0]], ["owl", "cat"])


def test_packed_files_are_read_like_others(read: Read) -> None:
    data = read("a\ty\n1.5\towl\n2\tcat\n", "all.tsv.gz")
    assert (shown(data), data.name) == (([[1.5], [2.0]], ["owl", "cat"]), "all")
    data = read('{"a": 1.5, "y": "owl"}\n{"a": 2, "y": "cat"}\n', "all.jsonl.gz")
    assert shown(data) == ([[1.5], [2.0]], ["owl", "cat"])


def test_quoted_cells_hold_commas_quotes_and_lines_and_lines_are_counted_on(read: Read, tmp_path: Path) -> None:
    rows = 'a,note,y\n1,"one, two","owl"\n2,"first ""line""\nsecond line",cat\n3,x,"big\nowl"\nx,y,cat\n'
    data = read(rows.replace("x,y,cat", "4,y,cat"), other_columns=["note"])
    assert data.vocabulary == ("big\nowl", "cat", "owl")
    with pytest.raises(ValueError, match=r"line 7: the column 'a' is 'x', not a number"):
        read(rows, other_columns=["note"])


def test_semicolons_and_decimal_commas_are_read_as_the_message_says(read: Read, tmp_path: Path) -> None:
    content = "a;b;y\n1,5;2;owl\n2,25;3;cat\n"
    with pytest.raises(ValueError, match=r"separated by ';', not by ',': give delimiter=';' \(and decimal=','"):
        read(content)
    data = read(content, delimiter=";", decimal=",")
    assert shown(data) == ([[1.5, 2], [2.25, 3]], ["owl", "cat"])
    for delimiter in (";;", "€", '"'):
        with pytest.raises(ValueError, match="delimiter must be one ASCII character"):
            read(content, delimiter=delimiter)


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 20])
def test_long_cells_and_stray_quotes_are_found_wherever_a_piece_ends(monkeypatch: Any, size: int) -> None:
    monkeypatch.setattr(_csv, "_PIECE", size)
    random = np.random.default_rng(0)
    for _ in range(200):
        content = "".join(random.choice(list('",\n\ra'), int(random.integers(1, 12))))
        content = "\ufeff" * int(random.integers(2)) + content
        is_open, has_long_cells, is_right = False, False, content.count('"') % 2 == 0
        cells = f",{content.removeprefix(chr(0xFEFF))},"
        for place in range(1, len(cells) - 1):
            if cells[place] == '"':
                is_right &= cells[place + 1 if is_open else place - 1] in '",\n\r'
                is_open = not is_open
            has_long_cells |= is_open and cells[place] in "\n\r"
        assert _csv._has_long_cells(content.encode(), ",") == (has_long_cells if is_right else None), content


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_excels_first_line_names_the_delimiter(read: Read, first: str, end: str, encoding: str) -> None:
    lines = [first, '"a\nb";y', "1.5;owl, big", "2;cat", ""]
    data = read(end.join(lines).encode(encoding))
    assert shown(data) == ([[1.5], [2.0]], ["owl, big", "cat"])


def test_below_excels_first_line_lines_are_counted_on_and_another_delimiter_can_be_given(read: Read) -> None:
    with pytest.raises(ValueError, match="line 4: the column 'a' is 'x', not a number"):
        read("sep=;\na;y\n1.5;owl\nx;cat\n")
    with pytest.raises(ValueError, match="line 4: has 3 cells, but there are 2 columns"):
        read("sep=;\na;y\n1.5;owl\n2;cat;\n")
    assert shown(read("sep=;\na|y\n1.5|owl\n", delimiter="|")) == ([[1.5]], ["owl"])
    assert shown(read("sep=;\n1.5;owl\n", column_names=["a", "y"])) == ([[1.5]], ["owl"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("above", "count"), [([""], "a blank line"), (["", " ", ",,", '""'], "4 blank lines")])
def test_blank_lines_above_the_names_are_skipped_with_a_note(
    read: Read, above: list[str], count: str, end: str, encoding: str
) -> None:
    data = read(end.join([*above, '"a\nb",y', "1.5,owl", "", "2,cat", ""]).encode(encoding))
    assert shown(data) == ([[1.5], [2.0]], ["owl", "cat"])
    assert data.notes == (f"{count} above the names of the columns, skipped",)


def test_below_blank_lines_lines_are_counted_on_and_a_row_of_blanks_without_names_stays_one(read: Read) -> None:
    with pytest.raises(ValueError, match="line 5: the column 'a' is 'x', not a number"):
        read("\n,\na,y\n1.5,owl\nx,cat\n")
    assert shown(read("\nsep=;\n\na;y\n1.5;owl\n")) == ([[1.5]], ["owl"])
    data = read(",,\n1.5,2,owl\n", column_names=["a", "b", "y"], as_table=True)
    assert len(data) == 2


def _zipped(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "a,y\n1,owl\n" * 1000)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_zipped("table.csv"), "but a zip archive: unpack it"),
        (_zipped("xl/workbook.xml"), "but an Excel workbook: open it in Excel or LibreOffice, and save"),
        (_zipped("table.csv")[:300], "but a zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "but an Excel workbook"),
        (gzip.compress(b"a,y\n1,owl\n", mtime=0), r"but packed by gzip: rename it, so that its name ends in \.gz"),
        (b"PAR1" + bytes(100), r"but parquet: rename it, so that its name ends in \.parquet"),
        (b"\n <!DOCTYPE html>\n<html><body>a,y</body></html>\n", "but a web page"),
        ("\ufeff<html><body>a,y</body></html>\n".encode(), "but a web page"),
    ],
)
def test_other_formats_that_are_named_so_are_told_by_their_first_bytes(
    read: Read, content: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=f"is not a CSV file {message}"):
        read(content)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'a,y\n1,"owl\n2,cat\n', None, "is not a CSV file: unexpected end of data"),
        (b'a,y\n1,"owl\n2,"cat\n', None, "is not a CSV file: ',' expected after"),
        (b"a,y\n1,owl\n2\n", 3, "has 1 cells, but there are 2 columns"),
        (b"a,y\n1,owl,2\n", 2, "has 3 cells, but there are 2 columns"),
        (b"a,y\n1,f\xfcnf\n", None, "it must be text in UTF-8 (in Excel: CSV UTF-8)"),
        (b"a\xfc,y\n1,owl\n", None, "it must be text in UTF-8 (in Excel: CSV UTF-8)"),
        (b"a,a,y\n1,2,owl\n", None, "2 columns are called 'a'"),
    ],
)
def test_what_is_no_table_is_said_with_its_line(
    read: Read, tmp_path: Path, content: bytes, line: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=r"table\.csv"):
        read(content)
    assert_found("features", [("table.csv", line, message)], path=tmp_path / "table.csv")


def test_a_packed_file_that_is_cut_off_is_a_problem(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,y\n" + b"1,owl\n" * 5000)
    path = tmp_path / "table.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert_found("features", [("table.csv.gz", None, "is not a CSV file: Compressed file ended")], path=path)
    path.write_bytes(b"no gzip")
    assert_found("features", [("table.csv.gz", None, "is not a CSV file: Not a gzipped file")], path=path)


def test_a_packed_file_may_not_unfold_to_more_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "100000")
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,owl\n" * 500_000))
    assert_found("features", [("table.csv.gz", None, "set SHORTLIST_MAX_UNPACKED")], path=path)


def test_json_lines_that_do_not_fit_together_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text('{"a": 1, "y": "owl"}\n{"a": {"b": 2}, "y": "owl"}\n')
    said = "row 0: the column 'a' holds 1, and in other rows objects"
    assert_found("features", [("all.jsonl", None, said)], path=path)
    path.write_text("")
    assert_found("features", [("all.jsonl", None, "the file is empty")], path=path)


def test_a_large_table_is_parsed_once_and_again_when_it_changes(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_table_cache, "_WORTH", 10)
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "cache"))
    first = read("a,y\n1.5,owl\n2,cat\n")
    (kept,) = (tmp_path / "cache" / "tables").iterdir()
    parsed: list[str] = []
    with reading_shown_by(lambda file, share: parsed.append(file)):
        again = read_features(tmp_path / "table.csv")
        assert (shown(again), parsed) == (shown(first), [])
        assert shown(read("a,y\n7,owl\n2,cat\n"))[0] == [[7.0], [2.0]]
        assert parsed
        kept.write_bytes(b"damaged")
        os.utime(tmp_path / "table.csv", (1, 1))
        assert shown(read_features(tmp_path / "table.csv"))[0] == [[7.0], [2.0]]
    monkeypatch.setenv("SHORTLIST_CACHE", "/dev/null/nowhere")
    assert shown(read("a,y\n8,owl\n2,cat\n"))[0] == [[8.0], [2.0]]


def test_a_large_table_with_wrong_rows_is_a_problem_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table_cache, "_WORTH", 10)
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "table.csv"
    path.write_text("a,y\n1.5,owl\n2,cat,dog\n3,cat\n")
    for _ in range(2):
        assert_found("features", [("table.csv", 3, "has 3 cells, but there are 2 columns")], path=path)


def test_a_table_that_changes_is_parsed_again_though_its_time_is_set_back(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_table_cache, "_WORTH", 10)
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "cache"))
    read("a,y\n1.5,owl\n2,cat\n")
    before = (tmp_path / "table.csv").stat()
    (tmp_path / "table.csv").unlink()
    (tmp_path / "table.csv").write_text("a,y\n7.5,owl\n2,cat\n")
    os.utime(tmp_path / "table.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shown(read_features(tmp_path / "table.csv"))[0] == [[7.5], [2.0]]


def test_a_damaged_file_in_the_cache_is_not_used(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table_cache, "_WORTH", 10)
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "cache"))
    first = read("a,y\n" + "1.5,owl\n2,cat\n" * 30)
    (kept,) = (tmp_path / "cache" / "tables").iterdir()
    content = kept.read_bytes()
    assert b"owlcatowl" in content
    kept.write_bytes(content.replace(b"owlcatowl", b"owlbatowl"))
    assert shown(read_features(tmp_path / "table.csv")) == shown(first)
    kept.write_bytes(content[:3])
    assert shown(read_features(tmp_path / "table.csv")) == shown(first)


def test_the_cache_keeps_within_its_size(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table_cache, "_WORTH", 10)
    monkeypatch.setattr(_table_cache, "_MOST", 100)
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "cache"))
    for number in range(3):
        read("a,y\n1.5,owl\n2,cat\n", f"{number}.csv")
    assert len(list((tmp_path / "cache" / "tables").iterdir())) == 1


def test_without_a_home_nothing_is_kept(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("shortlist.data.readers._table_cache._WORTH", 0)
    monkeypatch.setattr(Path, "home", no_home)
    for name in ("SHORTLIST_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert len(read("a,y\n1,x\n")) == 1


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers"),
    [
        (["1.234,5", "12.000", "7,25", "-1.000.000"], ",", [1234.5, 12000, 7.25, -1000000]),
        (['"1,234.5"', '"12,000"', "7.25", '"1,000,000"'], ".", [1234.5, 12000, 7.25, 1000000]),
        (["1.5", "2.25"], ",", [1.5, 2.25]),  # points before fractions all the same
        (["1.234", "12.500"], ",", [1234, 12500]),
        (["1.234", "12.500"], ".", [1.234, 12.5]),
        (["1\u202f234,5", "12\u00a0000", "7,25"], ",", [1234.5, 12000, 7.25]),
        (["1'234.5", "12'000", "7"], ".", [1234.5, 12000, 7]),
        (["1 234,50", "12 000", "-1 000 000"], ",", [1234.5, 12000, -1000000]),
    ],
)
def test_marks_between_thousands_are_read(read: Read, cells: list[str], decimal: str, numbers: list[float]) -> None:
    mark = ";" if decimal == "," else ","
    data = read("\n".join([f"a{mark}y", *(f"{cell}{mark}x" for cell in cells)]), delimiter=mark, decimal=decimal)
    assert data.inputs[:, 0].tolist() == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers", "unit"),
    [
        (["$1,234.50", "-$7", "$-8.25", ""], None, [1234.5, -7, -8.25, None], "$"),
        (["$1,500", "$12,000"], None, [1500, 12000], "$"),  # money has no thousandths
        (["12 €", "NA", "7.5 €", "0 €"], None, [12, None, 7.5, 0], "€"),
        (["1.234,50 €", "12 €"], ",", [1234.5, 12], "€"),
        (["1 234,50 €", "12\u202f000\u00a0€"], ",", [1234.5, 12000], "€"),
        (["7%", "12.5%", "-3%"], None, [7, 12.5, -3], "%"),
        (["CHF 5.20", "CHF 1,005.00"], None, [5.2, 1005], "CHF"),
        (["3kg", "12kg", ".5kg"], None, [3, 12, 0.5], "kg"),
        (["3 kg", "500 g"], None, None, ""),
        (["1,500 kg", "2,500 kg"], None, None, ""),
        (["1,500 kg", "2,500 kg"], ".", [1500, 2500], "kg"),
        (["A12", "A7"], None, None, ""),
        (["Typ 12", "Typ 7"], None, None, ""),
        (["007 m", "008 m"], None, None, ""),
        (["5-10 %", "10-20 %"], None, None, ""),
        (["1,234,567", "NA", "12,000"], None, [1234567, None, 12000], ""),
        (["1,5", "?", "2,25"], ",", [1.5, None, 2.25], ""),
    ],
)
def test_a_sign_or_unit_that_is_the_same_beside_all_numbers_is_left_out_of_features(
    read: Read, cells: list[str], decimal: str | None, numbers: list[float | None] | None, unit: str
) -> None:
    rows = "\n".join(f'"{cell}";{"u" if place % 2 else "v"};5 %' for place, cell in enumerate(cells))
    data = read(f"a;y;z\n{rows}", delimiter=";", decimal=decimal, as_table=True, other_columns=["z"])
    found, why_not, _ = read_column(data.inputs.frame["a"], NA_VALUES)
    assert not why_not
    if numbers is None:
        assert found.tolist() == cells
    else:
        np.testing.assert_array_equal(found, np.array(numbers, dtype=float))
    told = f"numbers with a sign or unit, which is left out: 'a' ({unit})"
    assert [note for note in data.notes if "sign" in note] == ([told] if unit else [])
    assert read(f"a;y;z\n{rows}", delimiter=";", decimal=decimal, labels_key="z", as_table=True).vocabulary == ("5 %",)


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers"),
    [
        (["(1,234)", "12", "1,000,000"], None, [-1234, 12, 1000000]),
        (["(12.5)", "", "( 3 )", "7"], None, [-12.5, None, -3, 7]),
        (["(1.234,50)", "2,5"], ",", [-1234.5, 2.5]),
        (["($1,234.50)", "$7"], None, [-1234.5, 7]),
        (["(5 %)", "7 %", "NA"], None, [-5, 7, None]),
        (["(5)", "(7)"], None, [-5, -7]),  # as a new table may have them alone
        (["(5)", "low", "high"], None, None),
        (["(5", "7"], None, None),
        (["(a)", "(b)"], None, None),
    ],
)
def test_numbers_in_brackets_are_below_zero(
    read: Read, cells: list[str], decimal: str | None, numbers: list[float | None] | None
) -> None:
    rows = "\n".join(f'"{cell}";{"u" if place % 2 else "v"}' for place, cell in enumerate(cells))
    data = read(f"a;y\n{rows}", delimiter=";", decimal=decimal, as_table=True)
    found = read_column(data.inputs.frame["a"], NA_VALUES)[0]
    told = [note for note in data.notes if "brackets" in note]
    if numbers is None:
        assert not told
        assert found.dtype == object or np.isnan(found).any()
    else:
        np.testing.assert_array_equal(found, np.array(numbers, dtype=float))
        assert told == ["numbers in brackets, (5), are below zero, -5: 'a'"]


def test_labels_that_are_all_in_brackets_are_names(read: Read) -> None:
    assert read("a,y\n1,(5)\n2,(7)\n").vocabulary == ("(5)", "(7)")


def test_a_blank_between_digits_may_stand_between_two_numbers(read: Read) -> None:
    data = read("a,y\n555 123,u\n555 987,v\n", as_table=True)
    assert data.inputs.frame["a"].tolist() == ["555 123", "555 987"]


def test_one_comma_alone_may_be_of_a_fraction_and_is_no_number(read: Read) -> None:
    with pytest.raises(ValueError, match="give decimal=','"):
        read('a,y\n"1,500",x\n"2,500",x\n', input_columns=["a"])
    assert read('a,y\n"1,500",x\n"2,500",x\n', decimal=".").inputs[:, 0].tolist() == [1500, 2500]


def test_text_that_is_not_utf8_is_told_with_the_option_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("größe,y\n1,süß\n", encoding="cp1252")
    with pytest.raises(ValueError, match="name its encoding, such as encoding=cp1252"):
        read_features(path)
    assert read_features(path, encoding="cp1252").vocabulary == ("süß",)
    with pytest.raises(ValueError, match="encoding must be one that Python knows, such as 'cp1252'"):
        read_features(path, encoding="excel")


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_reading_says_how_far_it_is(read: Read, name: str) -> None:
    shares: list[float] = []
    with reading_shown_by(lambda file, share: shares.append(share)):
        read("a,y\n" + "1,owl\n" * 1000, name)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


def test_a_column_beside_the_data_is_read_with_the_same_delimiter(read: Read, tmp_path: Path) -> None:
    data = read("a;who;y\n1;Ann;owl\n2;Bob;cat\n", delimiter=";", other_columns=["who"])
    assert read_beside(tmp_path / "table.csv", "who", data, delimiter=";").tolist() == ["Ann", "Bob"]


def test_a_packed_line_without_end_is_not_unpacked(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORTLIST_MAX_UNPACKED", "100000")
    with pytest.raises(ShortlistError, match="it would unpack to"):
        read(b"a" * 5_000_000, "bomb.csv.gz")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("39, State-gov, <=50K\n50, Private, <=50K\n38, State-gov, >50K\n23, State-gov, >50K\n", None),
        ("ham\tGo until Jurong point crazy\nspam\tfree\nham\tok\nham\tfine\n", None),
        ("p,x,s,n\ne,x,s,y\np,b,s,n\np,x,y,n\ne,x,s,w\n", None),
        ("kind,length\noak,3\nkind,length\nelm,4\n", 3),
        ("kind,length\noak,3\n\ufeffkind,length\nelm,4\n", 3),  # each file began with a byte order mark
        ('"kind","length"\noak,3\n\ufeff"kind","length"\nelm,4\n', 3),
        ("text,label\ngood,pos\ntext,neg\nlabel,pos\nso so,neg\n", 0),  # a comment may be any word
        ("red,blue\nred,\n,blue\nred,\n,\n", 0),  # marks for yes
        ("year,2019,2020\noak,3,4\nelm,5,6\noak,7,8\n", 0),
    ],
)
def test_a_first_line_that_is_a_row_and_names_that_come_again_are_told(
    tmp_path: Path, rows: str, line: int | None
) -> None:
    file, findings = text(tmp_path / ("t.tsv" if "\t" in rows else "t.csv"), rows), Findings()
    table = open_table(file, findings)
    said = "" if not findings.problems else str(findings.problems[0])
    if line == 0:
        assert (table is None, said) == (False, "")
    else:
        assert ("looks like a row" if line is None else f"line {line}: it names the columns again") in said


@pytest.mark.parametrize("row", ["a,14.23,1.71,2.43", "0.5,2,b", "7,3,a"])
def test_a_first_line_that_looks_like_a_row_is_refused(tmp_path: Path, row: str) -> None:
    names = [f"c{place}" for place in range(row.count(","))]
    names.insert(0 if row[0] == "a" else len(names), "y")
    file = text(tmp_path / "table.csv", f"{row}\n{row}\n{row}\n")
    with pytest.raises(ValueError, match=r"looks like a row: .*: is it missing[?] Then give column_names"):
        read_features(file, labels_key=names[-1])
    assert len(read_features(file, column_names=names)) == 3


@pytest.mark.parametrize("header", ["400.5,401.0,401.5,y", "2020,2010,y", "0,1,2,3,y", "y,3,1,2"])
def test_numbers_may_name_columns(tmp_path: Path, header: str) -> None:
    cells = ",".join("b" if name == "y" else "2.5" for name in header.split(","))
    assert len(read_features(text(tmp_path / "table.csv", f"{header}\n{cells}\n{cells}\n"))) == 2


@pytest.mark.parametrize("title", ["Sales report,,", ",Sales report,"])
def test_a_title_above_the_names_of_the_columns_is_told(read: Read, title: str) -> None:
    with pytest.raises(ShortlistError, match="of 3 names only 'Sales report' is there: if it is a title, delete all"):
        read(f"{title}\n,,\na,b,y\n1,2,x\n")


@pytest.mark.parametrize("above", ["# made by hand\n# in May\n", "Leaves of 2024\n", "# all\n\n"])
def test_lines_above_the_names_are_told(tmp_path: Path, above: str) -> None:
    file = text(tmp_path / "t.csv", f"{above}a,y\n1,owl\n2,cat\n")
    with pytest.raises(ShortlistError, match=r"has one name, .* have 2 cells: if it is a title, delete all lines"):
        read_features(file)


def test_a_column_of_texts_alone_may_hold_commas_in_quotes(tmp_path: Path) -> None:
    file = text(tmp_path / "t.csv", 'text\n"well, well"\n"so, so,\nand so"\n')
    table = open_table(file, Findings())
    assert table is not None
    assert table.array("text").tolist() == ["well, well", "so, so,\nand so"]


@pytest.mark.parametrize(
    ("below", "units"),
    [
        ("kg,cm,", r"'a' \(kg\), 'b' \(cm\)"),
        ("kg,,species", r"'a' \(kg\)"),
        ("[m/s],(years),", r"'a' \(\[m/s\]\), 'b' \(\(years\)\)"),
        ("%,°C,NA", r"'a' \(%\), 'b' \(°C\)"),
    ],
)
def test_units_below_the_names_are_told_as_that_with_their_line(read: Read, below: str, units: str) -> None:
    rows = f"a,b,y\n{below}\n" + "1.5,3,owl\n2,4,cat\n3,5,cat\n"
    expected = rf"line 2: this is no example, but names the units of the columns: {units}: delete it"
    if below.startswith("kg,,"):  # one unit beside a name may be a slip
        assert read(rows, as_table=True).inputs.frame["a"].tolist()[0] == "kg"
    else:
        with pytest.raises(ShortlistError, match=expected):
            read(rows, as_table=True)


@pytest.mark.parametrize("below", ["d\tstring\nclass\t", "a b\ts\nclass\tmeta include=True"])
def test_kinds_and_uses_of_columns_below_their_names_are_told_as_orange_writes_them(read: Read, below: str) -> None:
    with pytest.raises(ShortlistError, match=r"line 2: .*kinds of the columns, as Orange.*: delete it and the next"):
        read(f"y\tb\n{below}\nowl\tat night\ncat\tat home\n", "table.tab", as_table=True)


def test_letters_alone_are_rows_as_others(read: Read) -> None:
    assert read("a\ty\nc\td\nm\ti\ng\tt\n", "table.tab", as_table=True, labels_key="y").vocabulary == ("d", "i", "t")


def test_units_below_the_names_are_told_in_json_lines_too(read: Read) -> None:
    rows = ['{"a": "kg", "y": null}', *(f'{{"a": "{number}", "y": "owl"}}' for number in range(4))]
    with pytest.raises(ShortlistError, match=r"row 0: this is no example.*'a' \(kg\)"):
        read("\n".join(rows), "table.jsonl", as_table=True)


def test_what_mysql_writes_for_nothing_is_blank_in_features_and_labels(read: Read) -> None:
    data = read("a,y\n1.5,owl\n\\N,cat\n2, \\N\n", as_table=True)
    assert (data.inputs.frame["a"].isna().tolist(), data.target.tolist()) == ([False, True, False], [1, 0, -1])
    assert data.vocabulary == ("cat", "owl")


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ('"","a","y"\n"1",1.5,"owl"\n"2",2,"cat"\n', ("1", "2")),  # R's write.csv
        ('"a","y"\n"Mazda, RX4",1.5,"owl"\n"Fiat",2,"cat"\n', ("Mazda, RX4", "Fiat")),  # R's write.table
        ("a,y\n7,1.5,owl\n8,2,cat\n", ("7", "8")),
        ('\n"a","y"\n\n"x",1.5,"owl"\n"z",2,"cat"\n', ("x", "z")),
    ],
)
def test_the_names_of_rows_that_r_writes_are_a_column_without_a_name(
    read: Read, content: str, ids: tuple[str, ...]
) -> None:
    data = read(content, ids_key="")
    assert (shown(data), data.ids) == (([[1.5], [2.0]], ["owl", "cat"]), ids)


@pytest.mark.parametrize("content", ["a,y\n1.5,owl,\n2,cat,\n", "a,y,\n1.5,owl\n2,cat\n", "a,y,\n1.5,owl,\n2,cat,\n"])
def test_a_mark_at_the_end_of_each_row_or_of_the_names_changes_nothing(read: Read, content: str) -> None:
    assert shown(read(content)) == ([[1.5], [2.0]], ["owl", "cat"])


@pytest.mark.parametrize("rows", ["Fiat,1.5,owl\nVolvo,2,cat\n", "1,500,owl\n4,250,cat\n", '"a",1,x\n"a",2,y\n'])
def test_rows_with_a_cell_too_many_that_may_be_anything_are_refused(read: Read, rows: str) -> None:
    with pytest.raises(
        ShortlistError, match="line 2: has 3 cells, but there are 2 columns, as have most of the first rows"
    ):
        read(f"a,y\n{rows}")


def test_lines_are_counted_right_where_rows_have_names(read: Read) -> None:
    with pytest.raises(ShortlistError, match="line 4: has 2 cells, but there are 3 columns"):
        read('"a","y"\n"x",1.5,"owl"\n"z",2,"cat"\n"u",2\n"v",1,"cat"\n')
