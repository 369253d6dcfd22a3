"""IMCL: logistic regression that also learns from its unknown labels, by likeness to a few other training examples."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.checks import check_not_negative, check_number, whole
from shortlist.distributed import sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import binary_loss
from shortlist.functional.reduction import reduce_over_processes
from shortlist.imcl import Dictionary, Explanation, JointNonnegativePursuit, SimilarityMemory, disagreement, squash
from shortlist.imcl.graph_files import GRAPHS, make_graph
from shortlist.objectives.base import LinearObjective
from shortlist.objectives.registry import register
from shortlist.optional import require


@register
class Imcl(LinearObjective):
    """A linear head trained on known labels, and on agreement of all labels with those of similar examples.

    Loss: binary cross-entropy of the known labels + label_weight ||y - squash(sum_i c_i A y_i)||^2 + feature_weight
    ||f - sum_i c'_i f_i||^2, means over rows (Huynh and Elhamifar 2020). y: the known labels (1, or -1/c where absent)
    and psi_c of the scores where unknown; A y_i: the label graph applied to psi_c of a dictionary example's scores, its
    known labels then put back. In every step the examples i and both kinds of coefficients come from
    `shortlist.imcl.JointNonnegativePursuit` and are held fixed; the gradient goes to the head, the graph and the
    backbone. Prediction uses the head alone: all that is kept of the training set is ``memory``, a
    `shortlist.imcl.SimilarityMemory`, which is None in an objective built for prediction.

    While the backbone trains, ``dictionary="encoded"`` is the published program: the search uses the features of the
    last refresh, then the examples it found are encoded with the batch, searched again, and the gradient goes through
    their features and labels, too. A step so encodes up to 1 + neighbours times as many examples; a smaller batch_size
    with a larger accumulate bounds the memory that this needs. "remembered" takes their features as of the last
    refresh, and is faster.

    What the paper leaves open: the search is for vectors of length 1, so that the two weights and the threshold mean
    the same for any number of labels and features. The last term is there only with ``feature_loss``, and where the
    backbone trains: for fixed features it teaches nothing. The dictionary's features come from the training loop
    (`wanted_rows`, `remember`, and ``encode``).

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
    training_only = ("memory",)

    @dataclass(frozen=True)
    class Config:
        """Options.

        neighbours: dictionary examples per example, at most (the k of the pursuit); threshold: the least gain of one.
        label_weight, feature_weight: of the two terms, in the search and in the loss.
        feature_loss: whether features are a term of the loss, too, or (as published for MS-COCO) of the search alone:
            the term draws the features of all examples together (see the guide for what that costs).
        balance: "gradient" scales each term so that its gradient (by the head for labels, by the features for
            features) has its weight times the norm of the logistic one; "loss" so that its value is its weight times
            the logistic loss; "fixed" uses the weights as they are.
        c: absent labels count -1/c. combine: "tanh" around the combination, or "linear".
        per_label: dictionary examples per label; None: the whole training set.
        dictionary: while the backbone trains, the gradient goes through the features of the examples found, which are
            "encoded" with the batch, or it does not, and they are those of the last refresh ("remembered").
        refresh: steps between two updates of the dictionary (its labels; its features where the backbone trains).
        warm_up: share of the epochs that train by logistic regression alone.
        graph: the support of the label graph: "co-occurrence" in the training labels; from ``graph_file``: "edges" (a
            .csv or .tsv with the columns source, to and, where it likes, weight), "vectors" (.npy, or the words of the
            labels in a text file like GloVe's) or "matrix" (.npy); or "none", which is the identity.
        graph_degree: edges to each label, for "co-occurrence" and "vectors".
        graph_start: weights start at "zero", so that the graph starts as the identity, or as "given" in the file (for
            vectors: at their cosines), each label's voices divided by their sum.
        side_weight: weight of side labels in the search, where the training data has them.
        search: "exact" compares every dictionary example; "approximate" only the ``proposed`` ones that an index of
            them proposes (needs the extra ``search``; for tens of thousands of examples and a refresh of hundreds).
        seed: of the choice of the dictionary.
        """

        neighbours: int = 3
        threshold: float = 1e-6
        label_weight: float = 0.5
        feature_weight: float = 1.0
        feature_loss: bool = False
        balance: Literal["gradient", "loss", "fixed"] = "gradient"
        c: float = 2.0
        combine: Literal["tanh", "linear"] = "tanh"
        per_label: int | None = 10
        dictionary: Literal["remembered", "encoded"] = "remembered"
        refresh: int = 10
        warm_up: float = 0.1
        graph: Literal["co-occurrence", "edges", "vectors", "matrix", "none"] = "co-occurrence"
        graph_file: str | None = None
        graph_degree: int = 10
        graph_start: Literal["zero", "given"] = "zero"
        side_weight: float = 1.0
        search: Literal["exact", "approximate"] = "exact"
        proposed: int = 80
        seed: int = 0

    memory: SimilarityMemory | None  # None where it is built for prediction

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        c = self.config
        _check(c)
        self.memory = None
        train_target = training_set.get("train_target")
        if train_target is not None:
            if c.search == "approximate":
                require("faiss", "search")  # rather now than after the warm-up
            self.memory = SimilarityMemory(
                Dictionary(train_target, in_features, c.per_label, c.seed),
                make_graph(
                    c.graph, train_target, c.graph_file, training_set.get("label_names"), c.graph_degree,
                    given=c.graph_start == "given",
                ),
                JointNonnegativePursuit(c.neighbours, c.label_weight, c.feature_weight, c.threshold),
                c=c.c, combine=c.combine, side_weight=c.side_weight,
                proposed=c.proposed if c.search == "approximate" else None,
            )  # fmt: skip
        self._active = False  # past the warm-up
        self._step = 0  # of this epoch
        self._balance: dict[str, Tensor] = {}  # the weights of the terms, as of the last refresh

    # ---- the training loop's side

    def start_epoch(self, epoch: int, epochs: int) -> None:
        self._active = epoch >= round(self.config.warm_up * epochs)
        self._step = 0
        self._forget()  # every epoch starts afresh: a resumed run needs no more than the state dict

    def epoch_state(self) -> dict[str, Any]:
        labels = None if self.memory is None else self.memory.labels
        return {"step": self._step, "memory": labels, "balance": self._balance}

    def load_epoch_state(self, state: dict[str, Any]) -> None:
        device = self.head.weight.device
        self._step = state["step"]
        if self.memory is not None:
            self.memory.labels = None if state["memory"] is None else state["memory"].to(device)
        self._balance = {which: weight.to(device) for which, weight in state["balance"].items()}

    def after_step(self, lr: float) -> None:
        self._step += 1
        if self._step % self.config.refresh == 0:
            self._forget()

    def _forget(self) -> None:
        self._balance = {}
        if self.memory is not None:
            self.memory.forget()

    def wanted_rows(self, changing: bool) -> Tensor | None:
        if self.memory is None or not self._active:
            return None
        due = changing and self._step % self.config.refresh == 0
        return self.memory.dictionary.rows if due or not self.memory.dictionary.ready else None

    def remember(self, features: Tensor) -> None:
        self._needed_memory().remember(features)
        self._balance = {}

    def see_side_labels(self, side: Tensor) -> None:
        if self.num_examples is not None and side.shape != (self.num_examples,):
            raise ShortlistError(f"side labels must be one class per training example, got shape {tuple(side.shape)}")
        if self.memory is not None:
            self.memory.see_side_labels(side)

    def _needed_memory(self) -> SimilarityMemory:
        if self.memory is None:
            raise ShortlistError("imcl was built for prediction only: to train or to explain, pass train_target")
        return self.memory

    # ---- the loss

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        memory, index = self._needed_memory(), self.needed_index(index)
        scores = self(features)
        logistic = binary_loss(scores, target)
        for weight in memory.graph.parameters():  # so that every parameter has a gradient, as DDP wants
            logistic = logistic + 0.0 * weight.sum()
        if not (self.training and self._active and len(features) and len(memory.dictionary)):
            return logistic  # the dictionary is empty where no label is known to be present
        if not memory.dictionary.ready:
            raise ShortlistError(
                "imcl needs the features of its dictionary: before each step, where objective.wanted_rows(changing) is "
                "not None, call objective.remember(features of these training examples)"
            )
        encode = self._encode_needed() if features.requires_grad and self.config.dictionary == "encoded" else None
        with torch.autocast(features.device.type, enabled=False):
            f = features if features.dtype == torch.float64 else features.float()
            y = memory.completed(scores.to(f.dtype), target)
            found, _, labels, atoms = memory.similar(y, f, index, self.head, encode)
            apart = disagreement(y, found.label_coefficients, labels, found.indices, memory.combine)
            total = logistic + self._term("labels", logistic, apart, self.head.weight)
            if features.requires_grad and self.config.feature_loss:
                rebuilt = torch.einsum("bk,bkd->bd", found.feature_coefficients, atoms[found.indices.clamp(min=0)])
                total = total + self._term("features", logistic, (f - rebuilt).square().sum(1), features)
        return total

    def _encode_needed(self) -> Any:
        if self.encode is None:
            raise ShortlistError(
                "dictionary='encoded' of 'imcl' encodes training examples within the loss: set objective.encode to a "
                "function of their numbers that gives their features (the training loop does), or use 'remembered'"
            )
        return self.encode

    def _term(self, which: str, logistic: Tensor, rows: Tensor, by: Tensor) -> Tensor:
        """A term of the loss, times its weight, which is balanced anew at every refresh."""
        term = reduce_over_processes(rows, torch.ones_like(rows), "mean", world_size(None))
        weight = self.config.label_weight if which == "labels" else self.config.feature_weight
        if self.config.balance == "fixed":
            return weight * term
        if which not in self._balance:
            if self.config.balance == "loss":
                theirs, ours = logistic.detach(), term.detach()
            else:
                theirs, ours = (self._gradient_norm(one, by) for one in (logistic, term))
            self._balance[which] = torch.where(ours > 0, weight * theirs / ours, 0.0)
        return self._balance[which] * term

    def _gradient_norm(self, term: Tensor, by: Tensor) -> Tensor:
        """Of the gradient over the global batch; by features every process has its own rows."""
        (gradient,) = torch.autograd.grad(term, by, retain_graph=True)
        world = world_size(None)
        if by is self.head.weight:
            return sum_over_processes(gradient, world).norm() / world
        return sum_over_processes(gradient.square().sum(), world).sqrt() / world

    # ---- why

    def explain(self, features: Tensor, target: Tensor | None = None, index: Tensor | None = None) -> list[Explanation]:
        """For each example, the dictionary examples that complete its labels: see `SimilarityMemory.explain`."""
        return self._needed_memory().explain(self, features, target, index)


def _check(config: Any) -> None:
    for name, least in (("neighbours", 1), ("refresh", 1), ("proposed", 3)):
        whole(getattr(config, name), f"{name} of 'imcl'", least)
    for name in ("threshold", "label_weight", "feature_weight", "side_weight"):
        check_not_negative(getattr(config, name), f"{name} of 'imcl'")
    check_number(config.warm_up, 0, 1, "warm_up of 'imcl' is a share of the epochs, from 0 to 1")
    if (config.graph in GRAPHS) != (config.graph_file is not None):
        raise ShortlistError(
            f"graph={config.graph!r} of 'imcl' and graph_file={config.graph_file!r} do not go together"
        )
    if config.graph_start == "given" and config.graph_file is None:
        raise ShortlistError(f"graph_start='given' of 'imcl' takes weights of a file, graph={config.graph!r} has none")
    squash(torch.zeros(1), config.c)
