"""Which training examples speak for the labels of an example: of IMCL by its own memory, of any other model by one that
is made for the purpose."""

from collections.abc import Iterator

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.imcl import Dictionary, Explanation, JointNonnegativePursuit, LabelGraph, SimilarityMemory
from shortlist.labels import from_indices
from shortlist.objectives import Imcl, Objective
from shortlist.training.learner import Learner, features_of

_PER_LABEL, _AT_MOST = 10, 2000  # examples of a dictionary that is made for the purpose
_AT_ONCE = 1024


class SimilarExamples:
    """The memory of a trained model, and how to ask it.

    IMCL asks the memory that it was trained with: ``learner`` must then be built with its training set. For any other
    objective whose scores are of labels, a dictionary is taken from the training set (10 examples per label, 2,000 in
    all), and no label speaks for another one.
    """

    def __init__(self, learner: Learner, train_set: Dataset) -> None:
        self.learner, self.train_set = learner, train_set
        objective = learner.objective
        of_labels = {"indices", "label-matrix"} & {*objective.accepts}
        if objective.only_ranks or objective.link == "none" or not of_labels:
            raise ShortlistError(
                f"objective {objective.name!r} has no probabilities of labels: there is nothing that similar examples "
                f"could explain"
            )
        if isinstance(objective, Imcl) and objective.memory is not None:
            self.memory = objective.memory
            if train_set.side is not None:
                self.memory.see_side_labels(train_set.side)
        else:
            target = train_set.target
            target = target if target.ndim == 2 else from_indices(target, train_set.num_labels)
            per_label = max(1, min(_PER_LABEL, _AT_MOST // train_set.num_labels))
            identity = LabelGraph(train_set.num_labels, torch.empty((2, 0), dtype=torch.int64))
            dictionary = Dictionary(target, objective.in_features, per_label)
            self.memory = SimilarityMemory(dictionary, identity, JointNonnegativePursuit(3, 0.5, 1.0), combine="linear")
        if not self.memory.dictionary.ready and len(self.memory.dictionary):  # of imcl: a warm-up epoch
            self.memory.remember(features_of(learner, train_set, self.memory.dictionary.rows))

    @property
    def ready(self) -> bool:
        """False where no label of the training set is known to be present: the dictionary is then empty."""
        return len(self.memory.dictionary) > 0

    def explain(
        self, dataset: Dataset, rows: Tensor | None = None, *, of_training: bool = False
    ) -> Iterator[tuple[int, Explanation]]:
        """Row by row of ``dataset`` (all of them, or these) what completes its labels. Of the training set itself, what
        is known counts as known, and no example explains itself; of other data all labels are to be completed."""
        rows = torch.arange(len(dataset)) if rows is None else rows
        for some in rows.split(_AT_ONCE):
            features = features_of(self.learner, dataset, some)
            target = dataset.target[some] if of_training else None
            if target is not None and target.ndim == 1:
                target = from_indices(target, self.train_set.num_labels)
            found = self.memory.explain(
                lambda f: logits(self.learner.objective, f), features, target, some if of_training else None
            )
            yield from zip(some.tolist(), found, strict=True)

    def name(self, row: int) -> str:
        """What a training example is called."""
        ids = self.train_set.ids
        return ids[row] if ids is not None else str(row)


def logits(objective: Objective, features: Tensor) -> Tensor:
    """Scores whose sigmoid is each label's probability, whatever the link."""
    scores: Tensor = objective(features)
    return torch.logit(scores.softmax(1), eps=1e-6) if objective.link == "softmax" else scores
