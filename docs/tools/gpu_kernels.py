"""Compile every Triton kernel for every GPU target, and write docs/gpu-kernels.md: registers, spills, shared memory.

usage: python docs/tools/gpu_kernels.py [--check] [--only NAME] [--target NAME]
  --check   write nothing; fail where a kernel spills

No GPU is needed: triton brings the compilers. Every kernel is compiled as it is launched, for rows in registers (1,000
and 8,192 labels) and streamed (32,768), with the k of most registers.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

PAGE = Path(__file__).parents[1] / "gpu-kernels.md"
LABELS = (1000, 8192, 32768)
ROWS = 4
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


def _scores(labels: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(ROWS, labels, dtype=dtype)


def _index(labels: int) -> list[Tensor]:
    return [torch.zeros(ROWS, dtype=torch.int64)]


def _matrix(labels: int) -> list[Tensor]:
    return [torch.zeros(ROWS, labels, dtype=torch.int8)]


def _stored(labels: int) -> list[Tensor]:
    offsets, indices = torch.zeros(ROWS + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int32)
    return [offsets, indices, torch.zeros(1, dtype=torch.int8)]


def _loss(target: Callable[[int], list[Tensor]], *numbers: Any, own: int = 0) -> Callable[[int], tuple[Any, ...]]:
    """Arguments of a loss operator, with a gradient."""
    return lambda labels: (_scores(labels), target(labels), None, *[None] * own, "mean", 0, True, *numbers)


# operator, what is special about this call -> its arguments for rows of so many labels
CALLS: dict[tuple[str, str], Callable[[int], tuple[Any, ...]]] = {
    ("smooth_topk", "k=5"): _loss(_index, 5, 1.0, 1.0),
    ("smooth_topk", "k=8"): _loss(_index, 8, 1.0, 1.0),
    ("smooth_topk", "k=5, hinge"): _loss(_index, 5, 0.0, 1.0),
    ("truncated_entropy", "k=5"): _loss(_index, 5),
    ("truncated_entropy", "k=8, label matrix"): _loss(_matrix, 8),
    ("truncated_entropy", "k=8, stored labels"): _loss(_stored, 8),
    ("subset_sums", "k=5"): lambda labels: (_scores(labels), 5, True),
    ("subset_sums", "k=8"): lambda labels: (_scores(labels), 8, True),
    ("lml", "k=5"): lambda labels: (_scores(labels), None, 5),
    ("lml", "k=8"): lambda labels: (_scores(labels), None, 8),
    ("lml", "k=5, bfloat16"): lambda labels: (_scores(labels, torch.bfloat16), None, 5),
    ("lml_backward", ""): lambda labels: (
        _scores(labels), _scores(labels), torch.zeros(ROWS, 3, dtype=torch.float64), _scores(labels),
    ),
    ("lml_loss", "k=5"): _loss(_index, 5, own=1),
    ("lml_loss", "k=8, label matrix"): _loss(_matrix, 8, own=1),
    ("lml_loss", "k=8, stored labels"): _loss(_stored, 8, own=1),
    ("finish_gradient", ""): lambda labels: (_scores(labels), torch.ones(())),
}  # fmt: skip


def rows(only: str | None, target: str | None, every: bool = True) -> Iterator[tuple[str, str, int, str]]:
    """(operator, what is special, labels, target) of all that is compiled; not every: one length in each way."""
    from shortlist.kernels.triton import OFFERS

    missing = {*OFFERS} - {name for name, _ in CALLS}
    if missing:
        sys.exit(f"no call in {Path(__file__).name} compiles {', '.join(sorted(missing))}")
    for name, special in CALLS:
        for labels in LABELS if every else LABELS[1:]:
            for one in TARGETS:
                if only in (None, name) and target in (None, one):
                    yield name, special, labels, one


def compiled_row(row: tuple[str, str, int, str]) -> list[tuple[str, str, int, str, int, Any]]:
    """What each kernel of one row takes; those that add rows up are the same everywhere, and left out but once."""
    from shortlist.kernels.triton import OFFERS
    from shortlist.kernels.triton.compiling import compiled
    from shortlist.kernels.triton.launch import recording

    name, special, labels, target = row
    with recording() as launches:
        OFFERS[name].run(*CALLS[name, special](labels))
    out = []
    for launch in launches:
        kernel = launch.kernel.fn.__name__
        if kernel in ("index_shares_kernel", "reduce_rows_kernel") and (name, special, labels) != (
            "smooth_topk", "k=5", LABELS[0]
        ):  # fmt: skip
            continue
        out.append((kernel.removesuffix("_kernel"), special, labels, target, launch.warps, compiled(launch, target)))
    return out


def table(found: list[tuple[str, str, int, str, int, Any]]) -> str:
    """One line for each kernel, call and length; registers by target."""
    lines: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for kernel, special, labels, target, warps, used in found:
        lines.setdefault((kernel, special, labels, warps), {})[target] = used
    text = [f"| kernel | call | labels | warps | {' | '.join(TARGETS)} |", "|---" * (4 + len(TARGETS)) + "|"]
    for (kernel, special, labels, warps), used in lines.items():
        cells = [f"{one.registers}" + (f" (**spills {one.spilled}**)" if one.spilled else "") for one in used.values()]
        length = f"{labels:,}" + (" (streamed)" if labels > 8192 else "")
        text.append(f"| `{kernel}` | {special} | {length} | {warps} | {' | '.join(cells)} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        found = [one for many in pool.map(compiled_row, rows(given.only, given.target)) for one in many]
    print(table(found))
    spilled = [one for one in found if one[-1].spilled]
    if spilled:
        sys.exit(f"{len(spilled)} of {len(found)} spill")
    if not given.check and given.only is None and given.target is None:
        before, _, rest = PAGE.read_text().partition("<!-- the table, written by docs/tools/gpu_kernels.py -->\n")
        end = "<!-- end of the table -->" + rest.partition("<!-- end of the table -->")[2]
        PAGE.write_text(f"{before}<!-- the table, written by docs/tools/gpu_kernels.py -->\n{table(found)}\n{end}")


if __name__ == "__main__":
    main()
