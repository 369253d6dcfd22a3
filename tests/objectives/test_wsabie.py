"""WSABIE: a low-rank head in a ball."""

import torch

from shortlist.functional import warp_loss
from shortlist.objectives import Wsabie
from tests.objectives.tiny import make, tiny, train


def norms(objective: Wsabie) -> torch.Tensor:
    return torch.cat([objective.feature_factor.norm(dim=1), objective.label_factor.norm(dim=1)])


def test_scores_have_the_rank_of_the_head():
    objective = Wsabie(20, 30, Wsabie.Config(rank=3))
    assert torch.linalg.matrix_rank(objective(torch.randn(40, 20))) == 3


def test_every_row_of_both_factors_stays_in_the_ball():
    data = tiny("label-matrix")
    objective = make("wsabie", data, ball=0.5)
    assert norms(objective).max() <= 0.5 + 1e-6
    train(objective, data, epochs=5)
    assert norms(objective).max() <= 0.5 + 1e-6
    assert norms(objective).max() > 0.49  # the ball was in the way


def test_the_projection_leaves_rows_inside_the_ball_and_zero_rows_alone():
    objective = Wsabie(3, 2, Wsabie.Config(rank=2, ball=1.0))
    rows = torch.tensor([[0.0, 0.0], [0.3, -0.4], [3.0, -4.0]])
    with torch.no_grad():
        objective.feature_factor.copy_(rows)
    objective.after_step(0.1)
    torch.testing.assert_close(objective.feature_factor.data, torch.tensor([[0.0, 0.0], [0.3, -0.4], [0.6, -0.8]]))


def test_the_loss_is_warp():
    data = tiny("label-matrix")
    objective = make("wsabie", data, exact=True)
    expected = warp_loss(objective(data.features), data.target, exact=True)
    assert torch.equal(objective.loss(data.features, data.target), expected)
