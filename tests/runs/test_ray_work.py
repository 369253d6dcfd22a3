"""What workers find in their shards, merged, is what one process finds: tables, label matrices, texts, images, URLs."""

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pyarrow.csv import write_csv

from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.runs import ray_engine
from shortlist.runs.shards import Shard, together
from tests.runs.made_texts import write_comments
from tests.runs.ray_here import without_a_cluster

pytest.importorskip("ray")

RULES = ["average-k:k=2", "conformal:alpha=0.2,score=aps,clusters=3"]
LABELS = ["kind 0", "kind 1", "kind 2", "kind 3"]


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return without_a_cluster(monkeypatch)


def made_table(rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(rows, 3))
    kind = np.digitize(numbers[:, 0] + generator.normal(scale=0.5, size=rows), [-1, 0, 1])
    others = [["0", "1", ""][number] for number in generator.integers(3, size=rows)]  # blank: unknown
    return pa.table(
        {
            "name": [f"row {number}" for number in range(rows)],
            **{f"f{place}": numbers[:, place] for place in range(3)},
            "code": generator.choice(["1", "2", "007", "x"], rows, p=[0.4, 0.4, 0.19, 0.01]),
            "kind": [f"kind {number}" for number in kind],
            "several": ["|".join(LABELS[number : number + 2]) for number in kind],
            "likes": others,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, and runs on them: of one label an example, and of a label matrix."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(made_table(900, 0), folder / "train.csv")
    pq.write_table(made_table(700, 1), folder / "held.parquet", row_group_size=150)
    new = made_table(700, 2)
    write_csv(new, folder / "new.csv")
    pq.write_table(new, folder / "new.parquet", row_group_size=700)
    (folder / "many").mkdir()
    for part in range(3):  # whole batches, so that the arithmetic is the same
        pq.write_table(new.slice(256 * part, 256), folder / "many" / f"{part}.parquet")
    labels = {
        "classes": {"labels_key": "kind", "input_columns": ["f0", "f1", "f2", "code"]},
        "matrix": {"labels_key": "several", "separator": "|", "input_columns": ["f0", "f1", "f2"]},
        "blanks": {"label_columns": ["likes"], "input_columns": ["f0", "f1", "f2"]},
    }
    for name, options in labels.items():
        source = {"reader": "features", "ids_key": "name", **options}
        data = {"train": {**source, "path": str(folder / "train.csv")}, "validation": 200}
        data["calibration"] = {**source, "path": str(folder / "held.parquet")}
        objective = "cross-entropy" if name == "classes" else "partial-binary"
        network = {"name": "mlp", "hidden": [8]}
        runs.train({"data": data, "objective": objective, "epochs": 2, "backbone": network}, folder / name)
    return folder


def same(one: dict[str, Any], many: dict[str, Any]) -> None:
    """Up to the order of sums in the means of metrics, and where it was written."""
    changing = {"written": 0, "metrics": 0}
    assert {**many, **changing} == {**one, **changing}
    assert many.get("metrics", {}) == pytest.approx(one.get("metrics", {}), rel=1e-6)


def same_sets(run: Path, data: Any, out: Any, tmp_path: Path, wanted: Any = None, **options: Any) -> dict[str, Any]:
    one = runs.predict(run, data if wanted is None else wanted, out=tmp_path / "one.parquet", **options)
    many = runs.predict(run, data, out=out, engine="ray", **options)
    same(one, many)
    files, inside = fsspec.core.url_to_fs(str(out))
    parts = [pq.read_table(part, filesystem=files) for part in sorted(files.ls(inside, detail=False))]
    assert [row for part in parts for row in part.to_pylist()] == pq.read_table(tmp_path / "one.parquet").to_pylist()
    return many


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        ("classes", RULES),
        ("matrix", ["average-k:k=2", "conformal:alpha=0.2"]),
        ("matrix", []),  # those that are usual for such labels, which are counted first
        ("blanks", []),
    ],
)
def test_rules_and_metrics_of_tables_are_those_of_one_process(
    kind: str, rules: list[str], shards: list[int], folder: Path, tmp_path: Path
) -> None:
    run = folder / kind
    one, many = (
        runs.calibrate(run, rules=rules, out=tmp_path / name, engine=engine)
        for name, engine in (("one", None), ("many", "ray"))
    )
    same(one, many)
    for file in sorted((tmp_path / "one").iterdir()):
        read, shared = (json.loads((tmp_path / name / file.name).read_text()) for name in ("one", "many"))
        for rule in (read, shared):
            rule["state"].pop("counts", None)  # which buckets are open depends on the way there
        assert shared == read
    runs.calibrate(run, rules=rules)
    same(*(runs.evaluate(run, folder / "new.parquet", engine=engine) for engine in (None, "ray")))
    same(*(runs.evaluate(run, "validation", engine=engine) for engine in (None, "ray")))  # read whole by each worker
    assert max(shards) > (2 if kind == "blanks" else 8)  # one label makes few scores, and large batches


@pytest.mark.parametrize("metrics", [["ndcg@3", "topk-accuracy@1"], ["propensity-precision@1"]])
def test_metrics_that_are_asked_for_are_those_of_one_process(
    metrics: list[str], shards: list[int], folder: Path
) -> None:
    data = folder / "new.parquet"
    same(*(runs.evaluate(folder / "classes", data, metrics=metrics, engine=engine) for engine in (None, "ray")))


@pytest.mark.parametrize("kind", ["classes", "matrix"])
@pytest.mark.parametrize("place", ["new.csv", "new.parquet", "many"])
def test_sets_of_tables_are_those_of_one_process(
    kind: str, place: str, shards: list[int], folder: Path, tmp_path: Path
) -> None:
    wanted = folder / "new.csv"
    many = same_sets(folder / kind, folder / place, tmp_path / "sets.parquet", tmp_path, wanted, rule="top-k:k=2")
    assert many["examples"] == 700


@pytest.mark.parametrize(
    ("count", "workers", "largest"), [(1, 2, 1), (10, 2, 1), (17, 2, 2), (305, 2, 8), (305, 64, 1)]
)
def test_workers_take_shards_together_where_all_have_enough(count: int, workers: int, largest: int) -> None:
    shards = [Shard(number, 16 * number, 16) for number in range(count)]
    groups = together(shards, workers)
    assert [shard for group in groups for shard in group] == shards
    assert max(map(len, groups)) == largest


# ---- URLs


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def memory(folder: Path) -> Iterator[str]:
    files = fsspec.filesystem("memory")
    files.put(str(folder / "many"), "/rows", recursive=True)
    yield "memory://"
    files.rm("/rows", recursive=True)
    if files.exists("/sets.parquet"):
        files.rm("/sets.parquet", recursive=True)


def test_what_lies_behind_urls_is_read_and_sets_are_written_there(
    shards: list[int], folder: Path, memory: str, tmp_path: Path
) -> None:
    run, wanted, rule = folder / "classes", folder / "new.csv", "top-k:k=2"
    same_sets(run, f"{memory}/rows", f"{memory}/sets.parquet", tmp_path, wanted, rule=rule)
    with pytest.raises(ShortlistError, match=r"memory:///sets\.parquet is there already: name another place"):
        runs.predict(run, wanted, rule=rule, out=f"{memory}/sets.parquet", engine="ray")
    same_sets(run, f"file://{folder}/new.csv", f"file://{tmp_path}/sets.parquet", tmp_path, wanted, rule=rule)
    with served(folder) as address:
        for name in ("new.csv", "new.parquet"):
            same_sets(run, f"{address}/{name}", tmp_path / f"{name}.parquet", tmp_path, wanted, rule=rule)
        same(*(runs.evaluate(run, where, engine="ray") for where in (folder / "new.csv", f"{address}/new.csv")))
        with pytest.raises(ShortlistError, match=r"there is no file or folder .*/other\.csv|other\.csv: cannot be"):
            runs.predict(run, f"{address}/other.csv", rule=rule, out=tmp_path / "no.parquet", engine="ray")


@pytest.mark.parametrize("kind", ["written", "lists", "columns"])
def test_the_whole_table_decides_whether_labels_are_lists(kind: str, shards: list[int], tmp_path: Path) -> None:
    """Shards whose labels are all blank are of examples without labels, as in one process."""
    names = {"train": 300, "new": 700}
    for name, rows in names.items():
        table = made_table(rows, rows)
        several = [cell.split("|") for cell in table["several"].to_pylist()]
        blank = range(100, 400) if name == "new" else ()
        several = [None if row in blank else names for row, names in enumerate(several)]
        columns: dict[str, Any] = {"labels": pa.array(several, pa.list_(pa.string()))}
        if kind == "written":
            columns = {"labels": [None if names is None else f"[{', '.join(names)}]" for names in several]}
        elif kind == "columns":
            columns = {f"tag {at}": [[*(names or ()), None, None][at] for names in several] for at in (0, 1)}
        table = pa.table({"f0": table["f0"], "f1": table["f1"], **{key: pa.array(x) for key, x in columns.items()}})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    labels = {"label_columns": list(columns)} if kind == "columns" else {"labels_key": "labels"}
    source = {"reader": "features", "path": str(tmp_path / "train.parquet"), "input_columns": ["f0", "f1"], **labels}
    runs.train({"data": {"train": source}, "objective": "binary", "epochs": 2, "backbone": "mlp"}, tmp_path / "run")
    same(*(runs.evaluate(tmp_path / "run", tmp_path / "new.parquet", engine=engine) for engine in (None, "ray")))
    assert max(shards) > 2


# ---- texts, images, data sets


def test_texts_are_answered_as_one_process_answers_them(shards: list[int], tmp_path: Path) -> None:
    write_comments(tmp_path / "all.csv", 300)
    write_comments(tmp_path / "new.csv", 260, seed=1)
    source = {"reader": "text-table", "path": str(tmp_path / "all.csv"), "labels_key": "mood", "text_column": "comment"}
    runs.train({"data": {"train": source}, "backbone": "tf-idf", "epochs": 2}, tmp_path / "run")
    same_sets(tmp_path / "run", tmp_path / "new.csv", tmp_path / "sets.parquet", tmp_path, rule="top-k:k=1")
    same(*(runs.evaluate(tmp_path / "run", tmp_path / "new.csv", engine=engine) for engine in (None, "ray")))


def test_broken_images_are_left_out_and_listed_as_by_one_process(shards: list[int], tmp_path: Path) -> None:
    for label, level in (("dark", 20), ("light", 180)):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(70):
            Image.new("RGB", (4, 4), (level + number,) * 3).save(tmp_path / "images" / label / f"{number}.png")
    source = {"reader": "image-folder", "path": str(tmp_path / "images"), "size": 4}
    run = tmp_path / "run"
    runs.train({"data": {"train": source}, "epochs": 1}, run)
    for broken in ("dark/3.png", "light/69.png"):
        (tmp_path / "images" / broken).write_bytes(b"this is text")
    many = same_sets(run, tmp_path / "images", tmp_path / "sets.parquet", tmp_path, rule="top-k:k=1")
    assert ([image["id"] for image in many["skipped"]], many["examples"]) == (["dark/3.png", "light/69.png"], 138)
    same(*(runs.evaluate(run, tmp_path / "images", engine=engine) for engine in (None, "ray")))


# ---- what is wrong


def told(call: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(ShortlistError) as error:
        call(**options)
    return str(error.value)


def write_with(cell: str, column: str, path: Path) -> None:
    """A table in which this cell is in the middle."""
    rows = made_table(700, 3)
    cells = [str(value) for value in rows[column].to_pylist()]
    cells[600] = cell
    write_csv(rows.set_column(rows.schema.get_field_index(column), column, pa.array(cells)), path)


def test_a_wrong_row_in_the_middle_is_told_as_one_process_tells_it(
    shards: list[int], folder: Path, tmp_path: Path
) -> None:
    write_with("oops", "f1", tmp_path / "new.csv")
    run = folder / "classes"
    one, many = (told(partial(runs.evaluate, run, tmp_path / "new.csv", engine=engine)) for engine in (None, "ray"))
    assert "oops" in one
    assert many == one


def test_a_label_that_is_new_is_left_unjudged_as_by_one_process(
    shards: list[int], folder: Path, tmp_path: Path
) -> None:
    write_with("kind 9", "kind", tmp_path / "new.csv")
    with pytest.warns(ShortlistWarning, match="kind 9"):
        one = runs.evaluate(folder / "classes", tmp_path / "new.csv")
    same(one, runs.evaluate(folder / "classes", tmp_path / "new.csv", engine="ray"))


def test_a_row_that_the_model_cannot_score_leaves_no_file(shards: list[int], folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "all.npy", np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32))
    np.save(tmp_path / "labels.npy", np.arange(300) % 4)
    source = {"reader": "features", "path": str(tmp_path / "all.npy"), "labels": str(tmp_path / "labels.npy")}
    large = {"name": "sgd", "lr": 30.0}  # steps, and so weights
    runs.train({"data": {"train": source}, "epochs": 2, "optimizer": large}, tmp_path / "run")
    features = np.zeros((300, 8), np.float32)
    features[250] = 3e38  # finite, but not what the model makes of it
    np.save(tmp_path / "new.npy", features)
    runs.calibrate(tmp_path / "run", rules=["average-k:k=1"])
    before = sorted(tmp_path.iterdir())
    predict = partial(runs.predict, tmp_path / "run", tmp_path / "new.npy", rule="average-k-1")
    one, many = (told(predict, out=tmp_path / "sets.parquet", engine=engine) for engine in (None, "ray"))
    assert "row 250" in one
    assert many == one
    assert sorted(tmp_path.iterdir()) == before


def test_an_empty_or_unreadable_file_among_many(shards: list[int], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    rows = made_table(300, 4)
    for name, part in (("0", rows.slice(0, 128)), ("1", rows.slice(0, 0)), ("2", rows.slice(128))):
        pq.write_table(part, tmp_path / "rows" / f"{name}.parquet")
    pq.write_table(rows, tmp_path / "all.parquet")
    run, rule = folder / "classes", "top-k:k=1"
    same_sets(run, tmp_path / "rows", tmp_path / "sets.parquet", tmp_path, tmp_path / "all.parquet", rule=rule)
    (tmp_path / "rows" / "3.parquet").write_text("no parquet")
    said = told(partial(runs.predict, run, tmp_path / "rows", rule=rule, out=tmp_path / "no.parquet", engine="ray"))
    assert "3.parquet: cannot be read" in said
    assert not (tmp_path / "no.parquet").exists()


def test_a_table_without_rows_gives_sets_without_examples(shards: list[int], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("name,f0,f1,f2,code,kind\n")
    many = same_sets(folder / "classes", tmp_path / "none.csv", tmp_path / "sets.parquet", tmp_path, rule="top-k:k=1")
    assert many["examples"] == 0


@pytest.fixture
def broken_tables(folder: Path, tmp_path: Path) -> Path:
    (tmp_path / "new.csv").write_bytes((folder / "new.csv").read_bytes())
    (tmp_path / "short.csv").write_text("name,f0,f1,code,kind\nrow 0,1,2,x,kind 0\n")
    (tmp_path / "file.parquet").write_text("a file of the user's own")
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "folder.parquet" / "notes.txt").write_text("of the user's own")
    return tmp_path


@pytest.mark.parametrize(
    ("data", "out", "message"),
    [
        ("short.csv", "sets.parquet", r"short\.csv: there is no column 'f2'"),
        ("nothing.csv", "sets.parquet", "there is no .*nothing.csv"),
        ("s3:bucket", "sets.parquet", "there is no"),
        ("new.csv", "file.parquet", "file.parquet is a file: a folder is written here"),
        ("new.csv", "folder.parquet", "the folder holds 'notes.txt', which is no part of sets"),
        ("new.csv", "no/folder/sets.parquet", "cannot write .*there is no folder"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    data: str, out: str, message: str, shards: list[int], folder: Path, broken_tables: Path
) -> None:
    before = sorted(broken_tables.rglob("*"))
    with pytest.raises(ShortlistError, match=message):
        runs.predict(folder / "classes", broken_tables / data, rule="top-k:k=1", out=broken_tables / out, engine="ray")
    assert sorted(broken_tables.rglob("*")) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: runs.evaluate(run, "validation", engine="spark"), "engine must be 'ray'"),
        (lambda run: runs.Ray(workers=0), "workers must be at least 1"),
        (lambda run: runs.predict(run, "train", out="sets.csv", engine="ray"), "a folder of files: -o sets.parquet"),
        (lambda run: runs.predict(run, "train", explain="why.jsonl", engine="ray"), "without --engine"),
    ],
)
def test_what_an_engine_cannot_do_is_said_before_any_work(
    call: Callable[[Path], Any], message: str, folder: Path
) -> None:
    with pytest.raises(ShortlistError, match=message):
        call(folder / "classes")


def test_an_address_that_nobody_answers_at_is_told_in_a_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ShortlistError) as error:
        runs.evaluate(folder / "classes", "validation", engine=runs.Ray("127.0.0.1:1"))
    assert str(error.value).startswith("there is no Ray cluster at 127.0.0.1:1: ")
    assert capfd.readouterr() == ("", "")


def test_what_the_processes_of_ray_warn_of_is_not_among_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    from ray._private import worker

    said = {"lines": ["12 PYTHON worker processes have been started"], "pid": "raylet", "is_err": False}
    with ray_engine._warnings_of_ray_dropped():
        worker.print_to_stdstream(said, ignore_prefix=False)
    assert capfd.readouterr() == ("", "")
    worker.print_to_stdstream(said, ignore_prefix=False)
    assert "12 PYTHON worker processes" in capfd.readouterr().out
