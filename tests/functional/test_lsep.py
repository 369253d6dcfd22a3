"""LSEP: its bound and its place among the others."""

import torch

import shortlist.functional as F
from tests.functional.harness import some_scores, some_target

SCORES, TARGET = some_scores(50, 6), some_target("lsep", 50, 6)


def test_it_bounds_the_number_of_pairs_in_the_wrong_order(path: str) -> None:
    wrong = (SCORES[:, None, :] >= SCORES[:, :, None]) & (TARGET == 1)[:, :, None] & (TARGET == 0)[:, None, :]
    loss = F.lsep_loss(SCORES, TARGET, reduction="none")
    assert bool((loss >= torch.log1p(wrong.sum((1, 2)).double())).all())
    assert wrong.sum() > 50


def test_it_is_the_sample_way_of_the_two_way_loss_at_temperature_1(path: str) -> None:
    one_way = F.two_way_loss(SCORES, TARGET, positive_temperature=1.0, way="sample")
    assert torch.equal(F.lsep_loss(SCORES, TARGET), one_way)
