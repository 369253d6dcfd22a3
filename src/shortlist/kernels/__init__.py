"""The native module, and the one place that chooses between it and the PyTorch twins.

>>> import shortlist as sl
>>> sl.kernels.info()["in use"] in ("torch", "baseline", "avx2", "avx512")
True
"""

from shortlist.kernels.dispatch import info, native_serves, use

__all__ = ["info", "native_serves", "use"]
