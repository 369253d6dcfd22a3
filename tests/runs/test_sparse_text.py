"""A text of sparse features and labels, which stay sparse, through a whole run."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from shortlist import runs
from shortlist.data import Dataset
from shortlist.data.readers import read
from shortlist.labels import SparseLabels
from shortlist.runs.guess import Guess
from shortlist.runs.plan import Plan
from tests.cli.command import run_here


def write(path: Path, rows: int, seed: int) -> None:
    """Every label has words of its own."""
    random, lines = np.random.default_rng(seed), [f"{rows} 1200 12"]
    for _ in range(rows):
        labels = sorted(set(random.integers(12, size=random.integers(1, 4)).tolist()))
        words = {100 * label + int(word) for label in labels for word in random.integers(4, size=3)}
        features = sorted(words | set(random.integers(1200, size=4).tolist()))
        lines.append(f"{','.join(map(str, labels))} {' '.join(f'{word}:1' for word in features)}")
    path.write_text("\n".join(lines) + "\n")


def test_labels_and_features_stay_sparse_from_the_text_to_the_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shortlist.data.readers._label_matrix.LARGE_MATRIX", 1)
    write(Path("train.txt"), 150, 0)
    write(Path("test.txt"), 40, 1)
    assert isinstance(read("features", path="train.txt").target, SparseLabels)
    result = run_here(capsys, "fit", "train.txt", "--out", "run", "epochs=10")
    assert result.code == 0, result.err
    run = runs.Run("run")
    assert runs.evaluate(run, "test.txt")["metrics"]["mean-average-precision-sample"] > 0.9
    assert run_here(capsys, "predict", "run", "test.txt").code == 0


@pytest.mark.parametrize(
    ("products", "expected"),
    [
        (300 * 3 * 4, ("lbfgs", 1.0, None)),
        (300 * 3 * 4 - 1, ("sgd-nesterov", 2.67, 0.002)),  # of rows whose squared length is 12: three twos
    ],
)
def test_sparse_features_are_fitted_at_once_by_what_they_store_and_else_in_large_steps(
    products: int, expected: tuple[str, float, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted as if they were dense, 8,000 rows of 20,000 columns were learnt in Adam's steps, and hardly at all."""
    columns = np.random.default_rng(0).permuted(np.tile(np.arange(1000), (300, 1)), axis=1)[:, :3]
    features = scipy.sparse.csr_matrix((np.full(900, 2.0), (np.repeat(np.arange(300), 3), columns.ravel())))
    target = torch.rand(300, 4, generator=torch.Generator().manual_seed(0)).lt(0.4).long()
    monkeypatch.setattr("shortlist.training.linear_head._MOST_PRODUCTS", products)
    plan = Plan(Guess({"reader": "features", "path": "counts.svm"}))
    chosen = plan.decide(Dataset(features, target, tuple("abcd"))).optimizer
    assert (chosen.name, chosen.lr, chosen.weight_decay) == expected
