"""The losses on a GPU, forward and backward, against cross-entropy: time and peak memory beyond the scores.

usage: python -m benchmarks.gpu [--rows 256] [--k 5] [--markdown FILE]

Not part of `make bench`: it needs a GPU, and says so where there is none. Each call counts the median of its runs, by
the device's own clock.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import shortlist.functional as F
from shortlist import kernels

LABELS = (1000, 8192, 32768, 131072)


def losses(k: int, rows: int, labels: int, device: str = "cuda") -> dict[str, Callable[[Tensor], Tensor]]:
    index = torch.randint(labels, (rows,), device=device)
    matrix = (torch.rand(rows, labels, device=device) < 5 / labels).to(torch.int8)
    partial = torch.where(torch.rand(rows, labels, device=device) < 0.5, matrix, -1)
    upstream = torch.randn(rows, labels, device=device)
    return {
        "cross-entropy (PyTorch)": lambda s: torch.nn.functional.cross_entropy(s, index),
        "binary cross-entropy (PyTorch)": lambda s: torch.nn.functional.binary_cross_entropy_with_logits(
            s, matrix.to(s.dtype)
        ),
        f"smooth_topk_loss, k={k}": lambda s: F.smooth_topk_loss(s, index, k),
        f"topk_hinge_loss, k={k}": lambda s: F.topk_hinge_loss(s, index, k),
        f"truncated_entropy_loss, k={k}": lambda s: F.truncated_entropy_loss(s, index, k),
        f"truncated_entropy_loss, label matrix, k={k}": lambda s: F.truncated_entropy_loss(s, matrix, k),
        f"lml_loss, k={k}": lambda s: F.lml_loss(s, index, k),
        f"lml, k={k}": lambda s: (F.lml(s, k) * upstream).sum(),
        f"log_subset_sum, k={k}": lambda s: F.log_subset_sum(s, k).sum(),
        f"subset_marginals, k={k}": lambda s: (F.subset_marginals(s, k) * upstream).sum(),
        "binary_loss": lambda s: F.binary_loss(s, matrix),
        "partial_binary_loss": lambda s: F.partial_binary_loss(s, partial),
        "asymmetric_loss": lambda s: F.asymmetric_loss(s, matrix),
        "partial_selective_loss": lambda s: F.partial_selective_loss(s, partial, likelihood_topk=k),
        "two_way_loss": lambda s: F.two_way_loss(s, matrix),
        "lsep_loss": lambda s: F.lsep_loss(s, matrix),
        "multilabel_softmax_loss": lambda s: F.multilabel_softmax_loss(s, matrix),
        "assume_negative_loss": lambda s: F.assume_negative_loss(s, index),
        "expected_positive_loss": lambda s: F.expected_positive_loss(s, index, 2.0),
        "average_k_loss": lambda s: F.average_k_loss(s, s, index, float(k)),
    }


def measured(loss: Callable[[Tensor], Tensor], scores: Tensor, runs: int = 30) -> tuple[float, float]:
    """Milliseconds of forward and backward; peak bytes beyond the scores, as a multiple of them."""

    def step() -> None:
        scores.grad = None
        loss(scores).backward()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    scores.grad = None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    peak = (torch.cuda.max_memory_allocated() - before) / (scores.numel() * scores.element_size())
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2], peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no GPU here: nothing is measured")
    lines = [
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {kernels.info()['on a GPU']}, {given.rows} rows",
        "",
        "| loss | labels | type | ms by our kernels | ms by the twins | peak beyond the scores (kernels, twins) |",
        "|---|---|---|---|---|---|",
    ]
    for labels in LABELS:
        for dtype in (torch.float32, torch.bfloat16):
            scores = torch.randn(given.rows, labels, device="cuda", dtype=dtype, requires_grad=True)
            for name, loss in losses(given.k, given.rows, labels).items():
                ours, memory = measured(loss, scores)
                with kernels.use("torch"):
                    twin, twins = measured(loss, scores)
                kind = str(dtype).removeprefix("torch.")
                lines.append(
                    f"| {name} | {labels:,} | {kind} | {ours:.3f} | {twin:.3f} | {memory:.2f}, {twins:.2f} |"
                )
                print(lines[-1], flush=True)
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
