"""Compile a launch for a GPU that is not there: registers, spills and shared memory, as its assembler counts."""

import io
import re
import subprocess
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from shortlist.errors import ShortlistError
from shortlist.kernels.triton.launch import Launch, options_of

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
_TYPES = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
}


class Resources(NamedTuple):
    registers: int  # of a thread
    spilled: int  # bytes of a thread that did not fit into registers
    shared: int  # bytes of shared memory of a program


def compiled(launch: Launch, target: str) -> Resources:
    """What the kernel takes on this GPU, launched like this."""
    names = launch.kernel.arg_names
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for i, (name, value) in enumerate(zip(names, launch.arguments, strict=False)):
        if value is None:
            signature[name], constants[(i,)] = "constexpr", None
        elif isinstance(value, Tensor):
            signature[name] = "*" + _TYPES[value.dtype]
            attributes[(i,)] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            signature[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if value % 16 == 0:
                attributes[(i,)] = [["tt.divisibility", 16]]
    for name, value in launch.constants.items():
        signature[name], constants[(names.index(name),)] = "constexpr", value
    hip = target.startswith("gfx")
    source = ASTSource(fn=launch.kernel, signature=signature, constexprs=constants, attrs=attributes)
    with knobs.nvidia.scope(), redirect_stdout(io.StringIO()) as printed:
        knobs.nvidia.dump_ptxas_log = True
        made = triton.compile(source, target=TARGETS[target], options=options_of(launch.warps, launch.registers, hip))
    return _of_amd(made) if hip else _of_nvidia(made, printed.getvalue())


def _of_amd(made: Any) -> Resources:
    text = made.asm["amdgcn"]

    def find(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", text)
        if found is None:
            raise ShortlistError(f"the assembler does not say {key}")
        return int(found.group(1))

    spilled = 4 * find("vgpr_spill_count") + find("private_segment_fixed_size")
    return Resources(find("vgpr_count"), spilled, made.metadata.shared)


def _of_nvidia(made: Any, log: str) -> Resources:
    """By the assembler's log; where triton had the kernel in its cache there is none: it is asked again."""
    log = log if "registers" in log else _assembled(made.asm["ptx"])
    registers, stores = re.search(r"Used (\d+) registers", log), re.search(r"(\d+) bytes spill stores", log)
    loads = re.search(r"(\d+) bytes spill loads", log)
    if registers is None or stores is None or loads is None:
        raise ShortlistError(f"the assembler does not say what it used: {log}")
    return Resources(int(registers.group(1)), int(stores.group(1)) + int(loads.group(1)), made.metadata.shared)


def _assembled(ptx: str) -> str:
    """The log of the assembler that triton brings, called as triton calls it."""
    found = re.search(r"\.target\s+(\S+)", ptx)
    arch = found.group(1).rstrip(",") if found else ""
    digits = re.search(r"\d+", arch)
    new = digits is not None and int(digits.group()) >= 100
    ptxas = Path(triton.__file__).parent / "backends/nvidia/bin" / ("ptxas-blackwell" if new else "ptxas")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        options = ["-lineinfo", "-v", "--regAllocOptLevel=2", f"--gpu-name={arch}"]
        command = [str(ptxas), *options, str(path), "-o", str(path.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ShortlistError(f"{ptxas.name} failed: {done.stderr}")
    return done.stderr
