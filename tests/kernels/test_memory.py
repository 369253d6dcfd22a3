"""No call ends the process: where memory runs out there is a MemoryError, also from inside the threads."""

import subprocess
import sys

import pytest

from shortlist import kernels

pytestmark = pytest.mark.skipif(not kernels.info()["native module"], reason="a pure build: there are no native kernels")
SCRIPT = """
import resource, torch
import shortlist.functional as F
torch.set_num_threads({threads})
target = torch.zeros({rows}, dtype=torch.int64)
F.truncated_entropy_loss(torch.zeros({rows}, 20_000), target, 2)  # threads are started, memory for them is there
scores = torch.zeros({rows}, 20_000_000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 40_000_000, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        F.truncated_entropy_loss(scores, target, 2)
    except MemoryError:
        print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(F.truncated_entropy_loss(scores, target, 20_000_000).item())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_AS and /proc")
@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (2, 2)])
def test_without_memory_a_kernel_raises_and_works_again_later(rows: int, threads: int) -> None:
    code = SCRIPT.format(rows=rows, threads=threads)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stdout.split() == ["MemoryError", "MemoryError", "0.0"], out.stderr
