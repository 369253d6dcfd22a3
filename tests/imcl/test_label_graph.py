"""The label graph: supports, identity at the start, and A y against a dense product."""

import pytest
import torch

from shortlist.imcl import LabelGraph


def random_graph(labels=7, seed=0):
    torch.manual_seed(seed)
    graph = LabelGraph.from_matrix(torch.rand(labels, labels) < 0.4)
    torch.nn.init.normal_(graph.weight)
    return graph


def test_it_starts_as_the_identity():
    y = torch.randn(5, 7)
    graph = LabelGraph.from_matrix(torch.ones(7, 7))
    assert torch.equal(graph(y), y)
    assert len(graph.weight) == 42  # the diagonal is not learned


def test_it_is_the_dense_product_with_and_without_gradients():
    graph, y = random_graph(), torch.randn(5, 7)
    dense = graph.weights().to_dense()
    assert torch.equal(dense.diagonal(), torch.ones(7))
    torch.testing.assert_close(graph(y), y @ dense.T)
    with torch.no_grad():
        torch.testing.assert_close(graph(y), y @ dense.T)


def test_rows_in_blocks_give_the_same(monkeypatch):
    from shortlist.imcl import label_graph

    graph, y = random_graph(), torch.randn(50, 7)
    with torch.no_grad():
        whole = graph(y)
        monkeypatch.setattr(label_graph, "_BLOCK_ENTRIES", 40)
        assert torch.equal(graph(y), whole)


def test_gradients_reach_weights_and_predictions():
    graph = random_graph().double()
    y = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    weight = graph.weight

    def through(weight, y):
        return torch.func.functional_call(graph, {"weight": weight}, (y,))

    assert torch.autograd.gradcheck(through, (weight, y))


def test_co_occurrence_takes_the_labels_most_often_seen_together():
    target = torch.tensor([[1, 1, 0, 0], [1, 1, 0, -1], [1, 0, 1, 0], [-1, -1, -1, 1]])
    graph = LabelGraph.from_co_occurrence(target, neighbours=1)
    assert sorted(zip(*graph.edges.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0)]  # label 3 occurs alone


def test_vectors_take_the_smallest_angles_whatever_the_lengths():
    graph = LabelGraph.from_vectors(torch.tensor([[1.0, 0.0], [90.0, 10.0], [0.0, 2.0], [-1.0, 0.0]]), neighbours=1)
    assert sorted(zip(*graph.edges.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2)]  # nothing is near the last


def test_thousands_of_labels_need_no_dense_matrix():
    target = (torch.rand(200, 5000) < 0.002).to(torch.int8)
    graph = LabelGraph.from_co_occurrence(target, neighbours=5)
    assert len(graph.weight) <= 25_000
    assert graph(torch.randn(4, 5000)).shape == (4, 5000)
    assert graph.weights().is_sparse


def test_the_strongest_edges_come_first_and_those_of_weight_0_not_at_all():
    graph = LabelGraph(3, torch.tensor([[0, 1, 2], [1, 2, 0]]))
    graph.weight.data.copy_(torch.tensor([0.5, 0.0, -2.0]))
    assert graph.strongest() == [(2, 0, -2.0), (0, 1, 0.5)]
    assert graph.strongest(1) == [(2, 0, -2.0)]


def test_a_graph_without_edges_is_the_identity():
    graph, y = LabelGraph(4, torch.empty(2, 0)), torch.randn(2, 4)
    assert torch.equal(graph(y), y)
    assert graph.strongest() == []


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0], [0]], "label 0 is joined to itself"),
        ([[0], [4]], r"edges hold label 4: allowed are 0\.\.3"),
        ([[0, 0], [1, 1]], "a pair of labels twice"),
        ([[0, 1]], r"edges must have shape \(2, number of edges\)"),
    ],
)
def test_edges_that_cannot_be_are_errors(edges, message):
    with pytest.raises(ValueError, match=message):
        LabelGraph(4, torch.tensor(edges))
