"""The one door to a trained model: whatever form the same inputs come in, the scores are the same."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image
from scipy.sparse import csr_matrix
from torch import nn

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning
from shortlist.runs import evaluate, train
from shortlist.sets import AverageK, TopK

# ---- a table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with table.csv, in which the city tells the kind, and a calibrated run on it."""
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    cities = random.choice(["Oslo", "Rome"], 80)
    frame = pd.DataFrame({"id": [f"r{n}" for n in range(80)], "city": cities, "age": random.normal(40, 9, 80).round(1)})
    frame["kind"] = np.where(cities == "Oslo", "cold", "warm")
    frame.to_csv(folder / "table.csv", index=False)
    source = {"reader": "features", "path": str(folder / "table.csv"), "labels_key": "kind", "ids_key": "id"}
    train({"data": {"train": source}, "epochs": 20}, folder / "run")
    sl.runs.calibrate(folder / "run", rules=["average-k:k=1", "top-k:k=1"])
    return folder


def test_a_frame_a_table_and_an_array_have_the_same_scores(table: Path) -> None:
    predictor = sl.load_run(table / "run")
    frame = pd.read_csv(table / "table.csv")
    scores = predictor.scores(table / "table.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the columns of labels and ids are known, and not mentioned
        assert torch.equal(predictor.scores(frame[["kind", "age", "id", "city"]]), scores)
    assert predictor.columns == ["city", "age"]
    assert torch.equal(predictor.scores(frame[predictor.columns]), scores)
    arrow = pa.Table.from_pandas(frame[["age", "city"]])
    for named in (arrow, arrow.to_batches()[0]):
        assert torch.equal(predictor.scores(named), scores)
    assert torch.equal(predictor.scores(frame[["city", "age"]].to_numpy(dtype=object)), scores)
    assert predictor.predict(frame) == frame["kind"].tolist()
    assert predictor.predict_sets(frame, "average-k-1").names == [[kind] for kind in frame["kind"]]
    assert predictor.predict_sets(str(table / "table.csv"), "top-k:k=2").sizes.tolist() == [2] * 80


def test_numbers_of_any_kind_have_the_same_scores(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    numbers = random.integers(-8, 8, (60, 2)) / 4
    frame = pd.DataFrame(numbers, columns=["a", "b"]).assign(kind=random.choice(["x", "z"], 60))
    frame.to_csv(tmp_path / "all.csv", index=False)
    source = {"reader": "features", "path": str(tmp_path / "all.csv"), "labels_key": "kind"}
    predictor = sl.load_run(train({"data": {"train": source}, "epochs": 1}, tmp_path / "run")["run"])
    scores = predictor.scores(numbers)
    for other in (csr_matrix(numbers), torch.tensor(numbers, dtype=torch.bfloat16), numbers.astype(np.float16)):
        assert torch.equal(predictor.scores(other), scores)
    np.save(tmp_path / "new.npy", numbers)
    sparse = "".join(f"{{0 {a}, 1 {b}}}\n" for a, b in numbers.tolist())
    head = "@relation new\n@attribute a numeric\n@attribute b numeric\n@data\n"
    (tmp_path / "new.arff").write_text(head + sparse)
    for name in ("new.npy", "new.arff"):
        assert torch.equal(predictor.scores(tmp_path / name), scores)
    assert torch.allclose(predictor.double().scores(numbers), scores, atol=1e-5)


def test_arrays_are_judged_as_the_table_that_the_run_was_trained_on(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    numbers, kinds = random.normal(100, 50, (60, 2)).round(2), random.choice(["x", "z"], 60)
    pd.DataFrame(numbers, columns=["a", "b"]).assign(kind=kinds).to_csv(tmp_path / "all.csv", index=False)
    np.savez(tmp_path / "all.npz", X=numbers, kind=(kinds == "z").astype(int))
    source = {"reader": "features", "path": str(tmp_path / "all.csv"), "labels_key": "kind"}
    run = train({"data": {"train": source}, "epochs": 1}, tmp_path / "run")["run"]
    of_table, of_arrays = (evaluate(run, tmp_path / f"all.{ending}")["metrics"] for ending in ("csv", "npz"))
    assert of_arrays == pytest.approx(of_table, abs=1e-6)


def test_the_data_is_not_overwritten_by_its_sets(table: Path) -> None:
    content = (table / "table.csv").read_bytes()
    with pytest.raises(ShortlistError, match="that is the data itself"):
        sl.runs.predict(table / "run", table / "table.csv", out=table / "table.csv")
    assert (table / "table.csv").read_bytes() == content


def test_columns_of_a_frame_are_refused_or_mentioned_by_name(table: Path) -> None:
    predictor = sl.load_run(table / "run")
    frame = pd.DataFrame({"city": ["Rome"], "age": [3.0], "shoe": [41]})
    with pytest.warns(ShortlistWarning, match="columns that were not there in training are ignored: 'shoe'"):
        assert predictor.predict(frame) == ["warm"]
    with pytest.raises(ShortlistError, match="there is no column 'city': the columns are 'age', 'shoe'"):
        predictor.scores(frame.drop(columns="city"))
    with pytest.raises(ShortlistError, match="there are 3 columns, the run was trained on 2: 'city', 'age'"):
        predictor.scores(np.zeros((1, 3)))
    with pytest.raises(ShortlistError, match=r"there is no file or folder nowhere\.csv"):
        predictor.scores("nowhere.csv")


def test_a_run_on_a_table_says_that_it_takes_no_images(table: Path) -> None:
    with pytest.raises(ShortlistError, match="trained on 3 features, and what makes them of images is not known"):
        sl.load_run(table / "run").scores(Image.new("RGB", (8, 8)))


# ---- features


def test_as_a_module_it_gives_the_scores_of_prepared_inputs(tmp_path: Path) -> None:
    train({"data": {"train": {"reader": "ambiguous-numbers", "size": 100}}, "epochs": 1}, tmp_path / "run")
    predictor = sl.load_run(tmp_path / "run")
    inputs = torch.randn(2500, 128)
    assert isinstance(predictor, nn.Module)
    assert not predictor.training
    assert torch.allclose(predictor(inputs), predictor.scores(inputs), atol=1e-6)
    assert torch.equal(predictor.scores(inputs.numpy()), predictor.scores(inputs))
    assert torch.equal(predictor.scores(inputs.numpy().tolist()[:5]), predictor.scores(inputs[:5]))
    assert torch.equal(predictor.scores(inputs.numpy().astype(">f4")), predictor.scores(inputs))
    assert torch.allclose(predictor.probabilities(inputs).sum(1), torch.ones(2500))
    for wrong in (torch.zeros(3, 7), np.zeros((3, 7)), torch.zeros(128)):
        with pytest.raises(ShortlistError, match="inputs have the shape"):
            predictor.scores(wrong)
    with pytest.raises(ShortlistError, match="got an array of <U3"):
        predictor.scores(np.full((2, 128), "abc"))


def test_a_run_that_names_code_is_loaded_only_where_it_is_allowed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "mine_here.py").write_text(
        "from torch import nn\ndef net():\n    layer = nn.Linear(128, 4)\n    return layer\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {
        "data": {"train": {"reader": "ambiguous-numbers", "size": 60}},
        "backbone": {"name": "mine_here:net"},
        "epochs": 1,
    }
    train(config, tmp_path / "run", allow_import=["mine_here"])
    with pytest.raises(ShortlistError, match="mine_here"):
        sl.load_run(tmp_path / "run")
    assert sl.load_run(tmp_path / "run", allow_import=["mine_here"]).scores(torch.zeros(1, 128)).shape == (1, 100)


def test_a_model_that_only_ranks_gives_no_probabilities(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=np.eye(8, dtype="f4"), y=np.eye(8, 3, dtype="i8"))
    source = {"reader": "features", "path": str(tmp_path / "d.npz")}
    train({"data": {"train": source}, "objective": "warp", "epochs": 1}, tmp_path / "run")
    predictor = sl.load_run(tmp_path / "run")
    assert predictor.only_ranks
    assert predictor.scores(torch.eye(8)).shape == (8, 3)
    with pytest.raises(ShortlistError, match="trained to rank"):
        predictor.probabilities(torch.eye(8))


# ---- images


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images/dark and images/light, of 8 to 12 pixels."""
    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for label, level in (("dark", 40), ("light", 200)):
        (folder / "images" / label).mkdir(parents=True)
        for number in range(12):
            size = (8 + number % 2 * 4, 8, 3)
            pixels = (random.integers(-30, 30, size) + level).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "images" / label / f"{number}.png")
    return folder


@pytest.fixture(scope="module", params=["trained on images", "trained on their features"])
def seer(request: pytest.FixtureRequest, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> sl.Predictor:
    place = tmp_path_factory.mktemp("seer")
    data = {"train": {"reader": "image-folder", "path": str(pictures / "images"), "size": 8}, "calibration": None}
    if request.param == "trained on their features":
        data |= {"encoder": "identity", "cache": str(place / "cache")}
    config = {"data": data, "optimizer": {"name": "adamw", "lr": 0.01}, "epochs": 30}
    return sl.load_run(train(config, place / "run")["run"])


def test_images_in_any_form_have_the_same_scores(seer: sl.Predictor, pictures: Path) -> None:
    scores = seer.scores(pictures / "images")
    paths = sorted((pictures / "images").rglob("*.png"))
    opened = [Image.open(path) for path in paths]
    assert scores.shape == (24, 2)
    assert torch.equal(seer.scores(paths), scores)
    assert torch.equal(seer.scores(opened), scores)
    assert torch.allclose(seer.scores(opened[0]), scores[:1])
    assert torch.allclose(seer.scores(str(paths[3])), scores[3:4])
    pixels = np.stack([np.asarray(image.resize((8, 8))) for image in opened])
    assert torch.equal(seer.scores(pixels), scores)
    assert torch.equal(seer.scores(torch.from_numpy(pixels)), scores)
    assert torch.equal(seer.scores(pd.Series(map(str, paths))), scores)
    assert seer.predict(paths) == [path.parent.name for path in paths]
    (pictures / "listed.csv").write_text("path\n" + "\n".join(str(path) for path in paths))
    assert torch.equal(seer.scores(pictures / "listed.csv"), scores)
    with pytest.raises(ShortlistError, match="not both in one"):
        seer.scores([paths[0], opened[1]])
    with pytest.raises(ShortlistError, match=r"pixels are of uint8, \(images, height, width, 3\)"):
        seer.scores(pixels / 255)


def test_a_broken_image_is_an_error_or_noted(seer: sl.Predictor, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"no image")
    with pytest.raises(ShortlistError, match=r"cannot decode the image .*bad\.png"):
        seer.scores(tmp_path)
    broken: dict[str, str] = {}
    assert seer.scores(tmp_path, broken=broken).shape == (2, 2)
    assert list(broken) == [str(tmp_path / "bad.png")]


def test_features_by_the_command_know_their_encoder(pictures: Path, tmp_path: Path, monkeypatch) -> None:
    from shortlist.cli import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["data", "features", "image-folder", f"path={pictures}/images", "size=8", "--backbone", "identity", "-q"])
    assert not end.value.code
    source = {"reader": "features", "path": "features.npz", "vocabulary_key": "names", "ids_key": "ids"}
    config = {"data": {"train": source}, "optimizer": {"name": "adamw", "lr": 0.01}, "epochs": 30}
    train(config, "run")
    predictor = sl.load_run("run")
    paths = sorted((pictures / "images").rglob("*.png"))
    assert predictor.predict(pictures / "images") == [path.parent.name for path in paths]
    assert torch.equal(predictor.scores(paths), predictor.scores(np.load("features.npz")["X"]))
    assert evaluate("run", pictures / "images", metrics=["topk-accuracy@1"])["metrics"] == {"topk-accuracy@1": 1.0}

    facts = json.loads(Path("run/facts.json").read_text())
    Path("run/facts.json").write_text(json.dumps(facts | {"encoder": {**facts["encoder"], "digest": "other"}}))
    with pytest.raises(ShortlistError, match="made by the backbone 'identity' with other weights"):
        sl.load_run("run").scores(paths)
    Path("run/facts.json").write_text(json.dumps(facts | {"encoder": {"name": "identity"}}))
    with pytest.raises(ShortlistError, match="does not say which encoder made the features"):
        sl.load_run("run")


# ---- any model


@pytest.mark.parametrize("which", ["scores", "labels"])
def test_columns_of_frames_in_another_order_than_the_labels_are_refused(which: str) -> None:
    scores = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    labels = scores > 0
    sl.calibrate(scores, labels, rule="top-k:k=1", label_names=list("abc"))
    wrong = {"scores": scores, "labels": labels, which: (scores if which == "scores" else labels)[list("cba")]}
    with pytest.raises(ShortlistError, match=f"the columns of the {which} are 'c', 'b', 'a', and the label_names 'a'"):
        sl.calibrate(wrong["scores"], wrong["labels"], rule="top-k:k=1", label_names=list("abc"))
    with pytest.raises(ShortlistError, match=r"the columns of the labels are .*, and the scores .*: give one order"):
        sl.calibrate(wrong["scores"], wrong["labels"], rule="top-k:k=1")


def test_any_model_is_calibrated() -> None:
    torch.manual_seed(0)
    network, inputs, labels = nn.Linear(8, 5), torch.randn(300, 8), torch.randint(5, (300,))
    predictor = sl.calibrate(network, (inputs, labels), rule="average-k:k=2")
    assert predictor.predict_sets(inputs).sizes.mean() == 2.0
    assert torch.equal(predictor.scores(inputs.numpy()), predictor.scores(inputs))
    by_function = sl.calibrate(lambda x: network(x), (inputs, labels), rule="average-k:k=2")
    by_scores = sl.calibrate(network(inputs).detach().numpy(), labels, rule="average-k:k=2")
    by_object = sl.calibrate(network, (inputs, labels), rule=AverageK(2, link="softmax"))
    by_data = sl.calibrate(network, sl.data.Dataset(inputs, labels, tuple("abcde")), rule="average-k:k=2")
    for other, given in ((by_function, inputs), (by_scores, network(inputs)), (by_object, inputs), (by_data, inputs)):
        assert other.predict_sets(given).to_lists() == predictor.predict_sets(inputs).to_lists()
    in_double = sl.calibrate(nn.Linear(8, 5).double(), (inputs, labels), rule="average-k:k=2")
    assert in_double.scores(inputs).dtype == torch.float32
    assert by_data.label_names == tuple("abcde")
    again = sl.calibrate(predictor, (inputs, labels), rule=["top-k:k=1", "conformal:alpha=0.2"])
    assert list(again.rules) == ["top-k-1", "conformal-0.2"]
    assert list(predictor.rules) == ["average-k-2"]
    assert again.predict_sets(inputs, TopK(3)).sizes.tolist() == [3] * 300


def test_a_network_in_training_stays_in_its_mode_and_answers_in_evaluation_mode() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(50, 8), torch.randint(5, (50,))
    network = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.9), nn.BatchNorm1d(8), nn.Linear(8, 5))
    network[2].eval()  # frozen
    predictor = sl.calibrate(network, (inputs, labels), rule="top-k:k=1")
    assert [part.training for part in network] == [True, True, False, True]
    assert torch.equal(predictor.scores(inputs), predictor.scores(inputs))
    assert torch.equal(predictor.scores(inputs), network.eval()(inputs))
    network.train()
    assert predictor.predict(inputs) == predictor.predict(inputs)
    assert network.training


def test_probabilities_in_place_of_scores_are_told() -> None:
    scores, labels = torch.randn(60, 4), torch.arange(60) % 4
    with pytest.warns(ShortlistWarning, match="look like probabilities, and softmax .*: give raw scores, or the logar"):
        sl.calibrate(scores.softmax(1), labels)
    with pytest.warns(ShortlistWarning, match="look like probabilities, and sigmoid .*: give raw scores, or the log"):
        sl.calibrate(scores.sigmoid(), torch.eye(4, dtype=torch.int8)[labels])
    with pytest.warns(ShortlistWarning, match="look like probabilities"):
        AverageK(2).partial_fit(pd.DataFrame(scores.softmax(1).numpy()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.calibrate(scores.softmax(1).log(), labels)
        AverageK(2, link="none").fit(scores.softmax(1))


def test_a_label_matrix_gets_the_usual_rules_and_sets_by_name() -> None:
    torch.manual_seed(0)
    scores, labels = torch.randn(100, 3), torch.randint(2, (100, 3))
    predictor = sl.calibrate(scores, labels, label_names=["a", "b", "c"])
    kinds = [name.rpartition("-")[0] for name in predictor.rules]
    assert kinds == ["top-k", "average-k", "conformal", "threshold"]
    assert predictor.link == "sigmoid"
    by_sets = sl.calibrate(scores, sl.LabelSets.from_dense(labels), label_names=["a", "b", "c"])
    assert by_sets.rules["conformal-0.1"].to_json() == predictor.rules["conformal-0.1"].to_json()
    assert predictor.predict(torch.tensor([[9.0, -9.0, 9.0]])) == [["a", "c"]]


def test_what_cannot_be_calibrated_is_refused() -> None:
    scores, labels = torch.randn(10, 3), torch.zeros(10, dtype=torch.int64)
    for given, data, options, message in (
        (scores, labels[:4], {}, r"labels of shape \(4,\) do not fit scores of shape \(10, 3\)"),
        (scores, None, {}, "without labels say which rule"),
        (scores, None, {"rule": "conformal:alpha=0.1"}, "give the labels"),
        (scores[0], labels, {}, r"scores must have the shape \(rows, labels\)"),
        (nn.Linear(3, 3), scores, {}, r"give data=\(inputs, labels\)"),
        (scores, labels, {"label_names": ["a"]}, "1 label_names for 3 scores"),
        (scores, labels, {"link": "probit"}, "link must be one of"),
        (sl.SetClassifier(), (scores, labels), {}, r"a SetClassifier is an estimator.*np\.log\(model\.predict_proba"),
        (lambda inputs: (inputs, inputs), (scores, labels), {}, r"the model gave tuple, wanted are scores"),
    ):
        with pytest.raises(ShortlistError, match=message):
            sl.calibrate(given, data, **options)
    with pytest.raises(ShortlistError, match="which rule"):
        sl.calibrate(scores, labels, rule=["top-k:k=1", "top-k:k=2"]).predict_sets(scores)


def test_rules_of_one_kind_are_all_kept_and_fitted_apart_from_what_was_given() -> None:
    scores, labels = torch.randn(60, 4), torch.arange(60) % 4
    given = AverageK(1)
    both = sl.calibrate(scores, labels, [given, AverageK(3), "average-k:k=2", "average-k:k=2,min_size=1"])
    assert [rule.k for rule in both.rules.values()] == [1, 3, 2, 2]
    threshold = both.rules["AverageK"].threshold
    sl.calibrate(9 * scores, labels, given)
    assert both.rules["AverageK"].threshold == threshold
    assert not given.is_fitted


def test_labels_may_be_names() -> None:
    scores, labels = torch.randn(60, 3), ["cat", None, "ant"] * 20
    named = sl.calibrate(scores, labels, "conformal:alpha=0.2", label_names=["ant", "bee", "cat"])
    numbers = sl.calibrate(scores, torch.tensor([2, -1, 0] * 20), "conformal:alpha=0.2")
    assert named.rules["conformal-0.2"].to_json() == numbers.rules["conformal-0.2"].to_json()
    with pytest.raises(ShortlistError, match="give label_names"):
        sl.calibrate(scores, labels)
    with pytest.raises(ShortlistError, match="label 0 is 'cat': allowed are 'ant', 'bee', 'dog'"):
        sl.calibrate(scores, labels, label_names=["ant", "bee", "dog"])


def test_labels_of_pandas_may_be_unknown() -> None:
    scores, names = torch.randn(6, 2), pd.Series(["cat", None, "dog"] * 2)
    known = scores[[0, 2, 3, 5]]
    wanted = sl.calibrate(known, names.dropna(), rule="conformal:alpha=0.3", label_names=["cat", "dog"])
    for kind in ("object", "string", "category"):
        found = sl.calibrate(scores, names.astype(kind), rule="conformal:alpha=0.3", label_names=["cat", "dog"])
        assert found.rules["conformal-0.3"].to_json() == wanted.rules["conformal-0.3"].to_json()


def test_an_index_of_labels_in_another_order_is_told() -> None:
    scores, labels = pd.DataFrame(np.eye(3).repeat(9, 0)), pd.Series(np.arange(27) // 9)
    with pytest.warns(ShortlistWarning, match=r"index of X in another order, .* give labels\.loc\[X\.index\]"):
        sl.calibrate(scores, labels[::-1], rule="conformal:alpha=0.2")


@pytest.mark.parametrize("make", [list, pd.Series, lambda rows: [set(row) for row in rows]])
def test_labels_may_be_several_names_of_each_row(make: Any) -> None:
    scores, several = torch.randn(40, 3), [["ant", "cat"], ["bee"], []] * 13 + [["cat"]]
    wanted = sl.calibrate(scores, sl.labels.from_sets(several, vocabulary=("ant", "bee", "cat")))
    found = sl.calibrate(scores, make(several), label_names=["ant", "bee", "cat"])
    assert [rule.to_json() for rule in found.rules.values()] == [rule.to_json() for rule in wanted.rules.values()]
    with pytest.raises(ShortlistError, match="the labels are names: give label_names"):
        sl.calibrate(scores, make(several))


def test_scores_in_another_order_of_bytes_are_read_and_those_that_a_mask_hides_are_not() -> None:
    scores, labels = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32), np.arange(20) % 3
    swapped = sl.calibrate(scores.astype(">f4"), labels.astype(">i4"), rule="conformal:alpha=0.2")
    wanted = sl.calibrate(scores, labels, rule="conformal:alpha=0.2")
    assert swapped.rules["conformal-0.2"].to_json() == wanted.rules["conformal-0.2"].to_json()
    for hidden in ((np.ma.masked_greater(scores, 1), labels), (scores, np.ma.masked_equal(labels, 0))):
        with pytest.raises(ShortlistError, match="is a masked array, which hides"):
            sl.calibrate(*hidden)


@pytest.mark.parametrize("given", [np.array, torch.tensor, pd.Series])
def test_whole_numbers_are_found_among_names_that_are_whole_numbers(given: Any) -> None:
    scores, labels = torch.randn(60, 3), given([3, -1, 1] * 20)
    by_place = sl.calibrate(scores, torch.tensor([2, -1, 0] * 20), "conformal:alpha=0.2").rules["conformal-0.2"]
    frame = pd.DataFrame(scores.numpy(), columns=[1, 2, 3])
    for made in (
        sl.calibrate(scores, labels, "conformal:alpha=0.2", label_names=np.array([1, 2, 3])),
        sl.calibrate(frame, labels, "conformal:alpha=0.2"),
    ):
        assert made.rules["conformal-0.2"].to_json() == by_place.to_json()
        assert made.label_names == ("1", "2", "3")
    with pytest.raises(ShortlistError, match="label 0 is '3': allowed are '0', '1', '2', None"):
        sl.calibrate(scores, labels, label_names=["0", "1", "2"])


def test_the_target_of_a_dataset_is_places_whatever_its_labels_are_called() -> None:
    scores, labels = torch.randn(60, 3), torch.tensor([2, -1, 0] * 20)
    data = sl.data.Dataset(scores, labels, ("1", "2", "3"))
    made = sl.calibrate(lambda x: x, data, "conformal:alpha=0.2")
    by_place = sl.calibrate(scores, labels, "conformal:alpha=0.2")
    assert made.rules["conformal-0.2"].to_json() == by_place.rules["conformal-0.2"].to_json()


@pytest.mark.parametrize("last", [True, False])
def test_classes_that_are_counted_from_1_are_refused_also_where_the_last_does_not_occur(last: bool) -> None:
    places = torch.tensor([0, 1, 2] * 20)
    scores = 4 * torch.eye(3)[places] + torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    kept = slice(None) if last else places < 2
    told = r"seem to be counted from 1 .* label_names=range\(1, 4\)"
    with pytest.raises(ShortlistError, match=told):
        sl.calibrate(scores[kept], places[kept] + 1)
    made = sl.calibrate(scores[kept], places[kept] + 1, label_names=range(1, 4))
    assert made.predict(scores[:3]) == ["1", "2", "3"]


def test_classes_without_the_first_are_places_where_the_scores_agree() -> None:
    places = torch.tensor([1, 2] * 20)
    sl.calibrate(4 * torch.eye(3)[places], places, "conformal:alpha=0.2")


def test_no_label_is_chosen_by_scores_that_say_nothing() -> None:
    predictor = sl.calibrate(nn.Linear(2, 3), (torch.randn(30, 2), torch.arange(30) % 3))
    with pytest.raises(ShortlistError, match="the scores of row 1 hold NaN"):
        predictor.predict(torch.tensor([[0.0, 1.0], [0.0, torch.nan]]))
    with pytest.raises(ShortlistError, match="inputs must be numbers, got an array of object"):
        predictor.predict(pd.DataFrame({"a": ["x"], "b": [1]}))
    of_scores = sl.calibrate(torch.randn(30, 3), torch.arange(30) % 3)
    with pytest.raises(ShortlistError, match=r"shape \(2, 7\), one for each of 3 labels"):
        of_scores.predict(torch.zeros(2, 7))


def test_sparse_labels_calibrate_like_a_label_matrix() -> None:
    scores = torch.randn(100, 3)
    matrix = (torch.rand(100, 3) < scores.sigmoid()).int()
    expected = sl.calibrate(scores, matrix, rule="conformal:alpha=0.2").predict_sets(scores)
    for labels in (csr_matrix(matrix), sl.LabelSets.from_dense(matrix)):
        assert sl.calibrate(scores, labels, rule="conformal:alpha=0.2").predict_sets(scores) == expected


def test_a_rule_that_is_neither_a_name_nor_an_object_is_refused() -> None:
    predictor = sl.calibrate(torch.randn(20, 3), None, rule="average-k:k=2")
    with pytest.raises(ShortlistError, match="a rule is given by its name, or as a rule object, got 3"):
        predictor.predict_sets(torch.randn(2, 3), rule=3)  # type: ignore[arg-type]


# ---- to a file and back


def test_rules_of_any_model_are_saved_and_loaded_with_it(tmp_path: Path) -> None:
    network, inputs, labels = nn.Linear(8, 3), torch.randn(100, 8), torch.arange(100) % 3
    rules = ["average-k:k=2", "conformal:alpha=0.1"]
    predictor = sl.calibrate(network, (inputs, labels), rule=rules, label_names=["ä", "<b>", "c"])
    predictor.save(tmp_path / "sets.json")
    for model, given in ((network, inputs), (network.forward, inputs), (None, network(inputs).detach())):
        loaded = sl.Predictor.load(tmp_path / "sets.json", model)
        assert list(loaded.rules) == list(predictor.rules)
        for rule in predictor.rules:
            assert loaded.predict_sets(given, rule).names == predictor.predict_sets(inputs, rule).names
        assert loaded.predict(given) == predictor.predict(inputs)
        torch.testing.assert_close(loaded.probabilities(given), predictor.probabilities(inputs))


def test_other_rules_of_a_run_are_saved_and_loaded_with_it(table: Path, tmp_path: Path) -> None:
    run, frame = sl.load_run(table / "run"), pd.read_csv(table / "table.csv")
    other = sl.calibrate(run, (frame, frame["kind"]), rule="average-k:k=1.5")
    other.save(tmp_path / "sets.json")
    loaded = sl.Predictor.load(tmp_path / "sets.json", run)
    assert list(loaded.rules) == ["average-k-1.5"]
    assert loaded.predict_sets(table / "table.csv") == other.predict_sets(frame)


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"label_names": 3}', "{", ""])
def test_a_file_that_save_did_not_write_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "sets.json").write_text(text)
    with pytest.raises(ShortlistError, match=r"sets.json: this is not (JSON|a file that Predictor.save wrote)"):
        sl.Predictor.load(tmp_path / "sets.json")
