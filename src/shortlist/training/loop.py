"""The training loop: the same for the command line and for SetClassifier, on one device or many.

Whatever is random in an epoch is drawn from the seed and the epoch's number alone, and the learning rate follows from
how far training has come. What is left to remember between epochs are the weights and the optimizer's state (within
an epoch more: `shortlist.training.checkpoints`): a run that stops anywhere and is resumed goes on to the same bits.
"""

from __future__ import annotations

import logging
import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from shortlist import device_flags
from shortlist.data import Dataset
from shortlist.distributed import gathered
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import PathLike
from shortlist.metrics.named import Metric, find_metric, usual_metrics, with_k
from shortlist.objectives import Objective, default_monitor
from shortlist.objectives.imbalance import rarity
from shortlist.tasks import task_of
from shortlist.training.at_once import check_at_once, fit_at_once
from shortlist.training.auto_settings import settled, steps_per_epoch
from shortlist.training.average import WeightAverage
from shortlist.training.batches import augmentation, batches, grouped, mixed_seed, order_of
from shortlist.training.checkpoints import Checkpoints, Kept, Standing
from shortlist.training.concerns import rose, rose_at_once
from shortlist.training.history import History, Record
from shortlist.training.learner import Learner, encoding, features_of
from shortlist.training.linear_head import Choice
from shortlist.training.loading import loaded
from shortlist.training.loggers import log, logged, make_loggers
from shortlist.training.one_process import OneProcess
from shortlist.training.optimizers import make_optimizer
from shortlist.training.schedules import rate_at
from shortlist.training.settings import TrainSettings
from shortlist.training.validation import validated

if TYPE_CHECKING:
    from shortlist.training.one_process import Engine


class Progress(Protocol):
    """What hears how training goes."""

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None: ...
    def step(self, epoch: int, step: int, steps: int, loss: Tensor) -> None: ...
    def epoch(self, record: Record) -> None: ...
    def end(self) -> None: ...


class Quiet:
    """Progress that shows nothing."""

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None: ...
    def step(self, epoch: int, step: int, steps: int, loss: Tensor) -> None: ...
    def epoch(self, record: Record) -> None: ...
    def end(self) -> None: ...


def train(
    backbone: nn.Module,
    objective: Objective,
    train_set: Dataset,
    val_set: Dataset | None,
    settings: TrainSettings,
    *,
    run: Checkpoints | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    fabric: Engine | None = None,
    choice: Choice | None = None,
    allow_import: Sequence[str] = (),
) -> History:
    """Train backbone and objective in place; at the end they hold the best epoch's weights (the last without
    validation data). With a ``run``, every epoch is saved there and ``resume`` continues after the last saved one.
    ``choice``: how the head is fitted at once, where that is chosen already. ``allow_import``: the modules whose code
    may run, where a metric is named as ``module:function``.

    >>> from shortlist.models import build_backbone
    >>> from shortlist.objectives import build
    >>> features, target = torch.eye(4).repeat(8, 1), torch.arange(4).repeat(8)
    >>> data = Dataset(features, target, tuple("abcd"))
    >>> backbone = build_backbone("identity", in_shape=(4,))
    >>> objective = build("cross-entropy", in_features=4, num_labels=4)
    >>> history = train(backbone, objective, data, data, TrainSettings(epochs=5, batch_size=8))
    >>> history.metric, history.best["topk-accuracy@1"]
    ('topk-accuracy@1', 1.0)
    """
    if not len(train_set):
        raise ShortlistError("the training data has no examples")
    if bool((train_set.target == -1).all()):
        raise ShortlistError("no label of the training data is known: there is nothing to learn from")
    settings = settled(settings, len(train_set))
    assert settings.epochs is not None
    fabric = make_fabric(settings) if fabric is None else fabric
    progress = progress if progress is not None and fabric.is_global_zero else Quiet()
    learner = Learner(backbone, objective)
    at_once = settings.optimizer.name == "lbfgs"
    if at_once:
        check_at_once(learner, settings)
    train_set = train_set.normalised_for(backbone)
    if train_set.side is not None:
        objective.see_side_labels(train_set.side)
    objective.balance(settings.imbalance, train_set.target)
    metric, metrics = choose_metrics(objective, train_set, val_set, settings, allow_import)
    answers = None if val_set is None else answers_of(val_set, train_set)
    history, best_weights, warned = History(metric), None, False

    with ExitStack() as during:
        # PyTorch's generators are the loop's inside, and the caller's again afterwards
        during.enter_context(torch.random.fork_rng([fabric.device] if fabric.device.type == "cuda" else []))
        during.callback(progress.end)
        during.enter_context(frozen(backbone, settings.optimizer.backbone_lr == 0))
        if train_set.has_sparse_inputs:
            learner.expect_sparse(train_set.in_features)
        # a fused step scales the gradients of half precision back itself: too late for clipping
        fused = settings.optimizer.clip is None or settings.precision != "16-mixed"
        optimizers = () if at_once else (make_optimizer(backbone, objective, settings.optimizer, fused=fused),)
        # objectives keep their own buffers equal, and ROLE's table is too large to send with every batch
        buffers = [name for name, _ in learner.named_buffers()]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(learner, buffers)
        model, optimizer = (fabric.setup(learner), None) if at_once else fabric.setup(learner, *optimizers)
        average = WeightAverage(learner, settings.ema) if settings.ema else None
        during.enter_context(encoding(learner, train_set, fabric.autocast))
        kept = Kept(fabric, learner, optimizer, average, run, settings.checkpoint_minutes)
        standing = kept.restore(history) if resume else Standing(seconds=0.0 if choice is None else choice.seconds)
        during.enter_context(logged(fabric, history.records))
        progress.start(len(history.records), settings.epochs, metric)

        while not history.is_over(settings.epochs, settings.stop.patience):
            epoch, standing.started = len(history.records), time.perf_counter() - standing.seconds
            torch.manual_seed(mixed_seed(settings.seed, epoch, fabric.global_rank))
            if at_once:
                done = fit_at_once(learner, train_set, settings, choice)
                loss = first = done["loss"]
            else:
                loss, lr = train_epoch(kept, model, train_set, settings, history, standing, progress)
                done, first = {"loss": loss, "lr": lr}, standing.first
            record: Record = {"epoch": epoch + 1, **done}
            share_buffers(backbone)
            with average.in_place() if average is not None else nullcontext():
                if average is not None:
                    share_buffers(backbone)  # their averages
                if val_set is not None:
                    record |= validated(fabric, learner, val_set, answers, metrics, train_set)
                record["seconds"] = round(time.perf_counter() - standing.started, 3)
                is_best = history.add(record)
                standing = Standing()
                if run is not None:
                    kept.save_epoch(history)
                elif is_best and (val_set is not None or average is not None):
                    best_weights = learner.weights()
            log(fabric, record)
            progress.epoch(record)
            if not warned and rose(loss, history.records[0]["loss"]):
                warned = warn_that_it_rose(history.records[0]["loss"], "epoch 1", history, settings)
            if epoch == 0 and rose_at_once(loss, first, steps_per_epoch(settings, len(train_set))):
                warned = warn_that_it_rose(first, "the first step", history, settings)

    if run is not None:
        learner.load_state_dict(run.weights("best"))
    elif best_weights is not None:
        learner.load_state_dict(best_weights)
    return history


def train_epoch(
    kept: Kept,
    model: Any,
    dataset: Dataset,
    settings: TrainSettings,
    history: History,
    standing: Standing,
    progress: Progress,
) -> tuple[float, float]:
    """One pass over the data, or what is left of it; the mean loss per example, and the learning rate at the end."""
    fabric, average = kept.fabric, kept.average
    epoch, watched = len(history.records), history.values()
    objective: Objective = model.module.objective
    model.train()
    if settings.optimizer.backbone_lr == 0:
        model.module.backbone.eval()
    assert settings.epochs is not None
    assert settings.batch_size is not None
    objective.start_epoch(epoch, settings.epochs)
    order = order_of(len(dataset), settings.seed, epoch)
    if settings.imbalance == "balanced-sampling":
        order = drawn(rarity(dataset.target, dataset.num_labels), settings.seed, epoch)
    groups = grouped(batches(order, settings.batch_size, fabric.world_size), settings.accumulate)
    mine = [[rows[fabric.global_rank :: fabric.world_size] for rows in group] for group in groups]
    seen_as, change = augmentation(settings, dataset, epoch)
    coming = [rows for group in mine[standing.step :] for rows in group]
    ready = loaded(seen_as, coming, fabric.device, settings.workers)
    changing = any(weight.requires_grad for weight in model.module.backbone.parameters())

    # in one process of full precision Fabric's wrappers only pass on what they are given
    plain = fabric.world_size == 1 and fabric.strategy.precision.precision == "32-true"
    compute, backward = (model.module, Tensor.backward) if plain else (model, fabric.backward)
    optimizer = kept.optimizer.optimizer if plain else kept.optimizer

    total, seen = torch.tensor(standing.total, device=fabric.device), standing.seen
    first = torch.tensor(standing.first, device=fabric.device)
    standing.go_on(objective, fabric.device)
    for step, group in enumerate(mine[standing.step :], start=standing.step):
        length = 1 / len(mine)
        rate = rate_at(settings.schedule, epoch + step * length, settings.epochs, length, watched)
        lr = settings.optimizer.lr * rate
        for part in optimizer.param_groups:
            part["lr"] = lr * part["speed"]
        wanted = objective.wanted_rows(changing)
        if wanted is not None:
            objective.remember(gathered_features(fabric, model.module, dataset, wanted.cpu()))
        in_group = sum(map(len, group))
        for number, rows in enumerate(group):
            inputs, target = next(ready)
            with fabric.no_backward_sync(model) if number + 1 < len(group) else nullcontext():
                loss = compute(change(inputs, rows), target, rows.to(fabric.device))
                backward(loss if len(group) == 1 else loss * (len(rows) / in_group))
            del inputs, target  # the next batch has their memory, which is still in the processor's cache
            if not seen:
                first.copy_(loss.detach())
            total.add_(loss.detach(), alpha=len(rows))
            seen += len(rows)
        if settings.optimizer.clip is not None:
            fabric.clip_gradients(model, optimizer, max_norm=settings.optimizer.clip, error_if_nonfinite=False)
        optimizer.step()
        optimizer.zero_grad()
        objective.after_step(lr)
        if average is not None:
            average.update()
        if step + 1 < len(mine) and kept.is_due(step):
            mean_of(fabric, total, seen, epoch, lr)  # nobody goes on from what is not finite
            seconds = time.perf_counter() - standing.started
            kept.save_part(epoch, Standing(step + 1, float(total), seen, seconds, float(first)))
        progress.step(epoch, step, len(mine), loss.detach())
    standing.first = mean_of(fabric, first, 1, epoch, lr)
    return mean_of(fabric, total, seen, epoch, lr), lr


def mean_of(fabric: Engine, total: Tensor, seen: int, epoch: int, lr: float) -> float:
    """The mean loss over all processes, or an error: it is not finite, or a device was given wrong values."""
    device_flags.check(total.device)  # which is waited for here in any case
    mean: Any = fabric.all_reduce(total / seen, reduce_op="mean")
    if not math.isfinite(mean):
        raise ShortlistError(
            f"the loss became {float(mean)} in epoch {epoch + 1}: lower optimizer.lr (it was {lr:g}), "
            f"or look for extreme values in the inputs (shortlist data describe)"
        )
    return float(mean)


def warn_that_it_rose(start: float, when: str, history: History, settings: TrainSettings) -> bool:
    last = history.records[-1]
    message = (
        f"the loss rose from {start:.3g} in {when} to {last['loss']:.3g} in epoch {last['epoch']}: lower optimizer.lr "
        f"(it is {settings.optimizer.lr:g}), or scale the features"
    )
    warnings.warn(message, ShortlistWarning, stacklevel=3)
    return True


def drawn(weights: Tensor, seed: int, epoch: int) -> Tensor:
    """As many examples as there are, drawn by their weights, with replacement: the same on every process."""
    if not bool((weights > 0).any()):
        raise ShortlistError("imbalance: balanced-sampling draws examples by their labels, and none is known")
    generator = torch.Generator().manual_seed(mixed_seed(seed, epoch, 1 << 20))
    places = torch.rand(len(weights), dtype=torch.float64, generator=generator)
    sums = weights.cumsum(0)
    return torch.searchsorted(sums, places * sums[-1], right=True).clamp(max=int((weights > 0).nonzero()[-1]))


# ---- scores and metrics


def choose_metrics(
    objective: Objective,
    train_set: Dataset,
    val_set: Dataset | None,
    settings: TrainSettings,
    allow_import: Sequence[str] = (),
) -> tuple[str | None, list[Metric]]:
    """The metric that chooses the best epoch, and all metrics of an epoch."""
    if val_set is None:
        if settings.stop.patience is not None or settings.stop.metric is not None:
            raise ShortlistError("early stopping needs validation data: set data.validation, or remove stop")
        if settings.schedule.name == "plateau":
            raise ShortlistError(
                "the plateau schedule watches a metric on validation data: set data.validation, or choose another one"
            )
        return None, []
    k = getattr(objective.config, "k", None)
    labels, kind = objective.num_labels, train_set.kind
    task = task_of(kind)
    if task is not None:
        monitor, usual = objective.monitor, task.epoch_metrics()
    else:
        several = not val_set.is_single and bool(((val_set.target == 1).sum(1) > 1).any())
        monitor = default_monitor(type(objective), train_set.target)
        usual = usual_metrics(not several, labels, k)
    watched = settings.stop.metric or with_k(monitor, k, labels, allow_import)
    names = dict.fromkeys([watched, *(settings.metrics or usual)])
    return watched, [find_metric(name, labels, kind, allow_import=allow_import) for name in names]


def answers_of(dataset: Dataset, train_set: Dataset) -> Any:
    """What the scores of the data are measured against, for a model of this training set."""
    task = task_of(dataset.kind)
    return dataset.answers if task is None else task.answers(dataset, train_set.input_facts() or {})


def gathered_features(fabric: Engine, learner: Learner, dataset: Dataset, rows: Tensor) -> Tensor:
    """The features of these examples, the same on every process, each process computing its share."""
    if fabric.world_size == 1:
        return features_of(learner, dataset, rows, context=fabric.autocast)
    share_buffers(learner.backbone)
    mine = rows.tensor_split(fabric.world_size)[fabric.global_rank]
    return torch.cat(gathered(features_of(learner, dataset, mine, context=fabric.autocast), fabric.world_size))


def share_buffers(backbone: nn.Module) -> None:
    """Give every process the first one's batch-norm statistics (an objective keeps its own state equal)."""
    if dist.is_available() and dist.is_initialized():
        for buffer in backbone.buffers():
            dist.broadcast(buffer, 0)


# ---- devices and randomness


def make_fabric(settings: TrainSettings, folder: PathLike | None = None) -> Engine:
    """The engine for these devices and this precision; with several devices, call ``launch()`` on it. Its loggers write
    below the folder."""
    machines = int(os.environ.get("GROUP_WORLD_SIZE", "1"))  # torchrun tells; devices are those of all machines
    if settings.devices % machines:
        raise ShortlistError(f"devices: {settings.devices} processes cannot be shared equally by {machines} machines")
    on_cpu = settings.accelerator == "cpu" or (settings.accelerator == "auto" and not torch.accelerator.is_available())
    if on_cpu and settings.devices == 1 and settings.precision == "32-true" and not settings.loggers:
        return OneProcess()
    from lightning_fabric import Fabric  # takes seconds to import: only who needs it waits for it

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    return Fabric(
        accelerator=settings.accelerator,
        devices=settings.devices // machines,
        num_nodes=machines,
        strategy="ddp" if settings.devices > 1 else "auto",
        precision=settings.precision,
        loggers=make_loggers(settings.loggers, folder),
    )


@contextmanager
def frozen(backbone: nn.Module, still: bool) -> Iterator[None]:
    """Within this block no weight of the backbone wants a gradient, where it is to stand still."""
    trained = [weight for weight in backbone.parameters() if weight.requires_grad] if still else []
    for weight in trained:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in trained:
            weight.requires_grad_(True)
