"""The names that ``shortlist.kernels.use`` accepts on this machine: each instruction set, and the PyTorch twin."""

from shortlist import kernels

KERNELS: list[str] = list(kernels.info()["available"])
