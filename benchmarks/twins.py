"""The twins, which serve where no kernel does (k above 8, float64, MPS, XPU): how many kernels a GPU would launch for a
loss, forward and backward, and how much memory it takes.

usage: python -m benchmarks.twins [--write]
  --write   write the table of docs/gpu-kernels.md

Counted on a CPU, so that no GPU is needed: every operation that is not a view or an allocation is one launch. Memory is
the peak beyond the scores, as a multiple of them, of the tensors that are alive.
"""

import argparse
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import shortlist.functional as F
from shortlist import device_flags, kernels
from shortlist.functional import noised_topk

PAGE = Path(__file__).parents[1] / "docs" / "gpu-kernels.md"
BEGIN, END = "<!-- the twins, written by benchmarks/twins.py -->\n", "<!-- end of the twins -->"
ROWS, LABELS, MORE = 256, 1000, 10_000
_ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias")
# launches with 1,000 labels before twins had gradients of their own (commit 1d728b0)
BEFORE = {
    "smooth_topk_loss, k=1": 381, "smooth_topk_loss, k=5": 1402, "smooth_topk_loss, k=8": 2528,
    "smooth_topk_loss, k=20": 2464, "smooth_topk_loss, k=50": 4235, "topk_hinge_loss, k=20": 89,
    "log_subset_sum, k=5": 1311, "log_subset_sum, k=20": 2373, "subset_marginals, k=5": 3424, "lml, k=20": 270,
    "lml_loss, k=20": 429, "truncated_entropy_loss, k=20": 97, "noised_topk_loss, k=20": 243, "binary_loss": 54,
    "partial_binary_loss": 66, "asymmetric_loss": 114, "partial_selective_loss": 92, "two_way_loss": 195,
    "lsep_loss": 97, "multilabel_softmax_loss": 69, "assume_negative_loss": 74, "expected_positive_loss": 72,
    "average_k_loss": 251, "warp_loss": 163, "warp_loss, exact": 125, "rml_loss": 188,
}  # fmt: skip


class Launches(TorchDispatchMode):
    """Counts operations that a device would launch a kernel for, and the bytes that are alive at the same time."""

    def __init__(self, *given: Tensor) -> None:
        super().__init__()
        self.count = self.alive = self.peak = 0
        storages = [tensor.untyped_storage() for tensor in given]
        self._known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary(
            {storage._cdata: storage for storage in storages}
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.count += not func.is_view and func.overloadpacket.__name__ not in (*_ALLOCATIONS, "_unsafe_view")
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return out

    def _note(self, storage: Any) -> None:
        if storage._cdata not in self._known:
            self._known[storage._cdata] = storage
            self.alive += storage.nbytes()
            self.peak = max(self.peak, self.alive)
            weakref.finalize(storage, self._freed, storage.nbytes())

    def _freed(self, size: int) -> None:
        self.alive -= size


def losses(labels: int) -> dict[str, Callable[[Tensor], Tensor]]:
    random = torch.Generator().manual_seed(0)
    index = torch.randint(labels, (ROWS,), generator=random)
    matrix = (torch.rand(ROWS, labels, generator=random) < 5 / labels).to(torch.int8)
    upstream = torch.randn(ROWS, labels, generator=random)
    found: dict[str, Callable[[Tensor], Tensor]] = {}
    for k in (1, 5, 8, 20, 50):
        found[f"smooth_topk_loss, k={k}"] = lambda s, k=k: F.smooth_topk_loss(s, index, k)
        found[f"topk_hinge_loss, k={k}"] = lambda s, k=k: F.topk_hinge_loss(s, index, k)
        found[f"log_subset_sum, k={k}"] = lambda s, k=k: F.log_subset_sum(s, k).sum()
        found[f"subset_marginals, k={k}"] = lambda s, k=k: (F.subset_marginals(s, k) * upstream).sum()
        found[f"lml, k={k}"] = lambda s, k=k: (F.lml(s, k) * upstream).sum()
        found[f"lml_loss, k={k}"] = lambda s, k=k: F.lml_loss(s, index, k)
        found[f"truncated_entropy_loss, k={k}"] = lambda s, k=k: F.truncated_entropy_loss(s, index, k)
        found[f"noised_topk_loss, k={k}"] = lambda s, k=k: F.noised_topk_loss(s, index, k)
    for loss in (F.binary_loss, F.partial_binary_loss, F.asymmetric_loss, F.partial_selective_loss, F.two_way_loss,
                 F.lsep_loss, F.multilabel_softmax_loss, F.warp_loss, F.rml_loss):  # fmt: skip
        found[loss.__name__] = lambda s, loss=loss: loss(s, matrix)
    found["assume_negative_loss"] = lambda s: F.assume_negative_loss(s, index)
    found["expected_positive_loss"] = lambda s: F.expected_positive_loss(s, index, 2)
    found["average_k_loss"] = lambda s: F.average_k_loss(s, s, index, 2)
    found["warp_loss, exact"] = lambda s: F.warp_loss(s, matrix, exact=True)
    return {name: found[name] for name in BEFORE}


def measured(loss: Callable[[Tensor], Tensor], labels: int) -> tuple[int, float]:
    """Launches; peak memory beyond the scores, as a multiple of them. Targets are checked as on a device."""
    scores = torch.randn(ROWS, labels, generator=torch.Generator().manual_seed(1)).requires_grad_()
    as_on_a_device = patch.object(device_flags, "waits", lambda _: True)
    kernels.check()  # as every call on a device does, without waiting
    drawn = patch.dict(noised_topk.DRAWN_AT_ONCE, cpu=noised_topk.DRAWN_AT_ONCE["elsewhere"])
    with kernels.use("torch"), as_on_a_device, drawn:
        F.binary_loss(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.int8))  # the first call makes room for flags
        with Launches(scores) as seen:
            loss(scores).backward()
    return seen.count, seen.peak / (scores.numel() * scores.element_size())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [
        f"| loss, {ROWS} rows, float32 | launches before | launches | memory, {LABELS:,} labels | {MORE:,} labels |",
        "|---|---:|---:|---:|---:|",
    ]
    few, many = losses(LABELS), losses(MORE)
    for name, before in BEFORE.items():
        count, memory = measured(few[name], LABELS)
        lines.append(f"| `{name}` | {before:,} | {count:,} | {memory:.1f} | {measured(many[name], MORE)[1]:.1f} |")
        print(lines[-1], flush=True)
    if given.write:
        before_it, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before_it + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
