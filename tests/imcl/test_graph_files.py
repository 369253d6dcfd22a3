"""Label graphs from files: edges by name, word vectors, matrices."""

import numpy as np
import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.imcl.graph_files import make_graph, read_edges
from shortlist.objectives import build

NAMES = ("chair", "sofa", "hot dog")
TARGET = torch.tensor([[1, 0, -1], [1, 1, 0]])


def test_edges_start_at_their_share_of_a_label_s_voices(tmp_path):
    file = tmp_path / "edges.tsv"
    file.write_text("source\tto\tweight\nsofa\tchair\t1\nhot dog\tchair\t2\nchair\tchair\t9\n")
    graph = read_edges(file, NAMES)
    expected = torch.tensor([[0.25, 0.25, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    torch.testing.assert_close(graph.weights().to_dense(), expected)
    y = torch.tensor([[0.2, -0.4, 0.8]])
    torch.testing.assert_close(graph(y), y @ expected.T)
    graph(y).sum().backward()
    assert (graph.own.grad != 0).all()
    assert (graph.weight.grad != 0).all()


def test_edges_may_start_at_zero_and_need_no_weights(tmp_path):
    (tmp_path / "edges.csv").write_text("source,to\nsofa,chair\n")
    graph = read_edges(tmp_path / "edges.csv", NAMES, given=False)
    assert torch.equal(graph.weights().to_dense(), torch.eye(3))
    assert graph.edges.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from,to\nsofa,chair\n", r"edges.csv has no column 'source'; its columns are from, to"),
        ("source,to\nsofa,chair\nsoffa,chair\n", r"edges.csv, line 3: source is 'soffa', .* did you mean 'sofa'"),
        ("source,to,weight\nsofa,chair,-1\n", r"line 2: a weight is a number from 0 to 1e\+30, got '-1'"),
        ("source,to,weight\nsofa,chair,\n", r"line 2: a weight is a number from 0 to 1e\+30, got ''"),
        ("source,to,weight\nsofa,chair,1e300\n", r"line 2: a weight is a number from 0 to 1e\+30, got '1e300'"),
        ("source,to,weight\nsofa,chair,1,2\n", r"line 2: there are more cells than the 3 columns"),
        ("source,to,to\nsofa,chair,sofa\n", r"edges.csv has columns of one name: source, to, to"),
        ("source,to\nsofa,chair\nsofa,chair\n", r"line 3: the edge from 'sofa' to 'chair' is a duplicate"),
    ],
)
def test_what_is_wrong_with_a_file_of_edges_is_said_by_file_and_line(tmp_path, text, message):
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_edges(tmp_path / "edges.csv", NAMES)


def test_a_word_graph_joins_labels_of_near_words_and_starts_at_their_cosines(tmp_path):
    (tmp_path / "glove.txt").write_text("chair 1 0 0\nsofa 0.6 0.8 0\nhot 0 0 1\ndog 0 0.1 1\nthe 9 9 9\n")
    graph = make_graph("vectors", TARGET, str(tmp_path / "glove.txt"), NAMES, neighbours=1, given=True)
    assert graph.edges.tolist() == [[1, 0, 1], [0, 1, 2]]
    torch.testing.assert_close(graph.weights().to_dense()[0], torch.tensor([1.0, 0.6, 0.0]) / 1.6)


@pytest.mark.parametrize("graph", ["matrix", "vectors"])
def test_matrices_and_vectors_come_from_arrays(tmp_path, graph):
    torch.manual_seed(0)
    array = (torch.rand(3, 3) < 0.5) if graph == "matrix" else torch.randn(3, 5)
    np.save(tmp_path / "graph.npy", array.numpy())
    made = make_graph(graph, TARGET, str(tmp_path / "graph.npy"), neighbours=2)
    if graph == "matrix":
        assert len(made.weight) == int(array.fill_diagonal_(False).sum())
    else:
        assert 0 < len(made.weight) <= 6
    np.save(tmp_path / "graph.npy", np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"graph\.npy must hold a row for each of the 3 labels, got the shape"):
        make_graph(graph, TARGET, str(tmp_path / "graph.npy"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file of a label graph"),
        (b"xx", "cannot be read as an array of numbers"),
        (np.array([{}], dtype=object), "cannot be read as an array of numbers: Object arrays"),
        (np.array([["a"] * 3] * 3), "must hold numbers, got <U1"),
        (np.full((3, 3), np.nan), "must hold finite numbers of 32 bits"),
        (np.full((3, 3), 1e300), "must hold finite numbers of 32 bits"),
        (np.ones((3, 0)), r"must hold finite numbers of 32 bits in every row, got the shape \(3, 0\)"),
        (np.ones(3), r"must hold a row for each of the 3 labels, got the shape \(3,\)"),
    ],
)
def test_what_is_no_array_of_numbers_is_told(tmp_path, content, message):
    file = tmp_path / "graph.npy"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        np.save(file, content)
    with pytest.raises(ShortlistError, match=rf"graph\.npy:? {message}"):
        make_graph("matrix", TARGET, str(file))


@pytest.mark.parametrize("content", [b"source,to\n\xff,sofa\n", b'source,to\n"sofa,chair\n'])
def test_a_file_of_edges_that_is_no_table_is_told(tmp_path, content):
    (tmp_path / "edges.csv").write_bytes(content)
    with pytest.raises(ShortlistError, match=r"edges\.csv is no table of edges in UTF-8"):
        read_edges(tmp_path / "edges.csv", NAMES)


def test_the_objective_finds_its_labels_in_the_file_by_name(tmp_path):
    (tmp_path / "edges.csv").write_text("source,to,weight\nsofa,chair,1\n")
    options = {"graph": "edges", "graph_file": str(tmp_path / "edges.csv"), "graph_start": "given"}
    objective = build("imcl", options, in_features=4, num_labels=3, train_target=TARGET, label_names=NAMES)
    assert objective.memory.graph.weights().to_dense()[0].tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(ValueError, match="pass label_names"):
        build("imcl", options, in_features=4, num_labels=3, train_target=TARGET)
