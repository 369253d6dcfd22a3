"""Try an installed wheel: its kernels are there, agree with their twins, and share torch's OpenMP."""

import os
import shutil
import sys
from pathlib import Path

import torch

import shortlist as sl

for compiler in () if "PATH_HAS_COMPILER" in os.environ else ("c++", "g++", "clang++", "cl"):
    assert shutil.which(compiler) is None, f"{compiler} is on the PATH: this is to be tried without a compiler"
print("shortlist", sl.__version__, sl.kernels.info())
assert sl.kernels.info()["native module"], "the wheel has no native kernels"

scores = torch.randn(300, 2000, requires_grad=True)
target = torch.randint(2000, (300,))
found = []
for kernels in (sl.kernels.info()["in use"], "torch"):
    with sl.kernels.use(kernels):
        loss = sl.functional.smooth_topk_loss(scores, target, k=5)
        found.append((loss, torch.autograd.grad(loss, scores)[0], sl.functional.lml(scores, k=5)))
for native, twin in zip(*found, strict=True):
    torch.testing.assert_close(native, twin, rtol=1e-4, atol=1e-6)
sets = sl.sets.AverageK(3).fit(scores.detach()).predict(scores.detach())
assert sets.sizes.mean() == 3

maps = Path("/proc/self/maps")
if maps.exists():
    runtimes = {line.split()[-1] for line in maps.read_text().splitlines() if "libgomp" in line or "libomp" in line}
    print("OpenMP:", *runtimes)
    assert len(runtimes) == 1, f"one OpenMP must be loaded, there are {sorted(runtimes)}"
print("all right on Python", sys.version.split()[0])
