"""A fitted run and new data: what is known of it, what is told, and files that moved."""

import warnings
from pathlib import Path

import pandas as pd
import pytest

from shortlist import ShortlistError, ShortlistWarning, runs
from tests.runs.fit.made_tables import leaves, write


def test_a_run_on_mulans_arff_predicts_without_its_xml() -> None:
    Path("scene.xml").write_text('<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sea"/></labels>')
    rows = "".join(f"{row % 2},{row % 2 + row / 100}\n" for row in range(40))
    head = "@relation scene\n{}@attribute a numeric\n@data\n"
    Path("scene.arff").write_text(head.format("@attribute sea {0,1}\n") + rows)
    runs.fit("scene.arff", "run", overrides=["epochs=1"])
    Path("scene.xml").unlink()
    Path("new.arff").write_text(head.format("") + "0.5\n1.5\n")
    assert runs.predict("run", "new.arff")["examples"] == 2


def test_rare_names_in_rows_of_the_training_table_are_not_told_and_those_of_other_tables_are() -> None:
    frame = leaves(300).drop(columns="note")
    frame["cabin"] = [f"c{row // 3}" if row % 4 == 0 else None for row in range(300)]
    frame.to_csv("t.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs.fit("t.csv", "run")
    assert not [str(one.message) for one in caught if "learnt" in str(one.message)]
    frame[:60].assign(shore="east").to_csv("new.csv", index=False)
    with pytest.warns(ShortlistWarning, match="no value of 'shore' .* is one that was learnt"):
        runs.predict("run", "new.csv")


def test_data_that_judges_may_have_an_example_twice_but_no_word_among_numbers() -> None:
    write("old.csv", leaves(90))
    runs.fit("old.csv", "run", overrides=["backbone=identity"])
    write("twice.csv", pd.concat([leaves(30)] * 2))
    assert runs.evaluate("run", "twice.csv")["examples"] == 60
    assert runs.predict("run", "twice.csv")["examples"] == 60
    several = leaves(90).assign(oak=lambda t: t["species"] == "oak", north=lambda t: t["shore"] == "north")
    write("several.csv", several.drop(columns="species"))
    runs.fit("several.csv", "several", labels=["oak", "north"], overrides=["backbone=identity"])
    write("twice.csv", pd.concat([several] * 2))
    assert runs.evaluate("several", "twice.csv")["examples"] == 180
    write("total.csv", pd.concat([leaves(30).astype({"length": str}), pd.DataFrame({"length": ["Total"]})]))
    with pytest.raises(ShortlistError, match=r"fitted with numbers, now it holds 'Total', first in row 30: .* blank"):
        runs.predict("run", "total.csv")


def test_a_run_whose_data_is_elsewhere_says_where_it_looked_and_what_to_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("leaves.csv", leaves())
    run = Path(runs.fit("leaves.csv", "run", labels=["species"])["run"]).resolve()
    data = Path("leaves.csv").resolve()
    (tmp_path / "moved").mkdir()
    monkeypatch.chdir(tmp_path / "moved")
    told = (
        rf"leaves\.csv: no such file in {tmp_path}.moved; give the command in the folder where the run was trained, or"
    )
    with pytest.raises(FileNotFoundError, match=rf"{told} say in .*config\.yaml, data\.train\.path, where it is now"):
        runs.evaluate(run, "test")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("path: leaves.csv", f"path: {data}"))
    assert runs.evaluate(run, "test")["examples"] == 30
