"""The approximate search: what it proposes, and that what it proposes is compared exactly."""

import pytest
import torch

from shortlist.imcl import AtomIndex, JointNonnegativePursuit, complete, squash
from shortlist.objectives import build
from tests.objectives.tiny import FEATURES, LABELS, make, tiny, train


def problem(atoms, labels=60, features=300, rows=32, topics=20):
    """Examples of topics: most labels are absent, so that label vectors are alike, as those of real data are."""
    generator = torch.Generator().manual_seed(0)
    count = atoms + rows
    share = torch.full((topics, labels), 0.01)
    share.scatter_(1, torch.rand(topics, labels, generator=generator).topk(6).indices, 0.6)
    topic = torch.randint(topics, (count,), generator=generator)
    present = torch.rand(count, labels, generator=generator) < share[topic]
    f = present.float() @ torch.randn(labels, features, generator=generator)
    f = (f + torch.randn(count, features, generator=generator)).relu()
    unknown = torch.rand(count, labels, generator=generator) < 0.8
    scores = torch.logit(share[topic]) / 2 + torch.randn(count, labels, generator=generator) / 2
    y = complete(present.long().masked_fill(unknown, -1), squash(scores))
    y, f = (x / x.norm(dim=1, keepdim=True) for x in (y, f))
    return y[:rows], f[:rows], y[rows:], f[rows:]


def test_an_index_that_proposes_everything_finds_what_the_exact_search_finds():
    y, f, Y, F = problem(150)
    pursuit, exclude = JointNonnegativePursuit(k=3, label_weight=0.5), torch.arange(32) - 1
    exact = pursuit(y, f, Y, F, exclude)
    index = AtomIndex(Y, F, 0.5, 1.0, rows=3 * 150)
    found = pursuit(y, f, Y, F, exclude, index)
    assert torch.equal(found.indices, exact.indices)
    torch.testing.assert_close(found.label_coefficients, exact.label_coefficients)
    torch.testing.assert_close(found.feature_residual, exact.feature_residual)


def test_a_few_proposals_hold_nearly_all_that_the_exact_search_finds():
    y, f, Y, F = problem(4000)
    pursuit = JointNonnegativePursuit(k=3, label_weight=0.5)
    exact, found = pursuit(y, f, Y, F), pursuit(y, f, Y, F, index=AtomIndex(Y, F, 0.5, 1.0, rows=80, probes=32))
    both = zip(exact.indices.tolist(), found.indices.tolist(), strict=True)
    assert sum(len({*a} & {*b}) for a, b in both) / (3 * 32) > 0.85

    def left(result):
        return (0.5 * result.label_residual.square().sum(1) + result.feature_residual.square().sum(1)).mean()

    assert left(found) < 1.02 * left(exact)


def test_proposals_are_rows_none_twice_ascending():
    y, f, Y, F = problem(400)
    proposed = AtomIndex(Y, F, rows=40).candidates(y, f)
    assert proposed.shape == (32, 39)
    for row in proposed.tolist():
        rows = [place for place in row if place >= 0]
        assert rows == sorted(set(rows))
        assert max(rows) < 400


def test_the_objective_searches_approximately_and_learns():
    data = tiny("label-matrix")
    objective = make("imcl", data, search="approximate", proposed=30, warm_up=0.0)
    exact = make("imcl", data, warm_up=0.0)
    assert train(objective, data, epochs=3) == pytest.approx(train(exact, data, epochs=3), rel=0.05)


def test_too_few_proposals_are_an_error():
    with pytest.raises(ValueError, match="rows"):
        AtomIndex(torch.eye(3), torch.eye(3), rows=2)
    data = tiny("label-matrix")
    with pytest.raises(ValueError, match="proposed of 'imcl' must be a whole number of at least 3"):
        build("imcl", {"proposed": 0}, in_features=FEATURES, num_labels=LABELS, train_target=data.target)
