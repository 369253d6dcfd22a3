"""Tables of recipes as texts: what stands where, and what is said below."""

from dataclasses import replace
from typing import Any

from shortlist_recipes.layout import WIDEST, Texts, measured_and_published, notes
from shortlist_recipes.results import Record, Results
from shortlist_recipes.tables import Table, Value

VALUE = Value("top-5", "top-5, %")
TABLE = Table("T", "table 1", ("x",), (VALUE,))


def results_of(*values: float | None, x: Any = 1) -> Results:
    return Results([Record({"x": x, "seed": seed}, {"top-5": value}, 1.0) for seed, value in enumerate(values)])


def grid(xs: Any, ys: Any) -> Results:
    """Two seeds of every pair, whose mean is 10 x + y percent."""
    return Results(
        [
            Record({"x": x, "y": y, "seed": seed}, {"top-5": (10 * x + y + 2 * seed - 1) / 100, "size": 1.0}, 1.0)
            for x in xs
            for y in ys
            for seed in (0, 1)
        ]
    )


def shown(table: Table, results: Results) -> list[tuple[str, list[str], list[list[str]]]]:
    return [
        (t.caption, list(t.header), [list(row) for row in t.rows]) for t in measured_and_published(table, results)[0]
    ]


# ---- rows


def test_published_rows_that_were_not_run_have_a_table_of_their_own() -> None:
    table = replace(TABLE, published={(1,): {"top-5": 40.0}, (2,): {"top-5": 41.0}})
    measured, published = measured_and_published(table, results_of(0.5, 0.6))
    assert measured == [
        Texts(["x", "top-5, %: published", "ours", "difference"], [["1", "40.00", "55.00 ± 63.53", "+15.00"]])
    ]
    assert published == [Texts(["x", "top-5, %"], [["2", "41.00"]])]


def test_without_published_figures_of_measured_rows_there_are_no_columns_for_them() -> None:
    table = replace(TABLE, published={(2,): {"top-5": 41.0}})
    assert shown(table, results_of(0.5)) == [("", ["x", "top-5, %"], [["1", "50.00"]])]


def test_without_compare_there_is_no_difference() -> None:
    table = replace(TABLE, values=(replace(VALUE, compare=False),), published={(1,): {"top-5": 40.0}})
    assert shown(table, results_of(0.5)) == [("", ["x", "top-5, %: published", "ours"], [["1", "40.00", "50.00"]])]


def test_a_cell_that_was_run_but_gave_no_number_has_a_dash() -> None:
    table = replace(TABLE, values=(VALUE, Value("size", "size")))
    results = Results([*results_of(0.5).records])
    assert shown(table, results)[0][2] == [["1", "50.00", "–"]]
    assert notes(table, results) == "–: no such number."


def test_seeds_are_named_once_and_in_a_cell_only_where_they_differ() -> None:
    results = Results([*results_of(0.5, 0.6, x=1).records, *results_of(0.1, 0.2, x=2).records])
    assert [row[1] for row in shown(TABLE, results)[0][2]] == ["55.00 ± 63.53", "15.00 ± 63.53"]
    assert notes(TABLE, results) == "Ours: mean ± 95 % interval (Student's t) over 2 seeds."
    more = Results([*results.records, *results_of(0.3, x=3).records])
    assert [row[1] for row in shown(TABLE, more)[0][2]] == ["55.00 ± 63.53", "15.00 ± 63.53", "30.00 (1)"]
    assert "another number" in notes(TABLE, more)


def test_one_seed_needs_no_note() -> None:
    assert notes(TABLE, results_of(0.5)) == ""


# ---- columns


def test_a_key_goes_across() -> None:
    table = replace(TABLE, by=("x", "y"), across="y")
    assert shown(table, grid((1, 2), (3, 4))) == [
        (
            "",
            ["x", "y = 3", "y = 4"],
            [["1", "13.00 ± 12.71", "14.00 ± 12.71"], ["2", "23.00 ± 12.71", "24.00 ± 12.71"]],
        )
    ]


def test_what_was_not_run_across_is_blank() -> None:
    table = replace(TABLE, by=("x", "y"), across="y")
    some = Results([*grid((1,), (3, 4)).records, *grid((2,), (3,)).records])
    assert [row[2] for row in shown(table, some)[0][2]] == ["14.00 ± 12.71", ""]
    assert notes(table, some).endswith("Where ours is blank: not run.")
    assert "blank" not in notes(table, grid((1, 2), (3, 4)))


def test_published_figures_stand_only_where_across_there_are_any() -> None:
    table = replace(TABLE, by=("x", "y"), across="y", published={(1, 4): {"top-5": 13.5}})
    header = shown(table, grid((1, 2), (3, 4)))[0][1]
    assert header == ["x", "y = 3", "y = 4: published", "ours", "difference"]


def test_a_key_apart_has_one_table_for_each_value() -> None:
    table = replace(TABLE, by=("x", "y"), apart="x")
    assert [(caption, header) for caption, header, _ in shown(table, grid((1, 2), (3, 4)))] == [
        ("x = 1", ["y", "top-5, %"]),
        ("x = 2", ["y", "top-5, %"]),
    ]


def test_a_wide_table_is_one_for_each_value_across() -> None:
    table = replace(TABLE, by=("x", "y"), across="y", values=(VALUE, Value("size", "size", 1.0)))
    tables = measured_and_published(table, grid((1,), range(6)))[0]
    assert [texts.caption for texts in tables] == ["top-5, %", "size"]
    assert all(texts.header == ["x", *(f"y = {y}" for y in range(6))] for texts in tables)
    assert all(texts.width <= WIDEST for texts in tables)


def test_published_figures_that_make_one_value_too_wide_have_a_table_for_each_value_across() -> None:
    published = {(1, y): {"top-5": 12.0} for y in range(6)}
    tables = shown(replace(TABLE, by=("x", "y"), across="y", published=published), grid((1,), range(6)))
    assert [caption for caption, _, _ in tables] == [f"y = {y}" for y in range(6)]
    assert tables[3] == (
        "y = 3",
        ["x", "y = 3: published", "ours", "difference"],
        [["1", "12.00", "13.00 ± 12.71", "+1.00"]],
    )


def test_a_wide_table_keeps_as_many_values_together_as_fit_and_the_published_ones_apart() -> None:
    values = tuple(Value(name, f"number {name}") for name in "abcde")
    records = [Record({"x": 1, "seed": s}, {v.name: 0.5 + s / 100 for v in values}, 1.0) for s in (0, 1)]
    table = replace(TABLE, values=values, published={(1,): {"a": 40.0, "b": 41.0, "c": 42.0}})
    tables = measured_and_published(table, Results(records))[0]
    assert [len(texts.header) for texts in tables] == [1 + 6, 1 + 3, 1 + 2]
    assert [texts.caption for texts in tables] == ["", "number c", ""]


def test_a_bar_in_a_name_does_not_break_the_table() -> None:
    assert Texts(["x"], [["a|b"]]).markdown().splitlines()[-1] == "| a\\|b |"
