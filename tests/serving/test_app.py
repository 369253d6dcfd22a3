"""What the addresses answer, and what they refuse."""

import base64
import io
import re
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from starlette.testclient import TestClient

import shortlist as sl
from shortlist.serving.app import make_app
from shortlist.serving.limits import Limits

ROW = {"length": 7.5, "shore": "south"}


def test_one_row_and_many_have_the_sets_of_the_predictor(client, predictor) -> None:
    rows = [ROW, {"length": None, "shore": "north"}, {"length": "14", "shore": "east"}]
    for some in (rows[:1], rows):
        answer = client.post("/predict", json={"rows": some, "rule": "average-k-1.5"}).json()
        wanted = predictor.predict_sets(pd.DataFrame(some), "average-k-1.5").names
        assert [sorted(label["name"] for label in one["labels"]) for one in answer["sets"]] == wanted
        for one in answer["sets"]:
            chances = [label["probability"] for label in one["labels"]]
            assert chances == sorted(chances, reverse=True)


def test_a_column_of_several_choices_takes_lists(tmp_path) -> None:
    cells = ["R", "R;SQL", "SQL;C", "C;R", "C;R;SQL", "SQL;R"] * 12
    table = pd.DataFrame({"skills": cells, "job": ["data" if "SQL" in cell else "other" for cell in cells]})
    table.to_csv(tmp_path / "jobs.csv", index=False)
    run = sl.runs.fit(tmp_path / "jobs.csv", tmp_path / "run")["run"]
    with TestClient(make_app(sl.load_run(run), "jobs")) as client:
        rows = [{"skills": "SQL;C"}, {"skills": ["C", "SQL"]}, {"skills": "R"}]
        text, listed, other = client.post("/predict", json={"rows": rows}).json()["sets"]
        assert text == listed != other


def test_an_answer_says_by_which_rule_and_what_it_promises(client) -> None:
    rule = client.post("/predict", json={"rows": [ROW], "rule": "conformal-0.1"}).json()["rule"]
    assert rule["calibration_rows"] == 60
    assert rule["calibrated_on"] == "calibration"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", rule["calibrated_at"])
    assert "at least 90.0%" in rule["promise"]


def test_another_k_or_alpha_changes_the_sets(client) -> None:
    def size(**changes) -> int:
        answer = client.post("/predict", json={"rows": [ROW], **changes})
        assert answer.status_code == 200, answer.text
        return len(answer.json()["sets"][0]["labels"])

    assert [size(rule="top-k-2", k=k) for k in (1, 2, 3)] == [1, 2, 3]
    assert size(rule="average-k-1.5", k=3) == 3
    assert size(rule="conformal-0.1", alpha=0.0001) == 3


def test_columns_that_the_run_does_not_know_are_ignored_and_said(client) -> None:
    answer = client.post("/predict", json={"rows": [{**ROW, "owner": "x"}]})
    assert "owner" in answer.json()["remarks"][0]


def test_names_that_say_nothing_are_told(client) -> None:
    def remarks(*rows) -> list[str]:
        return client.post("/predict", json={"rows": rows}).json()["remarks"]

    assert remarks(ROW, {**ROW, "shore": None}) == []
    said = "'shore' was never 'east', 'west' in training, which therefore says nothing"
    assert remarks({**ROW, "shore": "west"}, ROW, {**ROW, "shore": "east"}) == [said]
    assert "never '3' in" in remarks({**ROW, "shore": 3})[0]  # as a table would have it
    assert "'3'" in remarks([10.0, 3])[0]  # a list of numbers for columns of which one is of names


@pytest.mark.parametrize(("body", "said"), [
    ({}, "one of rows, images and texts"),
    ({"rows": [ROW], "texts": ["x"]}, "rows and texts"),
    ({"rows": []}, "1 to 20 rows"),
    ({"rows": [ROW] * 21}, "1 to 20 rows"),
    ({"texts": ["a leaf"]}, "does not take texts"),
    ({"images": ["aGVsbG8="]}, "does not take images"),
    ({"rows": [{"length": 3}]}, "row 0 has no column 'shore'"),
    ({"rows": [{"length": "long", "shore": "south"}]}, "was fitted with numbers"),
    ({"rows": [[1.0]]}, "row 0 is a list of 1, the run wants 2 numbers"),
    ({"rows": [{"length": 10**400, "shore": "south"}]}, "row 0"),
    ({"rows": [ROW], "rule": "average-k-9"}, "there is no rule 'average-k-9'"),
    ({"rows": [ROW], "rule": "top-k-2", "alpha": 0.1}, "has no alpha"),
    ({"rows": [ROW], "rule": "top-k-2", "k": 9}, "k must be at most 3"),
    ({"rows": [ROW], "rule": "conformal-0.1", "alpha": 2}, "alpha must be between 0 and 1"),
    ({"rows": [ROW], "threshold": 1}, "'threshold' is not known: a request may have rows, images"),
    ({"rows": [["south", 3.0]]}, "row 0 must be an object (column -> text, number, true, false or null) or a list"),
    ({"rows": [ROW, {"length": {"cm": 3}, "shore": "south"}]}, "row 1 must be an object (column -> text, number"),
    ({"rows": [ROW, {"length": [3], "shore": "south"}]}, "row 1: the column 'length' is a list: allowed are a text"),
    ({"rows": "many"}, "rows: Input should be a valid list"),
])  # fmt: skip
def test_a_wrong_request_is_told_what_is_allowed(client, body, said) -> None:
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["error"]
    assert "JSON of a set rule" not in answer.json()["error"]  # nobody sent one


@pytest.mark.parametrize(("kind", "content", "said"), [
    ("application/x-www-form-urlencoded", b'{"rows": []}', "sent with the header Content-Type: application/json"),
    ("application/json", b"[1]", "a request is a JSON object"),
    ("application/json", b'{"rows": }', "the body is no JSON from character 9 on"),
])  # fmt: skip
def test_a_body_that_is_no_request_is_told_what_one_is(client, kind, content, said) -> None:
    answer = client.post("/predict", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, said in answer.json()["error"]) == (422, True)


@pytest.mark.parametrize(("content", "said"), [
    (b'{"rows": [{"shore": "\xff"}]}', "not UTF-8 from byte 21 on"),
    (b"[" * 9000, "too deep inside each other"),
    (b'{"k": 1' + b"0" * 5000 + b"}", "too many digits"),
])  # fmt: skip
def test_a_body_that_cannot_be_read_is_told_why(client, content, said) -> None:
    answer = client.post("/predict", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, said in answer.json()["error"]) == (400, True)


def test_a_body_that_is_too_large_is_not_read(client) -> None:
    stated = client.post("/predict", content=b" " * 10_001)
    streamed = client.post("/predict", content=iter([b" " * 6000] * 2), headers={"Content-Type": "application/json"})
    for answer in (stated, streamed):
        assert answer.status_code == 413
        assert "10000 bytes" in answer.json()["error"]


def test_with_a_token_only_who_has_it_is_answered(predictor) -> None:
    with TestClient(make_app(predictor, "leaves", token="secret")) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            answer = client.post("/predict", json={"rows": [ROW]}, headers=headers)
            assert answer.status_code == 401
            assert client.get("/metrics", headers=headers).status_code == 401
        allowed = {"Authorization": "Bearer secret"}
        assert client.post("/predict", json={"rows": [ROW]}, headers=allowed).status_code == 200
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/").status_code == 200


def test_a_name_from_elsewhere_is_refused(predictor) -> None:
    with TestClient(make_app(predictor, "leaves", hosts=("localhost",)), base_url="http://localhost:8000") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"Host": "evil.example:8000"}).status_code == 400


def test_an_answer_that_takes_too_long_is_given_up(predictor) -> None:
    app = make_app(SlowPredictor(predictor), "leaves", limits=Limits(seconds=0.05))
    with TestClient(app) as client:
        answer = client.post("/predict", json={"rows": [ROW]})
        assert answer.status_code == 504
        assert "0.05 seconds" in answer.json()["error"]


def test_when_too_much_waits_more_is_refused(predictor) -> None:
    app = make_app(SlowPredictor(predictor, 0.3), "leaves", limits=Limits(waiting=1))
    codes = []
    with TestClient(app) as client:
        threads = [
            threading.Thread(target=lambda: codes.append(client.post("/predict", json={"rows": [ROW]}).status_code))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(codes) == {200, 503}


class SlowPredictor:
    """A predictor whose model takes its time."""

    def __init__(self, predictor, seconds: float = 0.2) -> None:
        self._predictor, self._seconds = predictor, seconds

    def __getattr__(self, name):
        return getattr(self._predictor, name)

    def scores_of(self, inputs):
        time.sleep(self._seconds)
        return self._predictor.scores_of(inputs)


def test_metrics_count_requests_and_rows(client) -> None:
    client.post("/predict", json={"rows": [ROW] * 3})
    client.post("/predict", json={})
    client.post("/predict", content=b" " * 10_001)  # refused before the body is read
    client.post("/predict", content=b"\xff", headers={"Content-Type": "application/json"})
    text = client.get("/metrics").text
    assert 'shortlist_requests_total{status="413"} 1' in text
    assert 'shortlist_requests_total{status="400"} 1' in text
    assert 'shortlist_requests_total{status="200"} 1' in text
    assert 'shortlist_requests_total{status="422"} 1' in text
    assert "shortlist_rows_total 3" in text
    assert 'shortlist_request_seconds_bucket{le="+Inf"} 4' in text


def test_the_model_says_what_it_takes(client) -> None:
    model = client.get("/model").json()
    assert (model["takes"], model["columns"]) == ("rows", ["length", "shore"])
    assert model["rules"]["conformal-0.1"]["setting"] == {"name": "alpha", "value": 0.1}


def encoded(image: Image.Image) -> str:
    file = io.BytesIO()
    image.save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def test_images_are_answered_as_the_predictor_does(photos) -> None:
    predictor = sl.load_run(photos)
    images = [Image.new("RGB", (20, 30), colour) for colour in ("white", "black")]
    with TestClient(make_app(predictor, "photos", limits=Limits(pixels=5000))) as client:
        sent = [encoded(images[0]), "data:image/png;base64," + encoded(images[1])]
        answer = client.post("/predict", json={"images": sent}).json()
        assert [one["labels"][0]["name"] for one in answer["sets"]] == predictor.predict(images)
        large = client.post("/predict", json={"images": [encoded(Image.new("1", (100, 51)))]})
        assert (large.status_code, "100 x 51 pixels" in large.json()["error"]) == (422, True)
        broken = client.post("/predict", json={"images": [sent[0], sent[0][:60]]})
        assert (broken.status_code, "image 1 cannot be decoded" in broken.json()["error"]) == (422, True)
        no_image = client.post("/predict", json={"images": [base64.b64encode(b"hello").decode()]})
        said = "image 0 cannot be decoded: it is no image that Pillow reads, or damaged at its beginning"
        assert no_image.json()["error"] == said


def test_a_run_on_features_of_images_that_is_given_columns_says_that_it_takes_images(photos, tmp_path) -> None:
    images = {"reader": "image-folder", "path": str(Path(photos).parent / "images"), "size": 2}
    made = {"encoder": "identity", "cache": str(tmp_path / "cache")}
    run = sl.runs.train({"data": {"train": images, **made}, "epochs": 1}, tmp_path / "run")["run"]
    with TestClient(make_app(sl.load_run(run), "features")) as client:
        answer = client.post("/predict", json={"rows": [{"length": 3}]})
    said = "the run takes images, or their features: each row is a list of 12 numbers"
    assert (answer.status_code, answer.json()["error"]) == (422, said)
