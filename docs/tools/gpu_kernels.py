"""Compile every Triton kernel for every GPU target, and write docs/gpu-kernels.md: registers of a thread, and spills.

usage: python docs/tools/gpu_kernels.py [--check] [--few] [--only NAME] [--target NAME] [--processes N]
  --check   write nothing; fail where a kernel spills, or where the page's table says something else
  --few     each call with its largest k, every operator in registers and streamed: what the tests compile

No GPU is needed: triton brings the compilers. Every kernel is compiled as it is launched, for class indices, label
matrices and stored labels, with every k; rows are in registers (8,192 labels; where so many are held in pieces also
4,096, the most that are one block) or streamed (32,768). There are two ways: a number of labels that 16 divides, no
weights and int32 stored labels; or one label less (so that scores are not read in pieces of 16 bytes), weights and
int64 stored labels. In registers the largest k with so many warps, streamed a k of 5 and 8, and kernels without a k are
compiled in both; of the other k, even ones in the first way, odd ones in the second. With the largest k also float16
scores, and losses without a gradient.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

PAGE = Path(__file__).parents[1] / "gpu-kernels.md"
BEGIN, END = "<!-- the table, written by docs/tools/gpu_kernels.py -->\n", "<!-- end of the table -->"
MOST, STREAMED = 8192, 32768  # labels of a row in registers, and of one that is not
ROWS = 4
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
EVERY_K = range(1, 9)
FEW_K = (5, 8)


def _scores(labels: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(ROWS, labels, dtype=dtype)


def _index(labels: int) -> list[Tensor]:
    return [torch.zeros(ROWS, dtype=torch.int64)]


def _matrix(labels: int, dtype: torch.dtype = torch.int8) -> list[Tensor]:
    return [torch.zeros(ROWS, labels, dtype=dtype)]


def _int64_matrix(labels: int) -> list[Tensor]:
    return _matrix(labels, torch.int64)


def _float_matrix(labels: int) -> list[Tensor]:
    return _matrix(labels, torch.float32)


def _stored(labels: int) -> list[Tensor]:
    indices = torch.zeros(0, dtype=torch.int64 if labels % 2 else torch.int32)
    return [torch.zeros(ROWS + 1, dtype=torch.int64), indices, torch.zeros(1, dtype=torch.int8)]


Arguments = Callable[[int], tuple[Any, ...]]  # of an operator, for rows of so many labels


class Call(NamedTuple):
    arguments: Arguments
    k: int = 0  # 0: there is none
    whole: int = 8192  # labels of the longest row that is one block in registers; up to MOST, it is held in pieces
    worst: bool = True  # no other k of the same operator and warps takes more registers
    varies: bool = False  # another call, in float16 or without a gradient


def _loss(target: Callable[[int], list[Tensor]], *numbers: Any, own: int = 0, dtype: Any = torch.float32) -> Arguments:
    """Arguments of a loss operator, with a gradient; weights where the number of labels is odd."""

    def arguments(labels: int) -> tuple[Any, ...]:
        weight = torch.ones(ROWS) if labels % 2 else None
        return _scores(labels, dtype), target(labels), weight, *[None] * own, "mean", 0, True, *numbers

    return arguments


KINDS = {"label matrix": _matrix, "stored labels": _stored}
MORE_KINDS = KINDS | {"int64 label matrix": _int64_matrix}


def _calls() -> Iterator[tuple[tuple[str, str], Call]]:
    """(operator, what is special about the call), and the call."""
    for k in EVERY_K:
        polynomial = k in (5, 7, 8)  # the last with 16 warps, with 8, and with all registers
        yield ("smooth_topk", f"k={k}"), Call(_loss(_index, k, 1.0, 1.0), k, worst=polynomial)
        yield ("smooth_topk", f"k={k}, hinge"), Call(_loss(_index, k, 0.0, 1.0), k, worst=k == 8)
        yield ("truncated_entropy", f"k={k}"), Call(_loss(_index, k), k, worst=k == 8)
        for kind, target in KINDS.items():
            yield ("truncated_entropy", f"k={k}, {kind}"), Call(_loss(target, k), k, worst=k == 8)
        yield ("subset_sums", f"k={k}"), Call(lambda n, k=k: (_scores(n), k, True), k, worst=polynomial)
        slopes = Call(lambda n, k=k: (_scores(n), _scores(n), k), k, worst=k in (3, 8))
        yield ("subset_slopes", f"k={k}"), slopes
        yield ("lml", f"k={k}"), Call(lambda n, k=k: (_scores(n), None, k), k, worst=k == 8)
        yield ("lml_loss", f"k={k}"), Call(_loss(_index, k, own=1), k, worst=k == 8)
        for kind, target in KINDS.items():
            yield ("lml_loss", f"k={k}, {kind}"), Call(_loss(target, k, own=1), k, 4096, k == 8)
            numbers = 0.0, 1.5, 2.0, 0.05, False, 2, k
            yield ("asymmetric", f"selective, k={k}, {kind}"), Call(_loss(target, *numbers, own=1), k, 4096, k == 8)
    half = torch.bfloat16
    yield ("smooth_topk", "k=7, bfloat16"), Call(_loss(_index, 7, 1.0, 1.0, dtype=half), 7)
    yield ("subset_sums", "k=8, bfloat16"), Call(lambda n: (_scores(n, half), 8, True), 8)
    yield ("subset_slopes", "k=8, bfloat16"), Call(lambda n: (_scores(n, half), _scores(n, half), 8), 8)
    summed = torch.zeros(ROWS, 1)  # upstream of a sum: one direction for all labels
    yield ("subset_slopes", "k=8, summed"), Call(lambda n: (_scores(n), summed.expand(ROWS, n), 8), 8)
    yield ("lml", "k=8, bfloat16"), Call(lambda n: (_scores(n, half), None, 8), 8)
    frame = torch.zeros(ROWS, 3, dtype=torch.float64)
    yield ("lml_backward", ""), Call(lambda n: (_scores(n), _scores(n), frame, _scores(n)))
    for kind, target in MORE_KINDS.items():
        yield ("binary", kind), Call(_loss(target, own=1))
        yield ("partial_binary", kind), Call(_loss(target, 5.0))
        yield ("asymmetric", kind), Call(_loss(target, 1.0, 4.0, 0.0, 0.05, False, 0, 0, own=1))
        yield ("pair_rows", kind), Call(_loss(target, 4.0, 1.0, 0.0))
        yield ("multilabel_softmax", kind), Call(_loss(target))
        yield ("two_way", kind), Call(_loss(target, 4.0, 1.0, 0.0, True), whole=4096)
    yield ("binary", "probabilities"), Call(_loss(_float_matrix, own=1))
    yield ("assume_negative", ""), Call(_loss(_index, True, 0.1))
    yield ("expected_positive", ""), Call(_loss(_index, 2.0, 0.1, False))
    heads = _index(0)[0], torch.ones(ROWS), 2.0, 1.0, 1, 1, True  # the mean, one group, with a gradient
    yield ("average_k", ""), Call(lambda n: (_scores(n), _scores(n), *heads))
    yield ("finish_gradient", ""), Call(lambda n: (_scores(n), torch.ones(())))


def _varied(arguments: Arguments, dtype: torch.dtype, grad: Any) -> Arguments:
    """Arguments with scores of this type and, where a gradient is asked for, ``grad``."""

    def varied(labels: int) -> tuple[Any, ...]:
        given = list(arguments(labels))
        for i, value in enumerate(given):
            if isinstance(value, Tensor) and value.shape == (ROWS, labels) and value.is_floating_point():
                given[i] = value.to(dtype)
        asks = [i for i, value in enumerate(given) if value is True][:1]
        for i in asks:
            given[i] = grad
        return tuple(given)

    return varied


def _variants(calls: dict[tuple[str, str], Call]) -> Iterator[tuple[tuple[str, str], Call]]:
    """Calls in float16 (of losses the gradient, which is then computed alone), and losses without a gradient: with the
    largest k."""
    for (name, special), call in calls.items():
        if not call.worst or call.k not in (0, 8) or name == "finish_gradient":
            continue
        if special.endswith(("bfloat16", "summed")) or special.startswith("int64"):
            continue
        begin = f"{special}, " if special else ""
        in_half = _varied(call.arguments, torch.float16, torch.ones(1))
        yield (name, f"{begin}float16"), call._replace(varies=True, arguments=in_half)
        if any(value is True for value in call.arguments(16)):
            alone = _varied(call.arguments, torch.float32, False)
            yield (name, f"{begin}loss alone"), call._replace(varies=True, arguments=alone)


CALLS = dict(_calls())
CALLS |= dict(_variants(CALLS))


def lengths(name: str, special: str) -> tuple[int, ...]:
    """The numbers of labels with which a call is compiled."""
    call = CALLS[name, special]
    registers = sorted({call.whole, MOST})
    if call.varies:
        odd = not special.endswith("alone")
        return (*(most - odd for most in registers), STREAMED - 1 + odd)
    ways = [most - odd for most in registers for odd in ((0, 1) if call.worst else (call.k % 2,))]
    return (*ways, *((STREAMED, STREAMED - 1) if call.k in (0, *FEW_K) else (STREAMED - call.k % 2,)))


Row = tuple[str, str, int, str]  # operator, what is special, labels, target
Line = tuple[str, str, int, str, int, Any]  # kernel, what is special, labels, target, warps, what it takes


def rows(only: str | None = None, target: str | None = None, few: bool = False) -> Iterator[Row]:
    """All that is compiled, for every target; few: calls with the largest k, of each operator in registers and streamed
    in turn."""
    from shortlist.kernels.triton import OFFERS

    missing = {*OFFERS} - {name for name, _ in CALLS}
    if missing:
        sys.exit(f"no call in {Path(__file__).name} compiles {', '.join(sorted(missing))}")
    calls = [name for name, call in CALLS.items() if not few or (call.worst and call.k in (0, *FEW_K))]
    usual = [name for name, special in calls if not CALLS[name, special].varies]
    for i, (name, special) in enumerate(calls):
        several, targets = lengths(name, special), TARGETS
        if few and CALLS[name, special].varies:  # one length and one target in turn
            several, targets = (several[i % len(several)],), (TARGETS[i // 2 % 4],)
        elif few:  # (one block twice, maybe in pieces twice, streamed twice); an operator with one call has both
            before = usual[:i].count(name)
            ends, pieces = several[:2] + several[-2:], several[2:-2]
            several = ends[(0, 3, 1, 2)[before % 4]], *(ends[3:] if usual.count(name) == 1 else ())
            several += pieces[before % 2 :][:1]
        for labels in several:
            for one in targets:
                if only in (None, name) and target in (None, one):
                    yield name, special, labels, one


def launches_of(name: str, special: str, labels: int) -> list[Any]:
    """What one call launches, each kernel once in each of its ways; those that add rows up are the same everywhere, and
    left out but once."""
    from shortlist.kernels.triton import OFFERS
    from shortlist.kernels.triton.launch import recording

    with recording() as launches:
        OFFERS[name].run(*CALLS[name, special].arguments(labels))
    out: dict[tuple[str, str], Any] = {}
    for launch in launches:
        kernel = launch.kernel.fn.__name__
        everywhere = kernel in ("index_shares_kernel", "reduce_rows_kernel")
        if not everywhere or (name, special, labels) == ("smooth_topk", "k=5", 8192):
            out.setdefault((kernel, f"{launch.constants}"), launch)
    return [*out.values()]


def compiled_row(row: Row) -> list[Line]:
    """What each kernel of one row takes."""
    from compiled_kernels import compiled  # beside this file

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


def cells_of(lines: str) -> dict[tuple[str, ...], list[str]]:
    """The first four cells of each line of a table, and the others."""
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines() if line[:1] == "|"]
    return {tuple(cells[:4]): cells[4:] for cells in split[2:]}


def stale(old: str, new: str) -> str | None:
    """What the page's block says otherwise than what was compiled now; registers are compared where both were compiled
    by the same triton."""
    there, found = cells_of(old), cells_of(new)
    wanted = [*cells_of("|\n|\n" + "\n".join(wanted_lines()))]
    if [*there] != wanted:
        return f"{next(iter({*there} ^ {*wanted}), 'the order of the lines')}"
    for begin, taken in found.items() if old.splitlines()[0] == new.splitlines()[0] else ():
        if any(one not in ("-", known) for one, known in zip(taken, there[begin], strict=True)):
            return f"{begin}: {taken}"
    return None


def table(found: list[Line]) -> str:
    """One line for each kernel, call and length; registers by target, of several ways to launch it the most."""
    lines: dict[tuple[str, str, int, int], dict[str, tuple[Any, int]]] = {}
    for kernel, special, labels, target, warps, used in found:
        cells = lines.setdefault((kernel, special, labels, warps), {})
        registers, spilled = cells.get(target, (0, 0))
        cells[target] = (max(registers, used.registers), max(spilled, used.spilled))
    text = [f"Compiled by triton {metadata.version('triton')}.", ""]
    text += [f"| kernel | call | labels | warps | {' | '.join(TARGETS)} |", "|---" * (4 + len(TARGETS)) + "|"]
    for (kernel, special, labels, warps), cells in lines.items():
        taken = []
        for one in TARGETS:  # with --few not every line is compiled for every target
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
    new = table(found)
    print(new)
    spilled = [one for one in found if one[-1].spilled]
    if spilled:
        sys.exit(f"{len(spilled)} of {len(found)} spill")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    if given.check:
        wrong = stale(old, new)
        if wrong:
            sys.exit(f"{PAGE.name} says something else, {wrong}: run python docs/tools/{Path(__file__).name}")
    elif not (given.few or given.only or given.target):
        PAGE.write_text(f"{before}{BEGIN}{new}\n{END}{after}")


if __name__ == "__main__":
    main()
