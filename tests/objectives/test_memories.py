"""ROLE's table and the curriculum's memory: when they move, what they may change, and two processes."""

import pytest
import torch
import torch.distributed as dist

from shortlist.objectives import Curriculum, Role, build
from tests.objectives.tiny import FEATURES, LABELS, make, tiny
from tests.processes import run_two

INDEX = torch.arange(12)
EVERYTHING = {"by": "share", "schedule": (0.2, 0.4, 0.6, 0.8, 1.0)}


def test_the_table_moves_after_the_step_and_not_before():
    data = tiny("indices")
    objective = make("role", data)
    objective.loss(data.features[:12], data.target[:12], INDEX)
    before = objective.role.table.clone()
    objective.loss(data.features[:12], data.target[:12], INDEX)
    assert torch.equal(objective.role.table, before)
    objective.after_step(lr=0.1)
    moved = (objective.role.table != before).any(1)
    assert moved[1:12].all()
    assert not moved[12:].any()
    assert not moved[0]  # example 0 has no known label


def test_the_table_is_not_a_parameter():
    objective = make("role", tiny("indices"))
    assert {name for name, _ in objective.named_parameters()} == {"head.weight", "head.bias"}


def test_the_table_may_be_of_half_precision():
    data = tiny("indices")
    assert make("role", data, dtype="bfloat16").role.table.dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["role", "curriculum"])
def test_training_without_example_numbers_says_what_is_missing(name):
    data = tiny("label-matrix")
    with pytest.raises(ValueError, match=r"loss\(\) needs index"):
        make(name, data).loss(data.features, data.target)


@pytest.mark.parametrize("name", ["role", "curriculum"])
def test_an_objective_built_for_prediction_refuses_to_train(name):
    objective = build(name, {}, in_features=FEATURES, num_labels=LABELS)
    objective.after_step(0.1)
    objective.start_epoch(0, 1)
    with pytest.raises(ValueError, match="to train, pass num_examples"):
        objective.loss(torch.zeros(1, FEATURES), torch.zeros(1, LABELS), torch.tensor([0]))


def known(objective: Curriculum, target: torch.Tensor) -> float:
    completed = objective.memory.complete(target, torch.arange(len(target)))
    return (completed[target == -1] != -1).float().mean().item()


def test_stages_share_the_epochs_and_fill_what_the_schedule_says():
    data = tiny("label-matrix")
    objective = make("curriculum", data, schedule=(0.5, 1.0), by="share")
    shares = []
    for epoch in range(7):
        objective.start_epoch(epoch, 7)
        objective.loss(data.features, data.target, torch.arange(len(data.target)))
        shares.append(known(objective, data.target))
    unknown = int((data.target == -1).sum())
    half = int(0.5 * unknown + 0.5) / unknown
    assert shares == pytest.approx([0, 0, 0, half, half, 1, 1])


def test_filling_never_touches_known_labels_and_answers_by_the_sign_of_the_score():
    data = tiny("label-matrix")
    objective = make("curriculum", data, **EVERYTHING)
    objective.start_epoch(5, 6)
    index = torch.arange(len(data.target))
    objective.loss(data.features, data.target, index)
    completed = objective.memory.complete(data.target, index)
    seen = data.target != -1
    assert torch.equal(completed[seen], data.target[seen])
    assert torch.equal(completed[~seen], (objective(data.features) > 0).to(torch.int8)[~seen])


def test_an_example_is_filled_once_per_stage():
    data = tiny("label-matrix")
    objective = make("curriculum", data, **EVERYTHING)
    objective.start_epoch(5, 6)
    objective.loss(data.features, data.target, torch.arange(len(data.target)))
    before = objective.memory.filled.clone()
    with torch.no_grad():
        objective.head.weight.neg_()
    objective.loss(data.features, data.target, torch.arange(len(data.target)))
    assert torch.equal(objective.memory.filled, before)


def test_a_loss_in_evaluation_mode_fills_nothing():
    data = tiny("label-matrix")
    objective = make("curriculum", data, **EVERYTHING).eval()
    objective.start_epoch(5, 6)
    objective.loss(data.features, data.target, torch.arange(len(data.target)))
    assert known(objective, data.target) == 0


def two_processes(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    data = tiny("label-matrix")
    curriculum = make("curriculum", data, **EVERYTHING)
    role = Role(FEATURES, LABELS, Role.Config(k=2), train_target=data.target)
    curriculum.start_epoch(5, 6)
    for start in (0, 12):
        index = torch.arange(start + 6 * rank, start + 6 * rank + 6)
        for objective in (curriculum, role):
            objective.loss(data.features[index], data.target[index], index)
            objective.after_step(0.1)
    torch.save(curriculum.state_dict() | {"role.table": role.role.table}, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_remember_the_same(tmp_path):
    run_two(two_processes, str(tmp_path))
    mine, theirs = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert (mine["filled_in"][:24] == 5).all()
    assert (mine["filled_in"][24:] == 0).all()
