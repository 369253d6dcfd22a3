"""Runs on texts: guessed, counted word by word, kept, asked again."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import shortlist as sl
from shortlist import ShortlistError, runs
from shortlist.data import Dataset
from shortlist.data.texts import Texts
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from shortlist.runs.report_data import described
from shortlist.runs.setup import read_parts
from tests.cli.command import run_here
from tests.models.tiny_networks import text_network
from tests.runs.made_texts import comments, tickets, write_comments

NEW = ["i am happy, great", "what a terrible, awful day", "so scared and afraid"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    table = comments()
    table["comment"] += " <script>alert(1)</script> & more"
    table.to_csv(folder / "comments.csv", index=False)
    said: list[str] = []
    options = ["epochs=12", "optimizer.lr=0.05", f"data.cache={folder}", "data.test=40", "seed=1"]
    done = runs.fit(folder / "comments.csv", folder / "run", overrides=options, say=said.append)
    assert "texts: the column 'comment'" in said
    assert any(line.startswith("tf-idf features") for line in said)
    assert done["evaluation"]["rules"]["top-k-1"]["coverage"] > 0.9
    assert not any("export" in line for line in done["next"])  # which texts cannot be
    return Path(done["run"])


def test_texts_are_answered_from_lists_frames_series_and_arrays(fitted: Path) -> None:
    predictor = sl.load_run(fitted)
    expected = ["joy", "anger", "fear"]
    frame = pd.DataFrame({"comment": NEW, "mood": ["", "", ""]})
    for given in (NEW, tuple(NEW), frame, frame["comment"], frame["comment"].to_numpy(dtype=object)):
        assert predictor.predict(given) == expected
    assert predictor.predict_sets(NEW, "top-k:k=1").names == [["joy"], ["anger"], ["fear"]]
    assert predictor.scores([]).shape == (0, 3)
    assert predictor.probabilities(["", "words never seen"]).isfinite().all()


def test_a_text_alone_is_taken_for_a_path_and_the_error_says_how_texts_are_given(fitted: Path) -> None:
    predictor = sl.load_run(fitted)
    for text in ("i am happy", "long " * 2000):
        with pytest.raises(ShortlistError, match=r"there is no file or folder .*texts are given in a list"):
            predictor.predict(text)
    with pytest.raises(ShortlistError, match="text 1 is int"):
        predictor.predict(["a", 3])
    with pytest.raises(ShortlistError, match="there is no column 'comment' with the texts"):
        predictor.predict(pd.DataFrame({"words": NEW}))


def test_new_tables_are_predicted_by_the_command(
    fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comments(5, seed=1).drop(columns="mood").to_csv(tmp_path / "new.csv", index=False)
    done = run_here(capsys, "predict", fitted, tmp_path / "new.csv", "--rule", "top-k:k=1", "--json")
    assert done.code == 0, done.err
    assert [one["id"] for one in done.json["first"]][:2] == ["c000", "c001"]
    (tmp_path / "lines.txt").write_text("\n".join(NEW))
    done = run_here(capsys, "predict", fitted, tmp_path / "lines.txt", "--rule", "top-k:k=1", "--json")
    assert [one["labels"] for one in done.json["first"]] == [["joy"], ["anger"], ["fear"]]
    pd.DataFrame({"words": NEW, "more": NEW}).to_csv(tmp_path / "other.csv", index=False)
    done = run_here(capsys, "predict", fitted, tmp_path / "other.csv")
    assert done.code == 2
    assert "there is no column 'comment': the columns are 'words', 'more'" in done.err


def test_labelled_tables_are_evaluated_with_the_labels_of_the_run(fitted: Path, tmp_path: Path) -> None:
    new = comments(60, seed=2)
    new[new["mood"] != "fear"].to_csv(tmp_path / "new.csv", index=False)
    found = runs.evaluate(fitted, tmp_path / "new.csv")
    assert found["rules"]["top-k-1"]["coverage"] > 0.9


def test_the_report_shows_the_texts_escaped(fitted: Path) -> None:
    page = (fitted / "report" / "index.html").read_text()
    shown = page.split('<blockquote class="text">')[1].split("</blockquote>")[0]
    assert shown.startswith("well, i am ")
    assert shown.endswith("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more")
    assert "<script>alert(1)" not in page


def test_what_was_counted_is_kept_as_json_and_a_damaged_file_is_named(fitted: Path) -> None:
    file = fitted / "preprocessing.json"
    whole = file.read_text()
    assert json.loads(whole)["kind"] == "tf-idf"
    try:
        file.write_text(whole.replace('"word"', '"evil"'))
        with pytest.raises(ShortlistError, match=r"preprocessing\.json: this is no tf-idf"):
            sl.load_run(fitted).predict(NEW)
        file.unlink()
        with pytest.raises(ShortlistError, match=r"there is no file .*preprocessing\.json"):
            runs.evaluate(fitted, "test")
    finally:
        file.write_text(whole)


def test_a_run_on_texts_is_not_exported(fitted: Path, tmp_path: Path) -> None:
    with pytest.raises(ShortlistError, match="is a run on texts"):
        runs.export(fitted, out=tmp_path / "model.onnx", rule="top-k:k=1")


def test_words_are_counted_in_the_training_part_alone(tmp_path: Path) -> None:
    path = write_comments(tmp_path / "all.csv", 60)
    source = {"reader": "text-table", "path": str(path), "text_column": "comment", "labels_key": "mood"}
    config = {"data": {"train": source, "test": 10}, "backbone": {"name": "tf-idf", "min_df": 1}, "epochs": 1}
    run = runs.Run(runs.train(config, tmp_path / "run")["run"])
    train, test = (run.parts()[part].texts.source for part in ("train", "test"))
    numbers = {word for text in test for word in text.split() if word.isdecimal()}
    assert numbers.isdisjoint(run.preprocessor.terms)
    assert {word for text in train for word in text.split() if word.isdecimal()} <= set(run.preprocessor.terms)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "backbone 'identity' does not read texts: set data.encoder=tf-idf"),
        ({"backbone": "convnet"}, "backbone 'convnet' does not read texts"),
        ({"augment": {"flip": True}, "backbone": "tf-idf"}, "augment is for images"),
        ({"backbone": {"name": "tf-idf", "min_df": 1000}}, "no word is in 1000 of the"),
        ({"backbone": {"name": "tf-idf", "ngrams": 2}}, "backbone.ngrams: there is no such key"),
    ],
)
def test_configs_that_cannot_read_texts_are_refused(change: dict, message: str, tmp_path: Path) -> None:
    path = write_comments(tmp_path / "all.csv", 60)
    source = {"reader": "text-table", "path": str(path), "text_column": "comment", "labels_key": "mood"}
    with pytest.raises(ShortlistError, match=message):
        runs.train({"data": {"train": source}, "epochs": 1, **change}, tmp_path / "run")


def test_counted_words_need_texts(tmp_path: Path) -> None:
    data = {"train": {"reader": "ambiguous-numbers", "size": 100}}
    with pytest.raises(ShortlistError, match="backbone 'tf-idf' counts the words of texts"):
        runs.train({"data": data, "backbone": "tf-idf"}, tmp_path / "run")
    with pytest.raises(ShortlistError, match=r"data\.encoder makes features of images and texts"):
        runs.train({"data": data | {"encoder": "tf-idf"}}, tmp_path / "run")


# ---- what is guessed


def guessed(tmp_path: Path, frame: pd.DataFrame, **given: object) -> dict:
    frame.to_csv(tmp_path / "all.csv", index=False)
    return guess_source(tmp_path / "all.csv", **given).source


def test_a_column_of_texts_is_found_by_its_words_where_nothing_else_is_there(tmp_path: Path) -> None:
    table = comments()
    assert guessed(tmp_path, table)["text_column"] == "comment"
    assert guessed(tmp_path, table.rename(columns={"comment": "what_they_said"}))["text_column"] == "what_they_said"
    several = table.assign(y_sad=[0, 1] * 75, y_glad=[1, 0] * 75).drop(columns="mood")
    found = guessed(tmp_path, several)
    assert (found["reader"], found["labels_key"]) == ("text-table", "y")
    lists = table.assign(mood=[f"a{row % 9}, b{row % 8}, c{row % 7}" for row in range(len(table))])  # nearly all differ
    assert guessed(tmp_path, lists)["text_column"] == "comment"
    called = table.assign(tags=[f"{row} {row}" for row in range(len(table))]).drop(columns="mood")
    assert guessed(tmp_path, called)["labels_key"] == "tags"


def test_texts_beside_other_columns_or_texts_are_columns_of_a_table_unless_one_is_named(tmp_path: Path) -> None:
    table = comments()
    for number in range(6):
        table.insert(1, f"x{number}", [row * 0.5 + number for row in range(len(table))])
    assert guessed(tmp_path, table)["reader"] == "features"
    assert guessed(tmp_path, tickets()[["subject", "body", "kind"]])["reader"] == "features"
    assert guessed(tmp_path, tickets(), reader="text-table")["text_column"] == "body"
    assert guessed(tmp_path, table, text="comment")["reader"] == "text-table"
    assert guessed(tmp_path, comments(), reader="features")["reader"] == "features"
    with pytest.raises(ShortlistError, match="there is no column 'coment'; did you mean 'comment'"):
        guessed(tmp_path, table, text="coment")


def test_an_option_chooses_the_text_or_the_numbers(tmp_path: Path) -> None:
    path = write_comments(tmp_path / "all.csv")
    assert Plan.of(path, overrides=["reader=features"]).reading().data.train.reader == "features"
    tickets().to_csv(tmp_path / "tickets.csv", index=False)
    for option in ("backbone=hf:somewhere", "data.encoder=hf:somewhere"):
        source = Plan.of(tmp_path / "tickets.csv", overrides=[option]).content["data"]["train"]
        assert (source["reader"], source["text_column"]) == ("text-table", "body")
    plan = Plan.of(path, overrides=["text_column=comment", "backbone=hf:somewhere"])
    assert plan.content["data"]["train"]["text_column"] == "comment"
    assert "encoder" not in plan.content["data"]


def test_a_table_without_a_line_of_names_is_fitted_with_them(tmp_path: Path) -> None:
    comments().to_csv(tmp_path / "all.csv", index=False, header=False)
    plan = Plan.of(tmp_path / "all.csv", overrides=["column_names=[id, comment, mood]"])
    assert plan.reading().data.train.options["column_names"] == ["id", "comment", "mood"]
    assert plan.content["data"]["train"]["labels_key"] == "mood"


# ---- how words are learnt where nobody decides


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ("lbfgs", 1.0, None)),
        (["schedule=cosine"], ("sgd-nesterov", 8.0, 0.001)),
        (["optimizer.lr=4"], ("sgd-nesterov", 4.0, 0.001)),
        (["data.encoder=null", "backbone=tf-idf"], ("lbfgs", 1.0, None)),
        (["objective=smooth-topk", "objective.k=2"], ("lbfgs", 1.0, None)),
        (["objective=average-k", "objective.k=2"], ("sgd-nesterov", 8.0, 0.001)),
        (["objective=warp"], ("adamw", 0.01, 0.3)),
        (["backbone={name: mlp, hidden: [8]}"], ("adamw", 0.01, 0.3)),
        (["data.encoder=hf:somewhere"], ("lbfgs", 1.0, None)),
        (["optimizer=adam"], ("adam", 0.001, None)),
    ],
)
def test_texts_are_fitted_at_once_and_steps_on_counted_words_are_large(
    given: list[str], expected: tuple[str, float, float | None], tmp_path: Path
) -> None:
    plan = Plan.of(write_comments(tmp_path / "all.csv", 200), overrides=given)
    whole = Dataset(torch.randn(200, 2), torch.arange(200) % 3, ("anger", "fear", "joy"))
    chosen = plan.decide(whole).optimizer
    assert (chosen.name, chosen.lr, chosen.weight_decay) == expected


def test_very_many_texts_are_learnt_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of(write_comments(tmp_path / "all.csv", 200))
    whole = Dataset(Texts(("so very happy",) * 200), torch.arange(200) % 3, ("anger", "fear", "joy"))
    assert plan.decide(whole).optimizer.name == "lbfgs"
    monkeypatch.setattr("shortlist.training.linear_head._MOST_PRODUCTS", 13 * 200 * 3 - 1)  # letters times labels
    assert plan.decide(whole).optimizer.name == "sgd-nesterov"


def test_the_terms_of_texts_are_counted_where_their_letters_could_make_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A title and a body of 3,000 questions with 60 tags were learnt in Adam's steps, which let rare words jump."""
    tickets().to_csv(tmp_path / "tickets.csv", index=False)

    def optimizer(most_weights: int) -> str:
        monkeypatch.setattr("shortlist.training.linear_head._MOST_WEIGHTS", most_weights)
        plan = Plan.of(tmp_path / "tickets.csv", labels=["kind"])
        return plan.decide(read_parts(plan.reading())["train"]).optimizer.name

    letters, terms = 17_569, 995
    assert optimizer(3 * letters) == "lbfgs"
    assert optimizer(3 * terms) == "sgd-nesterov"  # and a bias


def test_steps_on_texts_beside_other_columns_are_large_where_texts_are_most_of_a_row(tmp_path: Path) -> None:
    def optimizer(table: pd.DataFrame) -> tuple[str, float]:
        table.to_csv(tmp_path / "tickets.csv", index=False)
        plan = Plan.of(tmp_path / "tickets.csv", labels=["kind"], overrides=["schedule=cosine"])
        chosen = plan.decide(read_parts(plan.reading())["train"]).optimizer
        return chosen.name, chosen.lr

    name, lr = optimizer(tickets())
    assert name == "sgd-nesterov"
    assert lr == pytest.approx(8 / 5, rel=0.05)  # each text, both together, the number and the category
    assert optimizer(tickets().assign(**{f"x{seed}": tickets(seed=seed)["age"] for seed in range(8)}))[0] == "adamw"


def test_a_mean_over_labels_wants_steps_as_much_larger_and_a_decay_as_much_smaller(tmp_path: Path) -> None:
    target = (torch.rand(200, 4, generator=torch.Generator().manual_seed(0)) < 0.4).long()
    whole = Dataset(torch.randn(200, 2), target, tuple("abcd"))
    decided = Plan.of(write_comments(tmp_path / "all.csv", 200), overrides=["schedule=cosine"]).decide(whole)
    assert decided.objective.name == "binary"
    assert (decided.optimizer.lr, decided.optimizer.weight_decay) == (32.0, 2.5e-4)


def test_longer_vectors_of_a_network_want_smaller_steps_and_more_decay(tmp_path: Path) -> None:
    features = torch.full((200, 4), 2.0)  # squared, of length 16
    names, texts = ("anger", "fear", "joy"), Texts(tuple(map(str, range(200))))
    whole = Dataset(features, torch.arange(200) % 3, names, texts=texts)
    given = ["data.encoder=hf:somewhere", "schedule=cosine"]
    plan = Plan.of(write_comments(tmp_path / "all.csv", 200), overrides=given)
    chosen = plan.decide(whole).optimizer
    assert (chosen.name, chosen.lr, chosen.weight_decay) == ("sgd-nesterov", 0.5, 0.016)


def test_fit_finds_the_logistic_regression_of_its_decay(tmp_path: Path) -> None:
    path = write_comments(tmp_path / "all.csv", 200)
    run = runs.Run(runs.fit(path, tmp_path / "run", overrides=["epochs=40"])["run"])
    train, test = (run.parts()[part] for part in ("train", "test"))
    same = LogisticRegression(C=1 / (0.001 * len(train))).fit(train.inputs, train.target.numpy())
    expected = torch.from_numpy(same.predict_proba(test.inputs)).float()
    torch.testing.assert_close(run.scores(test).softmax(1), expected, atol=0.01, rtol=0)


# ---- read by a network


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["happy", "great", "lovely", "hate", "awful", "terrible", "scared", "afraid", "am", "about"]
    return text_network(tmp_path_factory.mktemp("tiny") / "network", words)


@pytest.mark.parametrize("how", ["encoder", "backbone"])
def test_a_network_reads_texts_still_or_trained_and_the_run_keeps_its_tokenizer(
    how: str, tiny: Path, tmp_path: Path
) -> None:
    network = tmp_path / "network"
    shutil.copytree(tiny, network)
    path, said = write_comments(tmp_path / "all.csv", 60), []
    source = {"reader": "text-table", "path": str(path), "text_column": "comment", "labels_key": "mood"}
    data = {"train": source, "validation": None, "calibration": None, "cache": str(tmp_path / "kept")}
    named = {"name": f"hf:{network}", "max_length": 8}
    chosen = {"data": data | {"encoder": named}} if how == "encoder" else {"data": data, "backbone": named}
    config = {**chosen, "epochs": 12, "batch_size": 20, "optimizer": {"name": "adamw", "lr": 0.02}}
    run = runs.Run(runs.train(config, tmp_path / "run", say=said.append)["run"])
    reads = "of each text the first 8 tokens are read: 100.0 % of the texts have more (max_length)"
    assert reads in said
    assert described(run, run.parts(), "train")["Texts"] == reads
    losses = [record["loss"] for record in run.records()]
    assert losses[-1] < 0.9 * losses[0]
    assert sorted(file.name for file in (run.path / "network").iterdir()) == ["config.json", "tokenizer.json"]
    before = sl.load_run(run.path).scores(NEW)
    # another tokenizer where it was trained, or nothing at all: the run has its own
    (network / "tokenizer.json").write_text("{}")
    if how == "backbone":
        shutil.rmtree(network)
    predictor = sl.load_run(run.path)
    assert predictor.scores(NEW).equal(before)
    assert predictor.scores([]).shape == (0, 3)
    prepared = predictor.model_inputs(NEW)
    assert not prepared.is_floating_point()
    assert predictor.scores_of(prepared).allclose(before, atol=1e-5)


# ---- texts in tables


def test_web_addresses_that_are_left_out_are_not_told_as_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tickets(100)[["age", "kind"]]
    table.insert(0, "page", [f"https://www.example.org/collection/objects/{7919 * row}" for row in range(100)])
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run_here(capsys, "data", "check", tmp_path / "t.csv")
    assert "ignored (1): page (100 different values in 100 rows: text or an id)" in result.err
    assert "counted word by word" not in result.err


@pytest.mark.parametrize("columns", [["age", "plan", "subject", "body"], ["subject", "body"]])
def test_all_texts_of_a_table_are_used_from_fit_to_the_predictor(
    columns: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, new, told = tickets(400)[[*columns, "kind"]], tickets(100, seed=1)[[*columns, "kind"]], []
    table.loc[::5, "body"] += " -- Sent from my phone; excuse typos"  # as lists of labels repeat their names
    for name, frame in (("all", table), ("new", new), ("unlabelled", new.drop(columns="kind"))):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    result = run_here(capsys, "data", "describe", tmp_path / "all.csv")
    assert "texts, by tf-idf (3): subject (" in result.out
    done = runs.fit(tmp_path / "all.csv", tmp_path / "run", say=told.append)
    assert any(line.startswith("texts: 'subject', 'body', counted word by word") for line in told)
    assert not any("export" in line for line in done["next"])
    run = runs.Run(tmp_path / "run")
    assert run.config.optimizer.name == "lbfgs"
    accuracy = runs.evaluate(run, tmp_path / "new.csv", metrics=["topk-accuracy@1"])["metrics"]["topk-accuracy@1"]
    assert accuracy > 0.85  # each text alone tells 7 of 10
    predictor = sl.load_run(tmp_path / "run")
    answers = predictor.predict(new.drop(columns="kind"))
    assert sum(map(str.__eq__, answers, new["kind"])) / len(new) == pytest.approx(accuracy)
    assert predictor.predict(tmp_path / "unlabelled.csv") == answers
    one = predictor.predict(new.drop(columns="kind")[:1])
    assert one == answers[:1]
    with pytest.raises(ShortlistError, match="ONNX has no words"):
        runs.export(run, out=tmp_path / "model.onnx")


def test_a_frame_with_texts_is_learnt_by_the_estimator_and_kept(tmp_path: Path) -> None:
    table, new = tickets(300), tickets(200, seed=1)
    model = sl.SetClassifier(random_state=0).fit(table.drop(columns="kind"), table["kind"])
    assert model.solver_ == "lbfgs"
    assert model.score(new.drop(columns="kind"), new["kind"]) > 0.85
    model.save(tmp_path / "model.safetensors")
    again = sl.SetClassifier.load(tmp_path / "model.safetensors")
    assert again.predict_sets(new.drop(columns="kind")) == model.predict_sets(new.drop(columns="kind"))
