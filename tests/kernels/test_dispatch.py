"""The one place that chooses kernels; and that threads change nothing but the time."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
import torch

import shortlist as sl

NATIVE = sl.kernels.info()["native module"]
needs_native = pytest.mark.skipif(not NATIVE, reason="a pure build: there are no native kernels")


def in_use(**environment: str) -> str:
    code = "import shortlist; print(shortlist.kernels.info()['in use'])"
    env = {**os.environ, **environment}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return out.stdout.strip()


def test_the_environment_forces_the_twins() -> None:
    assert in_use(SHORTLIST_KERNELS="torch") == "torch"


@needs_native
def test_by_default_the_best_instruction_set_is_in_use() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "SHORTLIST_KERNELS"}
    assert in_use(**environment) == sl.kernels.info()["available"][0]


def test_unknown_kernels_are_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match="torch"), sl.kernels.use("abacus"):
        pass


def test_a_pytorch_that_cannot_tell_whether_it_exports_is_served() -> None:
    code = "import torch; vars(torch.compiler).pop('is_exporting', None); import shortlist as sl; s = torch.zeros(1, 2)"
    code += "; print(sl.functional.lml(s, 1), sl.functional.lml(s, 1, temperature=2.0))"
    subprocess.run([sys.executable, "-c", code], check=True)  # as PyTorch 2.6


@needs_native
def test_kernels_serve_cpu_float32_and_float64_only() -> None:
    with sl.kernels.use("native"):
        assert sl.kernels.native_serves(torch.zeros(1))
        assert sl.kernels.native_serves(torch.zeros(1, dtype=torch.float64))
        assert not sl.kernels.native_serves(torch.zeros(1, dtype=torch.float16))
        assert not sl.kernels.native_serves(torch.zeros(1, device="meta"))


OTHER_TRITON = """
import sys
from importlib import metadata
version = metadata.version
metadata.version = lambda name: sys.argv[1] if name == "triton" else version(name)
import shortlist as sl, torch
info = sl.kernels.info()
print(info["on a GPU"], info["triton"], "triton" in info["available"], sep="\\n")
try:
    with sl.kernels.use("triton"):
        print(sl.kernels.dispatch.triton_takes(torch.zeros(2, 3)))
except sl.ShortlistError as error:
    print(error)
"""


def with_triton(version: str) -> list[str]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "SHORTLIST_KERNELS": "native"}
    command = [sys.executable, "-c", OTHER_TRITON, version]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_a_triton_that_is_too_old_is_not_used_and_info_says_why() -> None:
    for version in ("3.2.0", "3.7.0+git123", "2.1"):
        lack = f"triton {version} is older than 3.7.1: pip install 'shortlist[gpu]'"
        assert with_triton(version) == [f"torch: {lack}", lack, "False", f"there are no kernels 'triton': {lack}"]


def test_a_triton_that_is_new_enough_is_available() -> None:
    for version in ("3.7.1", "3.10.0", "4.0"):
        assert with_triton(version) == [
            f"triton {version}; torch for float64 and k above 8", version, "True", "True"
        ]  # fmt: skip


@needs_native
def test_half_precision_on_a_cpu_is_computed_by_the_native_kernels_and_info_says_so() -> None:
    with sl.kernels.use("native"):
        assert sl.kernels.info()["on a CPU"].endswith("half precision is computed in float32")
        seen: list[torch.dtype] = []
        serves = sl.kernels.dispatch.native_serves
        with patch("shortlist.functional._row_loss.native_serves", lambda x: seen.append(x.dtype) or serves(x)):
            for half in (torch.float16, torch.bfloat16):
                sl.functional.smooth_topk_loss(torch.zeros(2, 9, dtype=half), torch.tensor([0, 3]), 2)
        assert seen == [torch.float32] * 2


@needs_native
def test_a_choice_is_its_threads_own() -> None:
    usual = sl.kernels.info()["in use"]
    scores, target = torch.randn(2, 9, requires_grad=True), torch.tensor([0, 3])

    def elsewhere() -> tuple[str, torch.Tensor]:
        name = sl.kernels.info()["in use"]
        with sl.kernels.use("torch"):
            inner.wait()  # both threads are inside their own choice
            assert sl.kernels.info()["in use"] == "torch"
            outer.wait()
        loss.backward()  # of a forward pass in the other thread
        return name, scores.grad

    inner, outer = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)
    with sl.kernels.use("baseline"), ThreadPoolExecutor(1) as pool:
        loss = sl.functional.lml(scores, 2)[:, 0].sum() + sl.functional.smooth_topk_loss(scores, target, 2)
        (expected,) = torch.autograd.grad(loss, scores, retain_graph=True)
        other = pool.submit(elsewhere)
        inner.wait()
        assert sl.kernels.info()["in use"] == sl.kernels.dispatch.native.isa() == "baseline"
        outer.wait()
        name, gradient = other.result()
    assert name == usual
    assert sl.kernels.info()["in use"] == usual
    torch.testing.assert_close(gradient, expected)


@needs_native
def test_a_compiled_function_follows_the_choice() -> None:
    @torch.compile(backend="eager")
    def served(scores: torch.Tensor) -> torch.Tensor:
        return scores + 1 if sl.kernels.native_serves(scores) else scores - 1

    for name, expected in (("native", 1.0), ("torch", -1.0), ("native", 1.0)):
        with sl.kernels.use(name):
            assert served(torch.zeros(1)).item() == expected


@needs_native
def test_threads_do_not_change_a_bit() -> None:
    scores = torch.randn(300, 400, generator=torch.Generator().manual_seed(0))
    target = torch.arange(300)
    labels = (torch.rand(300, 400, generator=torch.Generator().manual_seed(1)) < 0.02).to(torch.int8)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            x = scores.clone().requires_grad_()
            F = sl.functional
            losses = [
                F.smooth_topk_loss(x, target, 5),
                F.smooth_topk_loss(x, target, 40),
                F.lml_loss(x, target, 5),
                F.truncated_entropy_loss(x, labels, 5),
                F.two_way_loss(x, labels),
            ]
            p = F.lml(x, 5)
            gradients = [torch.autograd.grad(loss, x)[0] for loss in losses]
            results.append([*losses, *gradients, p, *torch.autograd.grad(p, x, scores)])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


@needs_native
def test_one_openmp_runtime_serves_torch_and_the_kernels() -> None:
    maps = "/proc/self/maps"
    if not os.path.exists(maps):
        pytest.skip("needs /proc/self/maps")
    code = (
        "import torch, shortlist\n"
        "shortlist.functional.smooth_topk_loss(torch.zeros(64, 999), torch.zeros(64).long(), 5)\n"
        f"print(*{{line.split()[-1] for line in open({maps!r}) if 'libgomp' in line or 'libomp' in line}}, sep='\\n')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(out.stdout.split()) == 1, out.stdout
