"""The native kernels as PyTorch operators: they trace under ``torch.compile`` and batch under ``vmap``.

A loss operator works on rows and returns ``(loss, grad, scale)``: the gradient is computed together with the loss, and
``scale`` is what it has yet to be multiplied by. ``groups`` splits the rows into equal parts that are reduced apart; it
is what ``vmap`` adds to. 0 groups: all rows are one, and loss and scale are plain numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.library import Library

from shortlist.errors import ShortlistError
from shortlist.kernels.dispatch import native

_library = Library("shortlist", "DEF")
LABEL_TYPES = {
    torch.bool: 1,
    torch.int8: 1,
    torch.int32: 2,
    torch.int64: 3,
    torch.float32: 4,
    torch.float64: 5,
}
_Results = tuple[Tensor, Tensor, Tensor]


class Kernel(NamedTuple):
    """A kernel, called directly (``run``: eager mode) or as an operator that traces and batches (``op``)."""

    run: Callable[..., Any]
    op: Callable[..., Any]


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


def _like(tensor: Tensor) -> Tensor:
    """Memory for a result of this shape: contiguous, as the kernels write it, whatever the input's strides."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _loss_outputs(scores: Tensor, reduction: str, groups: int, with_grad: bool) -> _Results:
    rows = scores.shape[0]
    per_group = (groups,) if groups else ()
    loss = scores.new_empty(rows if reduction == "none" else per_group)
    grad = _like(scores) if with_grad else scores.new_empty((groups, 0))
    return loss, grad, scores.new_empty(per_group)


def _batched(tensor: Tensor | None, dim: int | None, size: int) -> Tensor | None:
    """A tensor of rows, the vmapped dimension folded into the rows."""
    if tensor is None:
        return None
    tensor = tensor.unsqueeze(0).expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return tensor.reshape(tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])


def _define_loss(name: str, extra: str, tensors: int = 0) -> Kernel:
    """Declare loss operator ``name`` with ``extra`` arguments, the last ``tensors`` of them tensors of rows or None."""
    arguments = "Tensor scores, Tensor target, Tensor? weight, str reduction, int groups, bool with_grad"
    arguments += f", {extra}" if extra else ""
    _library.define(f"{name}({arguments}) -> (Tensor, Tensor, Tensor)")

    kernel = getattr(native, name, None)

    def run(
        scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, groups: int, with_grad: bool, *args: Any
    ) -> _Results:
        scores, target = scores.contiguous(), target.contiguous()
        weight = None if weight is None else weight.contiguous()
        args = tuple(a.contiguous() if isinstance(a, Tensor) else a for a in args)
        loss, grad, scale = _loss_outputs(scores, reduction, groups, with_grad)
        rows, n = scores.shape
        bad = kernel(  # type: ignore[misc]
            scores.dtype == torch.float64,
            rows,
            n,
            scores.data_ptr(),
            target.data_ptr(),
            LABEL_TYPES[target.dtype] if target.ndim == 2 else 0,
            _address(weight),
            loss.data_ptr(),
            scale.data_ptr(),
            grad.data_ptr() if with_grad else 0,
            groups or 1,
            reduction[0],
            torch.get_num_threads(),
            *[_address(a) if i >= len(args) - tensors else a for i, a in enumerate(args)],
        )
        if bad >= 0:
            raise BadTarget(bad)
        return loss, grad, scale

    def fake(
        scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, groups: int, with_grad: bool, *args: Any
    ) -> _Results:
        return _loss_outputs(scores, reduction, groups, with_grad)

    def batch(info: Any, in_dims: Any, scores: Tensor, target: Tensor, weight: Tensor | None, *rest: Any) -> Any:
        size = info.batch_size
        reduction, groups, with_grad, *args = rest
        for i in range(len(args) - tensors, len(args)):
            args[i] = _batched(args[i], in_dims[6 + i], size)
        results = op(
            _batched(scores, in_dims[0], size),
            _batched(target, in_dims[1], size),
            _batched(weight, in_dims[2], size),
            reduction,
            groups * size,
            with_grad,
            *args,
        )
        return tuple(r.unflatten(0, (size, -1)) for r in results), (0, 0, 0)

    _library.impl(name, run, "CPU")
    op: Callable[..., _Results] = getattr(torch.ops.shortlist, name).default
    torch.library.register_fake(f"shortlist::{name}", fake, lib=_library)
    torch.library.register_vmap(f"shortlist::{name}", batch, lib=_library)
    return Kernel(run, op)


smooth_topk = _define_loss("smooth_topk", "int k, float tau, float alpha")
truncated_entropy = _define_loss("truncated_entropy", "int k")
lml_loss = _define_loss("lml_loss", "int k, Tensor? k_rows", tensors=1)
# per-label tensors (pos_weight, frequent) come unbatched: callers use the twin where vmap would batch them
binary = _define_loss("binary", "Tensor? pos_weight", tensors=1)
partial_binary = _define_loss("partial_binary", "float boost")
asymmetric = _define_loss(
    "asymmetric",
    "float gamma_pos, float gamma_neg, float gamma_unknown, float clip, bool detach_focus, int unknown_rule, "
    "int likelihood_topk, Tensor? frequent",
    tensors=1,
)
pair_rows = _define_loss("pair_rows", "float positive_temperature, float negative_temperature, float margin")
two_way = _define_loss(
    "two_way", "float positive_temperature, float negative_temperature, float margin, bool sample_way"
)
multilabel_softmax = _define_loss("multilabel_softmax", "")
warp = _define_loss("warp", "Tensor? seeds", tensors=1)
assume_negative = _define_loss("assume_negative", "bool weighted, float label_smoothing")


def _define(
    schema: str, run: Callable[..., Any], fake: Callable[..., Any], outputs: int, tensors: int
) -> Kernel:
    """Declare an operator on rows whose first ``tensors`` arguments are (optional) tensors of rows."""
    name = schema.split("(")[0]
    _library.define(schema)

    def batch(info: Any, in_dims: Any, *args: Any) -> Any:
        size = info.batch_size
        flat = [_batched(a, d, size) if i < tensors else a for i, (a, d) in enumerate(zip(args, in_dims, strict=True))]
        results = op(*flat)
        if outputs == 1:
            return results.unflatten(0, (size, -1)), 0
        return tuple(r.unflatten(0, (size, -1)) for r in results), (0,) * outputs

    _library.impl(name, run, "CPU")
    op: Callable[..., Any] = getattr(torch.ops.shortlist, name).default
    torch.library.register_fake(f"shortlist::{name}", fake, lib=_library)
    torch.library.register_vmap(f"shortlist::{name}", batch, lib=_library)
    return Kernel(run, op)


def _run_lml(scores: Tensor, k_rows: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    scores, k_rows = scores.contiguous(), None if k_rows is None else k_rows.contiguous()
    p, frame = _fake_lml(scores, k_rows, k)
    rows, n = scores.shape
    native.lml(
        scores.dtype == torch.float64,
        scores.data_ptr(),
        rows,
        n,
        k,
        _address(k_rows),
        p.data_ptr(),
        frame.data_ptr(),
        torch.get_num_threads(),
    )
    return p, frame


def _fake_lml(scores: Tensor, k_rows: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    return _like(scores), scores.new_empty((scores.shape[0], 3), dtype=torch.float64)


lml = _define("lml(Tensor scores, Tensor? k_rows, int k) -> (Tensor, Tensor)", _run_lml, _fake_lml, 2, 2)


def _run_lml_backward(scores: Tensor, p: Tensor, frame: Tensor, upstream: Tensor) -> Tensor:
    scores, p, upstream = scores.contiguous(), p.contiguous(), upstream.contiguous()
    grad = _like(scores)
    native.lml_backward(
        scores.dtype == torch.float64,
        scores.data_ptr(),
        p.data_ptr(),
        frame.contiguous().data_ptr(),
        upstream.data_ptr(),
        scores.shape[0],
        scores.shape[1],
        grad.data_ptr(),
        torch.get_num_threads(),
    )
    return grad


lml_backward = _define(
    "lml_backward(Tensor scores, Tensor p, Tensor frame, Tensor upstream) -> Tensor",
    _run_lml_backward,
    lambda scores, p, frame, upstream: _like(scores),
    1,
    4,
)


def _run_subset_sums(scores: Tensor, k: int, with_marginals: bool) -> tuple[Tensor, Tensor]:
    scores = scores.contiguous()
    log_sum, marginals = _fake_subset_sums(scores, k, with_marginals)
    native.subset_sums(
        scores.dtype == torch.float64,
        scores.data_ptr(),
        scores.shape[0],
        scores.shape[1],
        k,
        log_sum.data_ptr(),
        marginals.data_ptr() if with_marginals else 0,
        torch.get_num_threads(),
    )
    return log_sum, marginals


def _fake_subset_sums(scores: Tensor, k: int, with_marginals: bool) -> tuple[Tensor, Tensor]:
    log_sum = scores.new_empty(scores.shape[0], dtype=torch.float64)
    return log_sum, scores.new_empty(scores.shape if with_marginals else (scores.shape[0], 0))


subset_sums = _define(
    "subset_sums(Tensor scores, int k, bool with_marginals) -> (Tensor, Tensor)",
    _run_subset_sums,
    _fake_subset_sums,
    2,
    1,
)


SLOPE_DEGREE = 8  # the largest k that subset_slopes takes


def _run_subset_slopes(scores: Tensor, direction: Tensor, k: int) -> Tensor:
    scores, direction = scores.contiguous(), direction.contiguous()
    slopes = _like(scores)
    native.subset_slopes(
        scores.dtype == torch.float64,
        scores.data_ptr(),
        direction.data_ptr(),
        scores.shape[0],
        scores.shape[1],
        k,
        slopes.data_ptr(),
        torch.get_num_threads(),
    )
    return slopes


subset_slopes = _define(
    "subset_slopes(Tensor scores, Tensor direction, int k) -> Tensor",
    _run_subset_slopes,
    lambda scores, direction, k: _like(scores),
    1,
    2,
)


def _run_kth_largest(scores: Tensor, noise: Tensor | None, epsilon: float, k: int) -> tuple[Tensor, Tensor]:
    scores = scores.contiguous()
    noise = None if noise is None else noise.contiguous()
    values, indices = _fake_kth_largest(scores, noise, epsilon, k)
    native.kth_largest(
        scores.dtype == torch.float64,
        scores.data_ptr(),
        _address(noise),
        epsilon,
        scores.shape[0],
        scores.shape[1],
        k,
        values.data_ptr(),
        indices.data_ptr(),
        torch.get_num_threads(),
    )
    return values, indices


def _fake_kth_largest(scores: Tensor, noise: Tensor | None, epsilon: float, k: int) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), scores.new_empty(scores.shape[0], dtype=torch.int64)


kth_largest = _define(
    "kth_largest(Tensor scores, Tensor? noise, float epsilon, int k) -> (Tensor, Tensor)",
    _run_kth_largest,
    _fake_kth_largest,
    2,
    2,
)


FIT_ATOMS = 8  # the most rows that nonnegative_fit combines


def nonnegative_fit(target: Tensor, dictionary: Tensor, picked: Tensor, singular: float) -> tuple[Tensor, Tensor]:
    """Rows as nonnegative combinations of dictionary rows: coefficients in double precision, and what is left over.

    Eager only: nothing of it is differentiated. ``picked`` (rows, t) holds rows of the dictionary, or -1.
    """
    target, dictionary, picked = target.contiguous(), dictionary.contiguous(), picked.contiguous()
    coefficients, residual = torch.empty(picked.shape, dtype=torch.float64), _like(target)
    native.nonnegative_fit(
        target.dtype == torch.float64,
        target.data_ptr(),
        dictionary.data_ptr(),
        picked.data_ptr(),
        singular,
        target.shape[0],
        target.shape[1],
        picked.shape[1],
        coefficients.data_ptr(),
        residual.data_ptr(),
        torch.get_num_threads(),
    )
    return coefficients, residual


def single_positive(target: Tensor) -> Tensor:
    """The present label of each row of a label matrix: -1 where there is none, minus their number where several.

    Eager only: the values decide about errors. ``BadTarget`` says where a value is not allowed.
    """
    target = target.contiguous()
    rows, n = target.shape
    index = torch.empty(rows, dtype=torch.int64)
    bad = native.single_positive(
        rows, n, target.data_ptr(), LABEL_TYPES[target.dtype], index.data_ptr(), torch.get_num_threads()
    )
    if bad >= 0:
        raise BadTarget(bad)
    return index


def _run_average_k(
    scores: Tensor, proposals: Tensor, index: Tensor, weight: Tensor, k: float, alpha: float, mean: bool, groups: int
) -> _Results:
    scores, proposals, index, weight = (t.contiguous() for t in (scores, proposals, index, weight))
    loss, set_grad, proposal_grad = _fake_average_k(scores, proposals, index, weight, k, alpha, mean, groups)
    native.average_k(
        scores.dtype == torch.float64,
        scores.shape[0],
        scores.shape[1],
        groups,
        scores.data_ptr(),
        proposals.data_ptr(),
        index.data_ptr(),
        weight.data_ptr(),
        k,
        alpha,
        mean,
        loss.data_ptr(),
        set_grad.data_ptr(),
        proposal_grad.data_ptr(),
        torch.get_num_threads(),
    )
    return loss, set_grad, proposal_grad


def _fake_average_k(
    scores: Tensor, proposals: Tensor, index: Tensor, weight: Tensor, k: float, alpha: float, mean: bool, groups: int
) -> _Results:
    return scores.new_empty(groups), _like(scores), _like(scores)


def _batch_average_k(info: Any, in_dims: Any, *args: Any) -> Any:
    size = info.batch_size
    rows = [_batched(a, d, size) for a, d in zip(args[:4], in_dims[:4], strict=True)]
    results = average_k.op(*rows, *args[4:7], args[7] * size)
    return tuple(r.unflatten(0, (size, -1)) for r in results), (0, 0, 0)


_library.define(
    "average_k(Tensor scores, Tensor proposals, Tensor index, Tensor weight, float k, float alpha, bool mean, "
    "int groups) -> (Tensor, Tensor, Tensor)"
)
_library.impl("average_k", _run_average_k, "CPU")
average_k = Kernel(_run_average_k, torch.ops.shortlist.average_k.default)
torch.library.register_fake("shortlist::average_k", _fake_average_k, lib=_library)
torch.library.register_vmap("shortlist::average_k", _batch_average_k, lib=_library)
