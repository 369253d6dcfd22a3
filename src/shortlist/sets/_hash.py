"""The hash that breaks ties: 64 bits of a row's content and a label, the same in any batch, container or platform."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(x: Hashes) -> Hashes:
    """The splitmix64 finaliser: every input bit reaches every output bit, and no two inputs meet."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def row_hashes(scores: NDArray[Any]) -> Hashes:
    """One hash per row of raw scores, read as float32: sum over labels of bits * a random odd number, then mixed.

    Integers only, so the order of summation, the byte order and the rest of the batch cannot show. -0.0 counts as 0.0.
    """
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    numbers = mix(np.arange(1, scores.shape[1] + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    return mix(bits.astype(np.uint64) @ numbers)


def label_hashes(rows: Hashes, labels: NDArray[Any]) -> Hashes:
    """The hash of each (row, label) pair; ``rows`` and ``labels`` broadcast."""
    return mix(rows + (labels.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
