"""What must agree: the native result and the twin's, each with the twin in float64, to rounding.

Tolerances follow from the type. A value is a sum of up to 130 terms of one sign, each of a few operations and of one or
two exponentials good to an ulp, whose arguments (up to 87 in float32, 708 in float64) carry one rounding: 100 and 800
eps of the terms' size bound all of it; in the smooth top-k loss several such exponentials are multiplied. A gradient is
compared by row, with the row's largest entry and, to 8 eps, with the slopes that it may be a difference of. float16 and
bfloat16 add the rounding of the result.
"""

import torch
from torch import Tensor

from shortlist import kernels
from tests.fuzz.draw import Batch
from tests.fuzz.functions import FUNCTIONS, call

ROUNDINGS = {torch.float32: 100, torch.float64: 800}
# where a row without a present label is observed
ABSENT_COUNTS = ("binary_loss", "asymmetric_loss", "partial_binary_loss", "partial_selective_loss")
HALF = (torch.float16, torch.bfloat16)


def failures(batch: Batch) -> list[str]:
    """One line for each thing that does not agree."""
    how, out = FUNCTIONS[batch.name], []
    exact, exact_gradient = _reference(batch)
    results = {}
    for path in ("native", "torch") if kernels.info()["native module"] else ("torch",):
        with kernels.use(path):
            results[path] = _outcome(batch, batch.scores, batch.tensors.get("proposal_scores"))
    nan_rows = _nan_rows(batch)
    for path, (value, gradient) in results.items():
        problem = None
        if value.shape != exact.shape or value.dtype != batch.scores.dtype:
            problem = f"shape {tuple(value.shape)} {value.dtype}, not {tuple(exact.shape)} {batch.scores.dtype}"
        elif not how.coupled and gradient[:, ~nan_rows].isnan().any():
            problem = "NaN in the gradient of a row without one"
        elif not torch.equal(value.isnan(), exact.isnan()):
            problem = f"NaN at {value.isnan().nonzero().tolist()}, not {exact.isnan().nonzero().tolist()}"
        elif how.target and (value < 0).any():
            problem = f"a loss of {value.min().item()}"
        elif not _by_chance(batch):
            problem = _far(batch, value, exact) or _far_gradient(batch, gradient, exact_gradient, exact, nan_rows)
        if problem:
            out.append(f"{path}: {problem}")
    if _by_chance(batch) and len(results) == 2 and not bool(nan_rows.any()):
        value, gradient = results["torch"]
        problem = _far(batch, results["native"][0], value.double())
        if problem:
            out.append(f"native and twin: {problem}")
    return out


def _compute_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in HALF else dtype


def _outcome(batch: Batch, scores: Tensor, proposals: Tensor | None, **changed: Tensor) -> tuple[Tensor, Tensor]:
    """The value, and the gradients of all score matrices (heads, rows, labels)."""
    leaves = [scores.detach().clone(memory_format=torch.preserve_format).requires_grad_()]
    if proposals is not None:
        leaves.append(proposals.detach().clone().requires_grad_())
        changed = {**changed, "proposal_scores": leaves[1]}
    value = call(batch, leaves[0], **changed)
    upstream = torch.ones_like(value)
    if value.shape == scores.shape:
        upstream = upstream * (torch.arange(value.shape[-1]) % 4 - 1)
    gradients = torch.autograd.grad(value, leaves, upstream)
    return value.detach(), torch.stack([g.detach() for g in gradients])


def _reference(batch: Batch) -> tuple[Tensor, Tensor]:
    """The twin in float64, on the numbers that the call computes with: scores bounded, weights in the compute type."""
    compute, how = _compute_type(batch.scores.dtype), FUNCTIONS[batch.name]
    most = torch.finfo(compute).max / 4 * min(1.0, batch.options.get("temperature", 1.0))

    def widened(x: Tensor) -> Tensor:
        return x.to(compute).clamp(-torch.inf if how.minus_out else -most, most).double()

    def weighed(w: Tensor) -> Tensor:
        w = w.to(compute)
        return torch.where(w < torch.finfo(compute).tiny, 0.0, w).double()

    changed: dict[str, Tensor] = {
        key: weighed(w) for key in ("weight", "sample_weight") if isinstance(w := batch.tensors.get(key), Tensor)
    }
    if batch.tensors.get("weight") is not None and batch.tensors.get("sample_weight") is not None:
        changed["sample_weight"] = changed["sample_weight"] * (_row_weights(batch) > 0)  # the product may count as 0
    if isinstance(w := batch.options.get("pos_weight"), Tensor):
        changed["pos_weight"] = w.to(compute).double()
    proposals = batch.tensors.get("proposal_scores")
    with kernels.use("torch"):
        return _outcome(batch, widened(batch.scores), None if proposals is None else widened(proposals), **changed)


def _nan_rows(batch: Batch) -> Tensor:
    proposals = batch.tensors.get("proposal_scores")
    rows = batch.scores.isnan().any(-1)
    return rows if proposals is None else rows | proposals.isnan().any(-1)


def _by_chance(batch: Batch) -> bool:
    """Whether noise was drawn in the scores' own type: float64 draws other numbers."""
    return batch.name == "noised_topk_loss" and bool(batch.options["n_samples"]) and bool(batch.options["epsilon"])


def _tolerance(batch: Batch) -> float:
    dtype, compute = batch.scores.dtype, _compute_type(batch.scores.dtype)
    factors = min(batch.options["k"], 4) if batch.name == "smooth_topk_loss" else 1
    half = torch.finfo(dtype).eps if dtype in HALF else 0.0
    return factors * ROUNDINGS[compute] * torch.finfo(compute).eps + half


def _scale(batch: Batch, exact: Tensor) -> Tensor:
    """What the value's rounding is relative to: itself, or the terms that it is a difference of."""
    unit = _unit(batch) * 0.1  # log(1 + e) is good to eps, not to eps e
    size = exact.abs() + (unit if exact.shape == unit.shape else unit.sum())
    if batch.name == "log_subset_sum":
        high = torch.finfo(_compute_type(batch.scores.dtype)).max / 4
        scores = batch.scores.double().clamp(-high, high).nan_to_num().abs()
        return size + scores.topk(batch.options["k"], -1).values.sum(-1)
    if batch.name == "expected_positive_loss":
        return size + batch.options["beta"] * batch.scores.shape[-1] ** 2
    return size if batch.options.get("reduction") else exact.abs() + 1.0  # a layer's probabilities


def _far(batch: Batch, value: Tensor, exact: Tensor) -> str | None:
    """Where the value is not the exact one."""
    if _ambiguous(batch):
        return None
    dtype = batch.scores.dtype
    overflows = torch.finfo(_compute_type(dtype)).max / 1e12  # on the way: up to 10^4 entries of weights up to 10^6
    overflows = min(overflows, torch.finfo(dtype).max * 0.99)
    huge = exact.abs() >= overflows
    same = (value.double() == exact) | exact.isnan() | (huge & (value * exact.sign() >= overflows))
    if batch.tensors.get("sample_weight") is not None or batch.tensors.get("weight") is not None:
        largest = batch.scores.to(_compute_type(dtype)).nan_to_num().abs().amax() if batch.scores.numel() else 0.0
        same |= (value == torch.inf) & (largest >= 1e30)  # a tiny weight comes after the sum that overflowed
    error = torch.where(same, 0.0, (value.double() - exact).abs())
    allowed = _tolerance(batch) * _scale(batch, exact) + torch.finfo(dtype).tiny
    bad = ~(error <= allowed) & ~same
    if not bool(bad.any()):
        return None
    at = int(bad.flatten().nonzero()[0])
    got, wanted, ratio = value.flatten()[at].item(), exact.flatten()[at].item(), (error / allowed).flatten()[at].item()
    return f"value[{at}] is {got:.9g}, exact {wanted:.9g} ({ratio:.3g} times the tolerance)"


def _far_gradient(batch: Batch, gradient: Tensor, exact: Tensor, loss: Tensor, nan_rows: Tensor) -> str | None:
    how, dtype = FUNCTIONS[batch.name], batch.scores.dtype
    if _ambiguous(batch) or (how.coupled and bool(nan_rows.any())) or not gradient.numel():
        return None
    size = exact.abs().sum(-1) if how.ties else exact.abs().amax(-1)
    difference = torch.where(gradient == exact.to(dtype), 0.0, gradient.double() - exact)  # both may overflow to inf
    error = (_over_ties(batch.scores, difference) if how.ties else difference).abs().amax(-1)
    allowed = _tolerance(batch) * size + _unit(batch) * 8 * torch.finfo(_compute_type(dtype)).eps
    temperatures = [batch.options.get(name, 1.0) for name in ("tau", "positive_temperature", "negative_temperature")]
    underflow = torch.finfo(dtype).tiny / min(1.0, *temperatures)  # on the way: a temperature times a slope
    allowed = allowed + 4 * underflow
    bad = ~(error <= allowed) & ~nan_rows & ~(size > torch.finfo(dtype).max * 0.99)  # beyond the type
    limits = torch.finfo(_compute_type(dtype))
    bad &= _unit(batch) >= limits.tiny / limits.eps  # a row that weighs less has slopes that underflow
    if how.kinked:
        bad &= ~_near_the_kink(batch, loss)
    if not bool(bad.any()):
        return None
    head, row = (int(i) for i in bad.nonzero()[0])
    label = int(difference[head, row].abs().nan_to_num(torch.inf).argmax())
    got, wanted = gradient[head, row, label].item(), exact[head, row, label].item()
    ratio = (error / allowed)[head, row].item()
    return f"gradient[{row}, {label}] is {got:.9g}, exact {wanted:.9g} ({ratio:.3g} times the tolerance)"


def _unit(batch: Batch) -> Tensor:
    """What a slope of 1 of each row becomes: slopes near 0 are differences of probabilities, good to eps of that."""
    rows, n = batch.scores.shape
    if not FUNCTIONS[batch.name].target:
        return torch.full((rows,), 2.0)  # the largest upstream
    weight = _row_weights(batch)
    total = weight.sum().clamp(min=1e-30) if batch.options["reduction"] == "mean" else 1.0
    focus = max(batch.options.get(gamma, 0.0) for gamma in ("gamma_neg", "gamma_pos", "gamma_unknown"))
    focus += batch.options.get("clip", 0.0) > 0  # p - clip
    labels = n if batch.name == "lml_loss" else 1  # whose pulls add up
    steepness = (1 + batch.options.get("beta", 0.0) * n) * (1 + focus) * batch.options.get("scale", 1.0) * labels
    return weight / total * steepness


def _row_weights(batch: Batch) -> Tensor:
    """How much each row counts: 0 where nothing is observed, or where its weight is no normal number."""
    target, mask = batch.tensors["target"], batch.tensors.get("mask")
    assert target is not None
    rows, n = batch.scores.shape
    if target.ndim == 1:
        known = target.unsqueeze(-1) == torch.arange(n)
    else:
        known = target >= 0 if batch.name in ABSENT_COUNTS else target == 1
        known = known | (batch.name == "partial_selective_loss")  # which assumes unknown labels absent
    if mask is not None:
        known = known & mask
    compute = _compute_type(batch.scores.dtype)
    weight, least = torch.ones(rows, dtype=compute), torch.finfo(compute).tiny
    for key in ("sample_weight", "weight"):
        if (w := batch.tensors.get(key)) is not None:
            label = target.long() if target.ndim == 1 else (target == 1).int().argmax(-1)
            w = (w if key == "sample_weight" else w[label.clamp(min=0)]).to(compute)
            weight = weight * torch.where(w < least, 0.0, w)
    return torch.where(known.any(-1) & (weight >= least), weight, 0.0).double()


def _over_ties(scores: Tensor, gradient: Tensor) -> Tensor:
    """Summed over labels of one score; where several are tied, which of them has the gradient is not said."""
    same = (scores[:, :, None] == scores[:, None, :]).double()
    return (same @ gradient.nan_to_num(nan=0.0).unsqueeze(-1)).squeeze(-1)


def _near_the_kink(batch: Batch, loss: Tensor) -> Tensor:
    """Rows whose hinge is 0 up to rounding. A reduced loss does not say which: all that could be."""
    if batch.options["reduction"] != "none":
        with kernels.use("torch"):
            loss = call(batch, batch.scores.float().double(), reduction="none", weight=None, sample_weight=None)
    size = batch.scores.double().nan_to_num(0.0, 0.0, 0.0).abs().amax(-1) + 1
    return loss.abs() <= 1e-5 * size


def _ambiguous(batch: Batch) -> bool:
    """Whether rounding decides which entries are average-K's candidates: the last chosen and the next are tied."""
    if batch.name != "average_k_loss" or not batch.scores.numel():
        return False
    proposals, target = batch.tensors["proposal_scores"], batch.tensors["target"]
    assert proposals is not None
    assert target is not None
    rows, n = batch.scores.shape
    most = torch.finfo(_compute_type(proposals.dtype)).max / 4
    z = proposals.double().clamp(-most, most)
    usable = torch.ones(rows, n, dtype=torch.bool) if batch.tensors["mask"] is None else batch.tensors["mask"]
    usable = usable.expand(rows, n)
    present = target == 1
    index = target.long() if target.ndim == 1 else torch.where(present.any(-1), present.int().argmax(-1), -1)
    own = index.unsqueeze(-1) == torch.arange(n)
    observed = _row_weights(batch) > 0
    share = z.masked_fill(~usable, -torch.inf).log_softmax(-1)[observed.unsqueeze(-1) & usable & ~own]
    count = int(int(observed.sum()) * (batch.options["k"] - 1.0) + 0.5)
    if not 0 < count < len(share):
        return False
    ordered = share.nan_to_num(nan=-torch.inf).sort(descending=True).values
    last, following = float(ordered[count - 1]), float(ordered[count])
    return not last - following > 1e-3 * (1 + abs(last)) * (1 if abs(last) < 1e3 else 1e-3)
