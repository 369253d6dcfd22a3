"""Optimizers, and which weights they draw to zero. Their names and default learning rates are in `settings.py`."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import Parameter
from torch.nn.modules.batchnorm import _NormBase
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from shortlist.errors import ShortlistError
from shortlist.training.settings import OptimizerSettings

_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.LocalResponseNorm)
_TABLES = (nn.Embedding, nn.EmbeddingBag)


def make_optimizer(
    backbone: nn.Module, objective: nn.Module, settings: OptimizerSettings, *, fused: bool = True
) -> Optimizer:
    """The optimizer of both; see `parameter_groups` for what is decayed and how fast the backbone moves.

    Fused, where there is such a thing: one pass over weights, gradients and state per step, which counts on small
    models and on large ones. (Gradients of half precision that are to be clipped cannot have it.)

    >>> optimizer = make_optimizer(nn.Linear(4, 3), nn.Linear(3, 2), OptimizerSettings(name="adamw", weight_decay=0.1))
    >>> [(part["weight_decay"], len(part["params"])) for part in optimizer.param_groups]
    [(0.1, 2), (0.0, 2)]
    """
    groups = parameter_groups(backbone, objective, settings)
    lr, betas, momentum = settings.lr, settings.betas, settings.momentum or 0.0
    if settings.name == "rmsprop":
        assert settings.decay is not None  # the name brings it
        assert settings.eps is not None
        return RMSprop(groups, lr=lr, momentum=momentum, alpha=settings.decay, eps=settings.eps)
    if settings.name == "adamw-rows":
        assert betas is not None
        return RowwiseAdamW(groups, lr, betas)
    if betas is not None:
        return (AdamW if settings.name == "adamw" else Adam)(groups, lr=lr, betas=betas, fused=fused)
    return SGD(groups, lr=lr, momentum=momentum, nesterov=settings.name == "sgd-nesterov", fused=fused)


class RowwiseAdamW(Optimizer):
    """AdamW that divides the steps of a row of a weight by one number, instead of each weight's by its own.

    A row has the weights of one label (or hidden unit) for all columns. AdamW moves them all about as far in the end:
    where there are many columns and few of them tell, those that do not count as much as those that do. Here they move
    as their gradients are, and labels still as far as each other, whatever the scale of the loss.
    """

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            lr, (first, second) = group["lr"], group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                squares = weight.grad.square()
                if weight.ndim > 1:
                    squares = squares.mean(tuple(range(1, weight.ndim)), keepdim=True)
                state = self.state[weight]
                if not state:
                    state |= {"step": 0, "mean": torch.zeros_like(weight), "squares": torch.zeros_like(squares)}
                state["step"] += 1
                state["mean"].lerp_(weight.grad, 1 - first)
                state["squares"].lerp_(squares, 1 - second)
                size = (state["squares"] / (1 - second ** state["step"])).sqrt_() + group["eps"]
                weight.mul_(1 - lr * group["weight_decay"])
                weight.addcdiv_(state["mean"], size, value=-lr / (1 - first ** state["step"]))


def parameter_groups(backbone: nn.Module, objective: nn.Module, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """The parameters by weight decay, and by ``speed``: what the learning rate is multiplied by.

    Weight decay is for what inputs are multiplied by: parameters of two and more dimensions. Left alone are

    - biases, weights of norm layers and all else of one dimension, such as the edges of IMCL's label graph: drawing
      them to zero makes no model simpler, and a bias has to be as large as its label is rare;
    - tables of which a batch looks up some rows only (``nn.Embedding``, and what a module names in ``not_decayed``):
      every step would draw all rows to zero, and the rare ones are hardly ever taught.

    With ``settings.decay_all`` it is for everything.
    ROLE's table of estimates is no parameter, and no optimizer touches it.
    """
    groups: dict[tuple[float, bool], list[Parameter]] = {}
    for module, speed in ((backbone, settings.backbone_lr), (objective, 1.0)):
        for parameter, decayed in with_decay(module):
            if parameter.requires_grad:
                groups.setdefault((speed, decayed or settings.decay_all), []).append(parameter)
    if not groups:
        raise ShortlistError("there is nothing to train: no parameter of backbone and objective wants a gradient")
    order = sorted(groups, key=lambda key: (-key[0], not key[1]))
    return [
        {"params": groups[key], "weight_decay": (settings.weight_decay or 0.0) if key[1] else 0.0, "speed": key[0]}
        for key in order
    ]


def with_decay(model: nn.Module) -> Iterator[tuple[Parameter, bool]]:
    """Every parameter once, and whether weight decay is for it.

    >>> layers = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3), nn.BatchNorm1d(3))
    >>> [(tuple(parameter.shape), decayed) for parameter, decayed in with_decay(layers)]
    [((9, 4), False), ((3, 4), True), ((3,), False), ((3,), False), ((3,), False)]
    """
    seen: set[Parameter] = set()
    for module in model.modules():
        exempt = getattr(module, "not_decayed", ())
        for name, parameter in module.named_parameters(recurse=False):
            if parameter not in seen:
                seen.add(parameter)
                looked_up = isinstance(module, _TABLES) or name in exempt
                yield parameter, parameter.ndim > 1 and not isinstance(module, _NORMS) and not looked_up
