"""Hugging Face's Trainer itself, on a model of one layer: losses, metrics, and sets that stay with the checkpoint."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

import shortlist as sl
from shortlist.loops import TrainerSets, rules_in, trainer_loss, trainer_metrics

ROWS, WIDTH, LABELS = 48, 6, 5
X = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
Y = X[:, :LABELS].argmax(1)
INDEX_LOSSES: list[nn.Module] = [
    sl.nn.SmoothTopKLoss(k=2), sl.nn.TopKHingeLoss(k=2), sl.nn.NoisedTopKLoss(k=2, n_samples=0), sl.nn.LMLLoss(k=2),
    sl.nn.TruncatedEntropyLoss(k=2), sl.nn.AssumeNegativeLoss(), sl.nn.ExpectedPositiveLoss(k=2),
]  # fmt: skip
MATRIX_LOSSES: list[nn.Module] = [
    sl.nn.BinaryLoss(), sl.nn.AsymmetricLoss(), sl.nn.PartialBinaryLoss(), sl.nn.PartialSelectiveLoss(),
    sl.nn.TwoWayLoss(), sl.nn.MultilabelSoftmaxLoss(), sl.nn.LSEPLoss(), sl.nn.WARPLoss(exact=True), sl.nn.RMLLoss(),
]  # fmt: skip


class Linear(nn.Module):
    """What the Trainer takes for a model: named inputs, named outputs."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = nn.ModuleList(nn.Linear(WIDTH, LABELS) for _ in range(heads))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Any]:
        made = [head(x) for head in self.heads]
        return {"logits": made[0]} if len(made) == 1 else {"logits": tuple(made)}


def examples(labels: Tensor, rows: int = ROWS) -> list[dict[str, Tensor]]:
    return [{"x": x, "labels": y} for x, y in zip(X[:rows], labels[:rows], strict=True)]


def trainer(folder: Path, loss: Callable[..., Tensor], labels: Tensor, **options: Any) -> Trainer:
    more = {name: options.pop(name) for name in ("compute_metrics", "callbacks") if name in options}
    settings = {
        "max_steps": 1, "per_device_train_batch_size": 8, "learning_rate": 0.1, "logging_steps": 1, "report_to": [],
        "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "dataloader_pin_memory": False,
        "max_grad_norm": 0,
    }  # fmt: skip
    return Trainer(
        Linear(options.pop("heads", 1)),
        TrainingArguments(str(folder), **{**settings, **options}),
        train_dataset=examples(labels, 24),
        eval_dataset=examples(labels),
        compute_loss_func=trainer_loss(loss),
        **more,
    )


def first_step(folder: Path, loss: Callable[..., Tensor], labels: Tensor, **options: Any) -> tuple[float, Tensor]:
    """The logged loss of one step over 24 rows, and the weights after it."""
    made = trainer(folder, loss, labels, **options)
    made.train()
    logged = [entry["loss"] for entry in made.state.log_history if "loss" in entry]
    return logged[0], made.model.heads[0].weight.detach()


def whole(loss: Callable[..., Tensor], labels: Tensor) -> float:
    with torch.no_grad():
        return float(loss(Linear()(X[:24])["logits"], labels[:24]))


@pytest.mark.parametrize("loss", [sl.nn.SmoothTopKLoss(k=2), sl.nn.LSEPLoss()], ids=["indices", "matrix"])
def test_three_batches_of_a_step_are_one_batch(loss: nn.Module, tmp_path: Path) -> None:
    """Gradient accumulation changes neither the logged loss nor the step; unknown rows make the batches unequal."""
    if isinstance(loss, sl.nn.SmoothTopKLoss):
        labels = Y.clone()
        labels[[0, 1, 2, 9]] = -100
    else:
        labels = torch.nn.functional.one_hot(Y, LABELS).float()
    at_once, weights = first_step(tmp_path / "one", loss, labels, per_device_train_batch_size=24, optim="sgd")
    apart, same = first_step(tmp_path / "three", loss, labels, gradient_accumulation_steps=3, optim="sgd")
    assert at_once == pytest.approx(whole(loss, labels), abs=1e-4)
    assert apart == pytest.approx(at_once, abs=1e-4)
    torch.testing.assert_close(same, weights, rtol=1e-4, atol=1e-6)


def test_two_heads_train_with_average_k(tmp_path: Path) -> None:
    made = trainer(tmp_path, sl.nn.AverageKLoss(k=2), Y, heads=2)
    before = [head.weight.detach().clone() for head in made.model.heads]
    made.train()
    assert all(not torch.equal(head.weight, old) for head, old in zip(made.model.heads, before, strict=True))
    assert "eval_topk-accuracy@1" in trainer(
        tmp_path, sl.nn.AverageKLoss(k=2), Y, heads=2, compute_metrics=trainer_metrics()
    ).evaluate()


@pytest.mark.parametrize("loss", [*INDEX_LOSSES, *MATRIX_LOSSES], ids=lambda loss: type(loss).__name__)
def test_every_loss_has_a_loss_function_and_metrics(loss: nn.Module) -> None:
    labels = Y if loss in INDEX_LOSSES else torch.nn.functional.one_hot(Y, LABELS).float()
    logits = Linear()(X)["logits"]
    outputs = SimpleNamespace(logits=logits) if loss in INDEX_LOSSES else (logits,)
    parts = [trainer_loss(loss)(outputs, labels, num_items_in_batch=labels.numel() * times) for times in (1, 4)]
    torch.testing.assert_close(parts[0], loss(logits, labels))
    torch.testing.assert_close(parts[0], 4 * parts[1])
    found = trainer_metrics()(SimpleNamespace(predictions=logits.detach().numpy(), label_ids=labels.numpy()))
    assert found
    assert all(0 <= value <= 1 for value in found.values())


def test_sets_are_logged_and_stay_with_the_best_checkpoint(tmp_path: Path) -> None:
    sets = TrainerSets({"average-k": sl.sets.AverageK(2), "conformal": sl.sets.Conformal(0.2)}, metrics=["recall@2"])
    made = trainer(
        tmp_path, sl.nn.SmoothTopKLoss(k=2), Y, compute_metrics=sets.compute_metrics, callbacks=[sets], max_steps=6,
        eval_strategy="steps", save_strategy="steps", eval_steps=3, save_steps=3, load_best_model_at_end=True,
        metric_for_best_model="recall@2",
    )  # fmt: skip
    made.train()
    logged = [entry for entry in made.state.log_history if "eval_recall@2" in entry]
    assert len(logged) == 2
    assert all(1 < entry["eval_average-k/size"] < 3 for entry in logged)
    assert all(0.5 < entry["eval_conformal/coverage"] <= 1 for entry in logged)
    with torch.no_grad():
        scores = made.model(X)["logits"]
    assert sets.rules["average-k"].predict(scores).sizes.mean() == 2  # exactly, on its own rows: it is the best model's
    best = made.state.best_model_checkpoint
    for folder in (best, tmp_path):
        kept = rules_in(folder)
        assert sorted(kept) == ["average-k", "conformal"]
        assert kept["average-k"].predict(scores) == sets.rules["average-k"].predict(scores)
    other = next(path for path in tmp_path.glob("checkpoint-*") if str(path) != best)
    assert rules_in(other)["average-k"].to_json() != sets.rules["average-k"].to_json()


def test_training_without_an_evaluation_says_that_nothing_is_calibrated(tmp_path: Path) -> None:
    sets = TrainerSets()
    made = trainer(tmp_path, sl.nn.SmoothTopKLoss(k=2), Y, compute_metrics=sets.compute_metrics, callbacks=[sets])
    with pytest.warns(sl.ShortlistWarning, match="not calibrated for the weights at the end"):
        made.train()
    assert not sets.rules
    made.evaluate()
    sets.save(tmp_path)
    assert sorted(rules_in(tmp_path)) == ["average-k", "conformal"]


def test_an_output_without_logits_is_refused_with_what_to_do() -> None:
    with pytest.raises(sl.ShortlistError, match=r"no logits: it is dict; name them with scores="):
        trainer_loss(sl.nn.SmoothTopKLoss(k=2))({"hidden": X}, Y)
    named = trainer_loss(sl.nn.SmoothTopKLoss(k=2), scores=lambda outputs: outputs["hidden"])
    assert named({"hidden": X[:, :LABELS]}, Y) == sl.functional.smooth_topk_loss(X[:, :LABELS], Y, 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: trainer_loss(None), "a function or a module"),  # type: ignore[arg-type]
        (lambda: trainer_loss(sl.nn.SmoothTopKLoss(k=2, reduction="sum")), "must be a mean"),
        (lambda: trainer_metrics(["topk-acuracy@2"]), "did you mean 'topk-accuracy'"),
        (lambda: TrainerSets(metrics=["topk-acuracy@2"]), "did you mean 'topk-accuracy'"),
        (lambda: trainer_metrics("topk-accuracy@2"), "a list of names"),
        (lambda: TrainerSets(k=-1), "k must be above 0, got -1"),
        (lambda: rules_in("nowhere"), "nowhere has no folder 'rules'"),
    ],
)
def test_what_is_wrong_is_said_before_the_training(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(sl.ShortlistError, match=said):
        make()


def test_a_loss_per_row_is_refused_and_a_step_without_known_labels_costs_nothing() -> None:
    def per_row(scores: Tensor, target: Tensor) -> Tensor:
        return sl.functional.smooth_topk_loss(scores, target, k=2, reduction="none")

    outputs, unknown = {"logits": torch.randn(3, LABELS)}, torch.full((3,), -100)
    with pytest.raises(sl.ShortlistError, match=r"one number, a mean over the rows, got shape \(3,\)"):
        trainer_loss(per_row)(outputs, torch.tensor([0, 1, 2]))
    for count in (0, torch.tensor(0)):
        assert trainer_loss(sl.nn.SmoothTopKLoss(k=2))(outputs, unknown, num_items_in_batch=count) == 0


def test_shares_of_votes_are_judged_as_the_labels_that_people_gave() -> None:
    draw = torch.Generator().manual_seed(2)
    given = torch.randint(0, LABELS, (ROWS, 4), generator=draw)  # by four people each
    votes = torch.zeros(ROWS, LABELS).scatter_add_(1, given, torch.ones(ROWS, 4))
    shares, scores = sl.labels.from_votes(votes), torch.randn(ROWS, LABELS, generator=draw)
    metrics = trainer_metrics(["topk-accuracy@2", "average-k-accuracy@1.5"])
    found = metrics(SimpleNamespace(predictions=scores, label_ids=shares))
    each = metrics(SimpleNamespace(predictions=scores.repeat_interleave(4, 0), label_ids=given.flatten()))
    assert found == pytest.approx(each)

    sets = TrainerSets()
    logged = sets.compute_metrics(SimpleNamespace(predictions=scores, label_ids=shares.numpy()))
    conformal = sl.sets.Conformal(0.1, labels="votes").fit(scores[::2], votes[::2]).predict(scores[1::2])
    assert sets.rules["conformal"].labels == "votes"  # type: ignore[attr-defined]
    assert logged["conformal/coverage"] == float(sl.metrics.functional.vote_coverage(conformal, votes[1::2]))
    with pytest.raises(sl.ShortlistError, match="no meaning for shares of votes"):
        trainer_metrics(["mean-average-precision"])(SimpleNamespace(predictions=scores, label_ids=shares))
