"""The similarity memory: the dictionary, the label graph and the search, and what they say of an example's labels."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.imcl.approximate import AtomIndex
from shortlist.imcl.completion import complete, squash
from shortlist.imcl.dictionary import Dictionary
from shortlist.imcl.label_graph import LabelGraph, combined
from shortlist.imcl.pursuit import JointNonnegativePursuit, PursuitResult

Scorer = Callable[[Tensor], Tensor]  # features -> scores
_AT_ONCE = 1024  # examples explained together


class Similar(NamedTuple):
    """Examples that were found for a batch, each once, and what they are to each row."""

    found: PursuitResult  # its indices are places in what follows; coefficients are for vectors of their own length
    rows: Tensor  # (U,) numbers of training examples
    labels: Tensor  # (U, L) A y: their predictions through the graph, with what is known put back
    features: Tensor  # (U, D)


class Explanation(NamedTuple):
    """Which training examples completed an example's labels, and what they say."""

    examples: list[int]  # training examples, in the order they were picked
    label_coefficients: list[float]
    feature_coefficients: list[float]
    completed: Tensor  # (L,) known labels as they are known, the classifier's answer for the others, -1/c to 1
    combination: Tensor  # (L,) what the labels of these examples make of it
    shares: Tensor  # (number of examples, L) coefficient times label: these add up to the combination, before any tanh


class SimilarityMemory(nn.Module):
    """What IMCL keeps of its training set, and how it finds in it what is like an example. Prediction does without.

    Args:
        dictionary: the training examples to find.
        graph: how labels speak for each other.
        pursuit: the search.
        c: absent labels count -1/c.
        combine: "tanh" around the combination of labels, or "linear".
        side_weight: weight of side labels in the search.
        proposed: dictionary rows that an `AtomIndex` proposes for each example, anew whenever the labels are, and that
            alone are compared; None compares all of them.

    >>> target = torch.tensor([[1, 0], [1, -1], [0, 1]])
    >>> dictionary = Dictionary(target, in_features=2, per_label=None)
    >>> memory = SimilarityMemory(dictionary, LabelGraph.from_matrix(torch.eye(2)), JointNonnegativePursuit(k=1))
    >>> dictionary.remember(torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]]))
    >>> why = memory.explain(nn.Linear(2, 2), torch.tensor([[1.0, 0.1]]), torch.tensor([[1, -1]]))[0]
    >>> why.examples[0] in (0, 1)  # and not the third, which is unlike
    True
    """

    def __init__(
        self,
        dictionary: Dictionary,
        graph: LabelGraph,
        pursuit: JointNonnegativePursuit,
        *,
        c: float = 2.0,
        combine: str = "tanh",
        side_weight: float = 1.0,
        proposed: int | None = None,
    ) -> None:
        super().__init__()
        self.dictionary, self.graph, self.pursuit = dictionary, graph, pursuit
        self.c, self.combine, self.side_weight, self.proposed = c, combine, side_weight, proposed
        self.side: Tensor | None = None  # (N,) class of each training example, -1 unknown
        self.labels: Tensor | None = None  # the dictionary's label vectors, as of the last time somebody asked
        self._index: AtomIndex | None = None  # of these labels and the features

    # ---- what it knows

    def see_side_labels(self, side: Tensor) -> None:
        self.side = side
        self.forget()

    def remember(self, features: Tensor) -> None:
        """The features of the dictionary's examples as they are now."""
        self.dictionary.remember(features)
        self.forget()

    def forget(self) -> None:
        """Labels of the dictionary are asked for anew."""
        self.labels = self._index = None

    # ---- the search

    def completed(self, scores: Tensor, target: Tensor) -> Tensor:
        """Label vectors: what is known, and the classifier's squashed score where nothing is."""
        return complete(target, squash(scores, self.c), self.c)

    def similar(
        self, y: Tensor, f: Tensor, index: Tensor | None, scorer: Scorer, encode: Scorer | None = None
    ) -> Similar:
        """The dictionary examples that explain label vectors ``y`` and features ``f``.

        Args:
            y, f: (B, L), (B, D).
            index: (B,) which training example each row is, so that none explains itself; -1 or None where it is none.
            scorer: features to scores. Labels are asked of it anew, with a gradient, for what is found.
            encode: numbers of training examples to their features, with a gradient: what was found by the features that
                are remembered is encoded again, and searched again, so that all is as of now (the published program).
                None takes the features that are remembered.
        """
        dictionary = self.dictionary
        if self.labels is None:
            with torch.no_grad():
                known = self._labels_of(dictionary.features, dictionary.target, scorer)
                self.labels = self._with_side(known, dictionary.rows)
        if self.proposed is not None and self._index is None:
            weights = self.pursuit.label_weight, self.pursuit.feature_weight
            self._index = AtomIndex(self.labels, dictionary.features, *weights, rows=self.proposed)
        exclude = None if index is None else dictionary.places(index)
        features, labels = dictionary.features.to(f.dtype), self.labels.to(y.dtype)
        found = self._search(y, f, index, labels, features, exclude, self._index)
        places = found.indices[found.indices >= 0].unique()  # ascending
        places = places if len(places) else places.new_zeros(1)
        rows = dictionary.rows[places]
        features = dictionary.features[places] if encode is None else encode(rows)
        labels = self._labels_of(features, dictionary.target[places], scorer)
        features, labels = features.to(f.dtype), labels.to(y.dtype)
        if encode is None:
            near = torch.searchsorted(places, found.indices.clamp(min=0)).clamp(max=len(places) - 1)
            return Similar(found._replace(indices=torch.where(found.indices < 0, -1, near)), rows, labels, features)
        if exclude is not None:
            near = torch.searchsorted(places, exclude.contiguous()).clamp(max=len(places) - 1)
            exclude = torch.where(places[near] == exclude, near, -1)
        again = self._search(y, f, index, self._with_side(labels.detach(), rows), features.detach(), exclude)
        return Similar(again, rows, labels, features)

    def _search(
        self,
        y: Tensor,
        f: Tensor,
        index: Tensor | None,
        labels: Tensor,
        features: Tensor,
        exclude: Tensor | None,
        atoms: AtomIndex | None = None,
    ) -> PursuitResult:
        """The pursuit for vectors of length 1, so that weights and threshold mean the same for any number of labels and
        features; its coefficients are then for vectors of their own length."""
        y, f = self._with_side(y.detach(), index), f.detach()
        length_y, length_f = (x.norm(dim=1, keepdim=True).clamp(min=1e-12) for x in (y, f))
        found = self.pursuit(y / length_y, f / length_f, labels, features, exclude, atoms)
        return found._replace(
            label_coefficients=found.label_coefficients * length_y,
            feature_coefficients=found.feature_coefficients * length_f,
        )

    def _labels_of(self, features: Tensor, target: Tensor, scorer: Scorer) -> Tensor:
        """A y of examples: predictions through the graph, then what is known put back."""
        predicted = squash(scorer(features.to(self.graph.weight.dtype)), self.c)
        return complete(target, self.graph(predicted), self.c)

    def _with_side(self, y: Tensor, index: Tensor | None) -> Tensor:
        """Label vectors with the side labels behind them, where there are any."""
        if self.side is None:
            return y
        side = self.side.to(y.device)
        classes = torch.arange(int(side.max()) + 1, device=y.device)
        of_rows = side.new_full((len(y),), -1) if index is None else torch.where(index < 0, -1, side[index])
        own = (of_rows.unsqueeze(1) == classes).to(y.dtype)
        return torch.cat([y, self.side_weight * own], 1)

    # ---- why

    @torch.no_grad()
    def explain(
        self, scorer: Scorer, features: Tensor, target: Tensor | None = None, index: Tensor | None = None
    ) -> list[Explanation]:
        """For each of these examples, the dictionary examples that complete its labels.

        ``target``: what is known of their labels; None where nothing is. ``index``: which training example each one
        is, for none is explained by itself; None or -1 where it is none.
        """
        if not self.dictionary.ready or not len(self.dictionary):
            raise ShortlistError("the memory explains with its dictionary, which is empty: load a trained state")
        explanations: list[Explanation] = []
        for rows in torch.arange(len(features)).split(_AT_ONCE):
            f = features[rows]
            scores = scorer(f)
            known = torch.full(scores.shape, -1, dtype=torch.int8) if target is None else target[rows]
            y = self.completed(scores, known.to(scores.device))
            similar = self.similar(y, f, None if index is None else index[rows], scorer)
            explanations += self._explanations(y, similar)
        return explanations

    def _explanations(self, y: Tensor, similar: Similar) -> list[Explanation]:
        found = similar.found
        said = combined(found.label_coefficients, similar.labels, found.indices, self.combine)
        explanations = []
        for row, count in enumerate((found.indices >= 0).sum(1).tolist()):
            places, weights = found.indices[row, :count], found.label_coefficients[row, :count]
            explanations.append(
                Explanation(
                    similar.rows[places].tolist(),
                    weights.tolist(),
                    found.feature_coefficients[row, :count].tolist(),
                    y[row],
                    said[row],
                    weights.unsqueeze(1) * similar.labels[places],
                )
            )
        return explanations
