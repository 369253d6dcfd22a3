"""Which calibration rows limit which rows and labels: those of a group, and of a class or a cluster of classes.

A cell holds the rows that are calibrated together. Where nothing tells rows apart, there is one.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import on_host
from shortlist.sets._blocks import Block
from shortlist.sets._clusters import cluster_classes, forms_clusters
from shortlist.sets._quantiles import SortedScores

_REST = -1  # the cluster of the classes that have too few rows to be clustered


class Cells:
    """The nonconformity scores of calibration rows with a single label: by group of rows, then by class or cluster."""

    def __init__(self, by_class: bool, clusters: int | None, by_group: bool, weighted: bool) -> None:
        self.by_class, self.clusters, self.by_group, self.weighted = by_class, clusters, by_group, weighted
        self.groups: dict[str, dict[int, SortedScores]] = {}
        self.cluster_of: dict[int, int] = {}

    @property
    def _by_label(self) -> bool:
        return self.by_class or self.clusters is not None

    @property
    def _by_row(self) -> bool:
        return self.by_group or self.weighted

    def fill(
        self, values: NDArray[np.float64], labels: NDArray[np.int64], groups: NDArray[Any] | None, weights: Any
    ) -> None:
        """Take the scores of the true labels of all rows, in place of those before."""
        cell, used = np.zeros(len(values), np.int64), np.ones(len(values), bool)
        if self.by_class:
            cell = labels
        elif self.clusters is not None:
            forming = forms_clusters(labels)
            self.cluster_of = cluster_classes(values[forming], labels[forming], self.clusters)
            classes, where = np.unique(labels, return_inverse=True)
            cell = np.array([self.cluster_of.get(one, _REST) for one in classes.tolist()], np.int64)[where]
            used = ~forming
        names, code = np.array([""]), np.zeros(len(values), np.int64)
        if groups is not None:
            names, code = np.unique(groups, return_inverse=True)
        self.groups = {name: {} for name in names.tolist()}
        rows = np.flatnonzero(used)
        rows = rows[np.lexsort((cell[rows], code[rows]))]
        begins = np.flatnonzero(np.diff(code[rows], prepend=-1) | np.diff(cell[rows], prepend=-2))
        for part in np.split(rows, begins[1:]) if len(rows) else ():
            scores = SortedScores(values[part], None if weights is None else weights[part])
            self.groups[str(names[code[part[0]]])][int(cell[part[0]])] = scores

    def always_listed(self, rows_needed: int, num_labels: int) -> int:
        """How many labels have fewer calibration rows than that in each group."""
        cells = [cell for cells in self.groups.values() for cell in cells.items()]
        enough = {cell for cell, scores in cells if len(scores.values) >= rows_needed}
        if self.by_class:
            return num_labels - len(enough)
        if self.clusters is not None:
            small = sum(cluster not in enough for cluster in self.cluster_of.values())
            return small + (0 if _REST in enough else num_labels - len(self.cluster_of))
        return 0 if enough else num_labels

    def limits(self, block: Block, alpha: float) -> NDArray[np.float64]:
        """The largest score that gets in: (rows or 1, labels or 1)."""
        rows, num_labels = block.scores.shape
        limits = np.full((rows if self._by_row else 1, num_labels if self._by_label else 1), math.inf)
        for at, cells in self._of_rows(block):
            for labels, scores in self._of_labels(cells, num_labels):
                if block.weights is None:
                    limits[np.ix_(at, labels)] = scores.limit(alpha)
                else:
                    limits[np.ix_(at, labels)] = scores.limits(alpha, block.weights[at])[:, None]
        return limits

    def p_values(self, block: Block, every: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of ``every`` label's score in every row, what share of its cell scores at least so much."""
        p = np.ones_like(every)
        for at, cells in self._of_rows(block):
            at = at if self._by_row else np.arange(len(every))
            for labels, scores in self._of_labels(cells, every.shape[1]):
                labels = labels if self._by_label else np.arange(every.shape[1])
                new = None if block.weights is None else block.weights[at][:, None]
                p[np.ix_(at, labels)] = scores.p_values(every[np.ix_(at, labels)], new)
        return on_host(p)

    def _of_rows(self, block: Block) -> list[tuple[NDArray[np.int64], dict[int, SortedScores]]]:
        """Rows, and the cells of their group; rows of unknown groups have none."""
        every = np.arange(len(block.scores) if self._by_row else 1)
        if not self.by_group:
            return [(every, cells) for cells in self.groups.values()]
        assert block.groups is not None
        names, code = np.unique(block.groups, return_inverse=True)
        order = np.argsort(code, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
        return [(at, self.groups.get(name, {})) for name, at in zip(names.tolist(), parts, strict=len(names) > 0)]

    def _of_labels(
        self, cells: dict[int, SortedScores], num_labels: int
    ) -> list[tuple[NDArray[np.int64], SortedScores]]:
        """Labels, and the scores of their class or cluster; column 0 for all where they share them."""
        if self.clusters is None:
            return [(np.array([cell]), scores) for cell, scores in cells.items()]
        cluster = np.full(num_labels, _REST)
        if self.cluster_of:
            cluster[list(self.cluster_of)] = list(self.cluster_of.values())
        return [(np.flatnonzero(cluster == cell), scores) for cell, scores in cells.items()]
