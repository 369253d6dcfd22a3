"""What the layers (lml, log_subset_sum, subset_marginals) promise alike: shapes, types, views, repeatability."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests.functional.harness import FLOATS, random_scores, value_and_gradient

K = 3
LAYERS = {"lml": F.lml, "log_subset_sum": F.log_subset_sum, "subset_marginals": F.subset_marginals}
pytestmark = pytest.mark.usefixtures("path")
every_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def squared(layer: Callable[..., Tensor], **options: object) -> Callable[[Tensor], Tensor]:
    """A function of the layer whose gradient is not trivially 0 (the entries of a projection sum to k)."""
    return lambda scores: layer(scores, K, **options) ** 2


@every_layer
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 3)])
def test_any_leading_shape(layer: Callable[..., Tensor], shape: tuple[int, ...]) -> None:
    scores, mask = random_scores(*shape, 9), random_scores(*shape, 9, seed=3) > -1
    value, gradient = value_and_gradient(squared(layer, mask=mask), scores)
    flat = value_and_gradient(squared(layer, mask=mask.reshape(-1, 9)), scores.reshape(-1, 9))
    assert value.shape == (shape if layer is F.log_subset_sum else (*shape, 9))
    torch.testing.assert_close((value.reshape(flat[0].shape), gradient.reshape(-1, 9)), flat, rtol=0, atol=0)


@every_layer
def test_an_empty_batch(layer: Callable[..., Tensor]) -> None:
    value, gradient = value_and_gradient(squared(layer), torch.zeros(2, 0, 9))
    assert value.shape == ((2, 0) if layer is F.log_subset_sum else (2, 0, 9))
    assert gradient.shape == (2, 0, 9)


@every_layer
def test_non_contiguous_scores_are_the_same_scores(layer: Callable[..., Tensor]) -> None:
    scores = random_scores(6, 9)
    expected = value_and_gradient(squared(layer), scores)
    every_other = torch.full((6, 18), torch.nan)
    every_other[:, ::2] = scores
    for view in (scores.T.contiguous().T, every_other[:, ::2]):
        leaf = view.detach().requires_grad_()
        assert not leaf.is_contiguous()
        value = squared(layer)(leaf)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        torch.testing.assert_close((value.detach(), gradient), expected, rtol=0, atol=0)


@every_layer
def test_non_contiguous_upstream_gradients(layer: Callable[..., Tensor]) -> None:
    leaf = random_scores(6, 9).requires_grad_()
    value = layer(leaf, K)
    upstream = random_scores(*value.T.shape, seed=4).T
    (strided,) = torch.autograd.grad(value, leaf, upstream, retain_graph=True)
    (packed,) = torch.autograd.grad(value, leaf, upstream.contiguous())
    assert torch.equal(strided, packed)


@every_layer
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(layer: Callable[..., Tensor], half: torch.dtype) -> None:
    scores = random_scores(6, 40, dtype=half, scale=4.0)
    leaf, wide = scores.clone().requires_grad_(), scores.float().requires_grad_()
    value, expected = layer(leaf, K), layer(wide, K)
    upstream = random_scores(*value.shape, dtype=half, seed=4)
    (gradient,) = torch.autograd.grad(value, leaf, upstream)
    (slope,) = torch.autograd.grad(expected, wide, upstream.float())
    assert value.dtype == gradient.dtype == half
    torch.testing.assert_close((value, gradient), (expected.to(half), slope.to(half)), rtol=0, atol=0)


@every_layer
def test_inputs_are_never_modified(layer: Callable[..., Tensor]) -> None:
    scores, mask = random_scores(6, 9), random_scores(6, 9, seed=3) > -1
    before = scores.clone(), mask.clone()
    value_and_gradient(squared(layer, mask=mask), scores)
    layer(scores, K, mask=mask)
    layer(scores, K)
    assert torch.equal(scores, before[0])
    assert torch.equal(mask, before[1])


@every_layer
@pytest.mark.parametrize("dtype", FLOATS)
def test_two_runs_give_the_same_bits(layer: Callable[..., Tensor], dtype: torch.dtype) -> None:
    scores = random_scores(128, 700, dtype=dtype)
    first = value_and_gradient(squared(layer), scores)
    for _ in range(3):
        torch.testing.assert_close(value_and_gradient(squared(layer), scores), first, rtol=0, atol=0)


@every_layer
def test_a_row_does_not_depend_on_its_batch(layer: Callable[..., Tensor]) -> None:
    scores = random_scores(128, 300)
    together = layer(scores, K)
    for i in (0, 17, 127):
        torch.testing.assert_close(layer(scores[i], K), together[i], rtol=1e-6, atol=1e-7)
