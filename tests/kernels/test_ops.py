"""Every kernel says beforehand what it gives: shapes, types and strides, which `torch.compile` relies on."""

import pytest
import torch

from shortlist import kernels
from shortlist.kernels import ops

ROWS, LABELS = 4, 6
INDEX = torch.tensor([1, 4, -1, 0])
MATRIX = torch.tensor([[0, 1, 0, 0, -1, 0], [1, 0, 0, 0, 1, 0], [0, 0, 0, -1, 0, 0], [0, 1, 0, 1, 0, 0]])
LOSSES = {
    "smooth_topk": (INDEX, 2, 1.0, 1.0),
    "truncated_entropy": (INDEX, 2),
    "lml_loss": (MATRIX, 2),
    "binary": (MATRIX,),
    "partial_binary": (MATRIX, 1.0),
    "asymmetric": (MATRIX, 1.0, 4.0, 4.0, 0.05, True, 0, 0),
    "pair_rows": (MATRIX, 1.0, 1.0, 0.0),
    "two_way": (MATRIX, 1.0, 1.0, 0.0, True),
    "multilabel_softmax": (MATRIX,),
    "warp": (MATRIX,),
    "rml": (MATRIX, -0.8, 1.0),
    "assume_negative": (INDEX, True, 0.0),
}


def transposed() -> torch.Tensor:
    return torch.randn(LABELS, ROWS, dtype=torch.float64).T


def arguments(name: str) -> tuple[object, ...]:
    scores = transposed()
    if name in LOSSES:
        target, *numbers = LOSSES[name]
        own = [None] if name in ("lml_loss", "binary", "asymmetric", "warp") else []
        return scores, [target], None, *own, "mean", 1, True, *numbers
    return {
        "lml": (scores, torch.tensor([[1, 2, 3, 5]]).T[:, 0], 1),
        "lml_backward": (scores, transposed().sigmoid(), torch.ones(ROWS, 3, dtype=torch.float64), transposed()),
        "subset_sums": (scores, 2, True),
        "subset_slopes": (scores, transposed(), 2),
        "kth_largest": (scores, transposed(), 0.5, 2),
        "average_k": (scores, transposed(), INDEX, torch.ones(ROWS, dtype=torch.float64), 2.0, 1.0, True, 1),
    }[name]


@pytest.mark.skipif(not kernels.info()["native module"], reason="a pure build: there are no native kernels")
@pytest.mark.parametrize(
    "name", [name for name, thing in vars(ops).items() if isinstance(thing, ops.Kernel) and thing.native]
)
def test_of_transposed_scores(name: str) -> None:
    torch.library.opcheck(getattr(ops, name).op, arguments(name), test_utils="test_faketensor")
