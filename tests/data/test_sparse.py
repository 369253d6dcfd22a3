"""Sparse label matrices and features in data sets: splits, corruptions, batches, files, training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from shortlist.data import Dataset, corrupt, split
from shortlist.data.readers import read
from shortlist.data.readers.findings import DataError
from shortlist.data.write_features import write_features
from shortlist.errors import ShortlistError
from shortlist.estimators import SetClassifier
from shortlist.labels import LabelSets, SparseLabels
from shortlist.labels.sparse_labels import dense_labels
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.objectives.imbalance import class_weights, log_prior, rarity
from shortlist.objectives.usual import unknown_as_absent, usual_objective
from shortlist.training.learner import Learner, score
from shortlist.training.loop import train
from shortlist.training.settings import TrainSettings

NAMES = tuple("abcdef")


def matrix(rows: int = 60, seed: int = 0) -> torch.Tensor:
    draws = torch.rand(rows, len(NAMES), generator=torch.Generator().manual_seed(seed))
    return torch.where(draws < 0.2, 1, torch.where(draws > 0.95, -1, 0)).to(torch.int8)


def pair(**more: object) -> tuple[Dataset, Dataset]:
    """The same data with the whole label matrix, and with what is stored of it."""
    dense = Dataset(torch.arange(60.0)[:, None], matrix(), NAMES, **more)  # type: ignore[arg-type]
    return dense, replace(dense, target=sparse.csr_array(matrix().numpy()))


def test_a_data_set_says_the_same_of_both() -> None:
    dense, thin = pair()
    assert isinstance(thin.target, SparseLabels)
    assert thin.describe() == dense.describe()
    assert torch.equal(thin.label_counts(), dense.label_counts())
    rows = torch.tensor([3, 1, 3])
    assert torch.equal(thin.batch(rows)[1].to_dense(), dense.batch(rows)[1])
    assert torch.equal(thin.subset([5, 2]).target.to_dense(), dense.subset([5, 2]).target)


def test_splits_are_the_same() -> None:
    for one, other in zip(*(split(data, (0.5, 0.25), stratify=True, seed=3) for data in pair()), strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.target, other.target.to_dense())


@pytest.mark.parametrize("rate", [0.2, 0.9])
def test_missing_labels_are_the_same(rate: float) -> None:
    dense, thin = (corrupt(data, "missing-labels", rate=rate, seed=1) for data in pair())
    assert torch.equal(dense.target, thin.target.to_dense())
    assert dense.truth == thin.truth
    assert thin.target.rest == (-1 if rate > 0.5 else 0)


def test_one_present_label_is_kept_of_each_row() -> None:
    dense, thin = pair()
    kept = corrupt(thin, "single-positive", seed=1)
    found, present = kept.target.to_dense(), dense.target == 1
    assert torch.equal((found == 1).sum(1), present.any(1).long())
    assert bool((found[~present] == -1).all())
    indices = corrupt(thin, "single-positive", seed=1, indices=True).target
    rows = (indices >= 0).nonzero()[:, 0]
    assert bool((found[rows, indices[rows]] == 1).all())


def test_what_objectives_ask_of_a_target_is_the_same() -> None:
    dense, thin = matrix(), SparseLabels.from_dense(matrix())
    for question in (class_weights, rarity, lambda t, n: log_prior(t, n, "sigmoid")):
        torch.testing.assert_close(question(thin, 6), question(dense, 6))
    positives = torch.where(dense == 1, 1, -1)
    for rest in (0, -1):
        stored = SparseLabels.from_dense(positives, rest)
        with pytest.warns(UserWarning, match="no label is known to be absent"):
            assert usual_objective(stored) == ("binary", True)
        assert torch.equal(unknown_as_absent(stored).to_dense(), unknown_as_absent(positives).to(torch.int8))


def features(kind: str) -> Dataset:
    rng = np.random.default_rng(0)
    x = sparse.random_array((60, 1500), density=0.02, rng=rng, format="csr", dtype=np.float32)
    x = sparse.csr_matrix(x)
    return Dataset(x if kind == "sparse" else torch.from_numpy(x.toarray()), matrix(), NAMES)


@pytest.mark.parametrize("hidden", [(), (8,)])
@pytest.mark.parametrize("objective", ["binary", "two-way", "asymmetric", "wsabie"])
def test_sparse_batches_train_as_whole_ones_do(objective: str, hidden: tuple[int, ...]) -> None:
    found = []
    for kind in ("dense", "sparse"):
        data = features(kind)
        if kind == "sparse":
            data = replace(data, target=LabelSets.from_sparse(sparse.csr_array(matrix().numpy())))
            assert data.batch(torch.arange(3))[0].is_sparse
        torch.manual_seed(0)
        backbone = build_backbone("mlp", in_shape=(1500,), hidden=hidden)
        made = build(objective, in_features=backbone.out_features, num_labels=6, train_target=data.target)
        settings = TrainSettings(epochs=2, batch_size=16, seed=1)
        history = train(backbone, made, data, data if objective == "binary" else None, settings)
        found.append((score(Learner(backbone, made), data), history.records[-1]["loss"]))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-5)
    assert found[1][1] == pytest.approx(found[0][1], rel=1e-4)


# ---- files

XMC = "3 5 4\n0,2 1:0.5 3:2\n 0:1\n3 4:-1e-1 0:3\n"


def test_the_repository_s_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(XMC)
    data = read("features", path=str(tmp_path / "train.txt"))
    assert data.inputs.toarray().tolist() == [[0, 0.5, 0, 2, 0], [1, 0, 0, 0, 0], [3, 0, 0, 0, np.float32(-0.1)]]
    assert data.target.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_svmlight_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:0.5 3:2 # first\n2\t2:1\n")
    data = read("features", path=str(tmp_path / "a.svm"), num_features=6)
    assert data.inputs.toarray().tolist() == [[0, 0.5, 0, 2, 0, 0], [0, 0, 1, 0, 0, 0]]
    assert (data.vocabulary, data.target.tolist()) == (("1", "2"), [0, 1])
    (tmp_path / "b.svm").write_text("1,0 1:0.5\n2 2:1\n")
    data = read("features", path=str(tmp_path / "b.svm"), num_labels=4)
    assert data.target.tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 5 4\n0 1:0.5\n", "promises 2 examples, 1 follow"),
        ("1 5 4\n4 1:0.5\n", r"example 0 has label 4: allowed are 0\.\.3, as the first line says"),
        ("1 5 4\n1 7:0.5\n", r"example 0 has feature 7"),
        ("1 5 4\n1 2:x\n", r"line 2 is '1 2:x': a line holds labels"),
        ("0 1:2\ncat 1:2\n", r"line 2 is 'cat 1:2'"),
        ("0 1:2\n1 1:2:3\n", r"line 2 is"),
        ("0 1:2\n1 1:nan\n", "a feature is not a finite number"),
        ("0.5,1 1:2\n", "example 0 has label 0.5"),
        ("", "it holds no example"),
        ("1 1000000000000 4\n0 1:1\n", "it would unpack to 100000000000000 bytes"),
        ("1 5 0\n 1:1\n", "the first line counts 5 features and 0 labels: none is too few"),
        ("1 0 3\n0\n", "the first line counts 0 features and 3 labels: none is too few"),
        (f"{'9' * 5000} 5 4\n0 1:1\n", "line 1 is"),
    ],
)
def test_what_is_wrong_with_a_text_is_told(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=words):
        read("features", path=str(tmp_path / "a.txt"))


def test_a_large_sparse_label_matrix_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.data.readers._label_matrix.LARGE_MATRIX", 4)
    monkeypatch.setattr("shortlist.data.readers._label_lists.LARGE_MATRIX", 4)
    (tmp_path / "train.txt").write_text(XMC)
    data = read("features", path=str(tmp_path / "train.txt"))
    assert isinstance(data.target, SparseLabels)
    rows = ('{"X": [1.0], "y": ["a", "b"]}', '{"X": [2.0], "y": ["b"]}', '{"X": [3.0], "y": []}')
    (tmp_path / "lists.jsonl").write_text("\n".join(rows))
    lists = read("features", path=str(tmp_path / "lists.jsonl"), rest="unknown")
    assert lists.target.to_dense().tolist() == [[1, 1], [-1, 1], [-1, -1]]
    whole = replace(data, inputs=torch.eye(3))
    options = write_features(whole, tmp_path / "again.npz")
    again = read("features", path=str(tmp_path / "again.npz"), **options)
    assert torch.equal(dense_labels(again.target), dense_labels(data.target))


@pytest.mark.parametrize("text", ["2 5 3\n0,2 1:1\n1 2:1\n\n\n", "0,2 1:1\r\n1 2:1\r\n \r\n"])
def test_empty_lines_at_the_end_of_a_text_are_no_examples(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert read("features", path=str(tmp_path / "a.txt")).target.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_an_empty_line_that_is_counted_is_an_example_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("3 5 3\n0 1:1\n\n\n")
    data = read("features", path=str(tmp_path / "a.txt"))
    assert data.inputs.toarray().sum(1).tolist() == [1, 0, 0]
    assert data.target.sum(1).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("indices", "offsets"),
    [
        ([0, 1, 2], [0, 10**9, 2, 3]),
        ([0, 1, 2], [0, 3, 1, 3]),
        ([0, 1, 10**6], [0, 1, 2, 3]),
        ([0, 1, -4], [0, 1, 2, 3]),
    ],
    ids=["an offset far away", "offsets that fall", "a column too large", "a column below 0"],
)
def test_arrays_that_do_not_fit_together_are_told_before_scipy_follows_them(
    indices: list[int], offsets: list[int]
) -> None:
    damaged = sparse.csr_matrix((3, 6), dtype=np.float32)
    damaged.data, damaged.indices = np.ones(3, np.float32), np.array(indices, dtype=np.int32)
    damaged.indptr = np.array(offsets, dtype=np.int32)
    for use in (
        LabelSets.from_sparse,
        lambda m: Dataset(torch.zeros(3, 2), m, NAMES),
        lambda m: Dataset(m, torch.tensor([0, 1, 0]), NAMES),
        lambda m: SetClassifier().fit(m, [0, 1, 0]),
        lambda m: SetClassifier().fit(np.eye(3), m),
    ):
        with pytest.raises(ShortlistError, match="is damaged, its arrays do not fit together"):
            use(damaged)
