"""A NaN is one whatever bits it holds: conversions from float16, and devices, make other ones than the usual."""

from typing import Any

import pytest
import torch

import shortlist.functional as F
from shortlist import kernels
from tests.kernels_here import KERNELS

INDICES, MATRIX = torch.tensor([2, 0]), torch.tensor([[1, 0, 0, 1, 0], [0, 1, 0, 0, 1]])
GIVEN: dict[str, tuple[Any, ...]] = {
    "lml_loss": (INDICES, 2),
    "smooth_topk_loss": (INDICES, 2),
    "topk_hinge_loss": (INDICES, 2),
    "truncated_entropy_loss": (INDICES, 2),
    "assume_negative_loss": (INDICES,),
    "expected_positive_loss": (INDICES, 1.5),
    "binary_loss": (MATRIX,),
    "partial_binary_loss": (MATRIX,),
    "asymmetric_loss": (MATRIX,),
    "partial_selective_loss": (MATRIX,),
    "two_way_loss": (MATRIX,),
    "lsep_loss": (MATRIX,),
    "multilabel_softmax_loss": (MATRIX,),
    "rml_loss": (MATRIX,),
    "average_k_loss": (INDICES, 2),
}
USUAL: list[Any] = [(torch.float32, torch.int32, 0x7FC00000), (torch.float64, torch.int64, 0x7FF8 << 48)]


@pytest.mark.parametrize("isa", KERNELS)
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(("dtype", "as_bits", "usual"), USUAL, ids=["float32", "float64"])
def test_a_nan_of_any_bits_makes_the_loss_and_its_gradient_nan(name, isa, dtype, as_bits, usual) -> None:
    for extra in (0, 1, 0x12345, 0x3FFFFF):
        for label in (0, 2):
            scores = torch.linspace(-1, 1, 10, dtype=dtype).view(2, 5)
            scores.view(as_bits)[0, label] = usual + extra
            scores.requires_grad_()
            with kernels.use(isa):
                heads = (scores, scores) if name == "average_k_loss" else (scores,)
                loss = getattr(F, name)(*heads, *GIVEN[name])
                (gradient,) = torch.autograd.grad(loss, scores)
            assert loss.isnan()
            assert gradient[0].isnan().any()
