"""The highway LSTM against a reference written from the formula, one number at a time."""

import math

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from shortlist.scenes.highway import AlternatingHighwayLSTM, HighwayCell


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def slow_layer(cell, sequence, backwards):
    """The states of one sequence, by plain Python numbers."""
    size = cell.hidden
    w, u, b = cell.input.tolist(), cell.state.tolist(), cell.bias.tolist()
    h, c = [0.0] * size, [0.0] * size
    states = [None] * len(sequence)
    places = range(len(sequence))
    for place in reversed(places) if backwards else places:
        x = sequence[place]

        def linear(block, unit, x=x, h=h):
            row = block * size + unit
            return sum(a * v for a, v in zip(w[row], x, strict=True)) + sum(
                a * v for a, v in zip(u[row], h, strict=True)
            ) + b[row]

        new_h, new_c = [], []
        for unit in range(size):
            i, f, o, r = (sigmoid(linear(block, unit)) for block in (0, 1, 3, 4))
            memory = i * math.tanh(linear(2, unit)) + f * c[unit]
            way = sum(a * v for a, v in zip(w[5 * size + unit], x, strict=True))
            new_c.append(memory)
            new_h.append(r * o * math.tanh(memory) + (1 - r) * way)
        h, c = new_h, new_c
        states[place] = h
    return states


def jittered(lstm):
    """Biases that are not all alike, so that none can be mistaken for another."""
    with torch.no_grad():
        for cell in lstm.cells:
            cell.bias += torch.randn_like(cell.bias)
    return lstm


def test_layers_are_what_the_formula_says_and_every_other_one_reads_backwards():
    torch.manual_seed(0)
    lstm = jittered(AlternatingHighwayLSTM(3, 4, layers=3).double())
    sequences = [torch.randn(length, 3, dtype=torch.float64) for length in (5, 3, 3, 1)]
    found = unpack_sequence(lstm(pack_sequence(sequences)))
    for sequence, own in zip(sequences, found, strict=True):
        states = sequence.tolist()
        for number, cell in enumerate(lstm.cells):
            states = slow_layer(cell, states, backwards=number % 2 == 1)
        torch.testing.assert_close(own, torch.tensor(states, dtype=torch.float64))


def test_derivatives_are_right():
    torch.manual_seed(0)
    lstm = jittered(AlternatingHighwayLSTM(2, 2, layers=2).double())
    values = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    sizes = torch.tensor([2, 2, 1])
    weights = dict(lstm.named_parameters())

    def run(values, *parameters):
        named = dict(zip(weights, parameters, strict=True))
        return torch.func.functional_call(lstm, named, (PackedSequence(values, sizes),)).data

    assert torch.autograd.gradcheck(run, (values, *weights.values()))


def test_dropout_leaves_out_the_same_numbers_at_every_step_of_a_sequence():
    torch.manual_seed(0)
    lstm = AlternatingHighwayLSTM(3, 50, layers=1, dropout=0.5)
    packed = PackedSequence(torch.randn(6, 3), torch.tensor([2, 2, 2]))
    left_out = lstm(packed).data.view(3, 2, 50) == 0
    assert torch.equal(left_out[0], left_out[1])
    assert torch.equal(left_out[0], left_out[2])
    assert 0.25 < left_out.float().mean() < 0.75
    assert not torch.equal(left_out[0, 0], left_out[0, 1])
    assert not (lstm.eval()(packed).data == 0).any()


def test_blocks_start_orthogonal_and_only_the_forget_gate_has_a_bias():
    cell = HighwayCell(7, 4)
    for weights in (cell.input, cell.state):
        for block in weights.split(4):
            torch.testing.assert_close(block @ block.T, torch.eye(4))
    assert cell.bias.tolist() == [0] * 4 + [1] * 4 + [0] * 12


@pytest.mark.parametrize("options", [{"layers": 0}, {"layers": 1, "dropout": 1.0}])
def test_options_out_of_range_are_errors(options):
    with pytest.raises(ValueError, match=list(options)[-1]):
        AlternatingHighwayLSTM(3, 4, **options)
