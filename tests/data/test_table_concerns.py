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
    data = read("id,a,city,day,y,\n1,2,Oslo,3,owl,9\n2,4,Rome,4,owl,7\n", ids_key="id", other_columns=["day"])
    assert data.columns.lines() == [
        "features (1): a",
        "labels (1): y",
        "ids (1): id",
        "others (1): day (named in other_columns)",
        "ignored (2): city (it holds no numbers), (no name) (it has no name)",
    ]
    told = "a column without a name is left out: give it one, if it tells something"
    assert told in table_concerns(data)
    rows = "id,a,city,y,\n1,2,Oslo,owl,9\n2,4,Rome,owl,7\n"
    assert any("give ids_key='\"\"' if it names the rows, or give" in concern for concern in table_concerns(read(rows)))


@pytest.mark.parametrize("cells", [("0", "1", "2"), ("", "", "")])
def test_a_column_without_a_name_that_tells_nothing_is_no_warning(read: Any, cells: tuple[str, ...]) -> None:
    data = read("a,y,\n" + "".join(f"{n},{'ox' if n % 2 else 'cow'},{cell}\n" for n, cell in enumerate(cells)))
    assert data.columns.lines()[-1] == "ignored (1): (no name) (it has no name, and is blank or counts the rows)"
    assert not [concern for concern in table_concerns(data) if "name" in concern]


def test_labels_of_lists_that_are_others_with_another_mark_between_are_a_warning(read: Any) -> None:
    lists = ["joy;love", "joy, love", "joy", "love", "joy, love", "R, G"] * 2
    (concern,) = table_concerns(read("a,y\n" + "".join(f'{n},"{row}"\n' for n, row in enumerate(lists)), separator=";"))
    assert concern == "1 label is others with ',' between: 'joy, love': write one mark in all cells"


def test_pieces_of_one_name_that_is_parted_at_its_comma_are_a_warning_that_another_mark_ends(read: Any) -> None:
    rows = [["Training, courses"], ["Books", "Training, courses"], ["Books"], ["Training, courses", "Talks"]] * 3
    written = {mark: "a,y\n" + "".join(f'{n},"{mark.join(row)}"\n' for n, row in enumerate(rows)) for mark in ",|"}
    (concern,) = table_concerns(read(written[","], separator=","))
    told = "labels that are always present together: 'Training' and 'courses': if separator has parted one name, put a"
    assert concern.startswith(told)
    assert table_concerns(read(written["|"], separator="|")) == []


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


def test_labels_in_brackets_that_are_no_known_lists_are_a_warning_that_lists_end(read: Any) -> None:
    (concern,) = table_concerns(read("a,y\n1,[joy; love]\n2,[joy]\n3,love\n"))
    assert concern.startswith("2 of 3 labels are names in brackets: '[joy; love]', '[joy]': if these are lists")
    assert table_concerns(read("a,y\n1,[other]\n2,joy\n3,love\n")) == []
    assert table_concerns(read('a,y\n1,"{joy, love}"\n2,{joy}\n3,{love}\n')) == []


def test_an_id_among_the_features_is_a_warning_that_ids_key_ends(read: Any) -> None:
    table = "key,a,y\n" + "".join(f"{900 - row},{row % 7},{'owl' if row % 2 else 'cat'}\n" for row in range(30))
    (concern,) = table_concerns(read(table))
    assert concern.endswith("if it is an id, give ids_key=key or other_columns='[\"key\"]'")
    assert table_concerns(read(table, ids_key="key")) == table_concerns(read(table, other_columns=["key"])) == []


def test_hundreds_of_classes_that_occur_once_are_a_warning(read: Any) -> None:
    (concern,) = table_concerns(read("a,y\n" + "".join(f"{row % 5},text {row}\n" for row in range(150))))
    assert concern.startswith("150 of 150 labels occur once: is 'y' a text or an id?")


def test_a_column_that_tells_the_label_is_a_warning_that_other_columns_ends(read: Any) -> None:
    names, rows = ("paid", "default"), range(200)
    table = "income,code,y\n" + "".join(f"{row * 7 % 200}.5,{row % 2},{names[row % 2]}\n" for row in rows)
    (concern,) = table_concerns(read(table))
    assert concern.startswith("'code' alone tells the label in 100 % of the rows: is it known before the label is?")
    assert table_concerns(read(table, other_columns=["code"])) == []


@pytest.mark.parametrize("kinds", [3, 0])
def test_columns_that_tell_most_labels_or_name_every_row_do_not_leak(read: Any, kinds: int) -> None:
    """A column that is wrong in one of 50 rows, or right everywhere with a value for every three rows."""
    cells = [row % 2 if kinds else row // 3 + 0.5 for row in range(300)]
    labels = [(row % 2) ^ (row % 50 == 0) if kinds else row // 3 % 2 for row in range(300)]
    table = "a,b,y\n" + "".join(f"{row * 7 % 300}.5,{cells[row]},{'ny'[labels[row]]}\n" for row in range(300))
    assert table_concerns(read(table)) == []


def test_arrays_have_no_columns_to_warn_of(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "all.npz", X=np.arange(60.0).reshape(30, 2), y=np.arange(30) % 3)
    data = read_features(tmp_path / "all.npz", num_labels=3)
    assert (data.columns, table_concerns(data)) == (None, [])


def rows(line: Any, count: int = 60) -> str:
    return "".join(f"{line(row)},{'owl' if row % 2 else 'cat'}\n" for row in range(count))


@pytest.mark.parametrize(
    ("cell", "concern", "remedy"),
    [
        (
            lambda row: f"{row % 9} {'kg' if row % 2 else 'g'}",
            "the column 'b' holds numbers with a sign or unit",
            {"other_columns": ["b"]},
        ),
        (
            lambda row: f'"{row % 9 + 1},500 kg"',
            "the column 'b' holds numbers with a sign or unit",
            {"decimal": "."},
        ),
        (
            lambda row: f'"{row % 9},5 kg"',
            "the column 'b' holds numbers with a sign or unit",
            {"decimal": ","},
        ),
        (
            lambda row: f'"{row % 9},5"',
            "holds numbers with decimal commas, taken as names: give decimal=','",
            {"decimal": ","},
        ),
        (
            lambda row: f'"{row % 9 + 1},500"',
            "numbers with commas: give decimal=',' if 1,500 is one and a half, decimal='.' if it is fifteen hundred",
            {"decimal": "."},
        ),
    ],
)
def test_what_looks_like_numbers_is_a_warning_that_its_advice_ends(
    read: Any, cell: Any, concern: str, remedy: dict[str, Any]
) -> None:
    table = "a,b,y\n" + rows(lambda row: f"{row % 7},{cell(row)}")
    (found,) = table_concerns(read(table, as_table=True))
    assert concern in found
    assert table_concerns(read(table, as_table=True, **remedy)) == []


def test_slips_among_numbers_are_a_warning_whose_advice_names_all_blanks(read: Any) -> None:
    table = "a,y\n" + rows(lambda row: {3: "missing", 5: "NA"}.get(row % 20, row % 7))
    (found,) = table_concerns(read(table, as_table=True))
    assert "3 of 57 cells are no numbers: 'missing': mend them, or give data.na_values='[\"missing\", \"NA\"]'" in found
    assert table_concerns(read(table, as_table=True), ["missing", "NA"]) == []


def test_words_among_amounts_are_a_warning_whose_advice_ends_it(read: Any) -> None:
    table = "a,y\n" + rows(lambda row: "free" if row % 20 == 3 else f"${row % 7}")
    (found,) = table_concerns(read(table, as_table=True))
    assert "3 of 60 cells are no numbers: 'free': mend them, or give data.na_values='[\"free\"]'" in found
    assert table_concerns(read(table, as_table=True), ["free"]) == []


def test_cells_that_never_hold_one_label_alone_are_several_labels(read: Any) -> None:
    table = "a,y\n" + "".join(f"{row % 7},{'x;y' if row % 3 else 'y;z'}{';z' * (row % 2)}\n" for row in range(30))
    (found,) = table_concerns(read(table))
    assert "4 of 4 labels hold ';'" in found
    assert read(table, separator=";").vocabulary == ("x", "y", "z")


@pytest.mark.parametrize("blank", ["NA", "unsure"])
def test_a_label_that_means_blank_is_a_warning_that_unknown_names_ends(blank: str, read: Any) -> None:
    table = f"a,y\n1,cat\n2,{blank}\n3,dog\n"
    (found,) = table_concerns(read(table))
    assert found.startswith(f"'{blank}' is taken as a label: give unknown_names='[\"{blank}\"]' if that means that")
    mended = read(table, unknown_names=[blank])
    assert (table_concerns(mended), mended.target.tolist()) == ([], [0, -1, 1])


def test_a_name_for_unknown_among_several_labels_is_a_warning_that_unknown_names_ends(read: Any) -> None:
    table = "a,y\n1,cat;dog\n2,Unknown\n3,dog\n4,?\n"
    (found,) = table_concerns(read(table, separator=";"))
    assert found.startswith("'?', 'Unknown' are taken as labels: give unknown_names='[\"?\", \"Unknown\"]' if")
    mended = read(table, separator=";", unknown_names=["?", "Unknown"])
    assert (table_concerns(mended), mended.target[1].tolist()) == ([], [-1, -1])


def test_labels_that_are_never_absent_are_a_warning_that_the_coding_ends(read: Any) -> None:
    table = "a,cat,dog\n1,1,-1\n2,-1,1\n"
    (found,) = table_concerns(read(table, label_columns=["cat", "dog"]))
    assert "give coding=signed if -1 means absent" in found
    assert table_concerns(read(table, label_columns=["cat", "dog"], coding="signed")) == []


def test_labels_that_differ_in_case_and_a_label_that_is_alone_are_warnings(read: Any) -> None:
    assert table_concerns(read("a,y\n1,Cat\n2,cat\n3,dog\n"))[0].startswith("2 labels differ only in case or blanks")
    assert table_concerns(read("a,y\n1,cat\n2,cat\n")) == [
        "every example has the label 'cat': there is nothing to tell apart"
    ]


@pytest.mark.parametrize(
    ("code", "told", "step"),
    [
        ("-999", True, 1 / 7),
        ("999", True, 1 / 7),
        ("-4", False, 1 / 7),
        ("0.5", False, 1 / 7),
        ("-9", True, 1),  # of answers from 0 to 6
        ("-5", False, 1),
    ],
)
def test_a_number_far_from_all_others_that_comes_often_may_stand_for_blank(
    read: Any, code: str, told: bool, step: float
) -> None:
    cells = [code if row % 10 == 0 else f"{row % 7 * step:.3g}" for row in range(60)]
    table = "\n".join(["a,y", *(f"{cell},{'owl' if row % 2 else 'cat'}" for row, cell in enumerate(cells))])
    data = read(table, as_table=True)
    concerns = [concern for concern in table_concerns(data) if "far from all others" in concern]
    assert concerns == ([] if not told else [
        f"one number comes again and again, far from all others: 'a' ({code} in 6 rows): give "
        f"data.na_values='[\"{code}\"]' if it stands for blank"
    ])  # fmt: skip
    assert not table_concerns(data, na_values=["", code])


def test_columns_with_slips_are_one_warning_whose_advice_ends_it(read: Any) -> None:
    table = "a,b,y\n" + "".join(
        f"{'DK' if row % 9 == 1 else row % 5},{'refused' if row % 9 == 2 else row % 7},{row % 2}\n" for row in range(90)
    )
    data = read(table, as_table=True)
    (said,) = table_concerns(data)
    assert said.startswith("2 columns are taken as names, because some of their cells are no numbers: 'a' (10 of 90: ")
    assert said.endswith("""or give data.na_values='["DK", "refused"]' if they mean blank""")
    assert table_concerns(data, ["DK", "refused"]) == []


def test_all_codes_for_blank_are_told_and_the_advice_keeps_what_is_blank_already(read: Any) -> None:
    cells = [("-9,1", "99,n/a", "-999,2")[row % 3] if row < 30 else f"{row % 5},3" for row in range(120)]
    table = "\n".join(["a,b,y", *(f"{cell},{'owl' if row % 2 else 'cat'}" for row, cell in enumerate(cells))])
    data = read(table, as_table=True)
    (said,) = [concern for concern in table_concerns(data) if "far from all others" in concern]
    assert "'a' (-999 in 10 rows), 'a' (99 in 10 rows): " in said
    assert said.endswith("""give data.na_values='["-999", "99", "n/a"]' if they stand for blank""")
    (said,) = [concern for concern in table_concerns(data, ["99", "-999", "n/a"]) if "far from all others" in concern]
    assert "'a' (-9 in 10 rows): give data.na_values='[\"-9\", \"99\", \"-999\", \"n/a\"]' if it stands" in said


def test_a_row_for_each_label_of_an_example_is_a_warning_that_one_cell_ends(read: Any) -> None:
    codes = [("I10", "E11", "J45")[: 1 + visit % 3] for visit in range(20)]
    visits = [f"{(7 * visit % 20) / 4},{'mf'[visit % 2]}" for visit in range(20)]
    table = [f"{visit},{code}" for visit, found in zip(visits, codes, strict=True) for code in found]
    (concern,) = table_concerns(read("\n".join(["age,sex,y", *table]), as_table=True))
    assert concern.startswith("19 of 39 rows have the features of an earlier row, and another label")
    gathered = [f"{visit},{'|'.join(found)}" for visit, found in zip(visits, codes, strict=True)]
    found = table_concerns(read("\n".join(["age,sex,y", *gathered]), as_table=True, separator="|"))
    assert not any("earlier row" in concern for concern in found)


def test_rows_that_come_again_with_the_same_label_are_no_labels_of_one_example(read: Any) -> None:
    rows = "\n".join(f"{place % 3},{'yes' if place % 5 else 'no'}" for place in range(60))
    assert table_concerns(read(f"a,y\n{rows}", as_table=True)) == []


def test_a_number_that_rises_from_row_to_row_may_be_a_time(read: Any) -> None:
    rows = "\n".join(f"{place / 50},{place % 7},{'ab'[place % 2]}" for place in range(60))
    (concern,) = table_concerns(read(f"seconds,a,y\n{rows}", as_table=True))
    assert "'seconds' rises from row to row: if it is a time, data.time=seconds other_columns" in concern
    assert table_concerns(read(f"seconds,a,y\n{rows}", as_table=True, other_columns=["seconds"])) == []


def test_rows_that_are_blank_in_every_feature_are_told(read: Any) -> None:
    rows = "".join(f"{row},{row % 7},{'ab'[row % 2]}\n" for row in range(30))  # Orange writes such a line, too
    found = table_concerns(read(f"width,height,kind\n,,class\n{rows}", labels_key="kind", as_table=True))
    assert "1 of 31 rows is blank in every feature, row 0: delete it if it is no example" in found
    found = table_concerns(read(f"width,height,kind\n{rows},,a\n,,b\n", labels_key="kind", as_table=True))
    assert "2 of 32 rows are blank in every feature, first row 30: delete them if they are no example" in found


def test_a_number_of_which_every_label_has_a_range_leaks(read: Any) -> None:
    def concerns(wrong: int) -> list[str]:
        todays = [row * 7919 % 100 - 50.5 for row in range(100)]
        ways = ["down" if (today < 0) != (row < wrong) else "up" for row, today in enumerate(todays)]
        rows = "".join(f"{today},{row % 13 * 1.5},{ways[row]}\n" for row, today in enumerate(todays))
        data = read(f"today,lag,way\n{rows}", labels_key="way")
        return [concern for concern in table_concerns(data) if "alone tells" in concern]

    [concern] = concerns(wrong=0)
    assert concern.startswith("'today' alone tells the label in 100 % of the rows: is it known before the label is?")
    assert concerns(wrong=1) == []


def test_a_text_that_names_its_label_leaks_and_one_that_names_all_does_not(read: Any) -> None:
    def concerns(text: str) -> list[str]:
        kinds = [("Monarchy", "Military Dict", "Dict")[row % 3] for row in range(120)]
        rows = "".join(f"{text.format(row=row, kind=kind)},{row % 7},{kind}\n" for row, kind in enumerate(kinds))
        data = read(f"spell,years,regime\n{rows}", labels_key="regime", as_table=True)
        return [concern for concern in table_concerns(data) if "alone tells" in concern]

    [concern] = concerns("Leader {row}.{kind}.1946")
    assert concern.startswith("'spell' alone tells the label in 100 % of the rows: is it known before the label is?")
    assert concerns("Leader {row}.1946") == []
    assert concerns("Leader {row}: military dict or monarchy or dict") == []
