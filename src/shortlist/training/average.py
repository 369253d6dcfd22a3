"""The exponential moving average of the weights: smoother than the last step's, and often better on new data."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from shortlist.training.learner import Learner


class WeightAverage:
    """After every step each average moves by 1 - decay of the way to the weight of the moment.

    Averaged are the trained parameters and the backbone's running statistics; what an objective remembers is taken as
    it is. In step t the decay is at most (1 + t) / (10 + t), so that the untrained weights are soon forgotten.

    >>> from shortlist.models import build_backbone
    >>> from shortlist.objectives import build
    >>> head = build("cross-entropy", in_features=2, num_labels=2)
    >>> average = WeightAverage(Learner(build_backbone("identity", in_shape=(2,)), head), decay=0.5)
    >>> start = head.head.bias[0].item()
    >>> with torch.no_grad():
    ...     _ = head.head.bias.add_(1.0)
    >>> average.update()  # decay 0.1 in the first step: nine tenths of the way
    >>> with average.in_place():
    ...     round(head.head.bias[0].item() - start, 4)
    0.9
    """

    def __init__(self, learner: Learner, decay: float) -> None:
        trained = {name: weight for name, weight in learner.named_parameters() if weight.requires_grad}
        statistics = {f"backbone.{name}": buffer for name, buffer in learner.backbone.named_buffers()}
        live = trained | {name: buffer for name, buffer in statistics.items() if buffer.is_floating_point()}
        self.decay, self.steps = decay, 0
        self.names = list(live)
        self.live: list[Tensor] = [weight.detach() for weight in live.values()]
        self.kept = [weight.clone() for weight in self.live]

    @torch.no_grad()
    def update(self) -> None:
        """To be called after every optimizer step."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        get_ema_multi_avg_fn(decay)(self.kept, self.live, self.steps)  # type: ignore[no-untyped-call, arg-type]
        self.steps += 1

    @torch.no_grad()
    def swap(self) -> None:
        """Averages and weights change places."""
        for kept, live in zip(self.kept, self.live, strict=True):
            other = live.clone()
            live.copy_(kept)
            kept.copy_(other)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within this block the model has the averages for weights."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def state(self) -> dict[str, Any]:
        """What is not in the model: within `in_place`, the weights that training goes on with."""
        others = {name: kept.to("cpu", copy=True) for name, kept in zip(self.names, self.kept, strict=True)}
        return {"steps": self.steps, "others": others}

    @torch.no_grad()
    def load(self, state: Mapping[str, Any]) -> None:
        self.steps = state["steps"]
        for name, kept in zip(self.names, self.kept, strict=True):
            kept.copy_(state["others"][name])
