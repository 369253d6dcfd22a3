"""IMCL: logistic regression that also learns from its unknown labels, by likeness to a few other training examples."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from shortlist.distributed import sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import binary_loss
from shortlist.functional.reduction import reduce_over_processes
from shortlist.imcl import Dictionary, JointNonnegativePursuit, LabelGraph, PursuitResult, complete, squash
from shortlist.objectives.base import LinearObjective
from shortlist.objectives.registry import register


class Explanation(NamedTuple):
    """Which training examples completed an example's labels, and what they say."""

    examples: list[int]  # training examples, in the order they were picked
    label_coefficients: list[float]
    feature_coefficients: list[float]
    completed: Tensor  # (L,) known labels as they are known, the classifier's answer for the others, -1/c to 1
    combination: Tensor  # (L,) what the labels of these examples make of it


@register
class Imcl(LinearObjective):
    """A linear head trained on known labels, and on agreement of all labels with those of similar examples.

    Loss: binary cross-entropy of the known labels + label_weight ||y - squash(sum_i c_i A y_i)||^2 + feature_weight
    ||f - sum_i c'_i f_i||^2, means over rows (Huynh and Elhamifar 2020). y: the known labels (1, or -1/c where absent)
    and psi_c of the scores where unknown; A y_i: the label graph applied to psi_c of a dictionary example's scores, its
    known labels then put back. In every step the examples i and both kinds of coefficients come from
    `shortlist.imcl.JointNonnegativePursuit` and are held fixed; the gradient goes to the head, the graph and the
    backbone. Prediction uses the head alone.

    What the paper leaves open: the search is for vectors of length 1, so that the two weights and the threshold mean
    the same for any number of labels and features; and the last term is left out where the features are fixed, as then
    it teaches nothing. The dictionary's features come from the training loop (`wanted_rows`, `remember`).

    >>> target = torch.tensor([[1, 0, -1], [-1, 1, 0], [1, -1, -1], [0, -1, 1]])
    >>> objective = Imcl(in_features=4, num_labels=3, train_target=target)
    >>> features = torch.randn(4, 4)
    >>> objective.start_epoch(epoch=9, epochs=10)  # after the warm-up
    >>> objective.remember(features[objective.wanted_rows(changing=False)])
    >>> loss = objective.loss(features, target, index=torch.arange(4))
    >>> objective.explain(features[:1], target[:1], torch.tensor([0]))[0].completed[:2]  # what is known
    tensor([ 1.0000, -0.5000])
    """

    name = "imcl"
    accepts = ("label-matrix",)
    link = "sigmoid"
    monitor = "mean-average-precision"
    training_only = ("dictionary", "graph")

    @dataclass(frozen=True)
    class Config:
        """Options.

        neighbours: dictionary examples per example, at most (the k of the pursuit); threshold: the least gain of one.
        label_weight, feature_weight: of the two terms, in the search and in the loss.
        balance: "gradient" scales each term so that its gradient (by the head for labels, by the features for
            features) has its weight times the norm of the logistic one; "fixed" uses the weights as they are.
        c: absent labels count -1/c. combine: "tanh" around the combination, or "linear".
        per_label: dictionary examples per label; None: the whole training set.
        refresh: steps between two updates of the dictionary (its labels; its features where the backbone trains).
        warm_up: share of the epochs that train by logistic regression alone.
        graph: the support of the label graph: "co-occurrence" in the training labels, "vectors" or "matrix" from
            ``graph_file`` (.npy), or "none"; graph_degree: edges to each label, for the first two.
        side_weight: weight of side labels in the search, where the training data has them.
        seed: of the choice of the dictionary.
        """

        neighbours: int = 3
        threshold: float = 1e-6
        label_weight: float = 0.5
        feature_weight: float = 1.0
        balance: Literal["gradient", "fixed"] = "gradient"
        c: float = 2.0
        combine: Literal["tanh", "linear"] = "tanh"
        per_label: int | None = 10
        refresh: int = 10
        warm_up: float = 0.1
        graph: Literal["co-occurrence", "vectors", "matrix", "none"] = "co-occurrence"
        graph_file: str | None = None
        graph_degree: int = 10
        side_weight: float = 1.0
        seed: int = 0

    dictionary: Dictionary | None
    graph: LabelGraph | None

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        c = self.config
        _check(c)
        self.pursuit = JointNonnegativePursuit(c.neighbours, c.label_weight, c.feature_weight, c.threshold)
        self.dictionary = self.graph = None
        train_target = training_set.get("train_target")
        if train_target is not None:
            self.dictionary = Dictionary(train_target, in_features, c.per_label, c.seed)
            self.graph = _make_graph(c, train_target, num_labels)
        self.side: Tensor | None = None  # (N,) class of each training example, -1 unknown
        self._active = False  # past the warm-up
        self._step = 0  # of this epoch
        self._memory: Tensor | None = None  # the dictionary's label vectors, as of the last refresh
        self._balance: dict[str, Tensor] = {}  # and the weights of the terms, as of then

    # ---- the training loop's side

    def start_epoch(self, epoch: int, epochs: int) -> None:
        self._active = epoch >= round(self.config.warm_up * epochs)
        self._step = 0
        self._forget()  # every epoch starts afresh: a resumed run needs no more than the state dict

    def epoch_state(self) -> dict[str, Any]:
        return {"step": self._step, "memory": self._memory, "balance": self._balance}

    def load_epoch_state(self, state: dict[str, Any]) -> None:
        device = self.head.weight.device
        self._step = state["step"]
        self._memory = None if state["memory"] is None else state["memory"].to(device)
        self._balance = {which: weight.to(device) for which, weight in state["balance"].items()}

    def after_step(self, lr: float) -> None:
        self._step += 1
        if self._step % self.config.refresh == 0:
            self._forget()

    def _forget(self) -> None:
        self._memory, self._balance = None, {}

    def wanted_rows(self, changing: bool) -> Tensor | None:
        if self.dictionary is None or not self._active:
            return None
        due = changing and self._step % self.config.refresh == 0
        return self.dictionary.rows if due or not self.dictionary.ready else None

    def remember(self, features: Tensor) -> None:
        assert self.dictionary is not None
        self.dictionary.remember(features)
        self._forget()

    def see_side_labels(self, side: Tensor) -> None:
        if self.num_examples is not None and side.shape != (self.num_examples,):
            raise ShortlistError(f"side labels must be one class per training example, got shape {tuple(side.shape)}")
        self.side = side
        self._forget()

    # ---- the loss

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        if self.dictionary is None or self.graph is None:
            raise ShortlistError("imcl was built for prediction only: to train, pass train_target")
        index = self.needed_index(index)
        scores = self(features)
        logistic = binary_loss(scores, target)
        logistic = logistic + 0.0 * self.graph.weight.sum()  # so that every parameter has a gradient, as DDP wants
        if not (self.training and self._active and len(features) and len(self.dictionary)):
            return logistic  # the dictionary is empty where no label is known to be present
        if not self.dictionary.ready:
            raise ShortlistError(
                "imcl needs the features of its dictionary: before each step, where objective.wanted_rows(changing) is "
                "not None, call objective.remember(features of these training examples)"
            )
        with torch.autocast(features.device.type, enabled=False):
            f = features if features.dtype == torch.float64 else features.float()
            y = complete(target, squash(scores.to(f.dtype), self.config.c), self.config.c)
            found = self._search(y, f, index)
            labels = reduce_over_rows((y - self._combined(found)).square().sum(1))
            total = logistic + self._weight("labels", logistic, labels, self.head.weight) * labels
            if features.requires_grad:
                apart = reduce_over_rows((f - self._reconstructed(found)).square().sum(1))
                total = total + self._weight("features", logistic, apart, features) * apart
        return total

    def _search(self, y: Tensor, f: Tensor, index: Tensor) -> PursuitResult:
        """The dictionary examples of each row, and coefficients for vectors of its own length."""
        assert self.dictionary is not None
        if self._memory is None:
            with torch.no_grad():
                self._memory = self._with_side(self._labels_of(slice(None)), self.dictionary.rows)
        y = self._with_side(y.detach(), index)
        length_y, length_f = (x.norm(dim=1, keepdim=True).clamp(min=1e-12) for x in (y, f.detach()))
        exclude = self.dictionary.places(index)
        memory = self._memory.to(y.dtype)
        found = self.pursuit(y / length_y, f.detach() / length_f, memory, self.dictionary.features.to(f.dtype), exclude)
        return found._replace(
            label_coefficients=found.label_coefficients * length_y,
            feature_coefficients=found.feature_coefficients * length_f,
        )

    def _labels_of(self, places: Any) -> Tensor:
        """A y of dictionary examples: predictions through the graph, then what is known put back."""
        assert self.dictionary is not None
        assert self.graph is not None
        predicted = squash(self.head(self.dictionary.features[places].to(self.head.weight.dtype)), self.config.c)
        return complete(self.dictionary.target[places], self.graph(predicted), self.config.c)

    def _combined(self, found: PursuitResult) -> Tensor:
        """What the labels of the examples found make together, (B, L)."""
        assert self.dictionary is not None
        places = found.indices.clamp(min=0)
        if len(self.dictionary) <= places.numel():  # each of them once
            labels = self._labels_of(slice(None))[places]
        else:
            labels = self._labels_of(places.flatten()).unflatten(0, places.shape)
        combined = torch.einsum("bk,bkl->bl", found.label_coefficients, labels.to(found.label_coefficients.dtype))
        return combined.tanh() if self.config.combine == "tanh" else combined

    def _reconstructed(self, found: PursuitResult) -> Tensor:
        assert self.dictionary is not None
        chosen = self.dictionary.features[found.indices.clamp(min=0)].to(found.feature_coefficients.dtype)
        return torch.einsum("bk,bkd->bd", found.feature_coefficients, chosen)

    def _weight(self, which: str, logistic: Tensor, term: Tensor, by: Tensor) -> Tensor | float:
        """The weight of a term in the loss; balanced anew at every refresh."""
        weight = self.config.label_weight if which == "labels" else self.config.feature_weight
        if self.config.balance == "fixed":
            return float(weight)
        if which not in self._balance:
            theirs, ours = (self._gradient_norm(one, by) for one in (logistic, term))
            self._balance[which] = torch.where(ours > 0, weight * theirs / ours, 0.0)
        return self._balance[which]

    def _gradient_norm(self, term: Tensor, by: Tensor) -> Tensor:
        """Of the gradient over the global batch; by features every process has its own rows."""
        (gradient,) = torch.autograd.grad(term, by, retain_graph=True)
        world = world_size(None)
        if by is self.head.weight:
            return sum_over_processes(gradient, world).norm() / world
        return sum_over_processes(gradient.square().sum(), world).sqrt() / world

    def _with_side(self, y: Tensor, index: Tensor) -> Tensor:
        """Label vectors with the side labels behind them, where there are any."""
        if self.side is None:
            return y
        side = self.side.to(index.device)
        classes = torch.arange(int(side.max()) + 1, device=index.device)
        own = (side[index].unsqueeze(1) == classes).to(y.dtype)
        return torch.cat([y, self.config.side_weight * own], 1)

    # ---- why

    @torch.no_grad()
    def explain(self, features: Tensor, target: Tensor, index: Tensor) -> list[Explanation]:
        """For each of these training examples, the dictionary examples that completed its labels."""
        if self.dictionary is None or not self.dictionary.ready or not len(self.dictionary):
            raise ShortlistError(
                "imcl explains with its dictionary: build it with train_target and load a trained state"
            )
        scores = self(features)
        y = complete(target, squash(scores, self.config.c), self.config.c)
        found = self._search(y, features, index)
        combined = self._combined(found)
        explanations = []
        for row, places in enumerate(found.indices.tolist()):
            count = sum(place >= 0 for place in places)
            explanations.append(
                Explanation(
                    self.dictionary.rows[found.indices[row, :count]].tolist(),
                    found.label_coefficients[row, :count].tolist(),
                    found.feature_coefficients[row, :count].tolist(),
                    y[row],
                    combined[row],
                )
            )
        return explanations


def reduce_over_rows(rows: Tensor) -> Tensor:
    """The mean over the rows of all processes."""
    return reduce_over_processes(rows, torch.ones_like(rows), "mean", world_size(None))


def _make_graph(config: Any, train_target: Tensor, num_labels: int) -> LabelGraph:
    if config.graph == "co-occurrence":
        return LabelGraph.from_co_occurrence(train_target, config.graph_degree)
    if config.graph == "none":
        return LabelGraph(num_labels, torch.empty((2, 0), dtype=torch.int64))
    array = torch.from_numpy(np.ascontiguousarray(np.load(config.graph_file, allow_pickle=False)))
    graph = LabelGraph.from_matrix(array) if config.graph == "matrix" else None
    graph = graph or LabelGraph.from_vectors(array, config.graph_degree)
    if graph.num_labels != num_labels:
        rows = graph.num_labels
        raise ShortlistError(f"{config.graph_file} holds {rows} rows, one per label, and there are {num_labels}")
    return graph


def _check(config: Any) -> None:
    for name in ("neighbours", "refresh"):
        if getattr(config, name) < 1:
            raise ShortlistError(f"{name} of 'imcl' must be at least 1, got {getattr(config, name)}")
    for name in ("threshold", "label_weight", "feature_weight", "side_weight"):
        if not 0 <= getattr(config, name) < float("inf"):
            raise ShortlistError(f"{name} of 'imcl' must be a finite number of at least 0, got {getattr(config, name)}")
    if not 0 <= config.warm_up <= 1:
        raise ShortlistError(f"warm_up of 'imcl' is a share of the epochs, from 0 to 1, got {config.warm_up}")
    if (config.graph in ("vectors", "matrix")) != (config.graph_file is not None):
        raise ShortlistError(
            f"graph={config.graph!r} of 'imcl' and graph_file={config.graph_file!r} do not go together"
        )
    squash(torch.zeros(1), config.c)
