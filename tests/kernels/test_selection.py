"""The k-th largest of a row: right in any order of the scores, and in time linear in the row's length in any order."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist import kernels
from shortlist.kernels import dispatch, ops

pytestmark = pytest.mark.skipif(not kernels.info()["native module"], reason="a pure build: there are no native kernels")
N = 20_000
PASSES = 24  # of a whole row; random rows take about 8, quadratic work would be thousands
AT_MOST = 140  # whatever the row: 64 halvings, each after an unlucky round, end any search
INSTRUCTION_SETS = [name for name in kernels.info()["available"] if name not in ("triton", "torch")]


def against_the_draws() -> Tensor:
    """The search's draws, known beforehand, meet the largest numbers first: each of them says next to nothing."""
    row, state = torch.arange(N) / N - 2.0, 12345
    size = (N + 63) // 64 * 64
    for worth in range(N // 2, 0, -1):
        state = (state * 1664525 + 1013904223) % 2**32
        position = state * size >> 32
        if position < N and row[position] < 0:
            row[position] = worth
    return row


def rows() -> dict[str, Tensor]:
    random = torch.randn(N, generator=torch.Generator().manual_seed(0))
    ascending = random.sort().values
    nearly = ascending.clone()
    nearly[:: N // 20] = random[:: N // 20]
    hidden = torch.full((N,), -torch.inf)
    hidden[N // 2 :: 7] = ascending[N // 2 :: 7]
    return {
        "random": random,
        "ascending": ascending,
        "descending": ascending.flip(0),
        "nearly sorted": nearly,
        "organ pipe": torch.cat([ascending[::2], ascending[1::2].flip(0)]),
        "frequencies": torch.log(1 / torch.arange(1, N + 1.0)),
        "constant": torch.full((N,), 0.5),
        "zeros": torch.zeros(N),
        "two values": (random > 1).float(),
        "many ties": (random * 3).round(),
        "one by one": torch.tensor(1.0) + torch.arange(N) * torch.finfo(torch.float32).eps,
        "every size": torch.exp(random * 20) * random.sign(),
        "mostly left out": hidden,
        "infinite": torch.where(torch.arange(N) % 3 == 0, torch.inf, random),
        "against the draws": against_the_draws(),
    }


ROWS = rows()


def kth_and_work(row: Tensor, k: int) -> tuple[float, int, float]:
    """Value and label of the k-th largest, and how many times the row's length was read."""
    before = dispatch.native.looked_at()
    value, label = ops.kth_largest.run(row[None], None, 0.0, k)
    return value.item(), int(label), (dispatch.native.looked_at() - before) / len(row)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ROWS)
def test_is_found_in_linear_time(name: str, dtype: torch.dtype, isa: str) -> None:
    row = ROWS[name].to(dtype)
    finite = row.clamp(max=torch.finfo(dtype).max / 4)
    values, labels = torch.sort(finite, descending=True, stable=True)  # among ties the lower label first
    for k in (1, 30, 100, 999, N // 2, N - 40, N):
        with kernels.use(isa):
            value, label, work = kth_and_work(row, k)
        assert value == values[k - 1]
        assert value == -torch.inf or label == labels[k - 1]
        assert work <= (AT_MOST if name == "against the draws" else PASSES)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("k", [3, 100])
def test_does_not_depend_on_tiny_numbers(k: int, isa: str) -> None:
    scores, target = torch.zeros(1, 1000), torch.tensor([0])
    assert torch.set_flush_denormal(True)
    try:
        with kernels.use(isa):
            assert F.topk_hinge_loss(scores, target, k).item() == 1
    finally:
        torch.set_flush_denormal(False)
