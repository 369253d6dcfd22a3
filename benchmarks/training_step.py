"""A step of the training loop against the same step by hand: what the loop costs beyond model, loss and optimizer.

python -m benchmarks.training_step

Both sides train the same network and loss for one epoch of in-memory data with the same fused optimizer. By hand is
nothing but shuffled batches of a tensor, forward, loss, backward and step; ours also scales the images, sets the
learning rate, sums the loss, asks the objective for its wishes and looks at the clock for a checkpoint.

What the loop adds does not depend on the network, and is far smaller than the noise of a large one's time. So it is
measured with a network of next to no work, and stated as a share of the real one's step by hand.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.harness import SECONDS, THREADS, Row, Step
from benchmarks.run import run_suite
from shortlist.data import Dataset, Images
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.timing import fastest
from shortlist.training.checkpoints import Kept, Standing
from shortlist.training.history import History
from shortlist.training.learner import Learner
from shortlist.training.loop import Quiet, make_fabric, train_epoch
from shortlist.training.optimizers import make_optimizer
from shortlist.training.settings import TrainSettings

GROUP = "Training: a step of the loop"
LABELS = 100
NAMES = tuple(map(str, range(LABELS)))


def features(rows: int) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, 512, generator=generator)
    return Dataset(inputs, torch.randint(LABELS, (rows,), generator=generator), NAMES)


def images(rows: int) -> Dataset:
    pixels = np.random.default_rng(0).integers(0, 256, (rows, 32, 32, 3), dtype=np.uint8)
    target = torch.randint(LABELS, (rows,), generator=torch.Generator().manual_seed(0))
    return Dataset(Images(pixels, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)), target, NAMES)


def learner_of(backbone: str, data: Dataset) -> Learner:
    torch.manual_seed(0)
    options = {"mlp": {"hidden": (512,)}, "convnet": {"widths": (2,)}}.get(backbone, {})
    body = build_backbone(backbone, in_shape=data.in_shape, **options)
    return Learner(body, build("cross-entropy", in_features=int(body.out_features), num_labels=LABELS))


def settings_of(batch_size: int) -> TrainSettings:
    return TrainSettings(
        epochs=10, batch_size=batch_size, optimizer={"name": "adamw", "weight_decay": 0.01}, accelerator="cpu"
    )


def epoch_step(learner: Learner, data: Dataset, settings: TrainSettings, done: int = 0) -> Step:
    """An epoch by the loop itself, after so many."""
    fabric = make_fabric(settings)
    model, optimizer = fabric.setup(learner, make_optimizer(learner.backbone, learner.objective, settings.optimizer))
    kept = Kept(fabric, learner, optimizer, None, None, settings.checkpoint_minutes)
    past = [{"epoch": epoch, "loss": 0.0} for epoch in range(1, done + 1)]
    return lambda: train_epoch(kept, model, data, settings, History(records=list(past)), Standing(), Quiet())


def ours_step(backbone: str, make: str, rows: int, batch_size: int) -> Step:
    data = DATA[make](rows)
    return epoch_step(learner_of(backbone, data), data, settings_of(batch_size))


def by_hand_step(backbone: str, make: str, rows: int, batch_size: int) -> Step:
    data = DATA[make](rows)
    learner = learner_of(backbone, data)
    optimizer = make_optimizer(learner.backbone, learner.objective, settings_of(batch_size).optimizer)
    inputs, target = data.batch(torch.arange(rows))

    def loop() -> None:
        learner.train()
        for at in torch.randperm(rows).split(batch_size):
            loss = learner.objective.loss(learner.backbone(inputs[at]), target[at])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return loop


DATA = {"features": features, "images": images}


@dataclass(frozen=True)
class Overhead:
    """A step by hand of ``backbone``, and what the loop adds to it, measured with the network ``small``."""

    backbone: str
    small: str
    make: str
    batches: int
    batch_size: int
    goal: float | None

    group = GROUP
    k = None

    @property
    def name(self) -> str:
        return f"{self.backbone}, {self.batches} batches of {self.batch_size}"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch_size, 512) if self.make == "features" else (self.batch_size, 3, 32, 32)

    def run(self, seconds: float = SECONDS) -> Row:
        rows = self.batches * self.batch_size
        pair = [step(self.small, self.make, rows, self.batch_size) for step in (ours_step, by_hand_step)]
        ours, by_hand = fastest(pair, seconds, THREADS)
        (real,) = fastest([by_hand_step(self.backbone, self.make, rows, self.batch_size)], seconds, THREADS)
        total = 1e3 * (real + max(ours - by_hand, 0.0))
        return Row(GROUP, self.name, self.shape, None, total, "by hand in PyTorch", 1e3 * real, "ms", self.goal)


def cases(quick: bool = False) -> list[Overhead]:
    """The goals are the project's: 5 % for a small network on features, 1 % for a ResNet-18 on small images."""
    if quick:
        return [
            Overhead("mlp", "identity", "features", 2, 32, None),
            Overhead("resnet18", "convnet", "images", 2, 4, None),
        ]
    return [
        Overhead("mlp", "identity", "features", 32, 128, 1.05),
        Overhead("resnet18", "convnet", "images", 3, 32, 1.01),
    ]


main = partial(run_suite, "benchmarks.training_step", __doc__, cases)

if __name__ == "__main__":
    main()
