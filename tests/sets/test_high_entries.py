"""Of a sigmoid only the entries that count are computed: the same numbers, to the bit, as of all of them."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from shortlist.errors import ShortlistError
from shortlist.links import high_entries, link_entries, link_rows
from shortlist.sets import AverageK, Conformal


def made(kind: Any = np.float32, rows: int = 12, labels: int = 999) -> NDArray[Any]:
    return (np.random.default_rng(0).normal(size=(rows, labels)) * 4 - 5).astype(kind)


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "none"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_linked_entries_are_those_of_linked_rows(link: Any, kind: Any) -> None:
    scores, rows, labels = made(kind), np.array([3, 3, 0]), np.array([998, 1, 500])
    np.testing.assert_array_equal(link_entries(scores, link, rows, labels), link_rows(scores, link)[rows, labels])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("least", [2e-30, 1e-6, 0.1, 0.5, 0.9, 0.99999994, 1.0, 1.5, np.inf])
def test_every_entry_that_reaches_the_least_is_among_the_high_ones(kind: Any, least: float) -> None:
    edge = np.log(min(least, 0.9999999) / (1 - min(least, 0.9999999)))
    scores = (made(kind) + edge - 15).astype(kind)  # few are high
    scores[0, :40] = edge + np.arange(-20, 20) * np.spacing(np.float32(max(abs(edge), 1e-6)))
    scores[1, :2] = np.inf, -np.inf
    found = high_entries(scores, "sigmoid", least)
    assert found is not None
    linked = link_rows(scores, "sigmoid").reshape(-1)
    np.testing.assert_array_equal(linked[found[0]], found[1])
    assert set(np.flatnonzero(linked >= least)) <= set(found[0].tolist())


@pytest.mark.parametrize(("link", "least"), [("softmax", 0.5), ("none", 0.5), ("sigmoid", 0.0), ("sigmoid", 1e-9)])
def test_where_nothing_is_gained_all_are_to_be_linked(link: Any, least: float) -> None:
    assert high_entries(made(), link, least) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda scores: high_entries(scores, "sigmoid", 0.5, 7),
        lambda scores: link_entries(scores, "sigmoid", np.array([0]), np.array([0]), 7),
    ],
)
def test_a_nan_anywhere_is_refused_by_its_place(call: Any) -> None:
    scores = made()
    scores[2, 5] = np.nan
    with pytest.raises(ShortlistError, match="row 9, label 5 is NaN"):
        call(scores)


@pytest.mark.parametrize("rule", [AverageK(3, link="sigmoid"), Conformal(0.3, labels="multi", link="sigmoid")])
def test_sets_are_those_of_linking_all(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.from_numpy(np.round(made(rows=200), 1))  # many ties, at the threshold too
    target = (scores > scores.quantile(0.999, dim=1, keepdim=True)).int()
    rule.fit(scores, target if isinstance(rule, Conformal) else None)
    quick = rule.predict(scores)
    for module in ("average_k", "conformal"):
        monkeypatch.setattr(f"shortlist.sets.{module}.high_entries", lambda *_: None)
    assert quick == rule.predict(scores)
    assert 0 < quick.sizes.mean() < 999 / 8
