"""Predicted graphs as JSON and as pictures."""

import io
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from shortlist.scenes import SceneGraph, predicted_graphs, read_graphs, recorded_graphs, to_png, to_svg, write_graphs
from shortlist.scenes.graphs import SceneObject, SceneRelation
from tests.scenes.made import made_scenes

NASTY = '<script>alert("1")</script> & $x$'
OBJECTS = (SceneObject(NASTY, (10.0, 5.0, 50.0, 75.0)), SceneObject("hat", (20.0, 5.0, 40.0, 15.0)))
GRAPH = SceneGraph("1.jpg", 80, 80, OBJECTS, (SceneRelation(0, "wears", 1, 0.5), SceneRelation(0, NASTY, 1, 0.25)))


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_the_graph_of_an_image_has_its_k_best_triples_best_first(constrained, tied):
    data = made_scenes()
    torch.manual_seed(0)
    offsets = data.answers.offsets.tolist()
    scores = torch.randn(offsets[-1], 3)
    scores = scores.round() if tied else scores
    for image, graph in enumerate(predicted_graphs(data, scores, 4, constrained=constrained)):
        count, rows = len(graph.objects), scores[offsets[image] : offsets[image + 1]].tolist()
        pairs = [(s, o) for s in range(count) for o in range(count) if s != o]
        triples = []
        for place, row in enumerate(rows):
            own = sorted((-score, place, predicate) for predicate, score in enumerate(row))
            triples += own[:1] if constrained else own
        expected = [(*pairs[place], data.vocabulary[p], -value) for value, place, p in sorted(triples)[:4]]
        assert [(one.subject, one.object, one.predicate, one.score) for one in graph.relations] == expected


def test_recorded_graphs_hold_every_relation_once():
    data = made_scenes()
    graphs = list(recorded_graphs(data))
    assert sum(len(graph.relations) for graph in graphs) == len(data.answers.entries)
    assert [graph.image for graph in graphs] == list(data.ids)


def test_scores_of_other_images_are_refused():
    with pytest.raises(ValueError, match="scores must have a row for each of the 34 pairs"):
        next(predicted_graphs(made_scenes(), torch.zeros(5, 3), 4))


def test_graphs_survive_their_file(tmp_path):
    graphs = [GRAPH, SceneGraph("ö.jpg", 1, 1, (), ())]
    assert write_graphs(tmp_path / "graphs.jsonl", graphs) == 2
    assert read_graphs(tmp_path / "graphs.jsonl") == graphs


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "graphs.jsonl").write_text(GRAPH.to_json() + '\n{"image": "2.jpg"}\n')
    with pytest.raises(ValueError, match=r"graphs.jsonl, line 2: not a scene graph .*objects"):
        read_graphs(tmp_path / "graphs.jsonl")


def test_relations_between_objects_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="of which the graph has 2"):
        SceneGraph.from_json(GRAPH.to_json().replace('"object": 1', '"object": 2'))


def test_the_svg_is_well_formed_and_every_name_is_escaped():
    svg = to_svg(GRAPH, right=GRAPH)
    assert "<script>" not in svg
    texts = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    assert texts == [NASTY, "hat", f"wears, {NASTY}"]


def test_relations_that_are_recorded_too_are_green():
    right = SceneGraph("1.jpg", 60, 80, OBJECTS, GRAPH.relations[:1])
    nodes = ElementTree.fromstring(to_svg(GRAPH, right=right)).iter()
    tips = [node.get("style") for node in nodes if node.tag.endswith("path") and node.get("d", "").count("L") == 2]
    assert tips == ["fill:#545d69", "fill:#0b7a5c"]


def test_the_png_has_the_images_size_and_something_on_it():
    picture = Image.open(io.BytesIO(to_png(GRAPH)))
    assert picture.size == (80, 80)
    assert len(picture.getcolors(10_000)) > 2


def test_the_image_itself_is_the_canvas_where_it_is_given():
    file = io.BytesIO()
    Image.new("RGB", (6, 8), "#ff0000").save(file, "PNG")
    empty = SceneGraph("1.jpg", 60, 80, (), ())
    assert Image.open(io.BytesIO(to_png(empty, image=file.getvalue()))).getpixel((30, 40)) == (255, 0, 0)
    assert "data:image/png;base64," in to_svg(empty, image=file.getvalue())
    with pytest.raises(ValueError, match="PNG or JPEG"):
        to_svg(empty, image=b"<svg>")
