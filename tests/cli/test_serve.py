"""``shortlist serve`` as a process: it answers, stops with grace and says what is wrong."""

import json
import re
import signal
import socket
import threading
import urllib.request

import numpy as np
import pytest

import shortlist as sl
from tests.cli.command import run_here, start


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}}, "epochs": 1}
    made = sl.runs.train(config, folder / "numbers")["run"]
    sl.runs.calibrate(made, rules=["average-k:k=5"])
    return made


def test_it_answers_until_it_is_told_to_stop_and_nothing_is_lost(run) -> None:
    process = start("serve", run, "--port", "0")
    try:
        line = process.stderr.readline()
        while "serving" not in line:
            assert line, "it ended"
            line = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        body = json.dumps({"rows": np.zeros((2, 128)).tolist()}).encode()
        answers = []

        def ask() -> None:
            request = urllib.request.Request(f"{address}predict", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                answers.append(json.load(answer))

        ask()
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    assert len(answers) == 9
    assert all(answer["sets"] == answers[0]["sets"] for answer in answers)
    assert answers[0]["rule"]["name"] == "average-k-5"


def test_a_port_in_use_is_said(run, capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run_here(capsys, "serve", run, "--port", taken.getsockname()[1])
    assert result.code == 2
    assert "cannot listen on 127.0.0.1" in result.err
