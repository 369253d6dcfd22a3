"""Data parallel training: a loss that means the same on one process and on many.

DDP averages the gradients of the processes. So that this average is the gradient of the loss of the *global* batch,
each process's share is scaled by the number of processes: the mean over processes of the values (and of the gradients)
is what one process would compute on the whole batch. Only small tensors travel: counts, sums, maxima, histograms.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from shortlist.errors import ShortlistError


def world_size(sync: bool | None) -> int:
    """How many processes share the batch: 1 unless ``torch.distributed`` is initialised and ``sync`` is not False."""
    ready = dist.is_available() and dist.is_initialized()
    if sync and not ready:
        raise ShortlistError(
            "sync=True needs torch.distributed.init_process_group to have been called; sync=None adapts"
        )
    return dist.get_world_size() if ready and sync is not False else 1


def sum_over_processes(x: Tensor, world: int) -> Tensor:
    """The sum of every process's ``x``, on every process; its derivative by the local ``x`` is ``world``."""
    if world == 1:
        return x
    total = x.detach().clone()
    dist.all_reduce(total)
    if not x.is_floating_point():
        return total
    return total + world * (x - x.detach())  # adds 0 to the value and `world` to the derivative


def max_over_processes(x: Tensor, world: int) -> Tensor:
    """The entry-wise largest of every process's ``x``; no gradient."""
    x = x.detach()
    if world > 1:
        x = x.clone()
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def sum_over_earlier_processes(count: Tensor, world: int) -> Tensor:
    """The sum of an integer scalar over the processes of lower rank (0 on one process)."""
    if world == 1:
        return torch.zeros_like(count)
    counts = torch.zeros(world, dtype=count.dtype, device=count.device)
    counts[dist.get_rank()] = count
    dist.all_reduce(counts)
    return counts[: dist.get_rank()].sum()


def gathered(mine: Any, world: int) -> list[Any]:
    """What every process has, in the order of their ranks: anything that can be pickled."""
    if world == 1:
        return [mine]
    parts: list[Any] = [None] * world
    dist.all_gather_object(parts, mine)
    return parts
