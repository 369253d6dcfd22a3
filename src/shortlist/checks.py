"""What a loss accepts: every check of scores, targets, k and options, with errors that say what is allowed.

Shapes, types and options are checked always; values only in eager mode (under ``torch.compile`` or ``vmap`` looking at
a value would break the graph). Native kernels fuse the value checks into the computation and raise the same errors. On
a GPU nothing waits for a value: a wrong one sets a flag, which the next call raises (`shortlist.device_flags`).
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from shortlist import device_flags
from shortlist.errors import ShortlistError

REDUCTIONS = ("mean", "sum", "none")
LARGEST = 1e15  # of options: what is scaled by one, twice over, and its slopes still fit float32
IGNORE_INDEX = -100  # what PyTorch and Hugging Face write for an unknown row; -1 means the same
LARGEST_WEIGHT = 1e15  # a class's weight times a row's, summed over a batch, still fits float32
SHARES_ROUNDING = 1e-2  # of a sum of shares: a thousand of them may have been rounded to bfloat16
_HALF = (torch.float16, torch.bfloat16)
_FLOATS = (torch.float32, torch.float64, *_HALF)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
is_wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda _: False)
transforms_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)  # vmap, grad, ...
is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # which PyTorch 2.6 cannot tell


def traced() -> bool:
    """Whether this call is recorded or transformed: only operators that PyTorch knows may be called."""
    return torch.compiler.is_compiling() or transforms_active()


def values_visible(*tensors: Tensor | None) -> bool:
    """True in eager mode: the values may be looked at without breaking a traced or batched computation."""
    if torch.compiler.is_compiling():
        return False
    return not any(t is not None and (t.is_meta or is_wrapped(t)) for t in tensors)


def refuse(bad: Tensor, kind: int, tell: Callable[[int], ShortlistError], *, wait: bool = False) -> None:
    """Raise what ``tell`` says of the first bad entry, by its flat position. On a device, which nobody waits for unless
    ``wait``, a flag of this kind is set instead (`shortlist.device_flags`); where values are not visible, nothing."""
    if not values_visible(bad):
        return
    if not wait and device_flags.waits(bad):
        device_flags.note(bad, kind)
    elif bool(bad.any()):
        raise tell(int(bad.flatten().nonzero()[0]))


def check_scores(scores: Tensor, name: str = "scores") -> None:
    if not isinstance(scores, Tensor):
        raise ShortlistError(f"{name} must be a torch.Tensor of raw scores, got {type(scores).__name__}")
    if scores.dtype not in _FLOATS:
        raise ShortlistError(
            f"{name} must be floating point (raw logits; float16, bfloat16, float32, float64), got dtype {scores.dtype}"
        )
    _check_dense(scores, name)
    if scores.ndim == 0:
        raise ShortlistError(f"{name} must have at least one dimension (the labels), got a scalar")


def check_tensor(scores: Tensor, other: Tensor, name: str) -> None:
    """Every tensor of a call is where the scores are, dense, and of a type that can be computed with."""
    _check_dense(other, name)
    if other.dtype != torch.bool and other.dtype not in _INTEGERS and other.dtype not in _FLOATS:
        raise ShortlistError(f"{name} must be a tensor of int, bool or float, got dtype {other.dtype}")
    if other.device != scores.device:
        raise ShortlistError(
            f"{name} is on device {other.device}, the scores are on {scores.device}: move one of them with .to(device)"
        )


def _check_dense(tensor: Tensor, name: str) -> None:
    if tensor.is_nested:
        raise ShortlistError(f"{name} must be a dense tensor, got a nested one: .to_padded_tensor() makes one")
    if tensor.layout != torch.strided:
        raise ShortlistError(f"{name} must be a dense tensor, got layout {tensor.layout}: .to_dense() makes one")


def number_tensor(value: Any, name: str, like: Tensor | None = None) -> Tensor:
    """A tensor from a number, a list or an array of them, of the type and on the device of ``like``; or the tensor."""
    try:
        return torch.as_tensor(value) if like is None else like.new_tensor(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # as torch has it
        raise ShortlistError(f"{name} must be a number or a tensor of numbers, got {type(value).__name__}") from None


def compute_type(dtype: torch.dtype) -> torch.dtype:
    """float16 and bfloat16 are computed in float32."""
    return torch.float32 if dtype in _HALF else dtype


def in_compute_type(scores: Tensor) -> Tensor:
    """float16 and bfloat16 are computed in float32; the result is cast back by the caller."""
    return scores.float() if scores.dtype in _HALF else scores


def check_choice(value: Any, name: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise ShortlistError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_reduction(reduction: str) -> None:
    check_choice(reduction, "reduction", REDUCTIONS)


def check_k(k: int, high: int, high_meaning: str) -> int:
    """A plain k with 1 <= k <= high, from any whole number."""
    k = whole(k, "k")
    if not 1 <= k <= high:
        raise ShortlistError(f"k must be between 1 and {high} ({high_meaning}), got {k}")
    return k


def whole(value: Any, name: str, least: int | None = None) -> int:
    """A plain int from any whole number, numpy's too; bools, tensors, fractions and what 64 bits do not hold: refused.

    >>> whole(np.int8(3), "k", 1)
    3
    """
    wanted = f"{name} must be a whole number" + ("" if least is None else f" of at least {least}")
    if type(value) is not int:
        if isinstance(value, bool | np.bool_ | Tensor):
            raise ShortlistError(f"{wanted}, got {value!r} ({type(value).__name__})")
        try:
            value = operator.index(value)
        except TypeError:
            raise ShortlistError(f"{wanted}, got {value!r} ({type(value).__name__})") from None
    number: int = value
    if not -(2**63) <= number < 2**63:
        raise ShortlistError(f"{wanted} and fit in 64 bits, got one of {number.bit_length()} bits")
    if least is not None and number < least:
        raise ShortlistError(f"{wanted}, got {number}")
    return number


def check_number(value: Any, low: float, high: float, wanted: str) -> None:
    """A real number from ``low`` to ``high``; strings and the like are refused by the same message."""
    try:
        fits = not isinstance(value, bool) and low <= value <= high
    except (TypeError, RuntimeError):  # not a number; a tensor of several
        fits = False
    if not fits:
        raise ShortlistError(f"{wanted}, got {value!r}")


def check_positive(value: float, name: str) -> None:
    check_number(value, 1 / LARGEST, LARGEST, f"{name} must be a positive finite number (1e-15 to 1e15)")


def check_not_negative(value: float, name: str) -> None:
    check_number(value, 0, LARGEST, f"{name} must be a finite number that is not negative (at most 1e15)")


def check_finite(value: float, name: str) -> None:
    check_number(value, -LARGEST, LARGEST, f"{name} must be a finite number (-1e15 to 1e15)")


def apply_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Labels where ``mask`` is False leave their row: their score becomes -inf, and nothing flows back to it."""
    if mask is None:
        return scores
    check_mask(scores, mask)
    return scores.masked_fill(~mask, float("-inf"))


def check_mask(scores: Tensor, mask: Tensor) -> None:
    """A bool tensor that broadcasts to the scores."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ShortlistError(f"mask must be a bool tensor (True = the label takes part), got {got}")
    check_tensor(scores, mask, "mask")
    try:
        fits = torch.broadcast_shapes(mask.shape, scores.shape) == scores.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ShortlistError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the scores' {tuple(scores.shape)}"
        )


def mask_indices(scores: Tensor, target: Tensor, mask: Tensor | None) -> Tensor:
    """Class indices with -1 (unknown) for rows whose own label the mask takes out."""
    if mask is None:
        return target
    check_mask(scores, mask)
    kept = mask.expand(scores.shape).gather(-1, target.long().clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(kept, target, -1)


def is_index_target(scores: Tensor, target: Tensor) -> bool:
    """Class indices (shape of the rows) or a label matrix (shape of the scores)? Anything else is an error."""
    if not isinstance(target, Tensor):
        raise ShortlistError(f"target must be a torch.Tensor, got {type(target).__name__}")
    check_tensor(scores, target, "target")
    if target.shape == scores.shape[:-1] and target.shape != scores.shape:
        return True
    if target.shape == scores.shape:
        return False
    raise ShortlistError(
        f"target of shape {tuple(target.shape)} does not fit scores of shape {tuple(scores.shape)}: "
        f"allowed are class indices of shape {tuple(scores.shape[:-1])} or a label matrix of the scores' shape"
    )


def check_indices(scores: Tensor, target: Tensor, *, wait: bool = False, hold: bool = True) -> Tensor:
    """Class indices 0..L-1, int64, with -1 for every unknown row (given as -1 or as -100). ``wait``: a wrong one on a
    device raises here, too, for whoever waits for the device anyway. Without ``hold`` they are on a device as they were
    given, for whoever takes all below 0 as unknown and holds the others within the labels (`_frame.place`)."""
    check_index_shape(scores, target)
    wide = target.long()  # a small type may not hold -1 or n
    n = scores.shape[-1]
    if not values_visible(target):
        return unknown_as_minus_1(wide)
    if not wait and device_flags.waits(target):
        device_flags.note_range(wide, -1, n - 1, IGNORE_INDEX)
        return wide.clamp(-1, n - 1) if hold else wide  # also -100
    if target.numel() and (int(wide.min()) < -1 or int(wide.max()) >= n):
        wide = unknown_as_minus_1(wide)
        bad = (wide < -1) | (wide >= n)
        if bool(bad.any()):
            raise_bad_index(target, int(bad.flatten().nonzero()[0]), n)
    return wide


def unknown_as_minus_1(index: Tensor) -> Tensor:
    """Class indices, int64, in which an unknown row is -1, never -100."""
    return index.masked_fill(index == IGNORE_INDEX, -1)


def check_index_shape(scores: Tensor, target: Tensor) -> None:
    if not isinstance(target, Tensor):
        raise ShortlistError(f"target must be a torch.Tensor of class indices, got {type(target).__name__}")
    if target.dtype not in _INTEGERS:
        raise ShortlistError(f"target must hold class indices of an integer dtype, got {target.dtype}")
    check_tensor(scores, target, "target")
    if target.shape != scores.shape[:-1]:
        shares = ", or the labels' shares, floats of the scores' shape" if target.shape == scores.shape else ""
        raise ShortlistError(
            f"target of shape {tuple(target.shape)} does not fit scores of shape {tuple(scores.shape)}: "
            f"allowed are class indices of shape {tuple(scores.shape[:-1])}{shares}"
        )


def raise_bad_index(target: Tensor, flat: int, n: int) -> NoReturn:
    raise ShortlistError(
        f"target{_position(target, flat)} is {target.flatten()[flat].item()}: "
        f"allowed are 0..{n - 1}, or -1 (or {IGNORE_INDEX}) for an unknown row"
    )


def holds_shares(target: Tensor) -> bool:
    """Whether a matrix holds shares of labels and not a label matrix: fractions, which sum to 1 in every known row.

    Only where values may be looked at: elsewhere a matrix is taken as a label matrix.
    """
    if not target.is_floating_point() or not values_visible(target):
        return False
    fraction = (target > 0) & (target < 1)
    return bool(fraction.any()) and not bool(_not_shares(target).any())


def check_shares(scores: Tensor, target: Tensor) -> Tensor:
    """Shares of the labels of every row, in the scores' type: not negative, with the sum 1; a row of -1 is unknown."""
    check_label_matrix_shape(scores, target)
    if values_visible(target) and device_flags.waits(target):
        bad = _not_shares(target)
        device_flags.note(bad, device_flags.SHARES)
        target = torch.where(bad.unsqueeze(-1), -1, target)
    elif values_visible(target) and bool((bad := _not_shares(target)).any()):
        flat = int(bad.flatten().nonzero()[0])
        row = target.reshape(-1, target.shape[-1])[flat]
        wrong = ~((row >= 0) & (row <= 1))
        at = int(wrong.nonzero()[0]) if bool(wrong.any()) else None
        what = f"sums to {float(row.double().sum()):g}" if at is None else f"has {row[at].item()} for label {at}"
        raise ShortlistError(
            f"target{_position(bad, flat)} {what}: a target of fractions holds the shares of the labels, "
            f"from 0 to 1 with the sum 1, or -1 in a whole unknown row; shortlist.labels.from_votes makes them"
        )
    return target.to(scores.dtype)


def _not_shares(target: Tensor) -> Tensor:
    """The rows that are neither shares nor all unknown."""
    wide = target.double() if target.device.type != "mps" else target.float()
    shares = (wide >= 0).all(-1) & ((wide.sum(-1) - 1).abs() <= SHARES_ROUNDING)
    return ~(shares | (wide == -1).all(-1))


def check_label_matrix(scores: Tensor, target: Tensor, *, values: bool = True, wait: bool = False) -> None:
    """A label matrix of the scores' shape holding exactly 1 (present), 0 (absent), -1 (unknown). ``wait`` as above."""
    check_label_matrix_shape(scores, target)
    if values and values_visible(target) and target.dtype != torch.bool and target.numel():
        if not wait and not target.is_floating_point() and device_flags.waits(target):
            return device_flags.note_range(target, -1, 1)
        held = target.clamp(max=1) if target.dtype == torch.uint8 else target.clamp(-1, 1)
        bad = (held.trunc_() if target.is_floating_point() else held) != target
        refuse(bad, device_flags.TARGET, lambda flat: bad_label_at(target, flat), wait=wait)


def check_label_matrix_shape(scores: Tensor, target: Tensor) -> None:
    if not isinstance(target, Tensor):
        raise ShortlistError(f"target must be a torch.Tensor holding a label matrix, got {type(target).__name__}")
    check_tensor(scores, target, "target")
    if target.shape != scores.shape:
        raise ShortlistError(
            f"target of shape {tuple(target.shape)} does not fit scores of shape {tuple(scores.shape)}: "
            f"a label matrix has the shape of the scores"
        )


def bad_label_at(target: Tensor, flat: int) -> ShortlistError:
    return bad_label(_position(target, flat), target.flatten()[flat].item())


def bad_label(position: str, value: float) -> ShortlistError:
    shares = "; shares of votes sum to 1 in every row, and only some losses take them" if 0 < value < 1 else ""
    remedy = "labels.from_nan takes NaN as unknown" if value != value else "labels has converters for other codings"
    return ShortlistError(
        f"target{position} is {value}: a label matrix holds 1 (present), 0 (absent) and -1 (unknown); "
        f"shortlist.{remedy}{shares}"
    )


def check_examples(rows: Tensor, index: Tensor, count: int) -> None:
    """Which of so many training examples each row is."""
    if index.shape != rows.shape[:-1] or index.dtype.is_floating_point or index.dtype == torch.bool:
        raise ShortlistError(f"index must hold one example number per row, got {tuple(index.shape)} {index.dtype}")
    outside = (index < 0) | (index >= count)
    if values_visible(index) and bool(outside.any()):
        bad = index[outside][0].item()
        raise ShortlistError(f"index holds {bad}: allowed are 0..{count - 1} (num_examples - 1)")


def is_learned(given: Any) -> bool:
    """Whether a gradient is wanted for weights or for a target: the kernels have none for them."""
    return isinstance(given, Tensor) and given.requires_grad


def check_class_weight(scores: Tensor, weight: Tensor | None) -> Tensor | None:
    """One non-negative weight per label, in the scores' type, or None."""
    return _check_weight(scores, weight, "weight", scores.shape[-1:], "one per label")


def check_sample_weight(scores: Tensor, sample_weight: Tensor | None) -> Tensor | None:
    """One non-negative weight per row, in the scores' type, or None."""
    return _check_weight(scores, sample_weight, "sample_weight", scores.shape[:-1], "one per row")


def _check_weight(scores: Tensor, weight: Tensor | None, name: str, shape: torch.Size, meaning: str) -> Tensor | None:
    if weight is None:
        return None
    if isinstance(weight, Tensor):
        check_tensor(scores, weight, name)
    if not isinstance(weight, Tensor) or weight.dtype not in _FLOATS or weight.shape != shape:
        got = f"{tuple(weight.shape)} {weight.dtype}" if isinstance(weight, Tensor) else type(weight).__name__
        raise ShortlistError(f"{name} must be a floating-point tensor of shape {tuple(shape)} ({meaning}), got {got}")
    check_weight_values(scores, weight, name)
    return without_denormals(weight.to(compute_type(scores.dtype)))


def check_weight_values(scores: Tensor, weight: Tensor, name: str) -> None:
    """Weights are where the scores are, finite and not negative."""
    check_tensor(scores, weight, name)
    if not values_visible(weight) or not weight.numel():
        return

    def told(flat: int) -> ShortlistError:
        value = weight.flatten()[flat].item()
        return ShortlistError(f"{name}{_position(weight, flat)} is {value}: weights are numbers from 0 to 1e15")

    most = min(LARGEST_WEIGHT, torch.finfo(weight.dtype).max)
    refuse(weight.clamp(0, most) != weight, device_flags.WEIGHT, told)


def without_denormals(weight: Tensor) -> Tensor:
    """A weight up to the smallest normal number counts as 0: its inverse, a mean's divisor, would not be finite."""
    return torch.nn.functional.threshold(weight, torch.finfo(weight.dtype).tiny, 0.0)


def _position(tensor: Tensor, flat: int) -> str:
    position = []
    for size in reversed(tensor.shape):
        position.append(flat % size)
        flat //= size
    return "[" + ", ".join(map(str, reversed(position))) + "]" if position else ""
