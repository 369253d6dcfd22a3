"""The training loop against a loop written by hand, and its promises: seeds, resuming, stopping, accumulating."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from shortlist.data import Dataset
from shortlist.models import build_backbone
from shortlist.objectives import OBJECTIVES, build
from shortlist.runs.config import parse_config
from shortlist.runs.run import Run
from shortlist.training.batches import batches, order_of
from shortlist.training.history import History
from shortlist.training.learner import Learner, features_of, score
from shortlist.training.loop import train
from shortlist.training.settings import TrainSettings

ROWS, FEATURES, LABELS = 120, 6, 5
CONFIG = parse_config("data: {train: {reader: ambiguous-numbers}}")


def some_data(kind: str = "indices") -> Dataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(ROWS, FEATURES, generator=generator)
    scores = inputs @ torch.randn(FEATURES, LABELS, generator=torch.Generator().manual_seed(99))
    target: Tensor = scores.argmax(1)
    if kind == "label-matrix":
        target = (scores > 1).to(torch.int8)
        target[torch.rand(ROWS, LABELS, generator=generator) < 0.3] = -1
    return Dataset(inputs, target, tuple("abcde"))


def chance() -> Dataset:
    """Labels that cannot be learned: no epoch is better than another but by luck."""
    data = some_data()
    return Dataset(
        data.inputs, data.target[torch.randperm(ROWS, generator=torch.Generator().manual_seed(7))], tuple("abcde")
    )


def some_model() -> Learner:
    """Linear, with cross-entropy."""
    torch.manual_seed(3)
    body = build_backbone("identity", in_shape=(FEATURES,))
    return Learner(body, build("cross-entropy", in_features=FEATURES, num_labels=LABELS))


def deep_model(objective: str = "cross-entropy", data: Dataset | None = None) -> Learner:
    """With everything that has a state: batch norm, dropout, and the objective's own."""
    data = data or some_data()
    torch.manual_seed(3)
    body = build_backbone("mlp", in_shape=(FEATURES,), hidden=(8,), dropout=0.5, batch_norm=True)
    options = {"k": 2} if "k" in OBJECTIVES[objective].Config.__dataclass_fields__ else {}
    return Learner(body, build(objective, options, in_features=8, num_labels=LABELS, train_target=data.target))


def fit(learner: Learner, data: Dataset, val: Dataset | None = None, **settings: Any) -> History:
    settings = {"epochs": 3, "batch_size": 32, "accelerator": "cpu", **settings}
    extra = {name: settings.pop(name) for name in ("run", "resume") if name in settings}
    return train(learner.backbone, learner.objective, data, val, TrainSettings(**settings), **extra)


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_it_computes_what_a_loop_written_by_hand_computes() -> None:
    data, learner = some_data(), some_model()
    weight, bias = (value.clone().requires_grad_() for value in learner.weights().values())
    parts = [{"params": [weight], "weight_decay": 0.01}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(parts, lr=0.2, momentum=0.8, nesterov=True)
    for epoch in range(3):
        for part in optimizer.param_groups:
            part["lr"] = 0.2 * (0.1 if epoch >= 2 else 1.0)
        order = order_of(ROWS, seed=4, epoch=epoch)
        for start in range(0, ROWS, 32):
            rows = order[start : start + 32]
            loss = nn.functional.cross_entropy(data.inputs[rows] @ weight.T + bias, data.target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    fit(
        learner, data, seed=4,
        optimizer={"lr": 0.2, "momentum": 0.8, "weight_decay": 0.01}, schedule={"name": "step", "at": [2]},
    )  # fmt: skip
    for found, expected in zip(learner.weights().values(), (weight, bias), strict=True):
        torch.testing.assert_close(found, expected.detach(), rtol=0, atol=1e-6)


def test_adamw_computes_what_a_loop_written_by_hand_computes() -> None:
    data, learner = some_data(), some_model()
    weight, bias = (value.clone().requires_grad_() for value in learner.weights().values())
    parts = [{"params": [weight], "weight_decay": 0.1}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(parts, lr=0.01)
    for step, rows in enumerate(batches(order_of(ROWS, 0, 0), 32)):
        for part in optimizer.param_groups:
            part["lr"] = 0.01 * 0.5 * (1 + torch.cos(torch.tensor(torch.pi * step / 4, dtype=torch.float64)).item())
        optimizer.zero_grad()
        nn.functional.cross_entropy(data.inputs[rows] @ weight.T + bias, data.target[rows]).backward()
        optimizer.step()
    fit(
        learner, data, epochs=1,
        optimizer={"name": "adamw", "lr": 0.01, "weight_decay": 0.1}, schedule={"name": "cosine"},
    )  # fmt: skip
    for found, expected in zip(learner.weights().values(), (weight, bias), strict=True):
        torch.testing.assert_close(found, expected.detach(), rtol=0, atol=1e-6)


def test_accumulated_batches_step_like_one_large_batch() -> None:
    data = some_data()
    large, small = some_model(), some_model()
    fit(large, data, batch_size=96)
    fit(small, data, batch_size=32, accumulate=3)  # 32 + 32 + 32, then the last 24 alone in both
    for found, expected in zip(small.weights().values(), large.weights().values(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not() -> None:
    data = some_data()
    once, again, other = (deep_model() for _ in range(3))
    fit(once, data, seed=1)
    torch.rand(7)  # what the caller draws in between does not matter
    fit(again, data, seed=1)
    fit(other, data, seed=2)
    assert same(once.weights(), again.weights())
    assert not same(once.weights(), other.weights())


def test_the_callers_randomness_is_left_alone() -> None:
    torch.manual_seed(8)
    expected = torch.rand(3)
    learner = deep_model()
    torch.manual_seed(8)
    fit(learner, some_data())
    assert torch.equal(torch.rand(3), expected)


def _target_kind(name: str) -> str:
    accepts = OBJECTIVES[name].accepts
    return "indices" if "indices" in accepts else "label-matrix"


@pytest.mark.parametrize("name", sorted(x for x in OBJECTIVES if x != "imcl" and not x.startswith("scene-")))
def test_every_objective_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    data = some_data(_target_kind(name))
    settings: dict[str, Any] = {"epochs": 4, "optimizer": {"name": "adamw", "lr": 0.01}, "schedule": {"name": "cosine"}}
    whole, stopped, resumed = deep_model(name, data), deep_model(name, data), deep_model(name, data)
    complete = Run.create(tmp_path / "whole", CONFIG, {})
    partly = Run.create(tmp_path / "partly", CONFIG, {})
    history = fit(whole, data, data, run=complete, **settings)
    with pytest.raises(KeyboardInterrupt):
        train(
            stopped.backbone, stopped.objective, data, data,
            TrainSettings(batch_size=32, accelerator="cpu", **settings), run=partly, progress=StopsIn(3),
        )  # fmt: skip
    assert partly.checkpoint["last"] == 2
    again = fit(resumed, data, data, run=partly, resume=True, **settings)
    for which in ("best", "last"):
        assert same(complete.weights(which), partly.weights(which))
    assert without_seconds(again.records) == without_seconds(history.records)
    assert without_seconds(partly.records()) == without_seconds(history.records)
    assert same(whole.weights(), resumed.weights())


class StopsIn:
    """Progress that is interrupted in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.number = epoch

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None: ...

    def step(self, epoch: int, step: int, steps: int, loss: Tensor) -> None:
        if epoch + 1 == self.number and step == 1:
            raise KeyboardInterrupt

    def epoch(self, record: dict[str, Any]) -> None: ...

    def end(self) -> None: ...


class StopsAt(StopsIn):
    """Progress that is interrupted after a given step of all."""

    def __init__(self, step: int) -> None:
        self.left = step

    def step(self, epoch: int, step: int, steps: int, loss: Tensor) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["cross-entropy", "noised-topk", "role", "curriculum", "imcl"])
def test_stopped_in_the_middle_of_an_epoch_it_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    data = some_data(_target_kind(name))
    settings: dict[str, Any] = {
        "epochs": 3, "batch_size": 16, "ema": 0.9, "schedule": "cosine", "optimizer": {"name": "adamw", "lr": 0.01},
    }  # fmt: skip
    complete = Run.create(tmp_path / "whole", CONFIG, {})
    history = fit(deep_model(name, data), data, data, run=complete, **settings)
    partly = Run.create(tmp_path / "partly", CONFIG, {})
    often = TrainSettings(accelerator="cpu", checkpoint_minutes=1e-9, **settings)  # after every step
    for steps in (3, 4, 8):  # of 8 in an epoch: the first stop is at 3, then at 7, then in the middle of the next
        model = deep_model(name, data)
        with pytest.raises(KeyboardInterrupt):
            train(
                model.backbone, model.objective, data, data, often,
                run=partly, progress=StopsAt(steps), resume=True,
            )  # fmt: skip
        part = partly.part()
        assert part is not None
        assert part["processes"][0]["step"] in (3, 7)
    last = deep_model(name, data)
    again = train(last.backbone, last.objective, data, data, often, run=partly, resume=True)
    for which in ("best", "last"):
        assert same(complete.weights(which), partly.weights(which))
    assert without_seconds(again.records) == without_seconds(history.records)
    assert partly.part() is None
    assert len(list((partly.path / "checkpoints").glob("part-*"))) == 0


def test_an_epoch_shared_by_other_processes_starts_again(tmp_path: Path) -> None:
    data, run = some_data(), Run.create(tmp_path / "run", CONFIG, {})
    settings = TrainSettings(accelerator="cpu", epochs=2, batch_size=16, checkpoint_minutes=1e-9)
    model = some_model()
    with pytest.raises(KeyboardInterrupt):
        train(model.backbone, model.objective, data, None, settings, run=run, progress=StopsAt(3))
    part = run.part()
    assert part is not None
    run.save_part({**part, "processes": part["processes"] * 2})  # as if two processes had written it
    resumed, whole = some_model(), some_model()
    train(resumed.backbone, resumed.objective, data, None, settings, run=run, resume=True)
    fit(whole, data, epochs=2, batch_size=16)
    assert same(resumed.weights(), whole.weights())


def without_seconds(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


OPTIMIZERS = ("sgd", "sgd-nesterov", "adam", "adamw", "adamw-rows", "rmsprop")
SCHEDULES: dict[str, dict[str, Any]] = {
    "constant": {},
    "step": {"at": [1, 3]},
    "cosine": {"warm_up": 1.5},
    "plateau": {"patience": 1, "warm_up": 0.5},
}


@pytest.mark.parametrize("ema", [None, 0.9])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_stopped_after_any_epoch_it_resumes_to_the_same_bits(
    optimizer: str, schedule: str, ema: float | None, tmp_path: Path
) -> None:
    data, noise = some_data(), chance()
    settings: dict[str, Any] = {
        "epochs": 4, "batch_size": 64, "ema": ema, "schedule": {"name": schedule, **SCHEDULES[schedule]},
        "optimizer": {"name": optimizer, "clip": 1.0, "weight_decay": 0.01, "backbone_lr": 0.5},
    }  # fmt: skip
    complete = Run.create(tmp_path / "whole", CONFIG, {})
    history = fit(deep_model(), data, noise, run=complete, **settings)
    partly = Run.create(tmp_path / "partly", CONFIG, {})
    for stop_in in (2, 3, 4):  # each time a new process would start here
        model = deep_model()
        with pytest.raises(KeyboardInterrupt):
            train(
                model.backbone, model.objective, data, noise, TrainSettings(accelerator="cpu", **settings),
                run=partly, progress=StopsIn(stop_in), resume=True,
            )  # fmt: skip
        assert partly.checkpoint["last"] == stop_in - 1
    again = fit(deep_model(), data, noise, run=partly, resume=True, **settings)
    for which in ("best", "last"):
        assert same(complete.weights(which), partly.weights(which))
    assert without_seconds(again.records) == without_seconds(history.records)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    run, data = Run.create(tmp_path / "run", CONFIG, {}), some_data()
    fit(some_model(), data, data, run=run)
    before = run.weights("last")
    history = fit(some_model(), data, data, run=run, resume=True)
    assert len(history.records) == 3
    assert same(run.weights("last"), before)


def test_it_ends_with_the_best_epochs_weights() -> None:
    data, noise = some_data(), chance()
    learner = some_model()
    history = fit(learner, data, noise, epochs=8, optimizer={"lr": 3.0})
    values = [record[history.metric] for record in history.records]
    assert history.best_epoch == values.index(max(values)) + 1
    found = float((score(learner, noise).argmax(1) == noise.target).float().mean())
    assert found == pytest.approx(max(values))
    assert values[-1] < max(values)  # or else this test shows nothing


def test_it_stops_after_the_given_patience() -> None:
    history = fit(some_model(), some_data(), chance(), epochs=50, optimizer={"lr": 3.0}, stop={"patience": 2})
    assert history.best_epoch is not None
    assert len(history.records) == history.best_epoch + 2 < 50


def test_patience_counts_over_an_interruption(tmp_path: Path) -> None:
    run, settings = Run.create(tmp_path / "run", CONFIG, {}), {"optimizer": {"lr": 3.0}, "epochs": 50}
    noise = chance()
    expected = fit(some_model(), some_data(), noise, stop={"patience": 2}, **settings)
    fit(some_model(), some_data(), noise, run=run, **{**settings, "epochs": len(expected.records) - 1})
    again = fit(some_model(), some_data(), noise, run=run, resume=True, stop={"patience": 2}, **settings)
    assert without_seconds(again.records) == without_seconds(expected.records)


def test_without_validation_data_the_last_epoch_counts(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {})
    history = fit(some_model(), some_data(), run=run)
    assert history.metric is None
    assert (run.checkpoint["last"], run.checkpoint["best"]) == (3, None)
    assert same(run.weights("best"), run.weights("last"))
    with pytest.raises(ValueError, match="early stopping needs validation data"):
        fit(some_model(), some_data(), stop={"patience": 3})


def test_a_metric_of_choice_decides_and_more_can_be_recorded() -> None:
    data = some_data()
    history = fit(some_model(), data, data, stop={"metric": "recall@2"}, metrics=["ndcg@3"])
    assert history.metric == "recall@2"
    assert set(history.records[0]) == {"epoch", "loss", "lr", "recall@2", "ndcg@3", "seconds"}
    with pytest.raises(ValueError, match="more labels than the 5"):
        fit(some_model(), data, data, stop={"metric": "recall@6"})


def test_a_loss_that_is_not_finite_is_an_error_with_advice() -> None:
    data = some_data()
    wild = Dataset(data.inputs * 1e30, data.target, data.vocabulary)
    with pytest.raises(ValueError, match=r"the loss became (nan|inf) in epoch 1: lower optimizer\.lr"):
        fit(some_model(), wild, optimizer={"lr": 1e10})


def test_what_is_not_finite_within_an_epoch_is_an_error_and_not_saved(tmp_path: Path) -> None:
    data, run = some_data(), Run.create(tmp_path / "run", CONFIG, {})
    data.inputs[order_of(ROWS, 0, 0)[40]] = float("inf")  # in the third step
    settings = TrainSettings(accelerator="cpu", epochs=1, batch_size=16, checkpoint_minutes=1e-9)
    model = some_model()
    with pytest.raises(ValueError, match=r"the loss became (nan|inf) in epoch 1: lower optimizer\.lr"):
        train(model.backbone, model.objective, data, None, settings, run=run)
    part = run.part()
    assert part is not None
    assert part["processes"][0]["step"] == 2


def test_a_frozen_backbone_keeps_its_weights_and_its_batch_norm_statistics() -> None:
    learner = deep_model()
    before = learner.weights()
    fit(learner, some_data(), optimizer={"backbone_lr": 0, "weight_decay": 0.1})
    after = learner.weights()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"objective.head.weight", "objective.head.bias"}
    assert all(weight.requires_grad for weight in learner.parameters())


def test_the_backbone_moves_by_its_share_of_the_rate() -> None:
    whole, slow = deep_model(), deep_model()
    before = whole.weights()
    for learner, speed in ((whole, 1.0), (slow, 0.1)):
        fit(learner, some_data(), epochs=1, batch_size=ROWS, optimizer={"name": "sgd", "backbone_lr": speed})
    fast, little = (model.weights() for model in (whole, slow))
    for name, _ in whole.named_parameters():
        share = 0.1 if name.startswith("backbone") else 1.0
        step = fast[name] - before[name]
        torch.testing.assert_close(little[name] - before[name], share * step, rtol=1e-3, atol=1e-7)


def test_a_long_gradient_is_clipped_to_the_given_norm() -> None:
    learner = some_model()
    before = torch.cat([weight.flatten() for weight in learner.weights().values()])
    fit(learner, some_data(), epochs=1, batch_size=ROWS, optimizer={"name": "sgd", "lr": 1.0, "clip": 0.01})
    after = torch.cat([weight.flatten() for weight in learner.weights().values()])
    assert float((after - before).norm()) == pytest.approx(0.01, rel=1e-3)


def test_validation_and_the_final_weights_are_those_of_the_moving_average() -> None:
    data, learner = some_data(), some_model()
    weight, bias = (value.clone().requires_grad_() for value in learner.weights().values())
    averages = [weight.detach().clone(), bias.detach().clone()]
    optimizer = torch.optim.SGD([weight, bias], lr=0.1)
    steps = [rows for epoch in range(3) for rows in batches(order_of(ROWS, 0, epoch), 32)]
    for number, rows in enumerate(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(data.inputs[rows] @ weight.T + bias, data.target[rows]).backward()
        optimizer.step()
        decay = min(0.8, (1 + number) / (10 + number))
        for average, value in zip(averages, (weight, bias), strict=True):
            average.mul_(decay).add_(value.detach(), alpha=1 - decay)
    fit(learner, data, ema=0.8, optimizer={"name": "sgd"})
    for found, expected in zip(learner.weights().values(), averages, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    right = (data.inputs @ averages[0].T + averages[1]).argmax(1) == data.target
    history = fit(some_model(), data, data, ema=0.8, optimizer={"name": "sgd"})
    assert history.records[-1]["topk-accuracy@1"] == pytest.approx(float(right.float().mean()))


def test_the_plateau_schedule_lowers_the_rate_where_nothing_gets_better() -> None:
    history = fit(some_model(), some_data(), chance(), epochs=8, schedule={"name": "plateau", "patience": 2})
    rates = [record["lr"] for record in history.records]
    assert history.best_epoch is not None
    assert history.best_epoch <= 6
    assert rates[history.best_epoch + 1] == pytest.approx(rates[history.best_epoch])
    assert rates[history.best_epoch + 2] == pytest.approx(0.1 * rates[history.best_epoch])
    with pytest.raises(ValueError, match="plateau schedule watches a metric"):
        fit(some_model(), some_data(), schedule={"name": "plateau"})


def test_mixed_precision_trains_and_keeps_float32_weights() -> None:
    learner = some_model()
    history = fit(learner, some_data(), some_data(), precision="bf16-mixed", epochs=10)
    assert history.best is not None
    assert history.best["topk-accuracy@1"] > 0.8
    assert all(weight.dtype == torch.float32 for weight in learner.weights().values())


def test_batches_hold_every_example_once_and_divide_by_the_processes() -> None:
    order = torch.randperm(101)
    assert torch.equal(torch.cat(batches(order, 20)).sort().values, torch.arange(101))
    assert all(len(rows) > 1 for rows in batches(order, 20))
    assert all(len(rows) % 3 == 0 for rows in batches(order, 20, world=3))
    with pytest.raises(ValueError, match="cannot be shared by 2 processes"):
        batches(torch.arange(1), 4, world=2)


def test_augmentation_is_for_images() -> None:
    with pytest.raises(ValueError, match="augment is for images"):
        fit(some_model(), some_data(), augment={"flip": True})


def test_an_example_is_augmented_the_same_whatever_batches_workers_and_interruptions(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    from shortlist.data import Images

    random = np.random.default_rng(0)
    for number in range(8):
        Image.fromarray(random.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    data = Dataset(
        Images.from_files([tmp_path / f"{n}.png" for n in range(8)], 8, True), torch.arange(8), tuple("abcdefgh")
    )
    wanted = {"resize": 12, "flip": True, "area": (0.3, 1.0), "jitter": {"contrast": 0.4}, "randaugment": {}}

    class Seen(nn.Module):
        out_features = 3 * 8 * 8

        def __init__(self) -> None:
            super().__init__()
            self.images: list[Tensor] = []

        def forward(self, inputs: Tensor) -> Tensor:
            if self.training:
                self.images += list(inputs)
            return inputs.flatten(1)

    def images_of(batch_size: int, workers: int = 0, stops_at: int | None = None) -> dict[tuple[int, int], Tensor]:
        backbone, objective = Seen(), build("cross-entropy", in_features=3 * 8 * 8, num_labels=8)
        settings = TrainSettings(
            epochs=2, batch_size=batch_size, augment=wanted, seed=3, workers=workers, checkpoint_minutes=1e-9
        )
        run = None
        if stops_at is not None:
            run = Run.create(tmp_path / "run", CONFIG, {})
            with pytest.raises(KeyboardInterrupt):
                train(backbone, objective, data, None, settings, run=run, progress=StopsAt(stops_at))
        train(backbone, objective, data, None, settings, run=run, resume=run is not None)
        order = [(epoch, row) for epoch in range(2) for row in order_of(8, 3, epoch).tolist()]
        return dict(zip(order, backbone.images, strict=True))

    whole = images_of(8)
    for other in (images_of(2), images_of(3, workers=2), images_of(2, stops_at=6)):  # of 4 steps in an epoch
        assert all(torch.equal(image, other[key]) for key, image in whole.items())
    assert whole[0, 5].shape == (3, 8, 8)
    assert not torch.equal(whole[0, 5], whole[1, 5])


def test_training_prepares_pixels_as_the_backbone_says() -> None:
    import numpy as np

    from shortlist.data import Images

    class Mean(nn.Module):
        pixel_mean, pixel_std, out_features = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 3

        def forward(self, inputs: Tensor) -> Tensor:
            seen.append(inputs.amax().item())
            return inputs.mean((2, 3))

    seen: list[float] = []
    white = Dataset(Images(np.full((8, 2, 2, 3), 255, dtype=np.uint8)), torch.arange(8) % 2, ("a", "b"))
    assert white.batch(torch.tensor([0]))[0].amax().item() == pytest.approx(2.64)
    model = Mean(), build("cross-entropy", in_features=3, num_labels=2)
    train(*model, white, white, TrainSettings(epochs=1, batch_size=4))
    score(Learner(*model), white)
    features_of(Learner(*model), white, torch.arange(8))
    assert set(seen) == {1.0}
