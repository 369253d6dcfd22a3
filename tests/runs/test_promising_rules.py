"""Rules that promise something, from files to files: groups and weights of rows, several risks, what is said."""

import json
from pathlib import Path

import numpy as np
import pytest

from shortlist import runs
from shortlist.labels import LabelSets
from shortlist.sets import Conformal


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
    assert found["promises"]["conformal"].startswith("the set holds the right label of at least 90.0% of the examples")
    again = runs.evaluate(**common, rules=tmp_path / "rules", **rows)
    assert again["rules"] == found["rules"]
    done = runs.predict(
        scores=given["scores"], rules=tmp_path / "rules", rule="conformal", out=tmp_path / "sets.parquet", **rows
    )
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
