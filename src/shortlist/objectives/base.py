"""What an objective is: head(s) on features, a training loss, and the scores used for prediction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError
from shortlist.functional import linear_loss
from shortlist.labels.counts import count_labels
from shortlist.labels.sparse_labels import SparseLabels
from shortlist.links import Link
from shortlist.nn.sparse_linear import SparseLinear
from shortlist.objectives.imbalance import Imbalance, class_weights, log_prior

LARGE_SCORES = 2**24  # entries: 64 MB in float32. From there on blocks, which have their memory again, are quicker too
Accepts = tuple[str, ...]  # "indices", "label-matrix" or both; or the kind of a vertical room's inputs alone


class Objective(nn.Module):
    """How features become scores and a training loss. Subclasses set the class attributes, `forward` and `loss`.

    Args:
        in_features: length of a feature vector; num_labels: number of scores.
        config: an instance of the class's own ``Config`` (a frozen dataclass with defaults); None means the defaults.
        num_examples: size of the training set, for objectives that remember something per example.
        class_counts: how many training examples have each label, shape (num_labels,).
        train_target: the training target; what is not given of the two above is counted from it.
        label_names: what the labels are called, for objectives that look for their words in a file.

    All four may be None where the objective is built for prediction only. Random draws come from PyTorch's global
    generator, which the training loop seeds and saves. Everything else that matters is in the state dict.

    >>> from shortlist.objectives import build
    >>> objective = build("smooth-topk", {"k": 2}, in_features=8, num_labels=5)
    >>> objective.loss(torch.zeros(3, 8), torch.tensor([0, 1, 2])).shape, objective(torch.zeros(3, 8)).shape
    (torch.Size([]), torch.Size([3, 5]))
    """

    name: ClassVar[str]
    accepts: ClassVar[Accepts]
    link: ClassVar[Link]  # makes scores of different rows comparable, for the set rules
    monitor: ClassVar[str]  # the metric that says how well it does what it is for
    one_positive: ClassVar[bool] = False  # a label matrix may have at most one present label per row
    only_ranks: ClassVar[bool] = False  # its scores order labels; no link makes probabilities of them
    balances: ClassVar[tuple[Imbalance, ...]] = ()  # the ways of `balance` that have a meaning for it
    plain: ClassVar[str] = "cross-entropy"  # of a vertical room's objective: the one for features that does the same
    takes_sparse: ClassVar[bool] = False  # features and labels as they are; else whole rows are made of them
    renamed: ClassVar[Mapping[str, str]] = {}  # options that were called otherwise: old name -> name
    takes_weights: ClassVar[bool] = False  # of rows
    training_only: ClassVar[tuple[str, ...]] = ()  # parts that prediction does without: memories of the training set

    @dataclass(frozen=True)
    class Config:
        """No options."""

    config: Any
    # numbers of training examples -> their features, with a gradient: the training loop's, while it trains
    encode: Callable[[Tensor], Tensor] | None = None
    shift: Tensor | None  # added to the scores in training
    weight: Tensor | None  # of classes, or of the presence of labels
    row_weights: Tensor | None = None  # of the training examples, 1 on average: while it trains, where they have some

    def __init__(
        self,
        in_features: int,
        num_labels: int,
        config: Any = None,
        *,
        num_examples: int | None = None,
        class_counts: Tensor | None = None,
        train_target: Tensor | SparseLabels | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.num_labels = whole(in_features, "in_features", 1), whole(num_labels, "num_labels", 1)
        self.config = type(self).Config() if config is None else config
        if train_target is not None:
            num_examples = len(train_target) if num_examples is None else num_examples
            class_counts = count_labels(train_target, num_labels) if class_counts is None else class_counts
        if class_counts is not None and class_counts.shape != (num_labels,):
            raise ShortlistError(f"class_counts must have shape ({num_labels},), got {tuple(class_counts.shape)}")
        self.num_examples = num_examples
        self.register_buffer("shift", None, persistent=False)
        self.register_buffer("weight", None, persistent=False)
        self._class_counts = class_counts  # not state: what a subclass keeps of it becomes its own buffer

    def forward(self, features: Tensor) -> Tensor:
        """Scores for prediction, shape (B, num_labels), in training and evaluation mode alike."""
        raise NotImplementedError

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        """The training loss of a batch; ``index``: which training example each row is (only some objectives ask)."""
        raise NotImplementedError

    def by_blocks(self, rows: int) -> bool:
        """Whether the loss of so many rows is computed without ever making all of their scores: they would be large."""
        return False

    def after_step(self, lr: float) -> None:
        """Called after every optimizer step, with the learning rate of that step."""

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """Called before epoch 0..epochs-1; again for the first one after a run is resumed."""

    def epoch_state(self) -> dict[str, Any]:
        """What it remembers within an epoch and not in its state dict: saved in the middle of a long one. Plain values
        and tensors."""
        return {}

    def load_epoch_state(self, state: dict[str, Any]) -> None:
        """Go on in the middle of an epoch; called after `start_epoch`."""

    def wanted_rows(self, changing: bool) -> Tensor | None:
        """Asked before every optimizer step: the training examples whose features the objective wants to see now.

        ``changing``: the backbone trains, so that features seen before are out of date. None: no wish.
        """
        return None

    def remember(self, features: Tensor) -> None:
        """The features of the wanted rows: of the backbone in evaluation mode, the same on every process."""

    def see_side_labels(self, side: Tensor) -> None:
        """Called before training where the data says more of each example: a class, int64 (N,), -1 for unknown."""

    def balance(self, way: Imbalance, target: Tensor) -> None:
        """Called before training: make up for labels being rare. "class-weights" weighs them by their counts in the
        training target, "logit-adjustment" adds their log prior to the scores in training alone."""
        self.shift = self.weight = None
        if way in ("none", "balanced-sampling"):  # the latter is the training loop's
            return
        if way not in self.balances_of(target):
            others = ", ".join(["none", *self.balances_of(target), "balanced-sampling"])
            kind = "class indices" if target.ndim == 1 else "a label matrix"
            raise ShortlistError(
                f"imbalance: {way} has no meaning for objective {self.name!r} with {kind}: use one of {others}"
            )
        device = next(self.parameters()).device
        if way == "class-weights":
            self.weight = class_weights(target, self.num_labels).to(device)
        else:
            self.shift = log_prior(target, self.num_labels, self.link).to(device)

    def balances_of(self, target: Tensor) -> tuple[Imbalance, ...]:
        """The ways that have a meaning with such a target."""
        return self.balances

    def shifted(self, scores: Tensor) -> Tensor:
        """The scores, in training moved by the labels' log prior where that is wanted."""
        return scores + self.shift.to(scores.dtype) if self.shift is not None and self.training else scores

    def check_features(self, features: Tensor) -> Tensor:
        """The features, if they have the shape this objective was built for."""
        if features.ndim != 2 or features.shape[1] != self.in_features:
            raise ShortlistError(
                f"features must have shape (rows, {self.in_features}), got {tuple(features.shape)}: "
                f"the objective was built with in_features={self.in_features}, the backbone's out_features"
            )
        return features

    def needed_index(self, index: Tensor | None) -> Tensor:
        """The example numbers, for objectives that cannot do without."""
        self.check_trainable()
        if index is None:
            raise ShortlistError(
                f"{self.name} keeps a memory per training example: loss() needs index, one number per row"
            )
        return index

    def check_trainable(self) -> None:
        """For objectives that cannot train without knowing their training set."""
        if self.num_examples is None:
            raise ShortlistError(
                f"{self.name} was built for prediction only: to train, pass num_examples or train_target"
            )

    @contextmanager
    def options_checked(self) -> Iterator[None]:
        """Around a loss of made-up scores: an option out of range is an error before the training starts."""
        try:
            with torch.random.fork_rng(devices=()):
                yield
        except ShortlistError as error:
            raise ShortlistError(f"objective {self.name!r} with {self.num_labels} labels: {error}") from error

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for part in self.training_only:
            if getattr(self, part) is None:  # built for prediction: the memory in the file is not wanted
                for key in [key for key in state_dict if f"{key}.".startswith(f"{prefix}{part}.")]:
                    del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"{self.name}, {self.in_features} features, {self.num_labels} labels, {self.config}"


class LinearObjective(Objective):
    """An objective with one linear head and a loss of its scores: subclasses define `score_loss`."""

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.head = SparseLinear(in_features, num_labels)

    def forward(self, features: Tensor) -> Tensor:
        return self.head(self.check_features(features))

    def loss_by_blocks(
        self, function: Callable[..., Tensor], features: Tensor, target: Tensor, **options: Any
    ) -> Tensor:
        """A loss of the head's scores, of which never all are made."""
        features = self.check_features(features)
        features = features.to_dense() if features.is_sparse else features
        return linear_loss(function, features, self.head.weight, target, bias=self.shifted(self.head.bias), **options)

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        return self.score_loss(self.shifted(self(features)), target)

    def score_loss(self, scores: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError
