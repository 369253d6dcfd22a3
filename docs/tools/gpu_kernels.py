"""Compile every Triton kernel for every GPU target, and write docs/gpu-kernels.md: registers, spills, shared memory.

usage: python docs/tools/gpu_kernels.py [--check] [--few] [--only NAME] [--target NAME] [--processes N]
  --check   write nothing; fail where a kernel spills, or where the page's table has other lines
  --few     each call once, targets and lengths in turn: what the tests compile

No GPU is needed: triton brings the compilers. Every kernel is compiled as it is launched, for rows in registers
(8,192 labels, the most) and streamed (32,768), with the k of most registers.
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
BEGIN, END = "<!-- the table, written by docs/tools/gpu_kernels.py -->\n", "<!-- end of the table -->"
LABELS = (8192, 32768)
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
    ("binary", "label matrix"): _loss(_matrix, own=1),
    ("binary", "stored labels"): _loss(_stored, own=1),
    ("partial_binary", "label matrix"): _loss(_matrix, 5.0),
    ("asymmetric", "label matrix"): _loss(_matrix, 1.0, 4.0, 0.0, 0.05, False, 0, 0, own=1),
    ("asymmetric", "label matrix, selective"): _loss(_matrix, 0.0, 1.5, 2.0, 0.05, False, 2, 8, own=1),
    ("asymmetric", "stored labels, selective"): _loss(_stored, 0.0, 1.5, 2.0, 0.05, False, 2, 8, own=1),
    ("pair_rows", "label matrix"): _loss(_matrix, 4.0, 1.0, 0.0),
    ("multilabel_softmax", "label matrix"): _loss(_matrix),
    ("two_way", "label matrix"): _loss(_matrix, 4.0, 1.0, 0.0, True),
    ("two_way", "stored labels"): _loss(_stored, 4.0, 1.0, 0.0, True),
    ("assume_negative", ""): _loss(_index, True, 0.1),
    ("expected_positive", ""): _loss(_index, 2.0, 0.1, False),
    ("average_k", ""): lambda labels: (
        _scores(labels), _scores(labels), _index(labels)[0], torch.ones(ROWS), 2.0, 1.0, True, 1,
    ),
    ("finish_gradient", ""): lambda labels: (_scores(labels), torch.ones(())),
}  # fmt: skip

FEWER = {  # calls that hold 4,096 labels in registers, not 8,192
    ("smooth_topk", "k=8"),
    ("asymmetric", "label matrix, selective"),
    ("asymmetric", "stored labels, selective"),
}


def lengths(name: str, special: str) -> tuple[int, ...]:
    return (4096 if (name, special) in FEWER else LABELS[0], *LABELS[1:])


Row = tuple[str, str, int, str]  # operator, what is special, labels, target
Line = tuple[str, str, int, str, int, Any]  # kernel, what is special, labels, target, warps, what it takes


def rows(only: str | None = None, target: str | None = None, few: bool = False) -> Iterator[Row]:
    """All that is compiled; few: each call once, in registers and streamed and for each target in turn."""
    from shortlist.kernels.triton import OFFERS

    missing = {*OFFERS} - {name for name, _ in CALLS}
    if missing:
        sys.exit(f"no call in {Path(__file__).name} compiles {', '.join(sorted(missing))}")
    for i, (name, special) in enumerate(CALLS):
        for labels in lengths(name, special)[i % 2 :][:1] if few else lengths(name, special):
            for one in (TARGETS[i // 2 % len(TARGETS)],) if few else TARGETS:
                if only in (None, name) and target in (None, one):
                    yield name, special, labels, one


def launches_of(name: str, special: str, labels: int) -> list[Any]:
    """What one call launches, each kernel once in each of its ways; those that add rows up are the same everywhere, and
    left out but once."""
    from shortlist.kernels.triton import OFFERS
    from shortlist.kernels.triton.launch import recording

    with recording() as launches:
        OFFERS[name].run(*CALLS[name, special](labels))
    out: dict[tuple[str, str], Any] = {}
    for launch in launches:
        kernel = launch.kernel.fn.__name__
        everywhere = kernel in ("index_shares_kernel", "reduce_rows_kernel")
        if not everywhere or (name, special, labels) == ("smooth_topk", "k=5", LABELS[0]):
            out.setdefault((kernel, f"{launch.constants}"), launch)
    return [*out.values()]


def compiled_row(row: Row) -> list[Line]:
    """What each kernel of one row takes."""
    from shortlist.kernels.triton.compiling import compiled

    name, special, labels, target = row
    return [
        (kernel_name(launch), special, labels, target, launch.warps, compiled(launch, target))
        for launch in launches_of(name, special, labels)
    ]


def kernel_name(launch: Any) -> str:
    return launch.kernel.fn.__name__.removesuffix("_kernel")


def begins(kernel: str, special: str, labels: int, warps: int) -> str:
    """The first cells of a line of the table."""
    return f"| `{kernel}` | {special} | {labels:,}{' (streamed)' if labels > 8192 else ''} | {warps} |"


def wanted_lines() -> list[str]:
    """How the lines of the whole table begin."""
    made = [
        begins(kernel_name(launch), special, labels, launch.warps)
        for name, special in CALLS
        for labels in lengths(name, special)
        for launch in launches_of(name, special, labels)
    ]
    return [*dict.fromkeys(made)]


def table(found: list[Line]) -> str:
    """One line for each kernel, call and length; registers by target, of several ways to launch it the most."""
    targets = [one for one in TARGETS if any(line[3] == one for line in found)]
    lines: dict[tuple[str, str, int, int], dict[str, tuple[Any, int]]] = {}
    for kernel, special, labels, target, warps, used in found:
        cells = lines.setdefault((kernel, special, labels, warps), {})
        registers, spilled = cells.get(target, (0, 0))
        cells[target] = (max(registers, used.registers), max(spilled, used.spilled))
    text = [f"| kernel | call | labels | warps | {' | '.join(targets)} |", "|---" * (4 + len(targets)) + "|"]
    for (kernel, special, labels, warps), cells in lines.items():
        taken = []
        for one in targets:  # with --few not every line is compiled for every target
            registers, spilled = cells.get(one, ("-", 0))
            taken.append(f"{registers}" + (f" (**spills {spilled}**)" if spilled else ""))
        text.append(f"{begins(kernel, special, labels, warps)} {' | '.join(taken)} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    chosen = rows(given.only, given.target, given.few)
    with ProcessPoolExecutor(given.processes) as pool:
        found = [one for many in pool.map(compiled_row, chosen) for one in many]
    print(table(found))
    spilled = [one for one in found if one[-1].spilled]
    if spilled:
        sys.exit(f"{len(spilled)} of {len(found)} spill")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    if given.check:
        there, wanted = old.splitlines()[2:], wanted_lines()
        if len(there) != len(wanted) or not all(map(str.startswith, there, wanted)):
            sys.exit(f"{PAGE.name} has other lines: run python docs/tools/{Path(__file__).name}")
    if not (given.few or given.only or given.target):
        PAGE.write_text(f"{before}{BEGIN}{table(found)}\n{END}{after}")


if __name__ == "__main__":
    main()
