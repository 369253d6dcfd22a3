"""Shared by every test: each kernel that this machine can run, and quiet, repeatable hypothesis runs."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Some virtual machines announce AMX, which they cannot run: there, PyTorch's own linear layer in bfloat16 is killed.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# An operator whose results share memory: an error wherever tests run, and not only where the variable CI is set.
os.environ.setdefault("TORCHINDUCTOR_ERROR_ON_CUSTOM_OP_ALIASING", "1")

SLOW_BUT_MEANT = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("shortlist", deadline=None, derandomize=True, suppress_health_check=SLOW_BUT_MEANT)
settings.load_profile("shortlist")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kernel" in metafunc.fixturenames:
        from tests.kernels_here import KERNELS

        metafunc.parametrize("kernel", KERNELS, indirect=True)
    if "path" in metafunc.fixturenames:
        from tests.kernels_here import PATHS

        metafunc.parametrize("path", PATHS, indirect=True)


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once with each kernel: the PyTorch twin, and the native module for every instruction set here."""
    from shortlist import kernels

    with kernels.use(request.param):
        yield request.param


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test with the native module and with the twin, where the instruction set makes no difference."""
    from shortlist import kernels

    with kernels.use(request.param):
        yield request.param
