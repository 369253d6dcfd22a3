"""The names that ``shortlist.kernels.use`` accepts on this machine: each instruction set, and the PyTorch twin."""

from shortlist import kernels

PATHS = ["native", "torch"] if kernels.info()["native module"] else ["torch"]
KERNELS: list[str] = [name for name in kernels.info()["available"] if name != "triton"]
