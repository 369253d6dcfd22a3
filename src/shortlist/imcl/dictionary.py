"""The dictionary: training examples that stand for the training set when similar ones are looked for."""

import torch
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError


class Dictionary(nn.Module):
    """Which training examples are in it, what is known of their labels, and their features.

    Args:
        train_target: the training set's label matrix (N, L).
        in_features: length of a feature vector.
        per_label: how many examples to take, at random, of those that are known to have a label, for every label;
            None takes the whole training set.
        seed: of that choice: the same on every process.

    Features arrive by `remember`. All of it is state: it is saved with a run and loaded from it.

    >>> target = torch.tensor([[1, 0], [0, 1], [-1, 1], [0, 0]])
    >>> dictionary = Dictionary(target, in_features=3, per_label=1)
    >>> len(dictionary), dictionary.ready, 0 in dictionary.rows
    (2, False, True)
    >>> dictionary.remember(torch.zeros(2, 3))
    >>> dictionary.ready, dictionary.places(torch.tensor([0, 3]))  # training example 3 is not in it
    (True, tensor([ 0, -1]))
    """

    rows: Tensor  # (S,) numbers of training examples, ascending
    target: Tensor  # (S, L) their label matrix
    features: Tensor  # (S, D)
    filled: Tensor  # whether the features have arrived

    def __init__(self, train_target: Tensor, in_features: int, per_label: int | None = 10, seed: int = 0) -> None:
        super().__init__()
        if train_target.ndim != 2:
            raise ShortlistError(f"a dictionary needs a label matrix (N, L), got shape {tuple(train_target.shape)}")
        rows = torch.arange(len(train_target)) if per_label is None else choose(train_target, per_label, seed)
        self.register_buffer("rows", rows)
        self.register_buffer("target", train_target[rows].to(torch.int8))
        self.register_buffer("features", torch.zeros(len(rows), in_features))
        self.register_buffer("filled", torch.zeros((), dtype=torch.bool))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ready(self) -> bool:
        return bool(self.filled)

    def remember(self, features: Tensor) -> None:
        """Take the features of all its examples, in the order of ``rows``, in place of those it had."""
        if features.shape != self.features.shape:
            wanted, got = tuple(self.features.shape), tuple(features.shape)
            raise ShortlistError(f"the dictionary's features must have shape {wanted}, one row per example, got {got}")
        self.features.copy_(features.detach())
        self.filled.fill_(True)

    def places(self, index: Tensor) -> Tensor:
        """Where in the dictionary these training examples stand, -1 where they are not in it."""
        if not len(self.rows):
            return torch.full_like(index, -1)
        place = torch.searchsorted(self.rows, index.contiguous()).clamp(max=len(self.rows) - 1)
        return torch.where(self.rows[place] == index, place, -1)

    def extra_repr(self) -> str:
        return f"{len(self)} examples of {self.features.shape[1]} features, {self.target.shape[1]} labels"


def choose(train_target: Tensor, per_label: int, seed: int) -> Tensor:
    """For each label up to ``per_label`` of the examples known to have it; all of them together, ascending.

    >>> choose(torch.tensor([[1, 0], [0, -1], [1, 1]]), per_label=2, seed=0)
    tensor([0, 2])
    """
    whole(per_label, "per_label", 1)
    present = (train_target == 1).cpu()
    # one order of all examples; each label takes the first that have it, so that labels share examples where they can
    order = torch.randperm(len(present), generator=torch.Generator().manual_seed(seed))
    shuffled = present[order]
    taken = shuffled & (shuffled.cumsum(0) <= per_label)
    return order[taken.any(1)].sort().values
