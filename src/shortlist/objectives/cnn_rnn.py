"""CNN-RNN: an LSTM that reads the features and names the labels one after the other, the frequent ones first."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import in_compute_type, whole
from shortlist.functional.label_matrix import read_label_matrix
from shortlist.objectives.base import Objective
from shortlist.objectives.registry import register


@register
class CnnRnn(Objective):
    """Labels as a sequence, in the order of their frequency in the training set, and a stop sign (Wang et al. 2016).

    Step t gives a softmax over the labels not named yet and the stop sign, from the LSTM's state (which has read the
    labels named so far) and the features. Training names the present labels (teacher forcing): cross-entropy of every
    step, a mean over steps; unknown labels are left out of the softmax, rows without a known label out of the loss.
    Prediction names the most probable label until the stop sign, at most ``max_labels``; a label's score is the log
    odds of its largest probability over these steps.

    >>> objective = CnnRnn(in_features=8, num_labels=5, train_target=torch.tensor([[1, 0, 0, -1, 1], [1, 0, 1, 0, 0]]))
    >>> objective(torch.zeros(2, 8)).shape, objective.order[0]
    (torch.Size([2, 5]), tensor(0))
    """

    name = "cnn-rnn"
    accepts = ("label-matrix",)
    link = "sigmoid"
    monitor = "mean-average-precision"

    @dataclass(frozen=True)
    class Config:
        hidden: int = 128
        max_labels: int = 10

    order: Tensor  # labels, the most frequent first

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        hidden = whole(self.config.hidden, "hidden of 'cnn-rnn'", 1)
        whole(self.config.max_labels, "max_labels of 'cnn-rnn'", 1)
        counts = torch.zeros(num_labels) if self._class_counts is None else self._class_counts
        self.register_buffer("order", counts.argsort(descending=True, stable=True))
        self.words = nn.Embedding(num_labels + 1, hidden)  # the last one starts the sequence
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.from_state = nn.Linear(hidden, hidden)
        self.from_features = nn.Linear(in_features, hidden)
        self.out = nn.Linear(hidden, num_labels + 1)  # the last one is the stop sign

    def forward(self, features: Tensor) -> Tensor:
        image = self.from_features(self.check_features(features)).unsqueeze(1)
        rows, stop = len(features), self.num_labels
        word = torch.full((rows, 1), stop, device=features.device)
        named = torch.zeros(rows, 1, stop, dtype=torch.bool, device=features.device)
        best = in_compute_type(image).new_full((rows, stop), float("-inf"))
        alive = torch.ones(rows, 1, dtype=torch.bool, device=features.device)
        state = None
        for _ in range(min(self.config.max_labels, stop)):
            scores, state = self._steps(image, word, named, state)
            log_p = in_compute_type(scores).log_softmax(-1).squeeze(1)
            best = torch.where(alive, torch.maximum(best, log_p[:, :stop]), best)
            word = log_p.argmax(-1, keepdim=True)
            alive = alive & (word != stop)
            named = named | F.one_hot(word, stop + 1)[..., :stop].bool()
        best = best.clamp(max=-torch.finfo(best.dtype).eps)  # where p = 1 the odds would be infinite
        return (best - torch.log(-torch.expm1(best))).to(image.dtype)

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        image = self.from_features(self.check_features(features)).unsqueeze(1)
        words, real = self._sequences(target, image)
        before = F.pad(words[:, :-1], (1, 0), value=self.num_labels)
        named = F.one_hot(before, self.num_labels + 1)[..., :-1].cumsum(1) > 0
        scores, _ = self._steps(image, before, named | (target == -1).unsqueeze(1), None)
        losses = F.cross_entropy(in_compute_type(scores.flatten(0, 1)), words.flatten(), reduction="none")
        return torch.where(real.flatten(), losses, 0.0).sum() / real.sum().clamp(min=1)

    def _steps(self, image: Tensor, words: Tensor, closed: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Scores of labels and stop sign after each word, (B, T, L + 1); closed labels are out of the question."""
        with torch.autocast(words.device.type, enabled=False):  # not every CPU has an LSTM in half precision
            hidden, state = self.lstm(self.words(words), state)
        scores = self.out(F.relu(self.from_state(hidden) + image))
        return scores.masked_fill(F.pad(closed, (0, 1), value=False), float("-inf")), state

    def _sequences(self, target: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """The present labels in order, then stop signs, (B, T); and which of these steps are to be learned."""
        present, absent = read_label_matrix(like.new_empty(target.shape[0], self.num_labels), target)
        count = present.sum(1, keepdim=True)
        steps = int(count.max()) + 1 if len(target) else 1
        # sorting False before True, stably, brings the present labels of each row to the front in their order
        position = (~present[:, self.order]).to(torch.uint8).argsort(dim=1, stable=True)[:, :steps]
        words = F.pad(self.order[position], (0, steps - position.shape[1]), value=self.num_labels)
        step = torch.arange(steps, device=target.device)
        known = (present | absent).any(1, keepdim=True)
        return torch.where(step < count, words, self.num_labels), (step <= count) & known
