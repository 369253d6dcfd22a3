"""Rules that promise something, from files to files: groups and weights of rows, several risks, what is said."""

import json
from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.labels import LabelSets
from shortlist.links import link_rows
from shortlist.sets import Conformal
from tests.cli.command import run_here


def files(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, 4)).astype(np.float32)
    found = {
        "scores": scores,
        "labels": (scores + rng.gumbel(size=scores.shape)).argmax(-1),
        "groups": np.array(["old", "new"])[np.arange(300) % 2],
        "weights": rng.random(300),
        "matrix": (rng.random(scores.shape) < 1 / (1 + np.exp(-3 * scores))).astype(np.int8),
    }
    for name, values in found.items():
        np.save(folder / f"{name}.npy", values)
    return {name: folder / f"{name}.npy" for name in found}


def test_groups_and_weights_come_from_files(tmp_path: Path) -> None:
    given = files(tmp_path)
    common = {"scores": given["scores"], "labels": given["labels"]}
    rows = {"groups": given["groups"], "weights": given["weights"]}
    rules = ["conformal:by_group=true,weighted=true", "top-k:k=2"]
    found = runs.calibrate(**common, rules=rules, out=tmp_path / "rules", **rows)
    promise = found["promises"]["conformal-by-group-weighted"]
    assert promise.startswith("the set holds the right label of at least 90.0% of the examples of each group")
    again = runs.evaluate(**common, rules=tmp_path / "rules", **rows)
    assert again["rules"] == found["rules"]
    chosen = {"rules": tmp_path / "rules", "rule": "conformal-by-group-weighted"}
    done = runs.predict(scores=given["scores"], **chosen, out=tmp_path / "sets.parquet", **rows)
    rule = Conformal(by_group=True, weighted=True)
    scores, labels, groups, weights = (np.load(given[name]) for name in ("scores", "labels", "groups", "weights"))
    expected = rule.fit(scores, labels, groups=groups, weights=weights).predict(scores, groups=groups, weights=weights)
    assert LabelSets.from_parquet(done["written"][0]).to_lists() == expected.to_lists()
    with pytest.raises(ValueError, match=r"rules\.0: Conformal needs the groups of the rows"):
        runs.calibrate(**common, rules=["conformal:by_group=true"], out=tmp_path / "rules")
    np.save(tmp_path / "short.npy", weights[:7])
    with pytest.raises(ValueError, match=r"short.npy: weights are one value for each of 300 rows, got \(7,\)"):
        runs.calibrate(**common, rules=rules, out=tmp_path / "rules", weights=tmp_path / "short.npy")


def test_risks_are_controlled_by_name(tmp_path: Path) -> None:
    given = files(tmp_path)
    rules = [
        "risk-control:risk=recall,alpha=0.1,delta=0.1",
        {"name": "risk-control", "risk": ["recall", "precision"], "alpha": [0.6, 0.6], "delta": 0.1},
        "average-k:k=2,max_size=3,confidence=0.9",
    ]
    found = runs.calibrate(scores=given["scores"], labels=given["matrix"], rules=rules, out=tmp_path / "rules")
    assert list(found["rules"]) == ["risk-control-recall", "risk-control-recall-precision", "average-k-2"]
    assert found["rules"]["risk-control-recall"]["coverage"] >= 0.9
    assert "it costs" in found["promises"]["average-k-2"]
    assert found["rules"]["average-k-2"]["size"] < 2
    json.dumps(found)


def test_a_rule_that_cannot_answer_is_left_out_and_it_is_said_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = files(tmp_path)
    common = {"scores": given["scores"], "labels": given["labels"]}
    rules = ["conformal:by_group=true,weighted=true", "top-k:k=2", "risk-control:risk=f1,alpha=0.01,delta=0.1"]
    rows = {"groups": given["groups"], "weights": given["weights"]}
    with pytest.warns(ShortlistWarning, match="no threshold keeps the promise"):
        found = runs.calibrate(**common, rules=rules, out=tmp_path / "rules", **rows)
    assert list(found["left_out"]) == ["risk-control-f1"]
    arguments = [f"--{name}={path}" for name, path in common.items()]
    result = run_here(capsys, "evaluate", *arguments, f"--rules={tmp_path / 'rules'}")
    assert result.code == 0
    needs = "it needs the groups and weights of the rows: give --groups FILE --weights FILE"
    assert f"warning: no sets by conformal-by-group-weighted: {needs}" in result.err
    assert "warning: no sets by risk-control-f1: no threshold keeps the promise" in result.err
    result = run_here(capsys, "report", *arguments, f"--rules={tmp_path / 'rules'}", "-o", tmp_path / "report")
    assert f"warning: the report has no sets by conformal-by-group-weighted: {needs}" in result.err
    page = (tmp_path / "report" / "index.html").read_text()
    assert f"<li>conformal-by-group-weighted: {needs}" in page
    assert "<li>risk-control-f1: no threshold keeps the promise" in page
    with_rows = [f"--{name}={path}" for name, path in rows.items()]
    run_here(capsys, "report", *arguments, f"--rules={tmp_path / 'rules'}", *with_rows, "-o", tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert needs not in page
    assert "<li>Of 2 groups, " in page


def test_several_risks_are_named_on_the_command_line_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files(tmp_path)
    arguments = ["--scores", given["scores"], "--labels", given["matrix"], "--out", tmp_path / "rules"]
    rule = "risk-control:risk=[recall, precision],alpha=[0.6,0.6],delta=0.1"
    found = run_here(capsys, "calibrate", *arguments, "--rule", rule, "--json").json
    assert list(found["rules"]) == ["risk-control-recall-precision"]


def test_a_report_on_rules_that_are_not_there_is_refused(tmp_path: Path) -> None:
    given = files(tmp_path)
    with pytest.raises(ShortlistError, match="there are no rules in nowhere: write them with shortlist calibrate"):
        runs.report(scores=given["scores"], labels=given["labels"], rules="nowhere", out=tmp_path / "report")


# ---- calibrated probabilities


@pytest.mark.parametrize("kind", ["temperature", "vector", "isotonic"])
def test_a_config_may_scale_probabilities_which_are_then_those_beside_the_labels(kind: str, tmp_path: Path) -> None:
    data = {"train": {"reader": "ambiguous-numbers", "size": 300}, "calibration": 80, "test": 20}
    rules = [{"name": "conformal", "alpha": 0.2, "scaling": kind}, {"name": "top-k", "k": 3}]
    run = runs.train({"data": data, "epochs": 1, "rules": rules}, tmp_path / "run")["run"]
    assert list(runs.calibrate(run)["rules"]) == [f"conformal-0.2-{kind}", "top-k-3"]
    done = runs.predict(run, "test", out=tmp_path / "sets.jsonl")
    assert done["rule"] == f"conformal-0.2-{kind}"  # the first that the config names
    opened = runs.Run(run)
    scores, rule = opened.scores(opened.parts()["test"]).numpy(), opened.rules()[done["rule"]]
    written = json.loads((tmp_path / "sets.jsonl").read_text().splitlines()[0])["probabilities"]
    expected = np.sort(link_rows(scores[:1], rule.link)[0, rule.predict(scores[:1])[0]])[::-1]
    np.testing.assert_allclose(written, expected, rtol=1e-5)


def test_a_scaling_that_there_is_not_is_found_before_training(tmp_path: Path) -> None:
    config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 300}}}
    for rule, message in (
        ({"name": "conformal", "scaling": "platt"}, r"rules\.0: scaling must be one of 'temperature'"),
        ({"name": "top-k", "k": 3, "scaling": "vector"}, r"rules\.0: scaling calibrates the link of a rule"),
    ):
        with pytest.raises(ShortlistError, match=message):
            runs.train({**config, "rules": [rule]}, tmp_path / "run")


# ---- in a program


def test_a_predictor_takes_groups_and_weights(tmp_path: Path) -> None:
    given = {name: np.load(path) for name, path in files(tmp_path).items()}
    rows = {"groups": given["groups"], "weights": given["weights"]}
    predictor = sl.calibrate(given["scores"], given["labels"], "conformal:by_group=true,weighted=true", **rows)
    rule = Conformal(by_group=True, weighted=True).fit(given["scores"], given["labels"], **rows)
    expected = rule.predict(given["scores"], **rows)
    assert predictor.predict_sets(given["scores"], **rows).to_lists() == expected.to_lists()
    again = sl.calibrate(given["scores"], given["labels"], Conformal(by_group=True), groups=given["groups"])
    with pytest.raises(ShortlistError, match=r"Conformal needs the groups of the rows: .*in Python groups="):
        again.predict_sets(given["scores"])
