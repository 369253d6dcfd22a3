"""Curriculum labelling: which unknown labels are filled in, when, and with what."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist.memories import CurriculumLabelingLoss

SCORES = torch.tensor([[3.0, -0.5, -2.0, 0.1], [0.2, 4.0, -1.0, -5.0]])
TARGET = torch.tensor([[1, -1, -1, -1], [-1, -1, 0, -1]])
INDEX = torch.tensor([5, 2])


def filled(curriculum: CurriculumLabelingLoss) -> list[list[int]]:
    curriculum.advance()
    curriculum.fill(SCORES, TARGET, INDEX)
    return curriculum.complete(TARGET, INDEX).tolist()


def test_the_surest_unknown_labels_are_filled_in_first() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(0.5, 1.0))
    assert filled(curriculum) == [[1, -1, 0, -1], [-1, 1, 0, 0]]
    assert filled(curriculum) == [[1, 0, 0, 1], [1, 1, 0, 0]]


def test_by_score_a_threshold_decides() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(4.5, 0.5), by="score")
    assert filled(curriculum) == [[1, -1, -1, -1], [-1, -1, 0, 0]]
    assert filled(curriculum) == [[1, 0, 0, -1], [-1, 1, 0, 0]]


def test_present_answers_alone_leave_the_others_unknown() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(3.5, 0.0), by="score", fill="present")
    assert filled(curriculum) == [[1, -1, -1, -1], [-1, 1, 0, -1]]
    assert filled(curriculum) == [[1, -1, -1, 1], [1, 1, 0, -1]]
    with pytest.raises(ValueError, match="fill must be one of 'both', 'present', got 'absent'"):
        CurriculumLabelingLoss(6, 4, fill="absent")


def test_before_the_first_round_nothing_is_filled_in() -> None:
    curriculum = CurriculumLabelingLoss(6, 4)
    curriculum.fill(SCORES, TARGET, INDEX)
    assert curriculum.complete(TARGET, INDEX).tolist() == TARGET.tolist()


def test_known_labels_are_never_changed() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(1.0,))
    curriculum.advance()
    curriculum.fill(-SCORES, TARGET, INDEX)
    completed = curriculum.complete(TARGET, INDEX)
    assert torch.equal(completed[TARGET >= 0].long(), TARGET[TARGET >= 0])


def test_a_later_fill_may_take_an_answer_back() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(0.5, 0.0))
    filled(curriculum)
    assert filled(curriculum) == TARGET.tolist()


def test_the_last_round_stays() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(0.5, 1.0))
    for _ in range(5):
        curriculum.advance()
    assert int(curriculum.round) == 2


def test_the_loss_is_partial_binary_cross_entropy_on_the_completed_labels() -> None:
    curriculum = CurriculumLabelingLoss(6, 4, schedule=(0.5,))
    assert torch.equal(curriculum(SCORES, TARGET, INDEX), F.partial_binary_loss(SCORES, TARGET))
    completed = torch.tensor(filled(curriculum))
    assert torch.equal(curriculum(SCORES, TARGET, INDEX), F.partial_binary_loss(SCORES, completed))


def test_a_resumed_run_knows_its_round_and_its_labels() -> None:
    first, second = (CurriculumLabelingLoss(6, 4, schedule=(0.5, 1.0)) for _ in range(2))
    filled(first)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.complete(TARGET, INDEX), first.complete(TARGET, INDEX))
    assert filled(second) == filled(first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": (0.5, 1.5)}, r"between 0 and 1, got 1\.5"),
        ({"schedule": (-1.0,), "by": "score"}, r"not negative, got -1\.0"),
        ({"by": "luck"}, "by must be one of 'share', 'score', got 'luck'"),
        ({"reduction": "most"}, "reduction must be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CurriculumLabelingLoss(6, 4, **options)


@pytest.mark.parametrize("index", [torch.tensor([0, 6]), torch.tensor([0]), torch.tensor([0.0, 1.0])])
def test_an_index_that_does_not_fit_is_refused(index: Tensor) -> None:
    with pytest.raises(ValueError, match="index "):
        CurriculumLabelingLoss(6, 4)(SCORES, TARGET, index)
