"""The kernels as PyTorch operators, native and Triton's: they trace under ``torch.compile`` and batch under ``vmap``.

All operators work on rows: tensors come first, numbers after them, named and ordered as in the structs of
``csrc/calls.h``. A loss operator returns ``(loss, grad, scale)``: the gradient is computed together with the loss, and
``scale`` is what it has yet to be multiplied by. Its target is a list of plain tensors: one of class indices, or one
that holds a label matrix, or three that hold those of its entries that are stored: offsets (int64), indices (int32 or
int64) and values (int8, the last of which is what all other entries are). ``groups`` splits the rows into equal parts
that are reduced apart; it is what ``vmap`` adds to. 0 groups: all rows are one, and loss and scale are numbers; a
direct call of a native kernel has the scale as a float, of a Triton kernel as a tensor: nothing waits for a device.

Scores in half precision, which only Triton's kernels read, have losses in float32, and results as large as they are in
their own type. A float16 has no room for a small gradient that is yet to be multiplied: a loss of such scores is asked
for without one, and backward has its ``gradient``, computed from the start and rounded when it is finished.
"""

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.library import Library

from shortlist.checks import traced
from shortlist.errors import ShortlistError
from shortlist.kernels.dispatch import native, triton_kernel, triton_takes

_library = Library("shortlist", "DEF")
LABEL_TYPES = {
    torch.bool: 1,
    torch.int8: 1,
    torch.int32: 2,
    torch.int64: 3,
    torch.float32: 4,
    torch.float64: 5,
}
READS_SPARSE = hasattr(native, "sparse_targets")
_SPARSE = {torch.int32: 6, torch.int64: 7}  # by the type of the indices
_NUMBERS = {dtype: torch.empty((), dtype=dtype) for dtype in (torch.float32, torch.float64)}
_Results = tuple[Tensor, Tensor, Tensor]


class Kernel(NamedTuple):
    """A kernel, called directly (``run``: eager mode) or as an operator that traces and batches (``op``)."""

    run: Callable[..., Any]
    op: Callable[..., Any]
    name: str
    own: int = 0  # of a loss: how many of its arguments are tensors of its own
    native: bool = True  # there is one for CPUs; every kernel is there for GPUs, or not yet
    gradient: "Kernel | None" = None  # of a loss, by Triton: a tensor of factors in ``with_grad``'s place, and no loss

    def __call__(self, *args: Any) -> Any:
        return self.op(*args) if traced() else self.run(*args)


class BadTarget(ShortlistError):
    """A target value that is not allowed, at a flat position; callers say it in their own words."""

    def __init__(self, position: int) -> None:
        super().__init__(f"target value at flat position {position} is not allowed")
        self.position = position


def in_kernel_type(target: Tensor) -> Tensor:
    """A label matrix in a type that the kernels read."""
    if target.dtype in LABEL_TYPES:
        return target
    return target.float() if target.is_floating_point() else target.to(torch.int32)


def number_type(dtype: torch.dtype) -> torch.dtype:
    """Of a loss: half precision is computed in float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _like(tensor: Tensor) -> Tensor:
    """Memory for a result of this shape: contiguous, as the kernels write it, whatever the input's strides."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


class _Lent(threading.local):
    memory: Tensor | None = None


_lent = _Lent()


@contextmanager
def gradient_memory(memory: Tensor | None) -> Iterator[None]:
    """The first native loss inside writes its gradient into this memory, if it fits: who computes one block after the
    other is spared fresh memory for each, whose pages cost as much as the arithmetic."""
    _lent.memory = memory
    try:
        yield
    finally:
        _lent.memory = None


def _gradient_like(scores: Tensor) -> Tensor:
    """Memory for the gradient of contiguous scores in a type that native kernels take."""
    memory = _lent.memory
    if memory is None:
        return torch.empty_like(scores)
    _lent.memory = None  # a second loss has memory of its own
    if memory.dtype != scores.dtype or memory.numel() < scores.numel():
        return torch.empty_like(scores)
    return memory[: scores.numel()].view(scores.shape)


def _loss_outputs(scores: Tensor, reduction: str, groups: int, with_grad: bool) -> tuple[Tensor, Tensor | None]:
    shape = scores.shape[:1] if reduction == "none" else (groups,) if groups else ()
    return scores.new_empty(shape, dtype=number_type(scores.dtype)), _like(scores) if with_grad else None


def _folded(value: Any, dim: Any, size: int) -> Any:
    """An argument with the vmapped dimension folded into the rows; numbers and None as they are."""
    if isinstance(value, list | tuple):
        return [_folded(one, d, size) for one, d in zip(value, dim or (None,) * len(value), strict=True)]
    if not isinstance(value, Tensor):
        return value
    value = value.unsqueeze(0).expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
    return value.reshape(value.shape[0] * value.shape[1], *value.shape[2:])


def _define(schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> Kernel:
    """Declare an operator on rows."""
    name, arguments = schema.split(" ->")[0].removesuffix(")").split("(")
    names = [argument.split(" ")[1] for argument in arguments.split(", ")]
    _library.define(schema)

    def batch(info: Any, in_dims: Any, *args: Any) -> Any:
        size = info.batch_size
        results = op(
            *[
                value * size if name == "groups" else _folded(value, dim, size)
                for name, value, dim in zip(names, args, in_dims, strict=True)
            ]
        )
        if isinstance(results, Tensor):
            return results.unflatten(0, (size, -1)), 0
        return tuple(r.unflatten(0, (size, -1)) for r in results), (0,) * len(results)

    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    op: Callable[..., Any] = getattr(torch.ops.shortlist, name).default
    torch.library.register_fake(f"shortlist::{name}", fake, lib=_library)
    torch.library.register_vmap(f"shortlist::{name}", batch, lib=_library)
    return Kernel(run, op, name, native=hasattr(native, name))


def _define_loss(name: str, numbers: str = "", tensor: str = "") -> Kernel:
    """Declare loss operator ``name`` with its own numbers, and with a tensor of its own (which may be None)."""
    extra = 1 if tensor else 0
    arguments = ["Tensor scores", "Tensor[] target", "Tensor? weight"] + [f"Tensor? {tensor}"] * extra
    arguments += ["str reduction", "int groups", "bool with_grad", *([numbers] if numbers else [])]
    factors = ", ".join(arguments).replace("bool with_grad", "Tensor factor")
    kernel = getattr(native, name, None)

    def run(
        scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, *args: Any, scale: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Any]:
        if triton_takes(scores):
            return triton_kernel(name)(scores, target, weight, *args)
        scores, first = scores.contiguous(), target[0].contiguous()
        reduction, groups, with_grad, *values = args[extra:]
        if weight is not None:
            weight = weight.contiguous()
        if extra:
            own = None if args[0] is None else args[0].contiguous()
            values.append(0 if own is None else own.data_ptr())
        if groups or reduction == "none":
            loss, _ = _loss_outputs(scores, reduction, groups, False)
        else:  # the same in less time
            loss = torch.empty_like(_NUMBERS[scores.dtype])
        grad = _gradient_like(scores) if with_grad else None
        rows, n = scores.shape
        address, kind = first.data_ptr(), LABEL_TYPES[first.dtype] if first.ndim == 2 else 0
        if len(target) > 1:
            labels = [part.contiguous() for part in target]
            parts = array("q", [*[part.data_ptr() for part in labels], len(labels[1])])  # a SparseTarget
            address, kind = parts.buffer_info()[0], _SPARSE[labels[1].dtype]
        if scale is None and type(reduction) is not str:  # a NotedMean learns from the scale what was divided by
            scale = torch.empty_like(_NUMBERS[scores.dtype])
        bad, factor = kernel(  # type: ignore[misc]
            scores.dtype == torch.float64,
            rows,
            n,
            scores.data_ptr(),
            address,
            kind,
            0 if weight is None else weight.data_ptr(),
            loss.data_ptr(),
            0 if scale is None else scale.data_ptr(),
            0 if grad is None else grad.data_ptr(),
            groups or 1,
            reduction[0],
            torch.get_num_threads(),
            *values,
        )
        if bad >= 0:
            raise BadTarget(bad)
        return loss, grad, factor

    def outputs(scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, *args: Any) -> _Results:
        reduction, groups, with_grad = args[extra : extra + 3]
        loss, grad = _loss_outputs(scores, reduction, groups, with_grad)
        return loss, scores.new_empty((groups, 0)) if grad is None else grad, _scale(scores, groups)

    def traceable(scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, *args: Any) -> _Results:
        groups = args[extra + 1]
        scale = _scale(scores, groups)
        loss, grad, own_scale = run(scores, target, weight, *args, scale=scale)
        scale = own_scale if isinstance(own_scale, Tensor) else scale
        return loss, scores.new_empty((groups, 0)) if grad is None else grad, scale

    schema = f"{name}({', '.join(arguments)}) -> (Tensor, Tensor, Tensor)"
    gradient = _define(
        f"{name}_gradient({factors}) -> Tensor",
        lambda *args: triton_kernel(name)(*args)[1],
        lambda scores, *_: _like(scores),
    )
    return _define(schema, traceable, outputs)._replace(run=run, own=extra, gradient=gradient)


def _scale(scores: Tensor, groups: int) -> Tensor:
    return scores.new_empty((groups,) if groups else (), dtype=number_type(scores.dtype))


def finish_gradient(grad: Tensor, factor: Tensor) -> Tensor:
    """A gradient that nobody else holds times a number on its device; nothing waits for the number."""
    if triton_takes(grad):
        triton_kernel("finish_gradient")(grad, factor)
        return grad
    return grad.mul_(factor)


smooth_topk = _define_loss("smooth_topk", "int k, float tau, float alpha")
truncated_entropy = _define_loss("truncated_entropy", "int k")
lml_loss = _define_loss("lml_loss", "int k", tensor="k_rows")
# per-label tensors (pos_weight, frequent) come unbatched: `RowLoss` uses the twin where vmap would batch them
binary = _define_loss("binary", tensor="pos_weight")
partial_binary = _define_loss("partial_binary", "float boost")
asymmetric = _define_loss(
    "asymmetric",
    "float gamma_pos, float gamma_neg, float gamma_unknown, float clip, bool detach_focus, int unknown_rule, "
    "int likelihood_topk",
    tensor="frequent",
)
pair_rows = _define_loss("pair_rows", "float positive_temperature, float negative_temperature, float margin")
two_way = _define_loss(
    "two_way", "float positive_temperature, float negative_temperature, float margin, bool sample_way"
)
multilabel_softmax = _define_loss("multilabel_softmax")
warp = _define_loss("warp", tensor="seeds")
rml = _define_loss("rml", "float ramp, float label_weight")
assume_negative = _define_loss("assume_negative", "bool weighted, float label_smoothing")
expected_positive = _define_loss("expected_positive", "float k, float beta, bool normalize")


def _run(name: str, arguments: Sequence[Any], outputs: Sequence[Tensor]) -> Any:
    """Call a function of rows: its arguments, the first of them a matrix that has these rows, then what it writes."""
    held = [value.contiguous() if isinstance(value, Tensor) else value for value in arguments]
    rows, n = held[0].shape
    return getattr(native, name)(
        held[0].dtype == torch.float64,
        rows,
        n,
        torch.get_num_threads(),
        *[value.data_ptr() if isinstance(value, Tensor) else 0 if value is None else value for value in held],
        *[output.data_ptr() for output in outputs],
    )


def _define_rows(schema: str, outputs: Callable[..., Any]) -> Kernel:
    """Declare another function of rows; ``outputs`` makes the memory that it writes."""
    name = schema.split("(")[0]

    def run(*args: Any) -> Any:
        if triton_takes(args[0]):
            return triton_kernel(name)(*args)
        results = outputs(*args)
        _run(name, args, (results,) if isinstance(results, Tensor) else results)
        return results

    return _define(schema, run, outputs)


lml = _define_rows(
    "lml(Tensor scores, Tensor? k_rows, int k) -> (Tensor, Tensor)",
    lambda scores, k_rows, k: (_like(scores), scores.new_empty((scores.shape[0], 3), dtype=torch.float64)),
)
lml_backward = _define_rows(
    "lml_backward(Tensor scores, Tensor p, Tensor frame, Tensor upstream) -> Tensor",
    lambda scores, p, frame, upstream: _like(scores),
)


def plain_lml(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`lml` where the native kernel is known to serve, eager only: in half of the time that the call itself takes."""
    scores = scores.contiguous()
    rows, n = scores.shape
    p, frame = torch.empty_like(scores), torch.empty(rows, 3, dtype=torch.float64)
    threads, addresses = torch.get_num_threads(), (p.data_ptr(), frame.data_ptr())
    native.lml(scores.dtype is torch.float64, rows, n, threads, scores.data_ptr(), 0, k, *addresses)
    return p, frame


def plain_lml_backward(scores: Tensor, p: Tensor, frame: Tensor, upstream: Tensor) -> Tensor:
    """`lml_backward` likewise."""
    scores, upstream, gradient = scores.contiguous(), upstream.contiguous(), torch.empty_like(p)
    addresses = (scores.data_ptr(), p.data_ptr(), frame.data_ptr(), upstream.data_ptr(), gradient.data_ptr())
    native.lml_backward(p.dtype is torch.float64, *p.shape, torch.get_num_threads(), *addresses)
    return gradient


subset_sums = _define_rows(
    "subset_sums(Tensor scores, int k, bool with_marginals) -> (Tensor, Tensor)",
    lambda scores, k, with_marginals: (
        scores.new_empty(scores.shape[0], dtype=torch.float64),
        _like(scores) if with_marginals else scores.new_empty((scores.shape[0], 0)),
    ),
)
subset_gradient = _define(  # the marginals, each row times its factor: by Triton
    "subset_gradient(Tensor scores, Tensor factor, int k) -> Tensor",
    lambda scores, factor, k: triton_kernel("subset_sums")(scores, k, factor)[1],
    lambda scores, factor, k: _like(scores),
)
SLOPE_DEGREE = 8  # the largest k that subset_slopes takes
subset_slopes = _define_rows(
    "subset_slopes(Tensor scores, Tensor direction, int k) -> Tensor",
    lambda scores, direction, k: torch.empty_like(scores, memory_format=torch.contiguous_format),  # nothing follows it
)
kth_largest = _define_rows(
    "kth_largest(Tensor scores, Tensor? noise, float epsilon, int k) -> (Tensor, Tensor)",
    lambda scores, noise, epsilon, k: (
        scores.new_empty(scores.shape[0]),
        scores.new_empty(scores.shape[0], dtype=torch.int64),
    ),
)
_AVERAGE_K = (
    "Tensor set_scores, Tensor proposal_scores, Tensor index, Tensor weight, float k, float alpha, bool mean, "
    "int groups"
)
average_k = _define_rows(
    f"average_k({_AVERAGE_K}) -> (Tensor, Tensor, Tensor)",
    lambda sets, proposals, index, weight, k, alpha, mean, groups: (
        sets.new_empty(groups, dtype=number_type(sets.dtype)),
        _like(sets),
        _like(proposals),
    ),
)
average_k_value = _define(  # and nothing else: by Triton
    f"average_k_value({_AVERAGE_K}) -> Tensor",
    lambda *args: triton_kernel("average_k")(*args, False)[0],
    lambda sets, *rest: sets.new_empty(rest[-1], dtype=number_type(sets.dtype)),
)
average_k_gradient = _define(  # of both heads, times a factor for each group: by Triton
    f"average_k_gradient({_AVERAGE_K}, Tensor factor) -> (Tensor, Tensor)",
    lambda *args: triton_kernel("average_k")(*args)[1:],
    lambda sets, proposals, *_: (_like(sets), _like(proposals)),
)


FIT_ATOMS = 8  # the most rows that nonnegative_fit combines


def nonnegative_fit(target: Tensor, dictionary: Tensor, picked: Tensor, singular: float) -> tuple[Tensor, Tensor]:
    """Rows as nonnegative combinations of dictionary rows: coefficients in double precision, and what is left over.

    Eager only: nothing of it is differentiated. ``picked`` (rows, atoms) holds rows of the dictionary, or -1.
    """
    results = torch.empty(picked.shape, dtype=torch.float64), _like(target)
    _run("nonnegative_fit", (target, dictionary, picked, picked.shape[1], singular), results)
    return results


def single_positive(target: Tensor) -> Tensor:
    """The present label of each row of a label matrix: -1 where there is none, minus their number where several.

    Eager only: the values decide about errors. ``BadTarget`` says where a value is not allowed.
    """
    index = torch.empty(target.shape[0], dtype=torch.int64)
    bad = _run("single_positive", (target, LABEL_TYPES[target.dtype]), (index,))
    if bad >= 0:
        raise BadTarget(bad)
    return index
