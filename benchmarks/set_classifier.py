"""Fitting a SetClassifier against the same loop written by hand in PyTorch.

python -m benchmarks.set_classifier

Ours is the whole of ``fit``: checking the input, holding out a tenth, training, calibrating. The loop by hand trains on
as many rows, with the same batches, optimizer and schedule, and does nothing else.
"""

import math
from functools import partial

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.harness import Case, SpeedCase, Step
from benchmarks.run import run_suite
from shortlist.estimators import SetClassifier

GROUP = "SetClassifier: fit"
HELD_OUT = 0.1
LR, WEIGHT_DECAY = 0.01, 0.01


def _data(rows: int, features: int, labels: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, features, generator=generator), torch.randint(labels, (rows,), generator=generator)


def fit_step(rows: int, features: int, labels: int, epochs: int, batch_size: int) -> Step:
    inputs, target = (part.numpy() for part in _data(rows, features, labels))
    target = np.concatenate([np.arange(labels), target[labels:]])  # every label occurs
    model = SetClassifier(
        epochs=epochs, batch_size=batch_size, lr=LR, weight_decay=WEIGHT_DECAY, calibration=HELD_OUT, random_state=0
    )
    return lambda: model.fit(inputs, target)


def by_hand_step(rows: int, features: int, labels: int, epochs: int, batch_size: int) -> Step:
    inputs, target = _data(round(rows * (1 - HELD_OUT)), features, labels)

    def loop() -> None:
        model = torch.nn.Linear(features, labels)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
        steps, done = epochs * math.ceil(len(inputs) / batch_size), 0
        for _ in range(epochs):
            for at in torch.randperm(len(inputs)).split(batch_size):
                for group in optimizer.param_groups:
                    group["lr"] = LR * 0.5 * (1 + math.cos(math.pi * done / steps))
                loss = cross_entropy(model(inputs[at]), target[at])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                done += 1

    return loop


def cases(quick: bool = False) -> list[Case]:
    """Linear, cross-entropy, 10 epochs; the goal is the project's."""
    rows, features, labels, epochs = (500, 16, 10, 1) if quick else (50_000, 256, 100, 10)
    return [
        SpeedCase(
            GROUP,
            f"linear, {epochs} epochs, batches of {batch_size}",
            (rows, features, labels),
            None,
            partial(fit_step, rows, features, labels, epochs, batch_size),
            "by hand in PyTorch",
            partial(by_hand_step, rows, features, labels, epochs, batch_size),
            1.3,
        )
        for batch_size in (256, 1024)
    ]


main = partial(run_suite, "benchmarks.set_classifier", __doc__, cases)

if __name__ == "__main__":
    main()
