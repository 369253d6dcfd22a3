"""Loss and metrics for Hugging Face's ``Trainer``: ``compute_loss_func`` and ``compute_metrics``. They need none of its
packages: they are plain functions."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.checks import IGNORE_INDEX
from shortlist.distributed import sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.links import usual_link
from shortlist.loops.calibration import are_shares, is_single, known_rows
from shortlist.metrics.functional import vote_coverage
from shortlist.metrics.named import Metric, find_metric, usual_metrics
from shortlist.sets import AverageK, TopK


def scores_of(outputs: Any) -> Any:
    """The scores in what a model returns: its ``logits``, or its only (first) value."""
    if isinstance(outputs, Tensor):
        return outputs
    logits = outputs.get("logits") if hasattr(outputs, "get") else getattr(outputs, "logits", None)
    if logits is None:
        try:
            logits = outputs[0]
        except (LookupError, TypeError):
            raise ShortlistError(
                f"the model's output has no logits: it is {type(outputs).__name__}; name them with scores=..., a "
                "function of the output"
            ) from None
    return logits


def trainer_loss(loss: Callable[..., Tensor], scores: Callable[[Any], Any] = scores_of) -> Callable[..., Tensor]:
    """A loss, function or module, as ``Trainer(compute_loss_func=...)`` wants it.

    The ``Trainer`` adds up the losses of the batches of one step (``gradient_accumulation_steps``) and tells how many
    labels these have together. Each batch's mean therefore counts by its share of them: the sum is the mean over the
    step, and what is logged does not grow with the number of batches.

    ``scores`` finds the scores in the model's output; where it gives several (``average_k_loss`` has two heads), the
    loss is called with all of them and the target. Labels of -100 and -1 are unknown; the ``Trainer`` counts those of
    -1, so write -100 where the weights of the batches are to be exact.

    >>> import shortlist as sl
    >>> compute = trainer_loss(sl.nn.SmoothTopKLoss(k=2))
    >>> outputs, labels = {"logits": torch.tensor([[2.0, 1.0, 0.5, -1.0]])}, torch.tensor([0])
    >>> compute(outputs, labels), compute(outputs, labels, num_items_in_batch=2)
    (tensor(0.7423), tensor(0.3711))
    """
    if not callable(loss):
        raise ShortlistError(f"loss must be a function or a module, such as nn.SmoothTopKLoss(), got {loss!r}")
    reduction = getattr(loss, "reduction", "mean")
    if reduction != "mean":
        raise ShortlistError(f"the loss must be a mean, for batches to be weighed: its reduction is {reduction!r}")

    def compute_loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        found = scores(outputs)
        value = loss(*found, labels) if isinstance(found, tuple | list) else loss(found, labels)
        if value.ndim:
            raise ShortlistError(f"the loss must be one number, a mean over the rows, got shape {tuple(value.shape)}")
        if num_items_in_batch is None:
            return value
        world = world_size(None)
        here = sum_over_processes(labels.ne(IGNORE_INDEX).sum(), world) / world  # as the Trainer counts them
        counted = torch.as_tensor(num_items_in_batch, device=value.device)  # a tensor is not looked at: nothing waits
        return value * (here / counted.clamp(min=1))  # with no known label the loss is 0

    return compute_loss


def trainer_metrics(
    names: Sequence[str] = (), *, k: float | None = None, link: str | None = None
) -> Callable[[Any], dict[str, float]]:
    """Metrics as ``Trainer(compute_metrics=...)`` wants them: by name, such as "topk-accuracy@5"; without names top-1,
    top-k and average-k accuracy for class indices, and mean average precision for a label matrix. With shares of votes
    the two accuracies are those of a label that is drawn by them.

    >>> from types import SimpleNamespace
    >>> shown = SimpleNamespace(predictions=torch.eye(3), label_ids=torch.tensor([0, 1, -100]))
    >>> trainer_metrics(["topk-accuracy@1"])(shown)
    {'topk-accuracy@1': 1.0}
    """
    if isinstance(names, str):
        raise ShortlistError(f'metrics must be a list of names, such as ["topk-accuracy@5"], got {names!r}')
    if k is not None and not k > 0:
        raise ShortlistError(f"k must be above 0, got {k}")
    for name in names:  # a wrong one is told before the training
        find_metric(name, place="metrics")

    def compute_metrics(prediction: Any) -> dict[str, float]:
        scores, target = predicted(prediction)
        single = is_single(target)
        chosen = names or usual_metrics(single, scores.shape[1], k)
        metrics = [find_metric(name, scores.shape[1], "labels") for name in chosen]
        judge = _on_shares if are_shares(target) else Metric.__call__
        return {metric.name: judge(metric, scores, target, link or usual_link(single)) for metric in metrics}

    return compute_metrics


def _on_shares(metric: Metric, scores: Tensor, shares: Tensor, link: Any) -> float:
    """The accuracy for a label that is drawn by the shares of its row."""
    base = metric.name.partition("@")[0]
    if metric.k is None or base not in ("topk-accuracy", "average-k-accuracy"):
        raise ShortlistError(
            f"the metric {metric.name!r} has no meaning for shares of votes: topk-accuracy and average-k-accuracy have"
        )
    rule = TopK(int(metric.k)) if base == "topk-accuracy" else AverageK(metric.k, link=link).fit(scores)
    return float(vote_coverage(rule.predict(scores), shares))


def predicted(prediction: Any) -> tuple[Tensor, Tensor]:
    """Scores and target in what the ``Trainer`` has gathered; of several outputs the first has the scores."""
    made = prediction.predictions
    made = made[0] if isinstance(made, tuple | list) else made
    if made is None or prediction.label_ids is None:
        raise ShortlistError("metrics and sets need scores and labels of the evaluation data: the Trainer found none")
    return known_rows(torch.as_tensor(made), torch.as_tensor(prediction.label_ids))
