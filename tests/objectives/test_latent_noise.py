"""Latent noise: the log odds of y against the definition, both readings, and what each learns."""

import pytest
import torch
from torch import nn

from shortlist.objectives import LatentNoise, build
from tests.objectives.tiny import make, pairs_in_order, tiny, train


def filled(in_features: int, num_labels: int, scale: float, evaluate: str = "relevant") -> LatentNoise:
    torch.manual_seed(0)
    objective = LatentNoise(in_features, num_labels, LatentNoise.Config(evaluate=evaluate)).double()
    for p in objective.parameters():
        nn.init.normal_(p, std=scale)
    return objective


def test_y_is_the_mixture_of_the_definition():
    objective = filled(3, 4, scale=1.0)
    x = torch.randn(6, 3, dtype=torch.float64)
    z = objective.presence(x).sigmoid()
    r1, r0 = (log_odds.sigmoid() for log_odds in objective.reporter(x))
    torch.testing.assert_close(objective(x).sigmoid(), r1 * z + r0 * (1 - z), rtol=1e-12, atol=0)


def test_the_visual_reading_is_presence_alone():
    objective = filled(3, 4, scale=1.0, evaluate="visual")
    x = torch.randn(6, 3, dtype=torch.float64)
    assert torch.equal(objective(x), objective.presence(x))


@pytest.mark.parametrize("size", [50.0, 1e3, 1e6])
def test_log_odds_stay_exact_where_every_probability_saturates(size):
    objective = filled(3, 1, scale=1.0)
    with torch.no_grad():
        for p in objective.parameters():
            p.zero_()
        objective.presence.bias.fill_(size)
        objective.reported.bias.copy_(torch.tensor([20 * size, -10 * size]))
    # y is near 1: odds of z against (1 - r1) + (1 - z), the second being the larger by far
    torch.testing.assert_close(objective(torch.zeros(1, 3).double()), torch.tensor([[size]]).double())


def test_the_reporter_starts_out_honest():
    objective = LatentNoise(3, 4)
    r1, r0 = (log_odds.sigmoid() for log_odds in objective.reporter(torch.randn(5, 3)))
    assert (r1 > 0.95).all()
    assert (r0 < 0.05).all()


def test_presence_and_not_the_reporter_learns_what_is_there():
    data = tiny("label-matrix")
    objective = make("latent-noise", data)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        objective.loss(data.features, data.target).backward()
        optimizer.step()
    assert pairs_in_order(objective(data.held_out), data.truth) > 0.9


def test_both_readings_are_one_model():
    data = tiny("label-matrix")
    visual, relevant = make("latent-noise", data, evaluate="visual"), make("latent-noise", data, evaluate="relevant")
    assert train(visual, data, epochs=3) == train(relevant, data, epochs=3)
    relevant.load_state_dict(visual.state_dict())
    assert not torch.equal(visual(data.held_out), relevant(data.held_out))


def test_the_report_learns_how_often_a_label_is_mentioned():
    target = (torch.arange(100) % 10 < 3).to(torch.int8).unsqueeze(1)
    torch.manual_seed(0)
    objective = build("latent-noise", {"evaluate": "relevant"}, in_features=1, num_labels=1)
    optimizer = torch.optim.SGD(objective.parameters(), lr=1.0)
    x = torch.ones(100, 1)
    for _ in range(300):
        optimizer.zero_grad()
        objective.loss(x, target).backward()
        optimizer.step()
    assert objective(x)[0].sigmoid().item() == pytest.approx(0.3, abs=1e-3)
