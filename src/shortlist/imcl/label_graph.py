"""The label graph: how much each label speaks for each other one, and the loss by which it learns that.

It starts as the identity, or from given weights, and learns on a given support. `LabelGraph` holds the weights;
`disagreement` is what IMCL minimises over them (and over the classifier)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError

_BLOCK_ENTRIES = 1 << 24  # edges times rows looked at together where no gradient is wanted


class Edge(NamedTuple):
    """``weight`` of label ``source`` in what label ``to`` becomes."""

    source: int
    to: int
    weight: float


class LabelGraph(nn.Module):
    """A matrix A of labels by labels, sparse: weights on the diagonal and on the edges, 0 elsewhere.

    Calling it with predictions (rows, labels) gives A y for every row: each label's own value plus those of its
    neighbours, weighted.

    Args:
        num_labels: number of labels.
        edges: (2, E) the labels that speak, and the labels they speak for; none from a label to itself, none twice.
        weights: (E,) where the edges' weights start, not negative: each label's voices, its own of weight 1 included,
            are divided by their sum, and all of them learn, its own too (as published for word graphs). None: the
            edges start at 0 and the diagonal is 1 for ever, so that A starts as the identity.

    >>> graph = LabelGraph.from_matrix(torch.tensor([[0, 1], [0, 0]]))  # label 1 speaks for label 0
    >>> graph(torch.tensor([[0.0, 1.0]]))
    tensor([[0., 1.]], grad_fn=<AddBackward0>)
    >>> _ = graph.weight.data.fill_(0.5)
    >>> graph(torch.tensor([[0.0, 1.0]]))
    tensor([[0.5000, 1.0000]], grad_fn=<AddBackward0>)
    >>> graph.strongest()
    [Edge(source=1, to=0, weight=0.5)]
    >>> LabelGraph(2, torch.tensor([[1], [0]]), torch.tensor([3.0])).weights().to_dense()
    tensor([[0.2500, 0.7500], [0.0000, 1.0000]])
    """

    edges: Tensor
    own: Tensor | None  # the diagonal, where it learns

    def __init__(self, num_labels: int, edges: Tensor, weights: Tensor | None = None) -> None:
        super().__init__()
        whole(num_labels, "num_labels", 1)
        edges = edges.long()
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ShortlistError(f"edges must have shape (2, number of edges), got {tuple(edges.shape)}")
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < num_labels:
            bad = int(edges[(edges < 0) | (edges >= num_labels)][0])
            raise ShortlistError(f"edges hold label {bad}: allowed are 0..{num_labels - 1}")
        if bool((edges[0] == edges[1]).any()):
            label = int(edges[0][edges[0] == edges[1]][0])
            raise ShortlistError(
                f"edges must join two labels, label {label} is joined to itself: the diagonal is there already"
            )
        if edges.shape[1] != len(torch.unique(edges[0] * num_labels + edges[1])):
            raise ShortlistError("edges hold a pair of labels twice")
        self.num_labels = num_labels
        self.register_buffer("edges", edges.clone())
        self.register_parameter("own", None)
        self.weight = nn.Parameter(torch.zeros(edges.shape[1]))
        if weights is not None:
            if weights.shape != (edges.shape[1],) or not bool((weights.isfinite() & (weights >= 0)).all()):
                raise ShortlistError(f"weights must be {edges.shape[1]} finite numbers of at least 0, one per edge")
            total = torch.ones(num_labels).index_add(0, edges[1], weights.float())
            self.own = nn.Parameter(1 / total)
            self.weight.data.copy_(weights / total[edges[1]])

    # ---- supports

    @classmethod
    def from_matrix(cls, matrix: Tensor, start: bool = False) -> "LabelGraph":
        """Edges where an (L, L) matrix is not 0: entry (i, j) lets label j speak for label i. The diagonal is fixed.

        ``start``: the edges' weights start at the matrix's, rather than at 0.
        """
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ShortlistError(f"a graph's matrix has shape (labels, labels), got {tuple(matrix.shape)}")
        to, source = matrix.float().clone().fill_diagonal_(0.0).nonzero(as_tuple=True)
        return cls(len(matrix), torch.stack([source, to]), matrix[to, source].float() if start else None)

    @classmethod
    def from_co_occurrence(cls, target: Tensor, neighbours: int = 10) -> "LabelGraph":
        """Each label listens to the ``neighbours`` labels most often known present together with it.

        >>> LabelGraph.from_co_occurrence(torch.tensor([[1, 1, 0], [1, 1, -1], [-1, 1, 1]]), neighbours=1).edges
        tensor([[1, 0, 1], [0, 1, 2]])
        """
        if target.ndim != 2:
            raise ShortlistError(f"co-occurrence needs a label matrix (N, L), got shape {tuple(target.shape)}")
        present = (target == 1).to(torch.float32)
        return cls.nearest(present.T @ present, neighbours)

    @classmethod
    def from_vectors(cls, vectors: Tensor, neighbours: int = 10, start: bool = False) -> "LabelGraph":
        """Each label listens to the ``neighbours`` labels whose word vectors make the smallest angle with its own.

        A label whose vector is 0 (no word of it is known) has no neighbours. ``start``: the edges' weights start at the
        cosines of these angles, rather than at 0.

        >>> LabelGraph.from_vectors(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.9, 0.5]]), neighbours=1).edges
        tensor([[1, 0, 1], [0, 1, 2]])
        """
        if vectors.ndim != 2 or not bool(vectors.isfinite().all()):
            raise ShortlistError(
                f"word vectors must be finite numbers (labels, dimensions), got {tuple(vectors.shape)}"
            )
        unit = F.normalize(vectors.float(), dim=1)
        return cls.nearest(unit @ unit.T, neighbours, start)

    @classmethod
    def nearest(cls, similarity: Tensor, neighbours: int, start: bool = False) -> "LabelGraph":
        """Edges to each label from the labels of largest positive similarity in its row."""
        whole(neighbours, "neighbours", 0)
        others = similarity.float().clone().fill_diagonal_(-float("inf"))
        value, source = others.sort(dim=1, descending=True, stable=True)
        value, source = value[:, :neighbours], source[:, :neighbours]
        to = torch.arange(len(similarity), device=source.device).unsqueeze(1).expand_as(source)
        edges = torch.stack([source[value > 0], to[value > 0]])
        return cls(len(similarity), edges, value[value > 0] if start else None)

    # ---- use

    def forward(self, predictions: Tensor) -> Tensor:
        """A y of every row of (rows, labels)."""
        if predictions.ndim != 2 or predictions.shape[1] != self.num_labels:
            raise ShortlistError(
                f"predictions must have shape (rows, {self.num_labels}), got {tuple(predictions.shape)}"
            )
        if torch.is_grad_enabled():
            return self._own(predictions) + self._from_neighbours(predictions)
        rows = max(1, _BLOCK_ENTRIES // max(1, len(self.weight)))
        return torch.cat([self._own(part) + self._from_neighbours(part) for part in predictions.split(rows)])

    def _own(self, predictions: Tensor) -> Tensor:
        return predictions if self.own is None else predictions * self.own.to(predictions.dtype)

    def _from_neighbours(self, predictions: Tensor) -> Tensor:
        # labels first: whole rows are gathered and added, which is many times faster than columns
        source, to = self.edges
        heard = predictions.T[source] * self.weight.to(predictions.dtype).unsqueeze(1)
        return torch.zeros_like(predictions.T).index_add(0, to, heard).T

    def weights(self) -> Tensor:
        """A as a sparse (L, L) tensor, diagonal included."""
        own = torch.arange(self.num_labels, device=self.edges.device).expand(2, -1)
        place = torch.cat([own, self.edges.flip(0)], 1)
        diagonal = self.weight.new_ones(self.num_labels) if self.own is None else self.own.detach()
        value = torch.cat([diagonal, self.weight.detach()])
        return torch.sparse_coo_tensor(place, value, [self.num_labels] * 2, check_invariants=True).coalesce()

    def strongest(self, count: int = 50) -> list[Edge]:
        """The edges of largest absolute weight, strongest first; those of weight 0 left out."""
        order = self.weight.detach().abs().argsort(descending=True, stable=True)[:count]
        source, to = self.edges[:, order].tolist()
        found = zip(source, to, self.weight.detach()[order].tolist(), strict=True)
        return [Edge(*edge) for edge in found if edge[2] != 0]

    def extra_repr(self) -> str:
        return f"{self.num_labels} labels, {len(self.weight)} edges"


# ---- how it learns


def combined(coefficients: Tensor, labels: Tensor, places: Tensor, combine: str = "tanh") -> Tensor:
    """What similar examples say together of the labels of each row: tanh(sum_i c_i A y_i), or the sum itself.

    Args:
        coefficients: (B, k) c, not negative.
        labels: (U, L) A y of every example that some row uses.
        places: (B, k) which of them; -1 for none.
        combine: "tanh" or "linear".

    >>> combined(torch.tensor([[0.5, 2.0]]), torch.eye(2), torch.tensor([[1, -1]]), "linear")
    tensor([[0.0000, 0.5000]])
    """
    used = torch.where(places < 0, 0.0, coefficients)
    total = torch.einsum("bk,bkl->bl", used, labels[places.clamp(min=0)])
    return total.tanh() if combine == "tanh" else total


def disagreement(y: Tensor, coefficients: Tensor, labels: Tensor, places: Tensor, combine: str = "tanh") -> Tensor:
    """The loss by which the label graph learns, one number per row: ||y - tanh(sum_i c_i A y_i)||^2.

    ``labels`` are A y, so that the gradient reaches A (the graph's weights), the classifier behind both kinds of
    labels and, where the similar examples were encoded with a gradient, the features of both. The coefficients are
    fixed. Arguments as of `combined`.
    """
    return (y - combined(coefficients, labels, places, combine)).square().sum(1)
