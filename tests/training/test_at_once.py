"""The optimizer lbfgs: a linear model fitted to all rows at once by the training loop."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_wine, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from shortlist.data import Dataset
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.table_rows import TableRows
from shortlist.errors import ShortlistError
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training import at_once
from shortlist.training.at_once import scales_of
from shortlist.training.full_batch import binary_columns, softmax_rows
from shortlist.training.head_columns import Scales
from shortlist.training.history import History
from shortlist.training.linear_head import choose_head
from shortlist.training.loop import train
from shortlist.training.settings import TrainSettings

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)


def trained(
    inputs: Any, target: Any, objective: str = "cross-entropy", hidden: tuple[int, ...] = (), **settings: Any
) -> tuple[Tensor, History]:
    """Scores of the training rows, and what happened."""
    features, labels = torch.tensor(inputs, dtype=torch.float32), torch.as_tensor(target)
    names = tuple(map(str, range(labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1)))
    network: dict[str, Any] = {"name": "mlp", "hidden": hidden} if hidden else {"name": "identity"}
    backbone: Any = build_backbone(in_shape=features.shape[1:], **network)
    model = build(objective, in_features=backbone.out_features, num_labels=len(names))
    options = {"optimizer": {"name": "lbfgs"}, **settings}
    history = train(backbone, model, Dataset(features, labels, names), None, TrainSettings.model_validate(options))
    with torch.no_grad():
        return model.eval()(backbone(features)), history


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_a_given_strength_is_scikit_learns_penalty(strength: float) -> None:
    scores, history = trained(X, Y, optimizer={"name": "lbfgs", "weight_decay": strength})
    peer = LogisticRegression(C=1 / strength, max_iter=10_000, tol=1e-8).fit(X, Y).predict_proba(X)
    assert torch.allclose(scores.softmax(1), torch.tensor(peer, dtype=torch.float32), atol=2e-3)
    assert [record["epoch"] for record in history.records] == [1]
    assert history.records[0]["weight_decay"] == strength


def test_the_loss_of_its_record_is_that_of_the_model() -> None:
    scores, history = trained(X, Y)
    expected = torch.nn.functional.cross_entropy(scores, torch.as_tensor(Y))
    assert history.records[0]["loss"] == pytest.approx(float(expected), rel=1e-4)


def test_the_scale_of_the_columns_does_not_matter() -> None:
    factors = 10.0 ** np.arange(-6, 7)
    plain, _ = trained(X, Y)
    wide, _ = trained(3 + X * factors, Y)
    assert float((plain.argmax(1) == wide.argmax(1)).float().mean()) > 0.97


def test_categories_of_a_table_are_taken_as_they_are() -> None:
    """Standardised, a rare one would be a column of few large numbers."""
    frame = pd.DataFrame({"x": np.arange(40.0), "kind": ["a", "b", "b", "b"] * 10})
    table = Dataset(TableRows(frame), torch.arange(2).repeat(20), ("p", "q"))
    data = table.preprocessed(Preprocessor.fit(frame))
    scales = scales_of(data.inputs, data)
    assert (scales.centre, scales.own, scales.one) == (None, None, None)
    plain = scales_of(data.inputs, Dataset(data.inputs, data.target, data.vocabulary))
    assert plain.own is not None
    torch.testing.assert_close(plain.own, 1 / data.inputs.std(0, correction=0))


@pytest.mark.parametrize("single", [True, False])
def test_the_share_of_right_first_labels_is_of_rows_in_which_that_is_known(single: bool) -> None:
    classes = torch.arange(90) % 3
    truth = classes if single else torch.eye(3, dtype=torch.int8)[classes]
    hidden = torch.rand(90 if single else (90, 3), generator=torch.Generator().manual_seed(0)) < 0.5
    inputs, loss = 9 * torch.eye(3)[classes], softmax_rows if single else binary_columns
    partial, names = truth.masked_fill(hidden, -1), tuple("abc")
    choice = choose_head(loss, inputs, partial, names, "auto", scales=Scales(), single=single, seed=0)
    assert [one["precision_at_1"] for one in choice.tried] == [1.0] * len(choice.tried)


def test_unknown_labels_do_not_train() -> None:
    inputs, target = make_multilabel_classification(200, 8, n_classes=4, random_state=0)
    partial = np.where(np.random.default_rng(0).random(target.shape) < 0.5, target, -1)
    known, _ = trained(inputs, partial, "binary", optimizer={"name": "lbfgs", "weight_decay": 1.0})
    column = partial[:, 0] != -1
    peer = LogisticRegression(C=1.0, max_iter=10_000, tol=1e-8).fit(inputs[column], target[column, 0])
    assert torch.allclose(known[:, 0], torch.tensor(peer.decision_function(inputs), dtype=torch.float32), atol=2e-2)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"hidden": (4,)}, "linear head"),
        ({"objective": "warp"}, "objective is 'warp'"),
        ({"ema": 0.9}, "remove ema"),
        ({"schedule": "cosine"}, "remove schedule"),
        ({"imbalance": "class-weights"}, "remove imbalance"),
        ({"epochs": 5}, "remove epochs"),
        ({"optimizer": {"name": "lbfgs", "lr": 0.5}}, "remove optimizer.lr"),
    ],
)
def test_what_has_no_meaning_without_steps_is_refused(settings: dict[str, Any], word: str) -> None:
    target = np.eye(3, dtype=int)[Y] if "objective" in settings else Y
    with pytest.raises(ShortlistError, match=word):
        trained(X, target, **settings)


@pytest.mark.parametrize(("strength", "chooses"), [(0.3, 90), (None, 90), (None, 60)])
def test_sparse_features_stay_sparse(strength: float | None, chooses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a share of them chooses the strength: all of them are fitted."""

    def whole(*_: Any) -> None:
        raise AssertionError("whole rows are made")

    monkeypatch.setattr("shortlist.training.at_once.features_of", whole)
    random = np.random.default_rng(0)
    rows = sparse.random(90, 2000, 0.02, format="csr", dtype=np.float32, random_state=0)
    classes = random.integers(0, 3, 90)
    rows = sparse.csr_matrix(rows + sparse.csr_matrix((np.ones(90, "f4"), (range(90), classes)), (90, 2000)))
    backbone: Any = build_backbone("identity", in_shape=(2000,))
    objective = build("cross-entropy", in_features=2000, num_labels=3)
    data = Dataset(rows, torch.as_tensor(classes), ("a", "b", "c"))
    assert data.has_sparse_inputs
    if chooses < 90:
        monkeypatch.setattr(at_once, "_LONG_SEARCH", 3 * rows.nnz - 1)
        monkeypatch.setattr(at_once, "_SEARCHED", 3 * rows.nnz * chooses / 90)
    asked = []

    def choose(*given: Any, **options: Any) -> Any:
        asked.append(given[1].shape)
        return choose_head(*given, **options)

    monkeypatch.setattr(at_once, "choose_head", choose)
    settings = TrainSettings(optimizer={"name": "lbfgs", "weight_decay": strength})
    record = train(backbone, objective, data, None, settings).records[0]
    assert asked == [(chooses, 2000)]
    peer = LogisticRegression(C=1 / record["weight_decay"], max_iter=10_000, tol=1e-8).fit(rows, classes)
    with torch.no_grad():
        scores = objective.eval()(torch.from_numpy(rows.toarray()))
    expected = torch.from_numpy(record["stretch"] * peer.decision_function(rows)).float()
    if strength is not None:
        torch.testing.assert_close(scores.softmax(1), expected.softmax(1), atol=2e-3, rtol=0)
    assert (scores.argmax(1) == expected.argmax(1)).float().mean() > 0.95
