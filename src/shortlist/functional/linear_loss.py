"""Any loss of this room on top of a linear layer, without ever holding all of its scores."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import checks
from shortlist.errors import ShortlistError
from shortlist.functional._linear_head import Head, unmade_scores
from shortlist.functional._linear_plans import BY_ROW, Plan, plan_of
from shortlist.functional._targets import at_the_door
from shortlist.functional.average_k import average_k_loss
from shortlist.labels.sparse_labels import SparseLabels, Target

MEMORY = 80 * 2**20


def linear_loss(
    loss: Callable[..., Tensor],
    features: Tensor,
    weight: Tensor | tuple[Tensor, Tensor],
    target: Target,
    *,
    bias: Tensor | tuple[Tensor, Tensor] | None = None,
    memory: int | None = None,
    class_weight: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """``loss(features @ weight.T + bias, target, **options)`` without the scores: exact, in little memory.

    Blocks of rows are scored and their gradients gathered at once, so that the largest thing made is the gradient of
    the weight. Two-way (class way, then sample way) and expected positives are gone through twice.

    Args:
        loss: a loss of `shortlist.functional`.
        features: (..., D). weight: (L, D). bias: (L,) or None. For `average_k_loss` weight and bias are pairs: those of
            the set scores and those of the proposals.
        target, options: as the loss takes them; its own ``weight``, one per class, is ``class_weight`` here.
        memory: bytes that the scores of a block and their gradient may take; None means 80 MB. A loss without a kernel
            (`shortlist.kernels.info`), or on a device without one, takes several times as much.

    The gradients of features, weight and bias are computed with the loss. With ``reduction="none"`` the scores are
    computed a second time in backward. Where a gradient of the gradient is asked for, and under ``torch.func``, all
    scores are made at once; ``torch.compile`` leaves the call as it is.

    >>> features, weight = torch.tensor([[1.0, 0.5], [-1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> from shortlist.functional import smooth_topk_loss
    >>> linear_loss(smooth_topk_loss, features, weight, torch.tensor([2, 1]), k=1)
    tensor(1.0265)
    """
    _check_pairs(loss, weight, bias)
    weights = tuple(weight) if isinstance(weight, tuple | list) else (weight,)
    biases = tuple(bias) if isinstance(bias, tuple | list) else (bias,) * len(weights)
    for one, shift in zip(weights, biases, strict=True):
        _check_head(features, one, shift)
    memory = MEMORY if memory is None else checks.whole(memory, "memory", 1)
    if class_weight is not None:
        options["weight"] = class_weight
    _check_options(loss, options)
    if checks.transforms_active():
        return loss(*[F.linear(features, w, b) for w, b in zip(weights, biases, strict=True)], target, **options)
    from shortlist.functional._linear_blocks import by_blocks

    return by_blocks(loss, features, weights, biases, target, options, memory)  # type: ignore[no-any-return]


def _by_blocks(
    loss: Callable[..., Tensor],
    features: Tensor,
    weights: tuple[Tensor, ...],
    biases: tuple[Tensor | None, ...],
    target: Any,
    options: dict[str, Any],
    memory: int,
) -> Tensor:
    shape, labels = features.shape[:-1], len(weights[0])
    scores = unmade_scores(features, labels)
    target = at_the_door(scores, target)
    sparse = isinstance(target, SparseLabels)
    if not sparse and not isinstance(target, Tensor):
        raise ShortlistError(f"target must be a torch.Tensor, got {type(target).__name__}")
    if target.shape not in (shape, (*shape, labels)):
        raise ShortlistError(
            f"target of shape {tuple(target.shape)} does not fit features of shape {tuple(features.shape)} and "
            f"{labels} labels: allowed are class indices of shape {tuple(shape)} or a label matrix of "
            f"{(*shape, labels)}"
        )
    if sparse:
        flat_target = target
    else:
        checks.check_tensor(features, target, "target")
        flat_target = target.reshape(-1) if target.shape == shape else target.reshape(shape.numel(), labels)
    checks.check_sample_weight(scores, options.get("sample_weight"))
    flat_options = {name: _flat(name, value, shape, labels) for name, value in options.items()}
    plan = plan_of(loss, flat_target, flat_options, memory)
    tensors: list[Tensor | None] = [features.reshape(shape.numel(), features.shape[-1])]
    for one, shift in zip(weights, biases, strict=True):
        tensors += [one, shift]
    if not torch.is_grad_enabled():  # a Function asks for gradients that nobody will
        tensors = [None if tensor is None else tensor.detach() for tensor in tensors]
    try:
        plan.check_options([features.new_empty(0, len(one)) for one in weights])
        result: Tensor = _LinearLoss.apply(plan, *tensors)
    except ShortlistError as error:  # a block counts from its own first row
        if not sparse:
            _check_whole(scores, target)
        raise error
    if plan.reduction == "none":
        result = result.reshape((*shape, *result.shape[1:]))
    return result


def _flat(name: str, value: Any, shape: torch.Size, labels: int) -> Any:
    """An option with one entry per row for rows in one dimension; a mask that is the same for all rows stays one."""
    if not isinstance(value, Tensor) or name not in BY_ROW or not value.ndim:
        return value
    if name != "mask":
        if value.shape != shape:
            raise ShortlistError(f"{name} must have one entry per row, shape {tuple(shape)}, got {tuple(value.shape)}")
        return value.reshape(-1)
    try:
        same_for_all = value.expand(*value.shape[:-1], labels).reshape(-1, labels) if value.ndim > 1 else value[None]
        if len(same_for_all) == 1:
            return same_for_all.expand(shape.numel(), labels)
        return value.expand(*shape, labels).reshape(-1, labels)
    except RuntimeError:
        raise ShortlistError(
            f"mask of shape {tuple(value.shape)} does not broadcast to the scores' {(*shape, labels)}"
        ) from None


def _check_whole(scores: Tensor, target: Tensor) -> None:
    """Raise what is wrong with the target in terms of the whole batch, if that is what was wrong."""
    if target.shape == scores.shape:
        if not checks.holds_shares(target):
            checks.check_label_matrix(scores, target)
    else:
        checks.check_indices(scores, target)


def _check_pairs(loss: Any, weight: Any, bias: Any) -> None:
    if loss is average_k_loss:
        pair_of_biases = bias is None or (isinstance(bias, tuple | list) and len(bias) == 2)
        if not isinstance(weight, tuple | list) or len(weight) != 2 or not pair_of_biases:
            raise ShortlistError(
                "average_k_loss has two heads: weight must be a pair (that of the set scores, that of the proposals), "
                "and bias a pair or None"
            )
    elif isinstance(weight, tuple | list) or isinstance(bias, tuple | list):
        name = getattr(loss, "__name__", type(loss).__name__)
        raise ShortlistError(f"{name} has one head: weight must be a tensor; pairs are for average_k_loss")


def _check_head(features: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    checks.check_scores(features, "features")
    checks.check_scores(weight, "weight")
    if weight.ndim != 2 or weight.shape[1] != features.shape[-1]:
        raise ShortlistError(
            f"weight of shape {tuple(weight.shape)} does not fit features of shape {tuple(features.shape)}: "
            f"it has one row per label, of {features.shape[-1]} numbers"
        )
    checks.check_tensor(features, weight, "weight")
    if bias is not None:
        checks.check_scores(bias, "bias")
        checks.check_tensor(features, bias, "bias")
        if bias.shape != weight.shape[:1]:
            raise ShortlistError(f"bias must have shape ({len(weight)},), one per label, got {tuple(bias.shape)}")
    autocast = torch.is_autocast_enabled(features.device.type)
    for name, part in (("weight", weight), ("bias", bias)):
        if not autocast and part is not None and part.dtype != features.dtype:
            raise ShortlistError(f"features are {features.dtype} and {name} {part.dtype}: they must be of one type")


def _check_options(loss: Any, options: dict[str, Any]) -> None:
    known = inspect.signature(loss).parameters if inspect.isfunction(loss) else {}
    if "reduction" not in known or "sync" not in known:
        raise ShortlistError(f"linear_loss takes a loss of shortlist.functional, got {loss!r}")
    for name, value in options.items():
        if name not in known:
            raise ShortlistError(f"{loss.__name__} has no option {name!r}: there are {', '.join(list(known)[2:])}")
        if isinstance(value, Tensor) and value.requires_grad and torch.is_grad_enabled():
            raise ShortlistError(f"linear_loss gives no gradient of {name}: detach it, or make the scores yourself")


class _LinearLoss(torch.autograd.Function):
    """(plan, features, then weight and bias of each head) -> the loss; its gradients are computed with it."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, features: Tensor, *heads: Any) -> Tensor:
        wanted = ctx.needs_input_grad[1:]
        ctx.plan, ctx.state = plan, plan.random_state()
        device = features.device.type
        ctx.autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device), False)
        ctx.save_for_backward(features, *heads)
        made = _heads(features, heads, wanted if plan.reduction != "none" else (False,) * len(wanted))
        value, factor = plan.run(made)
        for head in made:
            head.forget_block()
        ctx.found = (made, factor) if plan.reduction != "none" else None
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        features, *heads = ctx.saved_tensors
        wanted, plan = ctx.needs_input_grad[1:], ctx.plan
        if torch.is_grad_enabled():
            with plan.random_state_set(ctx.state), torch.autocast(*ctx.autocast):
                return None, *_with_graph(plan, upstream, wanted, features, heads)
        if ctx.found is None:  # losses of rows; or somebody asks a second time
            with plan.random_state_set(ctx.state), torch.autocast(*ctx.autocast):
                made = _heads(features, heads, wanted)
                ctx.found = made, plan.run(made, upstream if plan.reduction == "none" else None)[1]
        (made, factor), ctx.found = ctx.found, None
        factor = factor if plan.reduction == "none" else factor * upstream
        parts = [head.gradients(factor) for head in made]
        of_features = parts[0][0]
        for part in parts[1:]:
            of_features = part[0] if of_features is None else of_features + part[0]
        return None, of_features, *[gradient for part in parts for gradient in part[1:]]


def _heads(features: Tensor, heads: Any, wanted: Any) -> list[Head]:
    return [
        Head(features, heads[i], heads[i + 1], (wanted[0], wanted[1 + i], wanted[2 + i]))
        for i in range(0, len(heads), 2)
    ]


def _with_graph(plan: Plan, upstream: Tensor, wanted: Any, features: Tensor, heads: Any) -> list[Tensor | None]:
    """The gradients as a formula that PyTorch can differentiate again: all scores at once."""
    scores = [F.linear(features, heads[i], heads[i + 1]) for i in range(0, len(heads), 2)]
    value = plan.loss(*scores, plan.target, **plan.options)
    asked = [tensor for tensor, want in zip((features, *heads), wanted, strict=True) if want]
    found = iter(torch.autograd.grad(value, asked, upstream, create_graph=True))
    return [next(found) if want else None for want in wanted]
