"""``shortlist data`` on tables and paths: what it proposes, and what it writes for the features reader."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shortlist import runs
from tests.cli.command import Result, run_here
from tests.data.readers.made_files import image

Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_here(capsys, *arguments)


def test_what_a_reader_warns_of_is_counted(cli: Cli) -> None:
    Path("t.csv").write_text("a,label\n" + "".join(f"{row % 7},{'xy'[row % 2]}\n" for row in range(30)) + "9,Total\n")
    checked = cli("data", "check", "t.csv")
    assert "warning: t.csv, line 32: the last row is the only one with the label 'Total'" in checked.err
    assert checked.err.endswith("no problems, 2 warnings\n")  # and that one example is too few
    assert len(cli("data", "check", "t.csv", "--json").json["warnings"]) == 2


def test_labels_that_are_too_rare_are_told_by_check_as_by_fit(cli: Cli) -> None:
    Path("t.csv").write_text("a,label\n" + "".join(f"{row % 7},{row // 2}\n" for row in range(60)))
    for command in (["data", "check"], ["fit", "--out", "run"]):
        assert "warning: 30 of 30 labels have fewer than 3 examples" in cli(*command, "t.csv").err


def test_what_a_reader_warns_of_is_told_once_by_fit(cli: Cli) -> None:
    Path("t.csv").write_text("a,label\n" + "".join(f"{row % 7},{'xy'[row % 2]}\n" for row in range(60)) + "9,Total\n")
    for run in ("one", "two"):
        assert cli("fit", "t.csv", "--out", run).err.count("delete it if it holds totals") == 1


def test_a_table_with_blanks_is_described(cli: Cli) -> None:
    Path("labels.csv").write_text("id,a,b,cat,dog\nx,1,2,1,\ny,3,4,,0\n")
    options = ("features", "path=labels.csv", "label_columns=[cat,dog]", "ids_key=id")
    found = cli("data", "describe", *options, "--json").json
    assert (found["in_shape"], found["share_unknown"], found["label_counts"]) == ([2], 0.5, {"cat": 1, "dog": 0})
    assert cli("data", "check", *options).err.splitlines()[-1] == "no problems"


def test_a_column_that_is_left_out_is_never_no_problems_alone(cli: Cli) -> None:
    Path("labels.csv").write_text("city,a,cat,dog\nOslo,2,1,\nRome,4,,0\n")
    options = ("features", "path=labels.csv", "label_columns=[cat,dog]", "as_table=false")
    checked, described = cli("data", "check", *options), cli("data", "describe", *options)
    assert checked.err.splitlines() == [
        "features (1): a",
        "labels (2): cat, dog",
        "ignored (1): city (it holds no numbers)",
        "labels in 2 examples: 'cat' 1, 'dog' 0; 2 of 4 answers are unknown",
        "warning: 1 column is left out, because it holds no numbers: 'city': write it as numbers, or name it in "
        "other_columns",
        "no problems, 1 warning",
    ]
    assert "ignored (1): city (it holds no numbers)" in described.out.splitlines()
    assert "1 column is left out" in described.err
    assert cli("data", "check", *options, "--json").json["warnings"][0] in described.err


def test_problems_of_one_cause_are_counted_with_three_examples(cli: Cli) -> None:
    Path("table.csv").write_text("a,y\n" + "1,cat\n" * 2 + "".join(f"bad{row},cat\n" for row in range(165)))
    checked = cli("data", "check", "features", "path=table.csv", "as_table=false")
    hint = "; data.preprocess=auto takes such columns as they are"
    assert checked.out.splitlines() == [
        "table.csv: 165 times alike, such as",
        *(f"  table.csv, line {row + 4}: the column 'a' is 'bad{row}', not a number{hint}" for row in range(3)),
    ]
    assert checked.err.splitlines() == ["165 problems"]


def test_images_with_one_thing_wrong_are_counted_with_three_examples(cli: Cli) -> None:
    for number in range(5):
        Path(f"photos/my cat {number}").mkdir(parents=True)
        Path(f"photos/my cat {number}/1.png").write_bytes(b"cut off")
    checked = cli("data", "check", "image-folder", "path=photos").out.splitlines()
    assert checked[0] == "5 times alike, such as"
    assert [line.partition(": ")[0] for line in checked[1:]] == [f"  photos/my cat {row}/1.png" for row in range(3)]


def test_beside_broken_images_there_is_told_what_else_to_look_at(cli: Cli) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/3.png", "dog/4.png", "unsure/5.png"):
        image(Path("photos", name))
    Path("photos/cat/0.png").write_bytes(b"cut off")
    checked = cli("data", "check", "image-folder", "path=photos")
    assert (checked.code, len(checked.out.splitlines())) == (1, 1)
    assert checked.err.count("warning: photos: 'unsure' is taken as a label") == 1
    assert checked.err.splitlines()[-1] == "1 problem, 1 warning"


def test_of_a_path_whose_table_cannot_be_opened_all_problems_are_listed(cli: Cli) -> None:
    Path("table.csv").write_text("a,y\n" + "1,cat,2,3\n" * 10)
    checked = cli("data", "check", "table.csv")
    assert checked.code == 1
    assert checked.out.splitlines() == [
        "table.csv: 10 times alike, such as",
        *(f"  table.csv, line {line}: has 4 cells, but there are 2 columns" for line in (2, 3, 4)),
    ]
    assert checked.err.splitlines() == ["10 problems"]
    assert len(cli("data", "check", "table.csv", "--json").json["problems"]) == 10


@pytest.mark.parametrize("command", ["check", "describe"])
def test_of_a_path_it_is_told_what_fit_does_with_it(cli: Cli, command: str) -> None:
    rows = "".join(f"b{row};{row % 3},5;{'owl|cat' if row % 2 else 'cat'};{row % 2}\n" for row in range(40))
    Path("birds.csv").write_text(f"bird;length;kind;seen\n{rows}")
    found = cli("data", command, "birds.csv", "--labels", "kind", "objective=two-way")
    assert found.code == 0
    for told in (
        "several labels in a cell of 'kind', with '|' between (one label: data.train.separator=null)",
        "shortlist fit does this:",
        "objective: two-way",
        "test: 0.2",
    ):
        assert told in found.err
    assert "features (2): length, seen" in found.err + found.out
    found = cli("data", command, "birds.csv", "separator=null", "labels_key=kind", "--json").json
    assert "objective: {name: cross-entropy}" in found["fit"]["config"]
    assert "separator: null" in found["fit"]["config"]
    assert found["fit"]["notes"] == []


def test_of_a_path_that_fit_refuses_the_reason_is_told(cli: Cli) -> None:
    Path("few.csv").write_text("a,label\n1,x\n2,y\n")
    few = cli("data", "check", "few.csv")
    assert "warning: shortlist fit stops: 2 examples have a known label" in few.err
    assert (few.code, few.err.splitlines()[-1]) == (0, "no problems, 1 warning")
    few = cli("data", "check", "few.csv", "--json")
    assert (few.code, len(few.json["warnings"]), few.json["fit"]["config"]) == (0, 1, None)
    assert "shortlist fit stops: 2 examples have a known label" in cli("data", "describe", "few.csv").err
    Path("fruit").mkdir()
    Path("labels.csv").touch()
    folder, table = cli("data", "check", "fruit"), cli("data", "describe", "labels.csv")
    assert (folder.code, table.code) == (2, 2)
    assert "fruit: there are no images" in folder.err
    assert "labels.csv" in table.err
    Path("far.csv").write_text("a,label\n" + "1,x\n2,y\n" * 20 + "inf,x\n")
    assert "shortlist fit stops: far: the column 'a' holds infinity, first in row 40: leave such" in cli(
        "data", "check", "far.csv"
    ).err
    Path("a.npy").touch()
    assert "give the file of the labels, data.train.labels=FILE.npy" in cli("data", "check", "a.npy").err
    named = cli("data", "check", "features", "path=few.csv", "--labels", "label")
    assert (named.code, "--labels and --images go with the path of a table" in named.err) == (2, True)


def test_a_table_of_labels_alone_has_no_column_for_features(cli: Cli) -> None:
    Path("labels.csv").write_text("label\n" + "x\ny\n" * 20)
    checked = cli("data", "check", "labels.csv")
    said = "no column is left to be a feature: all have another use or none; the columns are 'label'"
    assert (checked.code, checked.out) == (1, f"labels.csv: {said}\n")


def test_of_none_in_a_list_both_meanings_are_offered(cli: Cli) -> None:
    Path("colours.csv").write_text("a,colours\n" + "1,red;blue\n2,none\n3,red\n4,blue\n" * 10)
    warned = cli("data", "check", "colours.csv").err
    assert """give unknown_names='["none"]' if that means that nothing is known; leave such cells blank""" in warned


def test_labels_of_which_none_is_known_are_told_as_that(cli: Cli) -> None:
    Path("open.csv").write_text("a,label\n" + "1,\n2,\n" * 20)
    told = cli("data", "check", "open.csv").err
    assert "class occur" not in told
    assert "labels in 40 examples: none; 40 examples have no known label" in told


def test_a_line_break_in_a_label_does_not_break_the_list_of_sets(cli: Cli) -> None:
    Path("owls.csv").write_text("a,y\n" + '1,"big\nowl"\n2,cat\n' * 10)
    data = {"train": {"reader": "features", "path": "owls.csv"}, "validation": None, "calibration": None}
    runs.train({"data": data, "epochs": 1, "batch_size": 2}, "run")
    told = cli("predict", "run", "owls.csv", "--rule", "top-k:k=2").err.splitlines()
    assert [line.split(":")[0] for line in told[-6:]] == ["  0", "  1", "  2", "  3", "  4", "  ..."]
    assert all("big\\nowl" in line for line in told[-6:-1])


def test_a_table_without_rows_is_a_problem(cli: Cli) -> None:
    Path("images.csv").write_text("path,label\n")
    result = cli("data", "check", "image-table", "path=images.csv", "labels=name")
    assert (result.code, result.out) == (1, "images.csv: no rows: the file only names the columns 'path', 'label'\n")


def test_features_are_written_with_all_right_labels_and_how_to_read_them(cli: Cli) -> None:
    arguments = ("data", "features", "ambiguous-numbers", "size=40", "--backbone", "identity", "-o", "f.npz", "-q")
    keys: dict[str, Any] = cli(*arguments, "--json").json["options"]
    assert keys["truth_key"] == "truth"
    options = [f"{key}={name}" for key, name in keys.items()]
    assert f"features path=f.npz {' '.join(options)}" in cli(*arguments).err
    assert cli("data", "describe", "features", "path=f.npz", *options, "--json").json["true_cardinality"] == 2.0


HOSTILE = "label,x\n[/red],1\n\x1b[31mred,2\n:smile:,3\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_neither_markup_nor_commands_to_the_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    Path("labels.csv").write_text(HOSTILE)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    shown = cli("data", "describe", "features", "path=labels.csv", "labels_key=label")
    assert (shown.code, shown.err) == (0, "")
    assert all(name in shown.out for name in ("[/red]", "\\x1b[31mred", ":smile:"))
    assert "\x1b[31m" not in shown.out


def test_problems_and_errors_show_what_would_steer_the_terminal(cli: Cli) -> None:
    Path("labels.csv").write_text("path,label\n\x1b[2J.png,[/red]\n")
    checked = cli("data", "check", "image-table", "path=labels.csv", "labels=name")
    described = cli("data", "describe", "image-table", "path=labels.csv", "labels=name")
    assert checked.code == 1
    assert "no such image: \\x1b[2J.png" in checked.out
    assert described.code == 2
    assert "not there, such as \\x1b[2J.png" in described.err


def test_training_says_what_the_columns_are_used_for(cli: Cli) -> None:
    rows = "".join(f"{row % 3},Oslo,{'owl' if row % 2 else 'cat'}\n" for row in range(40))
    Path("table.csv").write_text(f"a,city,y\n{rows}")
    Path("config.yaml").write_text("data: {train: {reader: features, path: table.csv}}\nepochs: 30\n")
    said = cli("train", "config.yaml", "data.preprocess=none", "--out", "run").err
    assert "features (1): a\nlabels (1): y\nignored (1): city (it holds no numbers)\n" in said
    assert "warning: 1 column is left out, because it holds no numbers: 'city'" in said
    said = cli("train", "config.yaml", "--out", "other").err
    assert "ignored (1): city (always the same)\nstandardised numbers (1): a\n" in said


def test_texts_and_numbers_with_slips_are_warned_of_before_training(cli: Cli) -> None:
    rows = "".join(f"{'1o' if row == 3 else row % 5},note number {row},{row % 2}\n" for row in range(80))
    Path("table.csv").write_text(f"a,note,y\n{rows}")
    checked = cli("data", "check", "features", "path=table.csv", "num_labels=2").err
    assert "warning: the column 'a' is taken as names, because 1 of 80 cells are no numbers: '1o': mend" in checked
    assert "warning: columns left out: 'note' (80 different values in 80 rows: text or an id)" in checked
    assert checked.endswith("no problems, 2 warnings\n")


def test_advice_can_be_given_as_it_is_written(cli: Cli) -> None:
    rows = "".join(f"{row % 7},5;{['joy|love', 'joy', 'anger'][row % 3]}\n" for row in range(60))
    Path("table.csv").write_text(f"a;y\n{rows}")
    options = ["features", "path=table.csv"]
    for advice in ("delimiter=';'", "decimal=','", "separator='|'"):
        checked = cli("data", "check", *options)
        assert f"give {advice}" in checked.out + checked.err
        options.append(advice.replace("'", ""))  # as a shell passes it on
    assert cli("data", "check", *options).err.splitlines()[-1] == "no problems"


def test_advice_on_columns_with_any_name_can_be_copied_into_a_shell(cli: Cli) -> None:
    for name in ("no", "the row's number", "a: [b] #1", "$HOME"):
        rows = "".join(f"{900 - row},{row % 7},{'cat' if row % 2 else 'dog'}\n" for row in range(60))
        Path("table.csv").write_text(f'"{name}",a,y\n{rows}')
        checked = cli("data", "check", "features", "path=table.csv").err
        advice = checked.split("if it is an id, give ")[1].split("\n")[0]
        for one in shlex.split(advice)[::2]:  # this or that
            assert "warning" not in cli("data", "check", "features", "path=table.csv", one).err


def test_the_labels_that_were_found_are_shown_with_their_counts(cli: Cli) -> None:
    Path("table.csv").write_text("a,y\n" + "1,owl\n2,cat\n3,cat\n4,\n" * 3)
    checked = cli("data", "check", "features", "path=table.csv")
    assert "labels in 12 examples: 'cat' 6, 'owl' 3; 3 examples have no known label" in checked.err.splitlines()
    assert cli("data", "check", "features", "path=table.csv", "--json").json["labels"] == {"cat": 6, "owl": 3}
    Path("table.csv").write_text("a,cat,dog\n1,1,\n2,1,0\n")
    checked = cli("data", "check", "features", "path=table.csv", "label_columns=[cat,dog]")
    assert "labels in 2 examples: 'cat' 2, 'dog' 0; 1 of 4 answers are unknown" in checked.err.splitlines()


def test_cells_that_mean_blank_and_preprocessing_can_be_given(cli: Cli) -> None:
    rows = "".join(f"{'missing' if row % 9 == 3 else row % 7},{'cat' if row % 2 else 'dog'}\n" for row in range(60))
    Path("table.csv").write_text(f"a,y\n{rows}")
    options = ("features", "path=table.csv", "data.na_values=[missing]")
    for command in ("check", "describe"):
        shown = cli("data", command, *options)
        assert "blanks marked (1): a" in shown.out + shown.err
        assert "warning" not in shown.err
    assert cli("data", "check", *options[:2], "data.preprocess=none").code == 1


def test_columns_that_never_change_are_never_no_problems_alone(cli: Cli) -> None:
    rows = "".join(f"{row % 7},5,same,{'cat' if row % 2 else 'dog'}\n" for row in range(60))
    Path("table.csv").write_text(f"a,b,c,y\n{rows}")
    checked = cli("data", "check", "features", "path=table.csv").err
    assert "ignored (2): c (always the same), b (always the same)" in checked
    assert checked.endswith("always the same: 'c', 'b': name them in other_columns\nno problems, 1 warning\n")
    advised = cli("data", "check", "features", "path=table.csv", "other_columns=[b,c]")
    assert advised.err.endswith("\nno problems\n")
    nothing = cli("data", "check", "features", "path=table.csv", "other_columns=[a]")
    assert "warning: no column is left to learn from" in nothing.err


def test_whole_numbers_as_labels_are_said_to_be_so(cli: Cli) -> None:
    Path("table.csv").write_text("a,y\n" + "".join(f"{row % 7},{row % 3 + 1}\n" for row in range(30)))
    note = "the labels are whole numbers: 3 classes occur, 1, 2, 3; give num_labels if there are more"
    assert note in cli("data", "check", "features", "path=table.csv").err.splitlines()
    assert note in cli("data", "describe", "features", "path=table.csv").out.splitlines()
    assert cli("data", "describe", "features", "path=table.csv", "--json").json["notes"] == [note]
