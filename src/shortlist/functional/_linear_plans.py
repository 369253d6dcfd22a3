"""How a loss goes through the blocks of a linear head's scores: by rows, and most twice that couple the rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import holds_shares
from shortlist.distributed import max_over_processes, sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, wide
from shortlist.functional._linear_head import ALL, Head, blocks, unmade_scores
from shortlist.functional.average_k import average_k_loss, largest_entries
from shortlist.functional.binary import binary_loss
from shortlist.functional.expected_positive import expected_positive_loss, expected_positive_rows
from shortlist.functional.noised_topk import noised_topk_loss, rows_of_a_draw
from shortlist.functional.reduction import NotedMean
from shortlist.functional.two_way import two_way_loss
from shortlist.labels.sparse_labels import SparseLabels, dense_labels

Entries = tuple[Tensor, Tensor]  # rows, and a label of each
_AT_ONCE = 2**19  # scores that are gone through several times while a cache holds them
BY_ROW = ("mask", "sample_weight", "k")  # options that may have one entry per row


@dataclass(eq=False)
class Plan:
    """A loss of rows in one dimension, its target and options; ``run`` gives the value, and what the gradients that the
    heads have gathered are to be multiplied by. ``upstream``: of each row's loss, where they stay apart."""

    loss: Callable[..., Tensor]
    target: Tensor | SparseLabels
    options: dict[str, Any]
    memory: int

    arrays = 2  # of the size of a block of scores: the scores and their gradient

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def check_options(self, no_rows: list[Tensor]) -> None:
        """Let the loss itself say what is wrong with its options, of which a plan looks at a few only."""
        self.loss(*no_rows, self.target[:0], **self.of_rows(slice(0, 0), sync=False))

    @property
    def reduction(self) -> str:
        return self.options.get("reduction", "mean")

    @property
    def world(self) -> int:
        return world_size(self.options.get("sync"))

    def of_rows(self, rows: slice, **changes: Any) -> dict[str, Any]:
        """The options for a block of rows."""
        chosen = {
            name: value[rows] if name in BY_ROW and value.ndim else value
            for name, value in self.options.items()
            if isinstance(value, Tensor)
        }
        return self.options | chosen | changes

    def row_blocks(self, head: Head, multiple: int = 1) -> Iterator[slice]:
        return blocks(len(head), self.arrays * head.num_labels * head.entry_bytes, self.memory, multiple)

    def index_and_weight(self, head: Head) -> tuple[Tensor, Tensor]:
        """Of a loss with one label per row: which (-1 for none), and how much each row counts."""
        target, soft = self.target, self.options.get("soft")
        if soft is None and isinstance(target, Tensor) and target.ndim == 2 and not device_flags.waits(target):
            soft = holds_shares(target)
        if soft:
            raise ShortlistError(
                f"linear_loss takes class indices or a label matrix with {self.loss.__name__}, not shares of labels: "
                f"make the scores, and call {self.loss.__name__} on them"
            )
        counted = (self.options.get("mask"), self.options.get("weight"), self.options.get("sample_weight"))
        unmade = unmade_scores(head.features, head.num_labels)
        _, index, counts = _targets.single_positive(unmade, self.target, counted, native=True)
        return index, counts

    def random_state(self) -> Tensor | None:
        """Of the generator that the loss draws from; None where it draws nothing."""
        generator = self._generator()
        return None if generator is None else generator.get_state()

    @contextmanager
    def random_state_set(self, state: Tensor | None) -> Iterator[None]:
        """Draw again what was drawn."""
        generator = self._generator()
        if generator is None or state is None:
            yield
            return
        now = generator.get_state()
        generator.set_state(state)
        try:
            yield
        finally:
            generator.set_state(now)

    def _generator(self) -> torch.Generator | None:
        if "generator" not in self.loss.__code__.co_varnames:
            return None
        given: torch.Generator | None = self.options.get("generator")
        if given is not None or self.target.device.type != "cuda":
            return given or torch.default_generator
        return torch.cuda.default_generators[self.target.device.index or 0]


class ByRows(Plan):
    """A loss of single rows."""

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        multiple = rows_of_a_draw(head.num_labels, self.target.device) if self.loss is noised_topk_loss else 1
        if self.reduction == "none":
            parts = [self._apart(head, rows, upstream) for rows in self.row_blocks(head, multiple)]
            return torch.cat(parts).to(head.kind), torch.ones((), device=self.target.device)
        total = observed = wide(head.features.new_zeros(()))
        for rows in self.row_blocks(head, multiple):
            mean, count = self._together(head, rows)
            total, observed = total + mean * count, observed + count
        factor = self.world / self.divisor(observed)
        return (total * factor).to(head.kind), factor

    def divisor(self, observed: Tensor) -> Tensor:
        """What the sum over all rows is divided by, over all processes."""
        if self.reduction == "sum":
            return torch.ones_like(observed)
        everywhere = sum_over_processes(observed, self.world)
        return torch.where(everywhere > 0, everywhere, 1.0)

    def _together(self, head: Head, rows: slice) -> tuple[Tensor, Tensor]:
        """The mean over a block and what it was divided by; its scores are gone when the next block's are made."""
        scores, noted = head.scores(rows), NotedMean()
        with head.graph(scores):
            loss = self.loss(scores, self.target[rows], **self.of_rows(rows, reduction=noted, sync=False))
        if not hasattr(noted, "observed"):
            raise ShortlistError(
                f"{self.loss.__name__} forms a mean of its own, which cannot be put together of blocks: linear_loss "
                f"takes losses of shortlist.functional, and those made as CONTRIBUTING.md shows"
            )
        head.add_of(loss, scores, rows, factor=noted.observed)
        return wide(loss.detach()), wide(noted.observed)

    def _apart(self, head: Head, rows: slice, upstream: Tensor | None) -> Tensor:
        scores = head.scores(rows)
        with head.graph(scores):
            losses = self.loss(scores, self.target[rows], **self.of_rows(rows, sync=False))
            weighted = None if upstream is None else (losses * upstream[rows]).sum()
        if weighted is not None:  # outside of the graph, which would keep what every block has added
            head.add_of(weighted, scores, rows)
        return losses.detach()


class TwoWay(ByRows):
    """The class way by blocks of labels, whose columns it does not couple; then the sample way by blocks of rows."""

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        most_rows = int(max_over_processes(torch.tensor(len(head)), self.world))  # the same blocks on every process
        weight, mask = self.options.get("sample_weight"), self.options.get("mask")
        counts = head.features.new_ones(len(head)) if weight is None else weight
        counts = wide(counts)
        value = columns = wide(head.features.new_zeros(()))
        has_present = torch.zeros_like(counts, dtype=torch.bool)
        for labels in blocks(head.num_labels, self.arrays * most_rows * head.entry_bytes, self.memory):
            target, part = dense_labels(self.target[:, labels]), None if mask is None else mask[:, labels]
            value = value + self._columns(head, labels, target, part)
            present = target == 1 if part is None else (target == 1) & part
            has_present |= present.any(-1)
            seen = (present & (counts > 0).unsqueeze(-1)).any(0).int()
            columns = columns + max_over_processes(seen, self.world).sum()
        of_columns = torch.ones_like(columns) if self.reduction == "sum" else 1 / columns.clamp(min=1)
        value = value * of_columns
        if self.options.get("way", "both") == "class":
            return value.to(head.kind), of_columns
        of_rows = self.world / self.divisor(torch.where(has_present, counts, 0.0).sum())
        head.rescale(of_columns / of_rows)
        rows = ByRows(self.loss, self.target, self.options | {"way": "sample"}, self.memory)
        sample, factor = rows.run(heads)
        return (value + wide(sample)).to(head.kind), factor

    def _columns(self, head: Head, labels: slice, target: Tensor, mask: Tensor | None) -> Tensor:
        """The sum of the class way over a block of labels."""
        scores = head.scores(ALL, labels)
        with head.graph(scores):
            loss = self.loss(scores, target, **self.options | {"mask": mask, "way": "class", "reduction": "sum"})
        head.add_of(loss, scores, ALL, labels)
        return wide(loss.detach())


class ExpectedPositive(Plan):
    """The mean number of expected labels first; then its square has a known slope."""

    arrays = 5

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        index, counts = self.index_and_weight(head)
        mask, k, beta = self.options.get("mask"), self.options["k"], self.options.get("beta", 0.01)
        positives = expected = wide(counts.new_zeros(()))
        parts = list(self.row_blocks(head))

        def terms(rows: slice, scores: Tensor) -> tuple[Tensor, Tensor]:
            positive, chances = expected_positive_rows(scores, index[rows], None if mask is None else mask[rows])
            weighted = torch.where(counts[rows] > 0, positive * counts[rows], 0.0)
            return weighted.sum(), (counts[rows] * chances).sum()

        for rows in parts:
            positive, chances = terms(rows, head.scores(rows))
            positives, expected = positives + wide(positive), expected + wide(chances)
        total = sum_over_processes(wide(counts.sum()), self.world)
        divisor = torch.where(total > 0, total, 1.0)
        excess = torch.where(total > 0, sum_over_processes(expected, self.world) / divisor - k, 0.0)
        scale = head.num_labels if self.options.get("normalize", False) else 1
        value = self.world * positives / divisor / scale + beta * excess**2 / scale**2
        factor = self.world / (divisor * scale)
        slope = (2 * beta * excess / scale).to(counts.dtype)
        for rows in parts if head.learns else ():
            scores = head.scores(rows)
            with head.graph(scores):
                positive, chances = terms(rows, scores)
                loss = positive + slope * chances
            head.add_of(loss, scores, rows)
            del scores, positive, chances, loss  # before the next block is made
        if self.reduction == "sum":
            value, factor = value * total, factor * total
        return value.to(head.kind), factor


class _Largest:
    """The ``count`` largest of numbers that come in order, a few at a time; of later ones only those above ``bar``."""

    def __init__(self, count: int) -> None:
        self.count, self.bar = count, float("-inf") if count else float("inf")
        self._parts: list[tuple[Tensor, Tensor]] = []  # numbers, and the place of each
        self._held = 0

    def take(self, values: Tensor, places: Tensor) -> None:
        self._parts.append((values, places))
        self._held += len(places)
        if self._held > 2 * self.count + 2**16:  # not often: it takes a few passes over them
            values, places = self.held()
            kept = largest_entries(values, torch.ones_like(places, dtype=torch.bool), places.new_tensor(self.count), 1)
            self._parts, self._held = [(values[kept], places[kept])], self.count
            self.bar = float(values[kept].min())

    def held(self) -> tuple[Tensor, Tensor]:
        """Them, and perhaps others."""
        values, places = zip(*self._parts, strict=True)
        return torch.cat(values), torch.cat(places)


class AverageK(Plan):
    """The proposals first: their rows are done with at once, and what may be a candidate of the batch is kept on the
    way. With the candidates known, every row of set scores is its own."""

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sets, proposals = heads
        index, counts = self.index_and_weight(sets)
        parts, mask, labels = list(self.row_blocks(sets)), self.options.get("mask"), sets.num_labels
        usable = torch.full_like(index, labels) if mask is None else mask.sum(-1)
        total = sum_over_processes(counts.sum().double(), self.world)
        own_share = self.world / torch.where(total > 0, total, 1.0)
        value, candidates = self._of_proposals(proposals, parts, index, counts, own_share, usable)
        proposals.forget_block()
        rows_of = candidates // labels
        of_candidates = counts[rows_of].sum().double()
        of_others = sum_over_processes(
            torch.stack([of_candidates, (counts * (usable - 1)).sum().double() - of_candidates]), self.world
        )
        alpha = float(self.options.get("alpha", 1.0))
        shares = (own_share, *(self.world * alpha / torch.where(of_others > 0, of_others, 1.0)))
        for rows in parts:
            inside = (rows_of >= rows.start) & (rows_of < rows.stop)
            chosen = (rows_of[inside] - rows.start, candidates[inside] % labels)
            value = value + self._of_sets(sets, rows, index[rows], chosen, counts[rows], shares)
        factor = torch.ones_like(total) if self.reduction == "mean" else total
        return (value * factor).to(sets.kind), factor

    def _of_proposals(
        self, head: Head, parts: list[slice], index: Tensor, counts: Tensor, share: Tensor, usable: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy, and its gradient; and the candidates, flat positions in their order."""
        mask, labels, own = self.options.get("mask"), head.num_labels, index.clamp(min=0).unsqueeze(-1)
        observed, weight, most = (counts > 0).unsqueeze(-1), counts * share, huge(counts)
        all_observed, found = bool(observed.all()), []
        everywhere = sum_over_processes(observed.sum(), self.world)
        wanted = (wide(everywhere) * (self.options["k"] - 1.0) + 0.5).floor().long()
        largest = _Largest(int(wanted))
        for rows in parts:
            scores = head.scores(rows)
            gradient = head.gradient_memory(scores)
            for few in blocks(len(scores), labels, _AT_ONCE):
                here = slice(rows.start + few.start, rows.start + few.stop)
                bounded_scores = scores[few].clamp_(-most, most)
                if mask is not None:
                    bounded_scores.masked_fill_(~mask[here], float("-inf"))
                shares = torch.log_softmax(bounded_scores, -1, out=gradient[few])
                if not all_observed:
                    shares.masked_fill_(~observed[here], float("-inf"))
                found.append(shares.gather(-1, own[here]))
                shares.scatter_(-1, own[here], float("-inf"))
                flat = shares.flatten()
                places = (flat > largest.bar).nonzero().squeeze(-1)
                largest.take(flat[places], places + here.start * labels)
                if head.learns:
                    shares.exp_().scatter_(-1, own[here], found[-1].expm1()).mul_(weight[here].unsqueeze(-1))
            if head.learns:
                if mask is not None:
                    gradient.masked_fill_(~mask[rows], 0.0)  # a NaN in the row, too, leaves what is masked alone
                head.add(gradient, rows)
        surprise = -torch.cat(found).squeeze(-1)
        eligible = torch.where((counts > 0) & ~surprise.isnan(), usable - 1, 0).sum()
        count = torch.minimum(wanted, sum_over_processes(eligible, self.world))
        values, places = largest.held()
        chosen = largest_entries(values, torch.ones_like(places, dtype=torch.bool), count, self.world)
        return wide(torch.where(weight > 0, surprise * weight, 0.0)).sum(), places[chosen]

    def _of_sets(
        self, head: Head, rows: slice, index: Tensor, chosen: Entries, weight: Tensor, shares: Sequence[Tensor]
    ) -> Tensor:
        """Negatives by the kernel of the binary loss, to which the few others are unknown; those by hand."""
        mask, scores, labels = self.options.get("mask"), head.scores(rows), head.num_labels
        known = (index >= 0).nonzero().squeeze(-1)
        by_hand = [(known, index[known]), chosen]
        flat = torch.cat([of * labels + label for of, label in by_hand]).sort().values
        offsets = torch.searchsorted(flat, torch.arange(len(index) + 1, device=flat.device) * labels)
        values = F.pad(torch.full_like(flat, -1, dtype=torch.int8), (0, 1))  # all the rest: absent
        target = SparseLabels.made(offsets, flat % labels, values, labels)
        part, of_row = None if mask is None else mask[rows], weight * torch.where(shares[2] > 0, shares[2], 1.0)
        with head.graph(scores):
            negatives = binary_loss(scores, target, mask=part, sample_weight=of_row, reduction="sum", sync=False)
            negatives = negatives * (shares[2] > 0)  # alpha = 0: a NaN is still told
        value = wide(negatives.detach())
        gradient = torch.autograd.grad(negatives, scores)[0] if head.learns else None
        for entries, share in zip(by_hand, shares, strict=False):
            there, of_row = bounded(scores.detach()[entries]), weight[entries[0]] * share
            value = value + wide(torch.where(of_row > 0, -F.logsigmoid(there) * of_row, 0.0).sum())
            if gradient is not None:
                gradient[entries] = torch.where(of_row > 0, -(-there).sigmoid() * of_row, 0.0)
        if gradient is not None:
            head.add(gradient, rows)
        return value


_COUPLED = {average_k_loss: AverageK, expected_positive_loss: ExpectedPositive}


def plan_of(loss: Callable[..., Tensor], target: Tensor | SparseLabels, options: dict[str, Any], memory: int) -> Plan:
    if loss is two_way_loss:
        kind: type[Plan] = ByRows if options.get("way") == "sample" else TwoWay
    else:
        kind = _COUPLED.get(loss, ByRows)
    return kind(loss, target, options, memory)
