"""ROLE: the labels nobody recorded are estimated while the model trains, one row of estimates per training example."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import (
    check_choice,
    check_examples,
    check_indices,
    check_label_matrix,
    check_scores,
    in_compute_type,
    is_index_target,
    whole,
)
from shortlist.distributed import gathered, sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional.label_matrix import check_couples_batch, is_present
from shortlist.functional.reduction import reduce_over_processes

_START_SPREAD = torch.logit(torch.tensor(0.6, dtype=torch.float64)).item()
_START_OBSERVED = torch.logit(torch.tensor(0.995, dtype=torch.float64)).item()
_MANY = 1000
_ADAM = (0.9, 0.999, 1e-8)  # the usual decays of the means, and what is added to the root
_DROPPED_BITS = {torch.bfloat16: 16, torch.float16: 13}  # mantissa bits that float32 has more


class ROLELoss(nn.Module):
    """Regularised online label estimation (ROLE): the model and a table of label estimates teach each other.

    Formula:
        half of [ f(p; q) + f(q; p) ],  p = sigmoid(s),  q = sigmoid(T[example])
        f(p; q) = 1/(|B| L) sum_ij( -[y_ij = 1] log p_ij  -  q_ij log p_ij - (1 - q_ij) log(1 - p_ij) )
            + beta ((mean_i sum_j p_ij - k) / L)^2,   the second argument held fixed

    Use it when:
        one label (or a few) per example was recorded, others apply too, and the training set is seen for many epochs.

    Needs:
        indices or label matrix, unknowns, example index
        Labels that are absent or unknown alike are estimated: the method learns from present labels only. Rows with no
        present label are left out.

    Reference:
        Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021.

    Options:
        num_examples, num_labels: size of the table. k: expected number of labels per example.
        beta: strength of the regulariser.
        lr_multiple: the table's learning rate, as a multiple of the model's.
        optimizer: of the table: "sgd", or "adam" as published, which needs two more tables in memory and moves every
            row in every step.
        dtype: torch.float32, or float16 or bfloat16 with stochastic rounding (half the memory).
        path: keep the table in this file, memory-mapped, in place of memory; started afresh. One file per process.
        seed: of the table's start and of the rounding.
        reduction: "mean" or "sum" (the mean times the number of rows): the regulariser couples the batch.
        sync: act on the global batch of all processes; None means yes when ``torch.distributed`` is initialised.

    The table is not a parameter, so that no optimizer keeps state for it or decays it: after ``optimizer.step()`` call
    ``role.step(lr)``. It is one step of plain gradient descent on the rows seen since the last one, with the gradient
    of the *summed* loss (an entry is seen once per epoch, so its speed should not depend on batch size or label count).
    With "adam" it is one step of Adam on the whole table, whose unseen rows have the gradient 0 and go on moving.
    The state dict holds the table, which rows have been seen, the random state and Adam's means: a resumed run goes on
    unchanged.

    Example:
        >>> role = ROLELoss(num_examples=100, num_labels=5, k=2)
        >>> scores = torch.zeros(2, 5, requires_grad=True)
        >>> loss = role(scores, torch.tensor([3, 0]), torch.tensor([17, 42]))  # examples 17 and 42 of the training set
        >>> loss.backward()
        >>> role.step(lr=0.1)
        >>> role.estimates(torch.tensor([17])).shape
        torch.Size([1, 5])
    """

    table: Tensor
    seen: Tensor

    def __init__(
        self,
        num_examples: int,
        num_labels: int,
        k: float,
        *,
        beta: float = 1.0,
        lr_multiple: float = 10.0,
        optimizer: str = "sgd",
        dtype: torch.dtype = torch.float32,
        path: str | Path | None = None,
        seed: int = 0,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__()
        check_couples_batch(reduction, "ROLELoss")
        whole(num_examples, "num_examples", 1)
        whole(num_labels, "num_labels", 1)
        if not 0 < k <= num_labels:
            raise ShortlistError(f"k must be above 0 and at most {num_labels} (the number of labels), got {k!r}")
        if dtype != torch.float32 and dtype not in _DROPPED_BITS:
            raise ShortlistError(f"dtype must be torch.float32, torch.float16 or torch.bfloat16, got {dtype}")
        check_choice(optimizer, "optimizer", ("sgd", "adam"))
        if optimizer == "adam" and dtype != torch.float32:
            raise ShortlistError(f"optimizer='adam' needs dtype=torch.float32, got {dtype}: half is for 'sgd'")
        self.num_labels, self.k, self.beta, self.lr_multiple = num_labels, k, beta, lr_multiple
        self.reduction, self.sync = reduction, sync
        self.generator = torch.Generator().manual_seed(seed)
        # plain attributes, not buffers: .half() and .to(device) leave them alone, and DDP does not broadcast them
        if path is None:
            self.table = torch.empty(num_examples, num_labels, dtype=dtype)
        else:
            size = num_examples * num_labels
            self.table = torch.from_file(str(path), shared=True, size=size, dtype=dtype).view(num_examples, num_labels)
        self.seen = torch.zeros(num_examples, dtype=torch.bool)
        for start in range(0, num_examples, 65536):  # in parts: the float32 draws need not fit in memory at once
            rows = self.table[start : start + 65536]
            rows.copy_((torch.rand(rows.shape, generator=self.generator) * 2 - 1) * _START_SPREAD)
        self.means: Tensor | None = None  # Adam's, of the gradient and of its square
        self.steps = torch.zeros((), dtype=torch.int64)
        if optimizer == "adam":
            self.means = torch.zeros(2, num_examples, num_labels)
        self._pending: list[tuple[Tensor, Tensor, Tensor]] = []  # examples, their present labels, the table's gradient

    def forward(self, scores: Tensor, target: Tensor, index: Tensor) -> Tensor:
        """The loss of a batch; in training mode also notes the table's gradient for the next `step`.

        ``index``: which training example each row is, 0..num_examples-1.
        """
        present, observed = self._read(scores, target, index)
        rows = index.detach().cpu().long()
        if self.training:
            self._start_rows(rows, present.cpu())
        x = torch.where(observed.unsqueeze(-1), in_compute_type(scores), 0.0)
        estimate = self.table[rows].to(device=x.device, dtype=x.dtype)
        world = world_size(self.sync)
        counts = observed.to(x.dtype)
        loss = (
            self._one_side(x, estimate.sigmoid(), present, counts, world)
            + self._one_side(estimate, x.detach().sigmoid(), present, counts, world)
        ) / 2
        if self.training:
            if len(self._pending) == _MANY:
                raise ShortlistError(f"{_MANY} batches without a step: call role.step(lr) after optimizer.step()")
            gradient = self._table_gradient(estimate, x.detach(), present, counts, world)
            self._pending.append((rows, present.cpu(), gradient.cpu()))
        return loss.to(scores.dtype)

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Move the table's rows seen since the last step; ``lr`` is the model's learning rate."""
        # every process moves every row, in the same order
        pending = [update for updates in gathered(self._pending, world_size(self.sync)) for update in updates]
        self._pending = []
        if not pending:
            return
        examples, present, gradients = (torch.cat(parts) for parts in zip(*pending, strict=True))
        self._start_rows(examples, present)  # those that only another process has seen so far
        rows, inverse = examples.unique(return_inverse=True)
        gradient = torch.zeros(len(rows), self.num_labels).index_add_(0, inverse, gradients)
        if self.means is not None:
            self._adam_step(self.means, lr * self.lr_multiple, rows, gradient)
            return
        self.table[rows] = self._rounded(self.table[rows].float() - lr * self.lr_multiple * gradient)

    def _adam_step(self, means: Tensor, lr: float, rows: Tensor, gradient: Tensor) -> None:
        """One step of Adam; the gradient of the other rows is 0."""
        first, second, tiny = _ADAM
        self.steps += 1
        means[0].mul_(first).index_add_(0, rows, gradient, alpha=1 - first)
        means[1].mul_(second).index_add_(0, rows, gradient**2, alpha=1 - second)
        corrected = [mean / (1 - decay ** int(self.steps)) for mean, decay in zip(means, _ADAM, strict=False)]
        self.table -= lr * corrected[0] / (corrected[1].sqrt() + tiny)

    def estimates(self, index: Tensor) -> Tensor:
        """Estimated probabilities of the labels of training examples."""
        return self.table[index.cpu()].float().sigmoid().to(index.device)

    def _one_side(self, x: Tensor, other: Tensor, present: Tensor, counts: Tensor, world: int) -> Tensor:
        """f(p; q) with p = sigmoid(x) and q = other."""
        positive = torch.where(present, -F.logsigmoid(x), 0.0)
        cross = -other * F.logsigmoid(x) - (1.0 - other) * F.logsigmoid(-x)
        loss = reduce_over_processes((positive + cross).mean(-1), counts, self.reduction, world)
        excess, total = self._excess(x, counts, world)
        regulariser = self.beta * torch.where(total > 0, excess / self.num_labels, 0.0) ** 2
        return loss + (regulariser if self.reduction == "mean" else regulariser * total)

    def _excess(self, x: Tensor, counts: Tensor, world: int) -> tuple[Tensor, Tensor]:
        """How far the mean expected number of labels is above k, and over how many rows the mean runs."""
        total = sum_over_processes(counts.sum(), world)
        expected = sum_over_processes((counts * x.sigmoid().sum(-1)).sum(), world)
        return expected / torch.where(total > 0, total, 1.0) - self.k, total

    def _table_gradient(self, estimate: Tensor, x: Tensor, present: Tensor, counts: Tensor, world: int) -> Tensor:
        """d(|B| L times f(q; p))/dT: of the summed loss."""
        q = estimate.sigmoid()
        excess, _ = self._excess(estimate, counts, world)
        gradient = q - x.sigmoid() - torch.where(present, 1.0 - q, 0.0)
        gradient = gradient + 2.0 * self.beta * excess / self.num_labels * q * (1.0 - q)
        return (counts.unsqueeze(-1) * gradient / 2).float()

    def _start_rows(self, rows: Tensor, present: Tensor) -> None:
        """Observed labels of rows never seen before start at a probability of 0.995."""
        new = ~self.seen[rows]
        if bool(new.any()):
            rows, present = rows[new], present[new]
            self.table[rows] = torch.where(present, _START_OBSERVED, self.table[rows].float()).to(self.table.dtype)
            self.seen[rows] = True

    def _rounded(self, x: Tensor) -> Tensor:
        """In the table's type; up or down at random in proportion, so that steps below its resolution still add up."""
        dropped = _DROPPED_BITS.get(self.table.dtype)
        if dropped is None:
            return x
        noise = torch.randint(0, 2**dropped, x.shape, generator=self.generator, dtype=torch.int32)
        bits = (x.view(torch.int32) + noise).bitwise_and(-(2**dropped))
        return bits.view(torch.float32).to(self.table.dtype)

    def _read(self, scores: Tensor, target: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """Check the batch; which labels are present, and which rows have one."""
        check_scores(scores)
        if scores.ndim != 2 or scores.shape[1] != self.num_labels:
            raise ShortlistError(f"scores must have shape (rows, {self.num_labels}), got {tuple(scores.shape)}")
        if is_index_target(scores, target):
            target = check_indices(scores, target)
        else:
            check_label_matrix(scores, target)
        present = is_present(target, scores)
        check_examples(scores, index, len(self.table))
        return present, present.any(-1)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "table"] = self.table if keep_vars else self.table.detach()
        destination[prefix + "seen"] = self.seen
        destination[prefix + "generator"] = self.generator.get_state()
        if self.means is not None:
            destination[prefix + "means"], destination[prefix + "steps"] = self.means, self.steps

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        *_, missing, _, errors = args
        for name in ("table", "seen", "generator", *(("means", "steps") if self.means is not None else ())):
            if prefix + name not in state_dict:
                missing.append(prefix + name)
                continue
            value = state_dict[prefix + name]
            if name == "generator":
                self.generator.set_state(value.cpu())
            elif value.shape != getattr(self, name).shape:
                here = tuple(getattr(self, name).shape)
                errors.append(f"{prefix + name} has shape {tuple(value.shape)}, here it is {here}")
            else:
                getattr(self, name).copy_(value)  # in place: a table in a file stays there
        self._pending = []

    def extra_repr(self) -> str:
        return f"{len(self.table)} examples, {self.num_labels} labels, k={self.k}, {self.table.dtype}"
