"""exp and log of the kernels against mpmath: the errors that csrc/simd.h and csrc/log.h state."""

import mpmath
import numpy as np
import pytest
import torch

from shortlist import kernels
from shortlist.kernels.dispatch import native

pytestmark = pytest.mark.skipif(native is None, reason="a pure build: there are no native kernels")
ISAS = [name for name in kernels.info()["available"] if name not in ("triton", "torch")]
DIGITS = 40


def computed(x: torch.Tensor, logarithm: bool) -> torch.Tensor:
    out = torch.empty_like(x)
    native.exp_or_log(x.dtype == torch.float64, 1, len(x), 1, x.data_ptr(), logarithm, out.data_ptr())
    return out


def error_in_ulps(x: torch.Tensor, logarithm: bool) -> float:
    """The largest distance from the exact value, in units of its last place."""
    exact_of = mpmath.log if logarithm else mpmath.exp
    dtype = x.numpy().dtype
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for argument, value in zip(x.tolist(), computed(x, logarithm).tolist(), strict=True):
            exact = exact_of(mpmath.mpf(argument))
            unit = mpmath.mpf(float(np.spacing(np.abs(dtype.type(float(exact))))))
            worst = max(worst, float(abs(mpmath.mpf(value) - exact) / unit))
    return worst


def numbers(low: float, high: float, dtype: torch.dtype) -> torch.Tensor:
    return torch.linspace(low, high, 1501, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "lowest"), [(torch.float32, -87.0), (torch.float64, -707.0)])
def test_exp_is_within_its_stated_error(isa: str, dtype: torch.dtype, lowest: float) -> None:
    x = torch.cat([numbers(lowest, 0, dtype), numbers(-1.5, 0, dtype), -torch.logspace(-30, 0, 301).to(dtype)])
    with kernels.use(isa):
        assert error_in_ulps(x, logarithm=False) <= 1.3


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_is_within_its_stated_error(isa: str, dtype: torch.dtype) -> None:
    x = torch.cat([numbers(1, 2, dtype), numbers(0.5, 1, dtype), torch.logspace(-30, 30, 301).to(dtype)])
    with kernels.use(isa):
        assert error_in_ulps(x, logarithm=True) <= 2.0


@pytest.mark.parametrize("isa", ISAS)
def test_exp_of_what_is_too_low_is_0_and_of_a_nan_is_one(isa: str) -> None:
    for dtype in (torch.float32, torch.float64):
        with kernels.use(isa):
            zero, nan = computed(torch.tensor([-float("inf"), float("nan")], dtype=dtype), logarithm=False)
        assert zero == 0
        assert nan.isnan()
