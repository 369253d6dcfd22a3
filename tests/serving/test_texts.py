"""Runs on texts behind HTTP."""

import asyncio

import pytest
import torch
from starlette.testclient import TestClient

import shortlist as sl
from shortlist.runs.run import Run
from shortlist.serving.app import make_app
from shortlist.serving.batches import Batches
from shortlist.serving.limits import Limits
from tests.models.tiny_networks import text_network
from tests.runs.made_texts import comments, write_comments


@pytest.fixture
def client(sayings):
    with TestClient(make_app(sl.load_run(sayings), "sayings", limits=Limits(rows=3))) as made:
        yield made


def test_texts_are_answered_and_blank_ones_remarked_on(client):
    answer = client.post("/predict", json={"texts": ["i am happy, great", "i am scared", " "]}).json()
    assert [one["labels"][0]["name"] for one in answer["sets"]][:2] == ["joy", "fear"]
    assert answer["remarks"] == ["blank texts, which say nothing: 2"]
    assert client.get("/model").json()["takes"] == "texts"
    assert client.get("/model").json()["columns"] is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"rows": [{"comment": "i am happy"}]}, "the run takes texts, not rows"),
        ({"rows": [[1.0]]}, "the run takes texts, not rows"),
        ({"images": ["aGVsbG8="]}, "the run does not take images: it takes texts"),
        ({"texts": []}, "holds 1 to 3 texts, this one 0"),
        ({"texts": ["a"] * 4}, "holds 1 to 3 texts, this one 4"),
        ({"texts": [3]}, "texts.0"),
        ({"texts": "happy"}, "texts"),
    ],
)
def test_other_requests_are_refused_in_words(client, body, message):
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422
    assert message in answer.json()["error"]


def test_a_network_that_reads_texts_answers_together_what_is_asked_together(tmp_path):
    network = text_network(tmp_path / "network", ["happy", "hate", "scared"])
    path = write_comments(tmp_path / "comments.csv", 40)
    source = {"reader": "text-table", "path": str(path), "text_column": "comment", "labels_key": "mood"}
    data = {"train": source, "encoder": f"hf:{network}", "cache": str(tmp_path / "kept")}
    run = Run(sl.runs.train({"data": data, "epochs": 1}, tmp_path / "run")["run"])
    predictor = run.predictor()
    texts = ["so happy", "i hate all of it, all of it"]
    with TestClient(make_app(predictor, "read")) as client:
        found = client.post("/predict", json={"texts": texts, "rule": None}).json()
        assert "no rule is fitted" in found["error"]
        sl.runs.calibrate(run, rules=["top-k:k=3"])
        predictor.rules = run.rules()
        found = client.post("/predict", json={"texts": texts}).json()
    asked = predictor.probabilities(texts)
    shown = [{one["name"]: one["probability"] for one in labels["labels"]} for labels in found["sets"]]
    for row, labels in enumerate(shown):
        assert [labels[name] for name in predictor.label_names] == pytest.approx(asked[row].tolist(), abs=1e-5)


def test_texts_of_few_and_of_many_words_are_scored_together_as_alone(tmp_path):
    table = comments(60)
    table["comment"] += [" " + " ".join(f"w{row}x{word}" for word in range(30)) for row in range(60)]
    table.to_csv(tmp_path / "comments.csv", index=False)
    source = {"reader": "text-table", "path": str(tmp_path / "comments.csv"), "text_column": "comment"}
    backbone = {"name": "tf-idf", "min_df": 1, "ngram_range": [1, 1]}
    config = {"data": {"train": source | {"labels_key": "mood"}}, "backbone": backbone, "epochs": 1}
    predictor = sl.load_run(sl.runs.train(config, tmp_path / "run")["run"])
    long, short = " ".join(predictor.inputs.preprocessor.terms[:200]), "i am happy"
    prepared = [predictor.model_inputs([text]) for text in (long, short, long, "")]
    assert {one.is_sparse for one in prepared} == {True, False}

    async def asked():
        batches = Batches(predictor.scores_of, 100, 100)
        try:
            return await asyncio.gather(*map(batches.scores, prepared))
        finally:
            batches.close()

    together = torch.cat(asyncio.run(asked()))
    torch.testing.assert_close(together, predictor.scores([long, short, long, ""]))
