"""What `predict` writes: one row per example, in three forms; what it leaves out, and says so."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.data import read_image_table
from tests.cli.command import run_here

NAMES = ["ant", "bee", "cat"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on a table of ids and three numbers, the largest of which tells the label; and new.csv without labels."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    values = random.normal(size=(90, 3)).round(2)
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    frame["id"], frame["kind"] = [f"r{row}" for row in range(90)], [NAMES[row] for row in values.argmax(1)]
    frame.to_csv("table.csv", index=False)
    frame.drop(columns="kind").head(4).to_csv("new.csv", index=False)
    source = {"reader": "features", "path": "table.csv", "labels_key": "kind", "ids_key": "id"}
    runs.train({"data": {"train": source}, "epochs": 20}, "run")
    return Path("run")


def test_few_labels_that_the_run_does_not_know_are_left_unjudged_and_many_are_refused(run: Path) -> None:
    frame = pd.read_csv("table.csv")
    frame.loc[[3, 7], "kind"] = "wolf"
    frame.to_csv("unseen.csv", index=False)
    with pytest.warns(ShortlistWarning, match="2 of 90 rows have labels that the training data does not have, 'wolf'"):
        found = runs.evaluate(run, "unseen.csv")
    assert (found["judged"]["rows"], found["examples"]) == (88, 90)
    known = runs.evaluate(run, "unseen.csv", overrides=['unknown_names=["wolf"]'])
    assert found["metrics"] == known["metrics"]
    frame["kind"] = "wolf"
    frame.loc[3, "kind"] = "ant"
    frame.to_csv("other.csv", index=False)
    with pytest.raises(sl.ShortlistError, match=r"label 'wolf' .* in 88 more rows: .* unknown_names='\[.wolf.\]'"):
        runs.evaluate(run, "other.csv")


def test_a_label_in_another_spelling_is_refused(run: Path) -> None:
    frame = pd.read_csv("table.csv")
    frame.loc[[3, 7], "kind"] = "Ant"
    frame.to_csv("slip.csv", index=False)
    with pytest.raises(sl.ShortlistError, match=r"label 'Ant' .* did you mean 'ant'"):
        runs.evaluate(run, "slip.csv")


def test_several_labels_are_judged_without_those_that_the_run_does_not_know(tmp_path: Path) -> None:
    rows = [(place % 3, ["joy", "love", "fear"][place % 3]) for place in range(90)]
    lines = [f"{kind}.{place % 7},{name}{'|calm' if place % 2 else ''}" for place, (kind, name) in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["a,mood", *lines]))
    source = {"reader": "features", "path": f"{tmp_path}/t.csv", "labels_key": "mood", "separator": "|"}
    runs.train({"data": {"train": source}, "objective": "binary", "epochs": 1}, tmp_path / "run")
    (tmp_path / "new.csv").write_text("a,mood\n1.5,joy|awe\n2.5,love\n0.5,\n")
    with pytest.warns(ShortlistWarning, match="1 of 2 rows have labels that the training data does not have, 'awe'"):
        found = runs.evaluate(tmp_path / "run", tmp_path / "new.csv", metrics=["precision@1"])
    assert found["judged"]["rows"] == 3


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_no_rows_are_no_error_but_a_file_without_examples(
    run: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("none.csv").write_text("id,a,b,c\n")
    result = run_here(capsys, "predict", run, "none.csv", "--rule", "top-k:k=2", "-o", f"sets.{ending}")
    assert (result.code, "the data has no rows: there is nothing to predict" in result.err) == (0, True)
    if ending == "csv":
        assert Path("sets.csv").read_text() == "id,labels,probabilities\n"
    elif ending == "parquet":
        assert pd.read_parquet("sets.parquet").columns.tolist() == ["id", "labels", "names", "probabilities"]
    else:
        assert Path("sets.jsonl").read_text() == ""
    assert len(sl.load_run(run).predict_sets("none.csv", "top-k:k=2")) == 0
    with pytest.raises(ShortlistError, match="no rows"):
        runs.evaluate(run, "none.csv")


def test_rows_may_be_dicts(run: Path) -> None:
    predictor, rows = sl.load_run(run), pd.read_csv("new.csv")
    found = predictor.predict_sets(rows.to_dict("records"), "top-k:k=2")
    assert found == predictor.predict_sets(rows, "top-k:k=2")


def test_every_form_has_ids_names_and_probabilities(run: Path) -> None:
    for ending in ("csv", "parquet", "jsonl"):
        done = runs.predict(run, "new.csv", rule="top-k:k=2", out=f"sets.{ending}")
        assert done["written"] == [f"sets.{ending}"]
    predictor = sl.load_run(run)
    sets, chances = predictor.predict_sets("new.csv", "top-k:k=2"), predictor.probabilities("new.csv").numpy()
    best = [sorted(labels, key=lambda label: -chances[row, label]) for row, labels in enumerate(sets)]
    names = [[NAMES[label] for label in labels] for labels in best]
    numbers = [[chances[row, label] for label in labels] for row, labels in enumerate(best)]

    table = pd.read_csv("sets.csv")
    assert table.columns.tolist() == ["id", "labels", "probabilities"]
    assert table["id"].tolist() == ["r0", "r1", "r2", "r3"]
    assert [cell.split("|") for cell in table["labels"]] == names
    np.testing.assert_allclose([[float(x) for x in cell.split("|")] for cell in table["probabilities"]], numbers, 1e-5)

    lines = [json.loads(line) for line in Path("sets.jsonl").read_text().splitlines()]
    assert [line["labels"] for line in lines] == names
    np.testing.assert_allclose([line["probabilities"] for line in lines], numbers, 1e-5)
    assert sl.LabelSets.from_jsonl("sets.jsonl", vocabulary=sets.vocabulary) == sets
    assert pd.read_json("sets.jsonl", lines=True)["id"].tolist() == table["id"].tolist()

    columns = pd.read_parquet("sets.parquet")
    assert columns.columns.tolist() == ["id", "labels", "names", "probabilities"]
    assert [[NAMES[label] for label in labels] for labels in columns["labels"]] == [list(x) for x in columns["names"]]
    assert [list(cell) for cell in columns["names"]] == names
    np.testing.assert_allclose(np.stack(columns["probabilities"]), numbers, 1e-5)
    assert sl.LabelSets.from_parquet("sets.parquet") == sets


def test_without_an_out_it_is_a_csv_in_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_here(capsys, "predict", run, "new.csv", "--rule", "top-k:k=1")
    assert result.code == 0
    assert "sets: run/predictions/new-csv-top-k-1.csv" in result.err
    assert len(pd.read_csv("run/predictions/new-csv-top-k-1.csv")) == 4
    assert "  r0: " in result.err


def test_labels_that_hold_the_separator_of_a_csv_are_written_as_lists(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=np.eye(4, dtype="f4"), y=[0, 1, 0, 1], names=["a|b", "c"])
    source = {"reader": "features", "path": str(tmp_path / "d.npz"), "vocabulary_key": "names"}
    data = {"train": source, "validation": None, "calibration": None}
    runs.train({"data": data, "epochs": 1}, tmp_path / "run")
    written = runs.predict(tmp_path / "run", "train", rule="top-k:k=1")["written"][0]
    labels = [label for cell in pd.read_csv(written)["labels"] for label in json.loads(cell)]
    assert len(labels) == 4
    assert set(labels) <= {"a|b", "c"}


def test_where_the_objective_only_ranks_there_are_scores(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=np.eye(8, dtype="f4"), y=np.eye(8, 3, dtype="i8"))
    data = {"train": {"reader": "features", "path": str(tmp_path / "d.npz")}, "validation": None, "calibration": None}
    runs.train({"data": data, "objective": "lsep", "epochs": 1}, tmp_path / "run")
    found = runs.predict(tmp_path / "run", "train", rule="top-k:k=1", out=tmp_path / "sets.csv")["first"]
    assert all(set(row) == {"id", "labels", "scores"} for row in found)
    assert pd.read_csv(tmp_path / "sets.csv").columns.tolist() == ["id", "labels", "scores"]


# ---- images


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders images/dark and images/light, and a folder new with a dark one, one that is cut off, and one that is no
    image."""
    monkeypatch.chdir(tmp_path)
    for label, level in (("dark", 20), ("light", 220)):
        Path("images", label).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (8, 8), (level + number,) * 3).save(f"images/{label}/{number}.png")
    Path("new").mkdir()
    Image.new("RGB", (8, 8), (10, 10, 10)).save("new/dark.png")
    Path("new/cut.png").write_bytes(Path("images/light/1.png").read_bytes()[:40])
    Path("new/none.jpg").write_bytes(b"this is text")
    return tmp_path


@pytest.mark.parametrize("encoder", [None, "identity"])
def test_broken_images_are_left_out_listed_and_told_by_the_exit_code(
    photos: Path, capsys: pytest.CaptureFixture[str], encoder: str | None
) -> None:
    data = {"train": {"reader": "image-folder", "path": "images", "size": 8}, "encoder": encoder}
    data |= {"validation": None, "calibration": None}
    runs.train({"data": data, "optimizer": {"name": "adamw", "lr": 0.01}, "epochs": 40}, "run")
    result = run_here(capsys, "predict", "run", "new", "--rule", "top-k:k=1", "-o", "sets.csv")
    assert result.code == 3
    assert "skipped: 2 images that cannot be decoded" in result.err
    assert "cut.png: cannot decode the image" in result.err
    assert pd.read_csv("sets.csv")[["id", "labels"]].to_numpy().tolist() == [["dark.png", "dark"]]
    result = run_here(capsys, "predict", "run", "new", "--rule", "top-k:k=1", "-o", "sets.csv", "--json")
    assert result.code == 3
    assert [image["id"] for image in result.json["skipped"]] == ["cut.png", "none.jpg"]
    assert run_here(capsys, "predict", "run", "images/dark/1.png", "--rule", "top-k:k=1", "--json").code == 0
    Path("new/dark.png").unlink()
    with pytest.raises(ShortlistError, match="none of the 2 images can be decoded"):
        runs.predict("run", "new", rule="top-k:k=1")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_names_that_are_not_utf_8_are_written_out_and_files_that_are_no_images_are_told(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (b"new/a\xff.png", *(b"images/dark/\xff%d.png" % number for number in range(8))):
        Path(os.fsdecode(name)).write_bytes(Path("new/dark.png").read_bytes())
    Path(os.fsdecode(b"images/light/cut\xff.png")).write_bytes(Path("new/cut.png").read_bytes())
    Path("new/drawing.svg").touch()
    runs.fit("images", "run", overrides=["data.encoder=identity", "data.train.size=8", "data.test=null", "epochs=1"])
    found = []
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet), (".jsonl", _read_lines)):
        result = run_here(capsys, "predict", "run", "new", "--rule", "top-k:k=1", "-o", f"sets{ending}")
        assert "files that are no images by their names are left out: 1 .svg" in result.err
        found.append(read(f"sets{ending}")["id"].tolist())
    assert found == [[r"a\xff.png", "dark.png"]] * 3


def _read_lines(path: str) -> pd.DataFrame:
    return pd.DataFrame(map(json.loads, Path(path).read_text().splitlines()))


def test_fit_train_and_evaluate_leave_broken_images_out_and_say_so(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the other images stay in the parts that they were in, whether the broken ones are mended or not."""
    for label, level in (("dark", 20), ("light", 220)):
        for number in range(8, 30):
            Image.new("RGB", (8, 8), (level + number,) * 3).save(f"images/{label}/{number}.png")
    options = ["data.encoder=identity", "data.train.size=8", "epochs=3"]
    runs.fit("images", "whole", overrides=options)
    whole = {part: set(data.ids) for part, data in runs.Run("whole").parts().items()}
    lost = {next(iter(whole["test"])), next(iter(whole["train"]))}
    mended = {name: Path("images", name).read_bytes() for name in lost}
    for name in lost:
        Path("images", name).write_bytes(mended[name][:40])
    result = run_here(capsys, "fit", "images", "-o", "run", *options)
    assert result.code == 3, result.err
    assert "58 examples (left out: 2 images that cannot be decoded)" in result.err
    assert result.err.rstrip().splitlines()[-3] == "skipped: 2 images that cannot be decoded"
    assert {part: set(data.ids) for part, data in runs.Run("run").parts().items()} == {
        part: ids - lost for part, ids in whole.items()
    }
    result = run_here(capsys, "evaluate", "run", "test", "--json")
    assert (result.code, result.json["examples"]) == (3, len(whole["test"]) - 1)
    assert [image["id"] for image in result.json["skipped"]] == list(lost & whole["test"])
    assert run_here(capsys, "train", "run/config.yaml", "--out", "again").code == 3
    assert run_here(capsys, "calibrate", "run").code == 0  # of its data nothing is left out
    result = run_here(capsys, "evaluate", "run", "images")
    assert "skipped: 2 images" in result.err
    command = ("data", "features", "image-folder", "path=images", "size=8", "--backbone", "identity", "-o", "all.npz")
    result = run_here(capsys, *command, "--json")
    assert (result.code, result.json["examples"], len(result.json["skipped"])) == (3, 58, 2)
    for name in lost:
        Path("images", name).write_bytes(mended[name])
    assert {part: set(data.ids) for part, data in runs.Run("run").parts().items()} == whole


def test_training_on_pixels_leaves_broken_images_out_and_the_run_knows_them(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also after they are mended: the run's parts stay what they were in training."""
    options = ["backbone=identity", "data.train.size=8", "epochs=1", "data.calibration=4", "data.test=4"]
    options += ["data.validation=4", "data.encoder=null", "rules=[{name: top-k, k: 1}]"]
    for label in ("dark", "light"):
        for number in range(8, 12):
            Path(f"images/{label}/{number}.png").write_bytes(Path(f"images/{label}/{number - 8}.png").read_bytes())
    whole = Path("images/dark/3.png").read_bytes()
    Path("images/dark/3.png").write_bytes(whole[:40])
    result = run_here(capsys, "fit", "images", "-o", "run", *options, "--json")
    assert result.code == 3, result.err
    assert ([image["id"] for image in result.json["skipped"]], result.json["examples"]) == (["dark/3.png"], 23)
    Path("images/dark/3.png").write_bytes(whole)
    assert "dark/3.png" not in {name for part in runs.Run("run").parts().values() for name in part.ids}
    assert run_here(capsys, "train", "run/config.yaml", "--out", "mended").code == 0
    assert [image["id"] for image in runs.train(resume="run")["skipped"]] == ["dark/3.png"]


def test_folders_tables_and_parts_of_one_name_have_files_of_their_own(photos: Path) -> None:
    data = {"train": {"reader": "image-folder", "path": "images", "size": 8}, "validation": None, "calibration": None}
    runs.train({"data": {**data, "test": 4}, "epochs": 1}, "run")
    Path("test").mkdir()
    Image.new("RGB", (8, 8)).save("test/one.png")
    Path("test.csv").write_text("path\ntest/one.png\n")
    written = [runs.predict("run", data, rule="top-k:k=1")["written"][0] for data in ("test", "./test", "test.csv")]
    assert [Path(file).name for file in written] == [f"test{of}-top-k-1.csv" for of in ("", "-folder", "-csv")]


def test_images_that_a_table_lists_may_be_elsewhere_missing_or_listed_twice(photos: Path) -> None:
    data = {"train": {"reader": "image-folder", "path": "images", "size": 8}, "validation": None, "calibration": None}
    runs.train({"data": data, "optimizer": {"name": "adamw", "lr": 0.01}, "epochs": 40}, "run")
    Path("listed.csv").write_text("file\ndark.png\ngone.png\ndark.png\n")
    given = {"overrides": ["path_column=file", "root=new"], "rule": "top-k:k=1"}
    found = runs.predict("run", "listed.csv", **given, out="sets.jsonl")
    assert found["examples"] == 2
    assert [row["labels"] for row in found["first"]] == [["dark"], ["dark"]]
    assert [image["reason"] for image in found["skipped"]] == ["no such image: new/gone.png"]
    with pytest.raises(ShortlistError, match="there is no such key; did you mean 'path_column'"):
        runs.predict("run", "listed.csv", rule="top-k:k=1", overrides=["path_colum=file"])


@pytest.mark.parametrize("encoder", ["null", "identity"])
def test_images_of_a_table_that_are_missing_are_left_out_like_broken_ones(
    photos: Path, capsys: pytest.CaptureFixture[str], encoder: str
) -> None:
    rows = [f"{label}/{number}.png,{label}" for label in ("dark", "light") for number in range(20)]
    for row in rows:
        Image.new("RGB", (8, 8), (20 if row < "e" else 220, 0, len(row))).save(Path("images", row.split(",")[0]))
    lost = [f"gone{number}.png,dark" for number in range(5)]
    Path("all.csv").write_text("file,kind\n" + "\n".join([*lost, *rows]) + "\n")
    options = [f"data.encoder={encoder}", "backbone=identity", "data.train.size=8", "data.test=9", "data.calibration=9"]
    result = run_here(capsys, "fit", "all.csv", "--images", "images", "-o", "run", *options)
    assert result.code == 3, result.err
    title, *shown, more = result.err.rstrip().splitlines()[-5:]
    assert (title, more) == ("skipped: 5 images that are not there", "  and 2 more (all: --json)")
    assert all(re.fullmatch(r"  (gone\d.png): no such image: images/\1", line) for line in shown)
    assert "5 images that are not there: gone" in Path("run/report/index.html").read_text("utf-8")
    Path("new.csv").write_text("file,kind\n" + "\n".join([lost[0], *rows[:2]]) + "\n")
    found = runs.predict("run", "new.csv", images="images")
    assert (found["examples"], [image["id"] for image in found["skipped"]]) == (2, ["gone0.png"])
    found = runs.evaluate("run", "new.csv", overrides=["root=images"])
    assert (found["examples"], [image["id"] for image in found["skipped"]]) == (2, ["gone0.png"])
    Path("new.csv").write_text("file,kind\n" + "\n".join([*lost, *rows[:2]]) + "\n")
    for command in (["predict", "run", "new.csv", "--images", "images"], ["evaluate", "run", "new.csv", "root=images"]):
        result = run_here(capsys, *command)
        assert (result.code, "5 of the 7 images" in result.err, "the folder images" in result.err) == (2, True, True)


@pytest.mark.parametrize(
    ("names", "folder", "why"),
    [
        (["1.png", "2.png"], "nowhere", "the folder nowhere: there is no such folder: give that of the images, root="),
        (["1.png", "2.png"], "images", r"they are in images/dark, so give root=images/dark \(of fit and predict: --im"),
        (["dark/1.png", "dark/2.png"], "images/dark", "they are in images, so give root=images"),
        (["C/1.png", "C/2.png"], "images/dark", "images/dark/1.png is there: write the names without their folders"),
        (["1.png", "a.png"], "images", "some are in images/dark, but not all: write .*, such as dark/1.png"),
        (["https://x.org/a.png", "https://x.org/b.png"], "images", "images are not fetched from the web"),
        (["1.jpg", "2.PNG"], "images/dark", r"images/dark/1.png is there: write the names, with their endings, as the"),
        (["a.png", "b.png"], "images/dark", "the folder images/dark: give the folder that they are in, root=FOLDER"),
    ],
)
def test_where_most_images_of_a_table_are_missing_the_likely_mistake_is_told(
    photos: Path, names: list[str], folder: str, why: str
) -> None:
    Path("all.csv").write_text("file,kind\n" + "".join(f"{name},{kind}\n" for name in names for kind in "ab"))
    with pytest.raises(ShortlistError, match=f"images that it lists are not there, such as .*{why}"):
        runs.fit("all.csv", "run", images=folder)


@pytest.mark.parametrize("start", ["C:\\\\me\\\\", ".\\\\", "/content/drive/", "https://x.org/images/"])
def test_paths_of_another_machine_are_found_by_their_ends(photos: Path, start: str) -> None:
    files = sorted(file.relative_to("images") for file in Path("images").rglob("*.png"))
    names = [start + str(file).replace("/", "\\" if "\\" in start else "/") for file in files]
    Path("all.csv").write_text("file,kind\n" + "".join(f"{name},a\n" for name in names))
    data = read_image_table("all.csv", path_column="file", label_column="kind", root="images")
    assert [Path(file) for file in data.inputs.source] == [Path("images") / file for file in files]
    assert data.notes == (f"{len(names)} paths are of another place: {names[0]} is read from images/{files[0]}",)


def test_a_run_on_features_of_an_unknown_encoder_says_so(photos: Path) -> None:
    np.savez("d.npz", X=np.eye(4, dtype="f4"), y=[0, 1, 0, 1])
    source = {"reader": "features", "path": "d.npz", "num_labels": 2}
    runs.train({"data": {"train": source, "validation": None, "calibration": None}, "epochs": 1}, "run")
    with pytest.raises(ShortlistError, match="trained on 4 features, and what makes them of images is not known"):
        runs.predict("run", "new", rule="top-k:k=1")


def test_images_of_a_new_table_are_those_beside_it_and_not_those_of_the_same_name_in_training(photos: Path) -> None:
    train = Path("images")
    files = sorted(file.relative_to(train).as_posix() for file in train.rglob("*.png"))
    Path("train.csv").write_text("path,label\n" + "".join(f"{file},{file.split('/')[0]}\n" for file in files))
    source = {"reader": "image-table", "path": "train.csv", "root": "images", "size": 8}
    data = {"train": source, "validation": None, "calibration": None}
    runs.train({"data": data, "optimizer": {"name": "adamw", "lr": 0.01}, "epochs": 40}, "run")
    light, dark = (next(file for file in files if file.startswith(kind)) for kind in ("light", "dark"))
    place = Path("week2", light)
    place.parent.mkdir(parents=True)
    place.write_bytes((train / dark).read_bytes())
    Path("week2/new.csv").write_text(f"path,label\n{light},dark\n")
    Path("other.csv").write_text(f"path,label\n{light},light\n")

    def labels(table: str, **given: Any) -> list[str]:
        return runs.predict("run", table, rule="top-k:k=1", **given)["first"][0]["labels"]

    assert labels("week2/new.csv") == ["dark"]
    assert labels("week2/new.csv", images="images") == ["light"]
    assert labels("other.csv", images="week2") == ["dark"]
    assert runs.evaluate("run", "week2/new.csv", metrics=["topk-accuracy@1"])["metrics"]["topk-accuracy@1"] == 1
    with pytest.warns(
        ShortlistWarning, match="other.csv: the images are not beside it, and read from images, as those"
    ):
        assert labels("other.csv") == ["light"]


def test_a_folder_of_images_is_for_runs_on_images(photos: Path) -> None:
    np.savez("d.npz", X=np.eye(4, dtype="f4"), y=[0, 1, 0, 1])
    source = {"reader": "features", "path": "d.npz", "num_labels": 2}
    runs.train({"data": {"train": source, "validation": None, "calibration": None}, "epochs": 1}, "run")
    with pytest.raises(ShortlistError, match="--images goes with a table of images"):
        runs.predict("run", "d.npz", rule="top-k:k=1", images="images")
