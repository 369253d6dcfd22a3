"""What the loop asks of Lightning's Fabric, for one process of full precision on the CPU: nothing is shared, cast or
moved there, and importing Fabric takes several times as long as fitting a small table."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Engine: TypeAlias = "Fabric | OneProcess"


class OneProcess:
    """A Fabric that has nothing to do; what is missing here is not asked of it."""

    device, world_size, global_rank, is_global_zero = torch.device("cpu"), 1, 0, True
    loggers: tuple[Any, ...] = ()
    strategy = SimpleNamespace(
        precision=SimpleNamespace(precision="32-true", state_dict=dict, load_state_dict=lambda state: None)
    )

    def launch(self) -> None: ...

    def barrier(self) -> None: ...

    def log_dict(self, metrics: Any, step: Any = None) -> None: ...

    def setup(self, module: nn.Module, *optimizers: Any) -> Any:
        """As Fabric's: what wraps the module, with its optimizer where there is one."""
        model = _Wrapped(module)
        wrapped = [
            SimpleNamespace(optimizer=one, state_dict=one.state_dict, load_state_dict=one.load_state_dict)
            for one in optimizers
        ]
        return (model, *wrapped) if wrapped else model

    def autocast(self) -> AbstractContextManager[None]:
        return nullcontext()

    def no_backward_sync(self, module: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def clip_gradients(self, module: Any, optimizer: Any, *, max_norm: float, error_if_nonfinite: bool) -> None:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        clip_grad_norm_(weights, max_norm, error_if_nonfinite=error_if_nonfinite)

    def all_reduce(self, value: Any, reduce_op: str) -> Any:
        return value

    def broadcast(self, value: Any) -> Any:
        return value


class _Wrapped(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
