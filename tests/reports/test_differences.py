"""Differences between the runs of two names, paired by seed."""

import statistics

import numpy as np
import pytest

from shortlist.metrics.seed_interval import half_width
from shortlist.reports.contents import contents
from shortlist.reports.data import ReportData, RunResult
from shortlist.reports.page import render
from tests.reports.made_up import made_up_run


def compared(*others: RunResult, seeds: int = 3) -> ReportData:
    first = [made_up_run("plain", seed) for seed in range(seeds)]
    return ReportData("Compared", runs=[*first, *others], vocabulary=[f"label {i}" for i in range(12)])


def coverage(run: RunResult, rule: str) -> float:
    target = np.asarray(run.target)
    return float(run.sets_by(rule).to_dense()[np.arange(len(target)), target].mean())


def test_every_rule_is_compared_with_the_run_of_the_same_seed() -> None:
    noisy = [made_up_run("noisy", seed, noise=2.0) for seed in (2, 1, 0)]
    found = contents(compared(*noisy))["headline"]["differences"]
    assert found["from"] == "plain"
    (model,) = found["models"]
    assert (model["name"], model["seeds"]) == ("noisy", 3)
    (row,) = (row for row in model["rows"] if row["rule"] == "TopK")
    apart = [100 * (coverage(run, "TopK") - coverage(made_up_run("plain", run.seed or 0), "TopK")) for run in noisy]
    assert row["cells"][0] == {"value": "+0.00 ± 0.00", "decided": False}  # the size of TopK sets
    expected = f"{statistics.fmean(apart):.2f} ± {half_width(apart):.2f}"
    assert row["cells"][1] == {"value": expected, "decided": True}
    assert model["first"]["value"].startswith("-")


@pytest.mark.parametrize(
    "others",
    [
        [made_up_run("noisy", seed, noise=2.0) for seed in (2, 3, 4)],  # one seed in common
        [made_up_run("noisy", seed, noise=2.0) for seed in (0, 0, 1)],  # which run of seed 0 would be the pair?
        [],
    ],
)
def test_without_two_pairs_of_seeds_nothing_is_compared(others: list[RunResult]) -> None:
    data = compared(*others)
    assert contents(data)["headline"]["differences"] is None
    assert "seed by seed" not in render(contents(data), ())


def test_the_page_has_the_differences_and_marks_what_is_decided() -> None:
    text = render(contents(compared(*(made_up_run("noisy <b>", seed, noise=2.0) for seed in range(3)))), ())
    table = text.partition("Differences from plain, seed by seed")[2].partition("</table>")[0]
    assert "noisy &lt;b&gt; <small>3 seeds</small>" in table
    assert "<strong>-" in table
    assert ">+0.00 ± 0.00<" in table
