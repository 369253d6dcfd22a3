"""The registry of readers, and problems as a whole."""

import inspect
import pickle
from typing import get_type_hints

import pytest

from shortlist.data import READERS, DataError, Dataset, Problem, problems, read


@pytest.mark.parametrize("name", READERS)
def test_every_reader_has_typed_keyword_options_and_returns_a_data_set(name):
    reader = READERS[name]
    parameters = list(inspect.signature(reader).parameters.values())
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters[1:])
    hints = get_type_hints(reader)
    assert hints["return"] is Dataset
    assert set(hints) == {parameter.name for parameter in parameters} | {"return"}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_that_takes_a_path_reports_that_nothing_is_there(name, tmp_path):
    nowhere = tmp_path / "nowhere"
    needed = {"image-table": {"labels": "list"}, "stacked-images": {"labels": nowhere}, "coco": {"images": nowhere},
              "coco-words": {"images": nowhere},
              "open-images": {"classes": nowhere, "images": nowhere}}  # fmt: skip
    if name in ("ambiguous-numbers", "placed-shapes"):
        assert problems(name) == []
        return
    found = problems(name, path=nowhere, **needed.get(name, {}))
    assert found
    assert all("nowhere" in problem.file for problem in found)
    with pytest.raises(DataError, match="no such"):
        read(name, path=nowhere, **needed.get(name, {}))


def test_an_unknown_reader_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"there is no reader 'imagenet'.*; there are ambiguous-numbers, features"):
        read("imagenet")
    with pytest.raises(ValueError, match="there is no reader"):
        problems("imagenet")


def test_a_path_instead_of_a_reader_is_refused_with_the_reader_to_try(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fruit").mkdir()
    (tmp_path / "labels.csv").touch()
    with pytest.raises(ValueError, match="'fruit' is no reader but a path: try image-folder path=fruit"):
        read("fruit")
    with pytest.raises(ValueError, match=r"try features path=labels\.csv, or text-table for texts, or image-table"):
        problems("labels.csv")


def test_a_data_error_counts_and_survives_pickling():
    error = DataError([Problem("a.csv", 3, "bad", "line"), Problem("b.csv", None, "worse")])
    assert str(error) == "a.csv, line 3: bad (and 1 more problem: see `shortlist data check`)"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problems, str(copy)) == (error.problems, str(error))
