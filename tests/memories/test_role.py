"""ROLE (Cole et al. 2021): the loss, the table's own steps, half precision, files, resuming."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.memories import ROLELoss
from tests.functional.harness import some_scores, some_target
from tests.functional.oracles_multilabel import log_not_p, log_p

ROWS, LABELS = 5, 4
TARGET = some_target("average_k", ROWS, LABELS)  # row 2 unknown
INDEX = torch.tensor([7, 0, 3, 9, 4])


def one_side(x: Tensor, other: Tensor, k: float, beta: float) -> Tensor:
    """f(p; q) of the docstring by loops, with x, other the logits of p, q."""
    known = [i for i in range(ROWS) if TARGET[i] >= 0]
    total = expected = torch.zeros((), dtype=torch.float64)
    for i in known:
        for j in range(LABELS):
            q = torch.sigmoid(other[i, j].detach())
            total = total - q * log_p(x[i, j]) - (1 - q) * log_not_p(x[i, j])
            expected = expected + torch.sigmoid(x[i, j])
        total = total - log_p(x[i, TARGET[i]])
    return total / (len(known) * LABELS) + beta * ((expected / len(known) - k) / LABELS) ** 2


def batch(seed: int = 0) -> Tensor:
    return some_scores(ROWS, LABELS, seed=seed).requires_grad_()


def test_value_and_gradients_of_both_sides_equal_the_formula() -> None:
    role, scores = ROLELoss(10, LABELS, 1.5, beta=0.7, lr_multiple=3.0), batch()
    loss = role(scores, TARGET, INDEX)
    (gradient,) = torch.autograd.grad(loss, scores)
    before = role.table[INDEX].double().requires_grad_()
    exact = (one_side(scores, before, 1.5, 0.7) + one_side(before, scores, 1.5, 0.7)) / 2
    exact_gradient, table_gradient = torch.autograd.grad(exact, (scores, before))
    torch.testing.assert_close(loss, exact, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, exact_gradient, rtol=1e-12, atol=1e-16)
    role.step(lr=0.1)
    summed = table_gradient * 4 * LABELS  # of the summed loss: 4 observed rows
    torch.testing.assert_close(role.table[INDEX].double(), before.detach() - 0.1 * 3.0 * summed, rtol=1e-6, atol=1e-6)


def test_with_adam_the_table_moves_as_a_parameter_of_torchs_adam_does() -> None:
    role = ROLELoss(10, LABELS, 1.5, beta=0.7, lr_multiple=3.0, optimizer="adam")
    parameter, plain = torch.nn.Parameter(torch.empty(0)), ROLELoss(10, LABELS, 1.5, beta=0.7, lr_multiple=1.0)
    for number, (rows, lr) in enumerate([(INDEX, 0.1), (INDEX[:3], 0.1), (INDEX[2:], 0.05)]):
        scores = batch(number)[: len(rows)].detach()
        role(scores, TARGET[: len(rows)], rows)
        if not number:
            parameter = torch.nn.Parameter(role.table.clone())
            adam = torch.optim.Adam([parameter], lr=0.3)
        plain.table.copy_(parameter.detach())
        plain.seen.copy_(role.seen)
        plain(scores, TARGET[: len(rows)], rows)
        before = plain.table.clone()
        plain.step(lr=1.0)
        parameter.grad = before - plain.table  # the gradient itself: a step of plain descent at rate 1
        adam.param_groups[0]["lr"] = 3.0 * lr
        adam.step()
        role.step(lr)
        torch.testing.assert_close(role.table, parameter.detach(), rtol=1e-4, atol=1e-6)


def test_adam_goes_on_from_a_state_dict() -> None:
    first, second = (ROLELoss(10, LABELS, 2, optimizer="adam", seed=seed) for seed in (0, 1))
    for number in range(3):
        first(batch(number), TARGET, INDEX)
        first.step(0.1)
        if number == 1:
            second.load_state_dict({name: value.clone() for name, value in first.state_dict().items()})
    second(batch(2), TARGET, INDEX)
    second.step(0.1)
    assert torch.equal(first.table, second.table)


def test_adam_is_for_tables_of_single_precision() -> None:
    with pytest.raises(ValueError, match=r"needs dtype=torch\.float32"):
        ROLELoss(10, LABELS, 2, optimizer="adam", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="optimizer must be one of 'sgd', 'adam', got 'adamw'"):
        ROLELoss(10, LABELS, 2, optimizer="adamw")


def test_the_table_starts_undecided_and_observed_labels_near_certain() -> None:
    role = ROLELoss(1000, LABELS, 2)
    assert role.table.abs().max() <= math.log(0.6 / 0.4) + 1e-6
    assert abs(role.table.mean()) < 0.02
    role(batch(), TARGET, INDEX)
    torch.testing.assert_close(role.estimates(INDEX[:1])[0, TARGET[0]], torch.tensor(0.995))


def test_rows_not_seen_and_rows_without_a_label_stay_as_they_are() -> None:
    role = ROLELoss(10, LABELS, 2)
    before = role.table.clone()
    role(batch(), TARGET, INDEX)
    role.step(1.0)
    changed = (role.table != before).any(1).nonzero().flatten().tolist()
    assert changed == sorted(INDEX[TARGET >= 0].tolist())


def test_an_example_twice_in_a_step_moves_twice_as_far() -> None:
    once, twice = ROLELoss(3, LABELS, 2, beta=0.0), ROLELoss(3, LABELS, 2, beta=0.0)
    scores, target = batch()[:1], torch.tensor([1])
    for role, times in ((once, 1), (twice, 2)):
        role(scores.expand(times, LABELS), target.expand(times), torch.zeros(times, dtype=torch.long))
    start = once.table.clone()
    once.step(0.1)
    twice.step(0.1)
    torch.testing.assert_close(twice.table - start, 2 * (once.table - start))


def test_evaluation_neither_starts_nor_moves_the_table() -> None:
    role = ROLELoss(10, LABELS, 2).eval()
    before = role.table.clone()
    role(batch(), TARGET, INDEX)
    role.step(1.0)
    assert torch.equal(role.table, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_steps_below_the_resolution_of_half_precision_still_add_up(dtype: torch.dtype) -> None:
    steps, size = 400, 1e-4 if dtype == torch.float16 else 1e-3
    role = ROLELoss(50, 40, 2, dtype=dtype, lr_multiple=1.0)
    role.table.fill_(1.0)
    role.seen.fill_(True)
    everything = torch.arange(50)
    for _ in range(steps):
        role._pending.append((everything, torch.zeros(50, 40, dtype=torch.bool), torch.full((50, 40), size)))
        role.step(1.0)
    assert torch.tensor(1.0 - size, dtype=dtype) == 1.0  # rounding to nearest would never move
    assert abs(role.table.double().mean() - (1.0 - steps * size)) < 0.02 * steps * size


def test_a_resumed_run_goes_on_unchanged(tmp_path: Path) -> None:
    def train(role: ROLELoss, steps: range) -> None:
        for step in steps:
            role(batch(step), TARGET, (INDEX + step) % 10)
            role.step(0.5)

    straight, first, second = (ROLELoss(10, LABELS, 2, dtype=torch.float16, seed=s) for s in (3, 3, 99))
    train(straight, range(6))
    train(first, range(3))
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second, range(3, 6))
    assert torch.equal(second.table, straight.table)
    assert torch.equal(second.seen, straight.seen)


def test_a_table_in_a_file_learns_like_one_in_memory_and_stays_in_the_file(tmp_path: Path) -> None:
    in_memory = ROLELoss(10, LABELS, 2, dtype=torch.bfloat16)
    in_file = ROLELoss(10, LABELS, 2, dtype=torch.bfloat16, path=tmp_path / "table.bin")
    for role in (in_memory, in_file):
        role(batch(), TARGET, INDEX)
        role.step(0.5)
    on_disk = torch.from_file(str(tmp_path / "table.bin"), size=40, dtype=torch.bfloat16).view(10, LABELS)
    assert torch.equal(on_disk, in_memory.table)
    assert (tmp_path / "table.bin").stat().st_size == 80
    in_file.load_state_dict({**in_memory.state_dict(), "table": torch.ones(10, LABELS, dtype=torch.bfloat16)})
    assert bool((torch.from_file(str(tmp_path / "table.bin"), size=40, dtype=torch.bfloat16) == 1).all())


def test_moving_or_halving_the_module_leaves_the_table_alone() -> None:
    assert ROLELoss(10, LABELS, 2).half().table.dtype == torch.float32


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"table has shape \(9, 4\), here it is \(10, 4\)"):
        ROLELoss(10, LABELS, 2).load_state_dict(ROLELoss(9, LABELS, 2).state_dict())


def test_forgetting_to_step_is_noticed() -> None:
    role = ROLELoss(10, LABELS, 2)
    role._pending = role._pending * 0 + [None] * 1000
    with pytest.raises(ShortlistError, match=r"call role\.step\(lr\) after optimizer\.step\(\)"):
        role(batch(), TARGET, INDEX)


def test_a_label_matrix_with_several_present_labels_is_taken() -> None:
    role, matrix = ROLELoss(10, LABELS, 2), torch.tensor([[1, 1, -1, 0]])
    role(batch()[:1], matrix, torch.tensor([0]))
    torch.testing.assert_close(role.estimates(torch.tensor([0]))[0, :2], torch.tensor([0.995, 0.995]))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (torch.tensor([0, 1, 2, 3, 10]), r"index holds 10: allowed are 0\.\.9"),
        (torch.tensor([0, 1]), r"one example number per row, got \(2,\)"),
        (torch.zeros(5), r"one example number per row, got \(5,\) torch.float32"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(index: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ROLELoss(10, LABELS, 2)(batch(), TARGET, index)
