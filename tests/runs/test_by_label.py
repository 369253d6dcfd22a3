"""Precision, recall and F1 of each label, in the results of `evaluate` and on the console."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from shortlist import runs
from tests.cli.command import run_here


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of 300 rows that know something of 6 labels, of which 'label 5' never occurs; the same of 20."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for labels in (6, 20):
        truth = random.integers(0, labels - 1, 300)
        given = {"scores": f"scores{labels}.npy", "labels": f"labels{labels}.npy"}
        np.save(given["scores"], (random.normal(size=(300, labels)) + 2 * np.eye(labels)[truth]).astype("f4"))
        np.save(given["labels"], truth)
        runs.calibrate(**given, rules=["top-k:k=1"], out=f"r{labels}")


def test_they_are_those_of_scikit_learn(files: None) -> None:
    found = runs.evaluate(scores="scores6.npy", labels="labels6.npy", rules="r6")["by_label"]
    assert (found["rule"], len(found["labels"])) == ("top-k-1", 6)
    truth, best = np.load("labels6.npy"), np.load("scores6.npy").argmax(1)
    expected = precision_recall_fscore_support(truth, best, labels=range(6), zero_division=np.nan)
    values = list(found["labels"].values())
    assert [one["examples"] for one in values] == expected[3].tolist()
    for key, column in zip(("precision", "recall", "f1"), expected, strict=False):
        np.testing.assert_allclose(np.array([one[key] for one in values], float), column, atol=1e-12)  # None as NaN


def test_few_labels_are_all_printed_and_of_many_those_of_the_ends_that_occur(
    files: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(labels: int) -> list[list[str]]:
        given = ("--scores", f"scores{labels}.npy", "--labels", f"labels{labels}.npy", "--rules", f"r{labels}")
        lines = run_here(capsys, "evaluate", *given).out.splitlines()
        begin = next(at for at, line in enumerate(lines) if line.endswith("labels in the sets of top-k-1"))
        rows = lines[begin + 1 : lines.index("", begin)]
        return [row.rsplit(maxsplit=4) if row != "..." else [row] for row in rows]

    few, many = printed(6), printed(20)
    assert few[0] == ["label", "examples", "precision", "recall", "f1"]
    assert len(few) == 1 + 6
    never = next(row for row in few if row[0].endswith("5"))
    assert never[1] == "0"
    assert never[3] == "-"  # nothing to recall
    assert [row == ["..."] for row in many] == [False] * 6 + [True] + [False] * 5
    f1 = [float(row[-1]) for row in many[1:] if len(row) > 1]
    assert f1 == sorted(f1)
    assert all(int(row[1]) > 0 for row in many[1:] if len(row) > 1)


def test_judges_of_parts_are_merged_label_by_label() -> None:
    from shortlist.metrics.functional.set_summary import LabelOutcomes
    from shortlist.sets import TopK

    random = np.random.default_rng(1)
    scores, truth = random.normal(size=(50, 4)), random.integers(-1, 2, (50, 4))
    sets, whole, first, second = TopK(2).predict(scores), LabelOutcomes(), LabelOutcomes(), LabelOutcomes()
    whole.update(sets, truth)
    first.update(sets[:20], truth[:20])
    second.update(sets[20:], truth[20:])
    first.merge(second)
    first.merge(LabelOutcomes())
    assert (first.counts == whole.counts).all()
    listed = sets.to_dense()
    assert (whole.counts == [((truth == 1) & listed).sum(0), ((truth >= 0) & listed).sum(0), (truth == 1).sum(0)]).all()
