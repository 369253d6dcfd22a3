"""Progress: a live bar on a terminal, lines elsewhere, nothing when quiet."""

import io
import re
import sys

import numpy as np
import pytest

from shortlist.cli import _progress
from shortlist.cli._progress import LineProgress, LiveProgress, make_progress
from shortlist.estimators import SetClassifier

RECORD = {"epoch": 1, "loss": 0.5, "lr": 0.1, "topk-accuracy@1": 0.75, "seconds": 1.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "kind"), [(Terminal(), LiveProgress), (io.StringIO(), LineProgress)])
def test_the_kind_follows_from_where_it_is_shown(
    stream: io.StringIO, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert type(make_progress(quiet=False)) is kind
    assert make_progress(quiet=True) is None


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_loss_metric_and_epoch_are_shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    progress = make_progress(quiet=False)
    progress.start(0, 2, "topk-accuracy@1")
    progress.step(0, 0, 1, 0.9)
    progress.epoch(RECORD)
    progress.step(1, 0, 1, 0.4)
    progress.end()
    assert "epoch 1/2  loss 0.5000  topk-accuracy@1 0.7500  lr 0.1  1.2 s" in stream.getvalue()
    if stream.isatty():
        assert "50%" in stream.getvalue() or "100%" in stream.getvalue()


def test_ending_before_starting_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    make_progress(quiet=False).end()


@pytest.mark.parametrize("quiet", [False, True])
def test_a_long_search_says_what_it_tried(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_progress, "_SELDOM", 0.0)
    rows = np.random.default_rng(0).normal(size=(60, 3))
    with _progress.search_shown(quiet):
        SetClassifier(random_state=0, hidden=()).fit(rows, rows[:, 0] > 0)
    said = capsys.readouterr().err.splitlines()
    assert bool(said) is not quiet
    assert all(re.match(r"tried a weight decay of \S+ \(.*\): loss 0\.\d{4} on held-out rows", line) for line in said)
