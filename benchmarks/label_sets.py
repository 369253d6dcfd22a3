"""How long LabelSets take to build, combine and save, and parquet against pyarrow writing the same two arrays.

    python benchmarks/label_sets.py [examples] [labels per set]
"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from shortlist.labels import LabelSets
from shortlist.timing import fastest

NUM_LABELS = 1000


def write_two_arrays(sets: LabelSets, folder: Path) -> None:
    """The rival: the same numbers, as pyarrow writes them by default; they differ in length, hence two files."""
    pa.parquet.write_table(pa.table({"offsets": sets.offsets}), folder / "offsets.parquet")
    pa.parquet.write_table(pa.table({"indices": sets.indices}), folder / "indices.parquet")


def main(examples: int = 1_000_000, size: int = 5) -> None:
    rng = np.random.default_rng(0)
    # `size` different labels each: increasing draws from a smaller range, spread apart by their rank
    matrix = np.sort(rng.integers(0, NUM_LABELS - size + 1, (examples, size)), axis=1) + np.arange(size)
    offsets = np.arange(examples + 1) * size
    sets = LabelSets(offsets, matrix.ravel(), NUM_LABELS)
    lists = sets.to_lists()
    rows = rng.permutation(examples)
    other = sets[rows]

    print(f"{examples:,} sets of {size} among {NUM_LABELS} labels; {platform.machine()}, {os.cpu_count()} cores")
    print(f"Python {platform.python_version()}, numpy {np.__version__}, pyarrow {pa.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parquet, jsonl = folder / "sets.parquet", folder / "sets.jsonl"
        cases: list[tuple[str, Callable[[], object], int]] = [
            ("from arrays", lambda: LabelSets(offsets, matrix.ravel(), NUM_LABELS), 5),
            ("from lists", lambda: LabelSets.from_lists(lists, NUM_LABELS), 3),
            ("to lists", sets.to_lists, 3),
            ("every set, shuffled", lambda: sets[rows], 5),
            ("union", lambda: sets | other, 5),
            ("intersection", lambda: sets & other, 5),
            ("contains", lambda: sets.contains(matrix[:, 0]), 5),
            ("to parquet", lambda: sets.to_parquet(parquet), 5),
            ("from parquet", lambda: LabelSets.from_parquet(parquet), 5),
            ("to JSON lines", lambda: sets.to_jsonl(jsonl), 3),
            ("from JSON lines", lambda: LabelSets.from_jsonl(jsonl), 3),
        ]
        for label, work, repeats in cases:
            print(f"{label:20s} {fastest([work], 0.0, turns=repeats)[0]:8.3f} s")
        rival, ours = fastest([lambda: write_two_arrays(sets, folder), lambda: sets.to_parquet(parquet)], 0.0, turns=7)
        print(f"to parquet {ours:.3f} s, pyarrow writing the two arrays {rival:.3f} s: {ours / rival:.2f}x (goal 3x)")
        assert LabelSets.from_parquet(parquet) == sets == LabelSets.from_jsonl(jsonl)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
