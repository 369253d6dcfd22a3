"""How far a mean of bounded losses may be from what it was measured to be: bounds that hold for any number of rows.

Each bound is used as a test: may we say that the mean of losses in [0, 1] is at most alpha, and be wrong with
probability at most delta? For the bound of Hoeffding and Bentkus the answer depends on the sum of the losses alone.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray


def crc_budget(n: int, alpha: float, bound: float = 1.0) -> float:
    """The largest sum of n losses in [0, bound] with (sum + bound) / (n + 1) <= alpha: conformal risk control."""
    return alpha * (n + 1) - bound


@lru_cache(maxsize=64)
def hoeffding_bentkus_budget(n: int, alpha: float, delta: float, binary: bool = False) -> float:
    """The largest sum of n losses in [0, 1] from which a mean of at most alpha follows; below 0 if none does.

    p = min(exp(-n h1(mean, alpha)), e P(Binomial(n, alpha) <= ceil(n mean))) <= delta (Bates et al. 2021), with h1 the
    relative entropy of two coins. ``binary``: losses are 0 or 1, and the binomial is exact, without the factor e.

    >>> round(hoeffding_bentkus_budget(1000, 0.1, 0.1), 2)
    82.0
    """
    if alpha >= 1:
        return math.inf
    low = max(0, math.floor(n * alpha - 40 * math.sqrt(n * alpha)))  # below it the binomial has no mass to speak of
    below = np.arange(low, math.floor(n * alpha) + 1, dtype=np.float64)
    log_p = _log_choose(n, below) + below * math.log(alpha) + (n - below) * math.log1p(-alpha)
    factor = 1.0 if binary else math.e
    bentkus = float((factor * np.exp(log_p).cumsum() <= delta).sum()) - 1 + low
    if binary:
        return bentkus
    least, most = 0.0, alpha  # h1 falls in the mean: bisect for exp(-n h1) = delta
    if -n * math.log1p(-alpha) < -math.log(delta):
        return bentkus
    for _ in range(60):
        middle = (least + most) / 2
        least, most = (middle, most) if n * _entropy(middle, alpha) >= -math.log(delta) else (least, middle)
    return max(bentkus, n * least)


def betting_accepts(losses: NDArray[np.float64], alpha: float, delta: float) -> bool:
    """The same question by the betting test of Waudby-Smith and Ramdas, which gains where losses vary little.

    Wealth starts at 1 and is multiplied by 1 - nu_i (loss_i - alpha) for each row in turn, the stake nu_i chosen from
    the rows before; if the mean were above alpha, it would ever reach 1 / delta with probability at most delta only.
    """
    n = len(losses)
    i = np.arange(1, n + 1)
    mean = (0.5 + losses.cumsum()) / (1 + i)
    variance = (0.25 + ((losses - mean) ** 2).cumsum()) / (1 + i)
    before = np.concatenate([[0.25], variance[:-1]])
    stake = np.minimum(1.0, np.sqrt(2 * math.log(1 / delta) / (n * before)))
    wealth = np.log1p(-stake * (losses - alpha)).cumsum()
    return bool(wealth.max(initial=0.0) >= math.log(1 / delta))


def _entropy(mean: float, alpha: float) -> float:
    """mean log(mean / alpha) + (1 - mean) log((1 - mean) / (1 - alpha)), for mean <= alpha."""
    first = mean * math.log(mean / alpha) if mean > 0 else 0.0
    return first + (1 - mean) * math.log((1 - mean) / (1 - alpha))


def _log_choose(n: int, k: NDArray[np.float64]) -> NDArray[np.float64]:
    def log_factorial(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return torch.lgamma(torch.from_numpy(x + 1)).numpy()

    return math.lgamma(n + 1) - log_factorial(k) - log_factorial(n - k)
