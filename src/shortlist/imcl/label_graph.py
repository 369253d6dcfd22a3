"""The label graph: how much each label speaks for each other one; identity at the start, learned on a given support."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError

_BLOCK_ENTRIES = 1 << 24  # edges times rows looked at together where no gradient is wanted


class Edge(NamedTuple):
    """``weight`` of label ``source`` in what label ``to`` becomes."""

    source: int
    to: int
    weight: float


class LabelGraph(nn.Module):
    """A matrix A of labels by labels, sparse: 1 on the diagonal for ever, learned weights on the edges, 0 elsewhere.

    Calling it with predictions (rows, labels) gives A y for every row: each label's own value plus those of its
    neighbours, weighted. All weights start at 0, so that A starts as the identity.

    Args:
        num_labels: number of labels.
        edges: (2, E) the labels that speak, and the labels they speak for; none from a label to itself, none twice.

    >>> graph = LabelGraph.from_matrix(torch.tensor([[0, 1], [0, 0]]))  # label 1 speaks for label 0
    >>> graph(torch.tensor([[0.0, 1.0]]))
    tensor([[0., 1.]], grad_fn=<AddBackward0>)
    >>> _ = graph.weight.data.fill_(0.5)
    >>> graph(torch.tensor([[0.0, 1.0]]))
    tensor([[0.5000, 1.0000]], grad_fn=<AddBackward0>)
    >>> graph.strongest()
    [Edge(source=1, to=0, weight=0.5)]
    """

    edges: Tensor

    def __init__(self, num_labels: int, edges: Tensor) -> None:
        super().__init__()
        if num_labels < 1:
            raise ShortlistError(f"num_labels must be at least 1, got {num_labels}")
        edges = edges.long()
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ShortlistError(f"edges must have shape (2, number of edges), got {tuple(edges.shape)}")
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < num_labels:
            bad = int(edges[(edges < 0) | (edges >= num_labels)][0])
            raise ShortlistError(f"edges hold label {bad}: allowed are 0..{num_labels - 1}")
        if bool((edges[0] == edges[1]).any()):
            label = int(edges[0][edges[0] == edges[1]][0])
            raise ShortlistError(
                f"edges must join two labels, label {label} is joined to itself: the diagonal is fixed"
            )
        if edges.shape[1] != len(torch.unique(edges[0] * num_labels + edges[1])):
            raise ShortlistError("edges hold a pair of labels twice")
        self.num_labels = num_labels
        self.register_buffer("edges", edges.clone())
        self.weight = nn.Parameter(torch.zeros(edges.shape[1]))

    # ---- supports

    @classmethod
    def from_matrix(cls, matrix: Tensor) -> "LabelGraph":
        """Edges where an (L, L) matrix is not 0: entry (i, j) lets label j speak for label i. The diagonal is fixed."""
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ShortlistError(f"a graph's matrix has shape (labels, labels), got {tuple(matrix.shape)}")
        to, source = (matrix != 0).nonzero(as_tuple=True)
        return cls(len(matrix), torch.stack([source, to])[:, source != to])

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
    def from_vectors(cls, vectors: Tensor, neighbours: int = 10) -> "LabelGraph":
        """Each label listens to the ``neighbours`` labels whose word vectors make the smallest angle with its own.

        >>> LabelGraph.from_vectors(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.9, 0.5]]), neighbours=1).edges
        tensor([[1, 0, 1], [0, 1, 2]])
        """
        if vectors.ndim != 2 or not bool(vectors.isfinite().all()):
            raise ShortlistError(
                f"word vectors must be finite numbers (labels, dimensions), got {tuple(vectors.shape)}"
            )
        unit = F.normalize(vectors.float(), dim=1)
        return cls.nearest(unit @ unit.T, neighbours)

    @classmethod
    def nearest(cls, similarity: Tensor, neighbours: int) -> "LabelGraph":
        """Edges to each label from the labels of largest positive similarity in its row."""
        if neighbours < 0:
            raise ShortlistError(f"neighbours must be at least 0, got {neighbours}")
        others = similarity.float().clone().fill_diagonal_(-float("inf"))
        value, source = others.sort(dim=1, descending=True, stable=True)
        value, source = value[:, :neighbours], source[:, :neighbours]
        to = torch.arange(len(similarity), device=source.device).unsqueeze(1).expand_as(source)
        return cls(len(similarity), torch.stack([source[value > 0], to[value > 0]]))

    # ---- use

    def forward(self, predictions: Tensor) -> Tensor:
        """A y of every row of (rows, labels)."""
        if predictions.ndim != 2 or predictions.shape[1] != self.num_labels:
            raise ShortlistError(
                f"predictions must have shape (rows, {self.num_labels}), got {tuple(predictions.shape)}"
            )
        if torch.is_grad_enabled():
            return predictions + self._from_neighbours(predictions)
        rows = max(1, _BLOCK_ENTRIES // max(1, len(self.weight)))
        return torch.cat([part + self._from_neighbours(part) for part in predictions.split(rows)])

    def _from_neighbours(self, predictions: Tensor) -> Tensor:
        # labels first: whole rows are gathered and added, which is many times faster than columns
        source, to = self.edges
        heard = predictions.T[source] * self.weight.to(predictions.dtype).unsqueeze(1)
        return torch.zeros_like(predictions.T).index_add(0, to, heard).T

    def weights(self) -> Tensor:
        """A as a sparse (L, L) tensor, diagonal included."""
        own = torch.arange(self.num_labels, device=self.edges.device).expand(2, -1)
        place = torch.cat([own, self.edges.flip(0)], 1)
        value = torch.cat([self.weight.new_ones(self.num_labels), self.weight.detach()])
        return torch.sparse_coo_tensor(place, value, [self.num_labels] * 2, check_invariants=True).coalesce()

    def strongest(self, count: int = 50) -> list[Edge]:
        """The edges of largest absolute weight, strongest first; those of weight 0 left out."""
        order = self.weight.detach().abs().argsort(descending=True, stable=True)[:count]
        source, to = self.edges[:, order].tolist()
        found = zip(source, to, self.weight.detach()[order].tolist(), strict=True)
        return [Edge(*edge) for edge in found if edge[2] != 0]

    def extra_repr(self) -> str:
        return f"{self.num_labels} labels, {len(self.weight)} edges"

