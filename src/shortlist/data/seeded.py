"""Where randomness comes from."""

import numpy as np

from shortlist.checks import whole


def random_for(what: str, seed: int) -> np.random.Generator:
    """A generator of its own for each purpose: the same seed may serve a split and the noise after it, and what falls
    into a part must not depend on the same numbers as which of its labels are wrong."""
    return np.random.default_rng([whole(seed, "seed", 0), *what.encode()])
