"""CNN-RNN: sequences by frequency, the loss and the scores against slow references, one row and one step at a time."""

import math

import pytest
import torch

from shortlist.objectives import CnnRnn
from tests.objectives.tiny import make, tiny, train

L = 5


def built(**config):
    torch.manual_seed(0)
    target = torch.tensor([[0, 1, 0, 1, 0], [0, 1, 1, 1, 0], [1, 1, 0, -1, 0]])  # counts 1 3 1 2 0
    return CnnRnn(3, L, CnnRnn.Config(hidden=7, **config), train_target=target).double()


def step(objective, x, words, closed):
    """Log-probabilities after these words, by running the whole prefix again."""
    hidden, _ = objective.lstm(objective.words(torch.tensor([[L, *words]])))
    scores = objective.out(torch.relu(objective.from_state(hidden[:, -1]) + objective.from_features(x)))[0]
    scores[list(closed)] = float("-inf")
    return scores.log_softmax(0)


def test_labels_are_ordered_by_frequency_and_then_by_number():
    assert built().order.tolist() == [1, 3, 0, 2, 4]


def test_sequences_hold_present_labels_in_that_order_and_then_the_stop_sign():
    target = torch.tensor([[1, 1, 0, -1, 1], [0, 0, 0, 0, 0], [-1, -1, -1, -1, -1], [0, 0, 1, 1, 0]])
    words, real = built()._sequences(target, torch.zeros(4, 1))
    assert words.tolist() == [[1, 0, 4, L], [L] * 4, [L] * 4, [3, 2, L, L]]
    assert real.tolist() == [[True] * 4, [True, False, False, False], [False] * 4, [True, True, True, False]]


def test_rows_with_every_label_present_end_with_the_stop_sign():
    words, real = built()._sequences(torch.ones(2, L), torch.zeros(2, 1))
    assert words.tolist() == [[1, 3, 0, 2, 4, L]] * 2
    assert real.all()


def test_the_loss_is_the_mean_over_steps_of_the_reference():
    objective = built()
    target = torch.tensor([[1, 1, 0, -1, 0], [0, 0, 0, 0, 0], [-1, -1, -1, -1, -1], [0, -1, 1, 1, 1]])
    x = torch.randn(4, 3, dtype=torch.float64)
    terms = []
    for row, sequence in ((0, [1, 0, L]), (1, [L]), (3, [3, 2, 4, L])):
        unknown = {j for j in range(L) if target[row, j] == -1}
        for t, word in enumerate(sequence):
            terms.append(-step(objective, x[row : row + 1], sequence[:t], unknown | set(sequence[:t]))[word].item())
    assert objective.loss(x, target).item() == pytest.approx(sum(terms) / len(terms), rel=1e-12)


@pytest.mark.parametrize("max_labels", [1, 3, 9])
def test_scores_are_the_log_odds_of_the_best_step_before_the_stop_sign(max_labels):
    objective = built(max_labels=max_labels)
    x = 5 * torch.randn(20, 3, dtype=torch.float64)
    lengths = set()
    for row in range(20):
        words, best = [], [-math.inf] * L
        while len(words) < min(max_labels, L) and L not in words:
            log_p = step(objective, x[row : row + 1], words, words)
            best = [max(a, b) for a, b in zip(best, log_p[:L].tolist(), strict=True)]
            words.append(int(log_p.argmax()))
        lengths.add(len(words))
        p = torch.tensor(best, dtype=torch.float64).exp()
        torch.testing.assert_close(objective(x[row : row + 1])[0], torch.logit(p), rtol=1e-9, atol=1e-9)
    assert max_labels == 1 or len(lengths) > 1  # the references stopped at different steps


def test_a_certain_label_has_a_finite_score():
    objective = built().float()
    with torch.no_grad():
        objective.out.bias[2] = 1e4
    scores = objective(torch.zeros(1, 3))
    assert scores.isfinite().all()
    assert scores.argmax() == 2


def test_a_trained_model_names_the_labels_that_are_there():
    data = tiny("label-matrix")
    objective = make("cnn-rnn", data, hidden=32)
    train(objective, data, epochs=30)
    scores = objective(data.features)
    top = scores.argmax(1)
    several = (data.target == 1).any(1)
    right = data.target[several].gather(1, top[several].unsqueeze(1)) != 0
    assert right.float().mean() > 0.9
