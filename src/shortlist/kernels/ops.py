"""The native kernels as PyTorch operators: they trace under ``torch.compile`` and batch under ``vmap``.

All operators work on rows: tensors come first, numbers after them. A loss operator returns ``(loss, grad, scale)``:
the gradient is computed together with the loss, and ``scale`` is what it has yet to be multiplied by. Its target is a
list of plain tensors: one of class indices, or one that holds a label matrix. ``groups`` splits the rows into equal
parts that are reduced apart; it is what ``vmap`` adds to. 0 groups: all rows are one, and loss and scale are numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.library import Library

from shortlist.checks import traced
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

    _library.impl(name, run, "CPU")
    op: Callable[..., Any] = getattr(torch.ops.shortlist, name).default
    torch.library.register_fake(f"shortlist::{name}", fake, lib=_library)
    torch.library.register_vmap(f"shortlist::{name}", batch, lib=_library)
    return Kernel(run, op)


def _define_loss(name: str, numbers: str = "", tensor: str = "") -> Kernel:
    """Declare loss operator ``name`` with its own numbers, and with a tensor of its own (which may be None)."""
    extra = 1 if tensor else 0
    arguments = ["Tensor scores", "Tensor[] target", "Tensor? weight"] + [f"Tensor? {tensor}"] * extra
    arguments += ["str reduction", "int groups", "bool with_grad", *([numbers] if numbers else [])]
    kernel = getattr(native, name, None)

    def run(scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, *args: Any) -> _Results:
        scores, labels = scores.contiguous(), target[0].contiguous()
        weight = weight if weight is None else weight.contiguous()
        own = [t if t is None else t.contiguous() for t in args[:extra]]
        reduction, groups, with_grad = args[extra : extra + 3]
        loss, grad, scale = _loss_outputs(scores, reduction, groups, with_grad)
        rows, n = scores.shape
        bad = kernel(  # type: ignore[misc]
            scores.dtype == torch.float64,
            rows,
            n,
            scores.data_ptr(),
            labels.data_ptr(),
            LABEL_TYPES[labels.dtype] if labels.ndim == 2 else 0,
            _address(weight),
            loss.data_ptr(),
            scale.data_ptr(),
            grad.data_ptr() if with_grad else 0,
            groups or 1,
            reduction[0],
            torch.get_num_threads(),
            *args[extra + 3 :],
            *[_address(t) for t in own],
        )
        if bad >= 0:
            raise BadTarget(bad)
        return loss, grad, scale

    def fake(scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, *args: Any) -> _Results:
        return _loss_outputs(scores, *args[extra : extra + 3])

    return _define(f"{name}({', '.join(arguments)}) -> (Tensor, Tensor, Tensor)", run, fake)


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
assume_negative = _define_loss("assume_negative", "bool weighted, float label_smoothing")


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


lml = _define("lml(Tensor scores, Tensor? k_rows, int k) -> (Tensor, Tensor)", _run_lml, _fake_lml)


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
    "subset_sums(Tensor scores, int k, bool with_marginals) -> (Tensor, Tensor)", _run_subset_sums, _fake_subset_sums
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


average_k = _define(
    "average_k(Tensor scores, Tensor proposals, Tensor index, Tensor weight, float k, float alpha, bool mean, "
    "int groups) -> (Tensor, Tensor, Tensor)",
    _run_average_k,
    _fake_average_k,
)
