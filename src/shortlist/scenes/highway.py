"""The alternating highway LSTM: every layer reads the objects of an image the other way round than the one below."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from shortlist.checks import whole
from shortlist.errors import ShortlistError


class HighwayCell(nn.Module):
    """One step of an LSTM with a highway gate (Srivastava et al. 2015; He et al. 2017; Zellers et al. 2018):

        i, f, o, r = sigmoid(W x + U h + b), one of each;  g = tanh(W x + U h + b)
        c' = i g + f c;  h' = r (o tanh(c')) + (1 - r) V x

    The gate r decides how much of the step's own answer is taken; the rest is a linear map of the input, whose bias is
    there if ``way_bias``. The first five are blocks of ``input`` and ``state``, in the order i, f, g, o, r; V is the
    sixth block of ``input``. Blocks start orthogonal, biases at 0, those of the forget gate at 1.

    >>> cell = HighwayCell(3, 4)
    >>> h, c = cell(cell.project(torch.randn(2, 3)), torch.zeros(2, 4), torch.zeros(2, 4))
    >>> h.shape, sum(p.numel() for p in cell.parameters())  # 6 h x + 5 h h + 5 h
    (torch.Size([2, 4]), 172)
    """

    def __init__(self, in_features: int, hidden: int, way_bias: bool = False) -> None:
        super().__init__()
        self.hidden = hidden
        self.input = nn.Parameter(torch.empty(6 * hidden, in_features))
        self.state = nn.Parameter(torch.empty(5 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros((6 if way_bias else 5) * hidden))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for weights in (self.input, self.state):
            if weights.is_meta:
                continue
            for block in weights.split(self.hidden):
                nn.init.orthogonal_(block)
        self.bias.zero_()
        self.bias[self.hidden : 2 * self.hidden] = 1.0

    def project(self, inputs: Tensor) -> Tensor:
        """W x, V x and the biases of all steps at once: nothing in it waits for the step before."""
        bias: Tensor = self.bias
        if len(bias) < len(self.input):
            bias = torch.cat([bias, bias.new_zeros(self.hidden)])
        return nn.functional.linear(inputs, self.input, bias)

    def forward(self, projected: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """The next h and c of some rows from their projected inputs; in the precision of c, also under autocast."""
        wanted, way = projected.split([5 * self.hidden, self.hidden], 1)
        i, f, g, o, r = torch.addmm(wanted, h, self.state.t()).to(c.dtype).chunk(5, 1)
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
        return torch.lerp(way.to(c.dtype), torch.sigmoid(o) * torch.tanh(c), torch.sigmoid(r)), c


class AlternatingHighwayLSTM(nn.Module):
    """Layers of `HighwayCell` over packed sequences; the first reads forwards, the second backwards, and so on.

    Two layers see both sides of every object, with half the weights of a bidirectional LSTM, which is what Neural
    Motifs' "bidirectional highway LSTM" is.

    Args:
        in_features: numbers per object.
        hidden: size of the state; the output has as many.
        layers: how many.
        dropout: the share of the state that is left out while training, the same numbers at all steps of a sequence.

    >>> lstm = AlternatingHighwayLSTM(3, 4, layers=2)
    >>> lstm(PackedSequence(torch.randn(5, 3), torch.tensor([2, 2, 1]))).data.shape
    torch.Size([5, 4])
    """

    def __init__(self, in_features: int, hidden: int, layers: int, dropout: float = 0.0) -> None:
        super().__init__()
        whole(layers, "layers", 1)
        if not 0 <= dropout < 1:
            raise ShortlistError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        sizes = [in_features] + [hidden] * (layers - 1)
        self.cells = nn.ModuleList(HighwayCell(size, hidden) for size in sizes)
        self.dropout, self.out_features = dropout, hidden

    def forward(self, inputs: PackedSequence) -> PackedSequence:
        values, counts = inputs.data, inputs.batch_sizes.tolist()
        for number, cell in enumerate(self.cells):
            assert isinstance(cell, HighwayCell)
            kept = None
            if self.training and self.dropout:
                kept = values.new_empty(counts[0], cell.hidden).bernoulli_(1 - self.dropout) / (1 - self.dropout)
            values = _read(cell, values, counts, number % 2 == 1, kept)
        return PackedSequence(values, inputs.batch_sizes)


def _read(cell: HighwayCell, values: Tensor, counts: list[int], backwards: bool, kept: Tensor | None) -> Tensor:
    """One layer over all steps. Sequences stand by length, longest first: a step has the first ``count`` of them."""
    steps = list(zip(counts, cell.project(values).split(counts), strict=True))
    h = c = values.new_zeros(counts[-1] if backwards else counts[0], cell.hidden)
    found = []
    for count, projected in reversed(steps) if backwards else steps:
        if count < len(h):  # the shorter sequences have ended
            h, c = h[:count], c[:count]
        elif count > len(h):  # they begin, from their last object
            new = h.new_zeros(count - len(h), cell.hidden)
            h, c = torch.cat([h, new]), torch.cat([c, new])
        h, c = cell(projected, h, c)
        if kept is not None:
            h = h * kept[:count]
        found.append(h)
    return torch.cat(found[::-1] if backwards else found)
