"""Native and Triton kernels, and the one place that chooses between them and the PyTorch twins.

>>> import shortlist as sl
>>> sl.kernels.info()["in use"] in ("torch", "triton", "baseline", "avx2", "avx512")
True
"""

from shortlist.device_flags import check
from shortlist.kernels.dispatch import info, native_serves, triton_serves, use

__all__ = ["check", "info", "native_serves", "triton_serves", "use"]
