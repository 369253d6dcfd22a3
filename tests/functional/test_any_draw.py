"""Hypothesis over shapes, types, k, masks and extreme values: every kernel against the oracle and against the twin."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import shortlist.functional as F
from shortlist import kernels
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    LOSSES,
    MATRIX_LOSSES,
    TOLERANCE,
    assert_gradients,
    assert_losses,
    exactly,
    value_and_gradient,
)
from tests.kernels_here import KERNELS

EXTREMES = [0.0, -0.0, 1.0, -1.0, 1e-30, 40.0, -40.0, 60.0, -60.0, 100.0, 101.0, 750.0, 1e5, -1e5, 1e30, -1e30]


@dataclass(frozen=True)
class Draw:
    scores: Tensor
    mask: Tensor | None
    index: Tensor
    matrix: Tensor
    k: int
    lead: tuple[int, ...]  # the leading shape in which the rows are handed over

    def shaped(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows.reshape(*self.lead, *rows.shape[1:])

    def limit(self) -> Tensor:
        """The scores with the largest finite number for +inf."""
        scores = self.scores if self.scores.dtype == torch.float64 else self.scores.float()
        return scores.clamp(max=oracles.largest(scores.dtype))

    def usable(self) -> Tensor:
        usable = self.scores > -torch.inf
        return usable if self.mask is None else usable & self.mask


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    """A few short rows, with ties and extremes; the target of a row is always one of its usable labels."""
    dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]))
    rows, n = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    k = draw(st.integers(1, n - 1))
    infinities = draw(st.booleans()) and dtype in FLOATS
    ordinary = st.integers(-160, 160).map(lambda i: i / 16)  # dyadic: ties are likely
    extreme = st.sampled_from([*EXTREMES, torch.inf, -torch.inf] if infinities else EXTREMES)
    value = st.one_of(ordinary, ordinary, extreme)
    scores = torch.tensor(draw(st.lists(st.lists(value, min_size=n, max_size=n), min_size=rows, max_size=rows)))
    index = torch.tensor(draw(st.lists(st.integers(0, n - 1), min_size=rows, max_size=rows)))
    bits = st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=rows, max_size=rows)
    matrix, mask = torch.tensor(draw(bits)).long(), torch.tensor(draw(bits)) if draw(st.booleans()) else None
    here = torch.nn.functional.one_hot(index, n) == 1
    matrix[here] = 1
    scores[(matrix == 1) & (scores == -torch.inf)] = 0.0
    if mask is not None:
        mask |= matrix == 1
    if dtype == torch.float16:
        scores = scores.clamp(-6e4, 6e4)
    lead = draw(st.sampled_from([(rows,), (1, rows), (rows, 1)]))
    return Draw(scores.to(dtype), mask, index, matrix, k, lead)


def compare(results: dict[str, tuple[Tensor, Tensor]], at: str) -> None:
    """Every kernel against the PyTorch twin: losses relative to themselves, gradients to their row's largest."""
    expected = results["torch"]
    for name, got in results.items():
        tolerance, tiny = 2 * TOLERANCE[got[0].dtype], 2 * torch.finfo(got[0].dtype).tiny
        where = f"{name} and torch differ: {at}"
        torch.testing.assert_close(got[0], expected[0], rtol=tolerance, atol=tiny, msg=lambda m, w=where: f"{w}: {m}")
        error = (got[1] - expected[1]).abs().amax(-1)
        assert bool((error <= tolerance * expected[1].abs().amax(-1) + tiny).all()), where


def everywhere(draw: Draw, function: Callable[[Tensor, Tensor | None], Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Rows of values and gradients of ``function(scores, mask)`` in the draw's shape, by every kernel."""
    results = {}
    for name in KERNELS:
        with kernels.use(name):
            value, gradient = value_and_gradient(function, draw.shaped(draw.scores), draw.shaped(draw.mask))
        results[name] = value.flatten(0, len(draw.lead) - 1), gradient.flatten(0, -2)
    return results


@pytest.mark.parametrize("name", ["lml_loss", "smooth_topk_loss", "truncated_entropy_loss", "topk_hinge_loss"])
@given(draw=draws())
@settings(max_examples=120)
def test_losses_of_class_indices(name: str, draw: Draw) -> None:
    call, target = LOSSES[name].call, draw.shaped(draw.index)
    results = everywhere(draw, lambda s, mask: call(s, target, draw.k, mask=mask, reduction="none"))
    exact_loss, exact_gradient = exactly(LOSSES[name], draw.limit(), draw.index, draw.k, draw.mask)
    tied = name in ("truncated_entropy_loss", "topk_hinge_loss")  # which of several tied labels counts is not said
    for loss, gradient in results.values():
        assert_losses(loss, exact_loss, floor=1e-6)
        assert bool(gradient.isfinite().all())
        if not tied:
            assert_gradients(gradient, exact_gradient)
        else:
            by_value = sums_over_ties(draw.scores, gradient).to(gradient.dtype)
            # the sums may cancel: their error is one of the gradient's own entries
            assert_gradients(by_value, sums_over_ties(draw.scores, exact_gradient), size=exact_gradient)
    if not tied:
        compare(results, name)


def sums_over_ties(scores: Tensor, gradient: Tensor) -> Tensor:
    """The gradient summed over the labels that have the same score."""
    same = (scores[:, :, None] == scores[:, None, :]).double()
    return (same @ gradient.double()[:, :, None]).squeeze(-1)


@pytest.mark.parametrize("name", MATRIX_LOSSES)
@given(draw=draws())
@settings(max_examples=80)
def test_losses_of_a_label_matrix(name: str, draw: Draw) -> None:
    call, target = LOSSES[name].call, draw.shaped(draw.matrix)
    results = everywhere(draw, lambda s, mask: call(s, target, draw.k, mask=mask, reduction="none"))
    exact_loss, exact_gradient = exactly(LOSSES[name], draw.limit(), draw.matrix, draw.k, draw.mask)
    for loss, gradient in results.values():
        assert_losses(loss, exact_loss, floor=1e-6)
        assert bool(gradient.isfinite().all())
        if name == "lml_loss":
            assert_gradients(gradient, exact_gradient)
    if name == "lml_loss":
        compare(results, name)


@given(draw=draws())
@settings(max_examples=120)
def test_lml(draw: Draw) -> None:
    upstream = torch.arange(draw.scores.shape[-1], dtype=draw.scores.dtype)
    results = everywhere(draw, lambda s, mask: F.lml(s, draw.k, mask=mask) * upstream)
    rows = [oracles.plain_row(row, None if draw.mask is None else draw.mask[i]) for i, row in enumerate(draw.limit())]
    exact = [oracles.lml(values, draw.k, usable) for values, usable in rows]
    y = torch.tensor([e.y.tolist() for e in exact], dtype=torch.float64)
    slopes = torch.tensor([e.vjp(upstream.tolist()).tolist() for e in exact], dtype=torch.float64)
    for name, (value, gradient) in results.items():
        with kernels.use(name):
            plain = F.lml(draw.scores, draw.k, mask=draw.mask)
        assert float((plain.double() - y).abs().max()) <= TOLERANCE[value.dtype]
        assert not plain[~draw.usable()].any()
        assert bool(gradient.isfinite().all())
        assert_gradients(gradient, slopes)
    compare(results, "lml")


@given(draw=draws())
@settings(max_examples=120)
def test_subset_sums(draw: Draw) -> None:
    enough = draw.usable().sum(-1) >= draw.k
    logs = everywhere(draw, lambda s, mask: F.log_subset_sum(s, draw.k, mask=mask))
    marginals = {name: (gradient, gradient) for name, (_, gradient) in logs.items()}
    compare(marginals, "gradient of log_subset_sum")
    rows = [oracles.plain_row(row, None if draw.mask is None else draw.mask[i]) for i, row in enumerate(draw.limit())]
    for name, (log, gradient) in logs.items():
        with kernels.use(name):
            p = F.subset_marginals(draw.scores, draw.k, mask=draw.mask)
        for i, (values, usable) in enumerate(rows):
            if not enough[i]:
                assert log[i] == -torch.inf
                assert not gradient[i].any()
                assert p[i].tolist() == draw.usable()[i].tolist()
                continue
            exact_log, exact = oracles.log_subset_sum(values, draw.k, usable)
            size = sum(sorted(abs(values[j]) for j in usable)[-draw.k :])
            rounding = {torch.float32: 1e-6, torch.float64: 1e-13}.get(log.dtype, TOLERANCE[log.dtype])
            if torch.tensor(exact_log).to(log.dtype).isfinite():
                assert abs(float(log[i]) - exact_log) <= rounding * (1 + size)
            else:
                assert not log[i].isnan()
            assert float((p[i].double() - torch.tensor(exact)).abs().max()) <= TOLERANCE[p.dtype]
            assert_gradients(gradient[i : i + 1], torch.tensor(exact)[None])
