"""Where randomness comes from."""

import numpy as np

from shortlist.errors import ShortlistError


def random_for(what: str, seed: int) -> np.random.Generator:
    """A generator of its own for each purpose: the same seed may serve a split and the noise after it, and what falls
    into a part must not depend on the same numbers as which of its labels are wrong."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ShortlistError(f"seed must be a whole number of 0 or more, got {seed!r}")
    return np.random.default_rng([int(seed), *what.encode()])
