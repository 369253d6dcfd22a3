"""Two processes that work together, as copies of one that has imported what they need, for importing takes seconds."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import torch.multiprocessing

multiprocessing.set_forkserver_preload(["torch", "torch.distributed", "shortlist.runs.train", "shortlist.metrics"])


def run_two(function: Callable[..., None], *arguments: Any) -> None:
    """`function(rank, *arguments)` for the ranks 0 and 1; what either raises is raised here."""
    torch.multiprocessing.start_processes(function, arguments, nprocs=2, start_method="forkserver")
