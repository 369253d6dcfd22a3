"""Drawn graphs can be read: labels keep apart and in the frame, both directions of a pair show, names are numbered."""

import itertools
import math
import random
from xml.etree import ElementTree

import pytest
from PIL import ImageFont

from shortlist.scenes import SceneGraph, to_png, to_svg
from shortlist.scenes._layout import lay_out
from shortlist.scenes.graphs import SceneObject, SceneRelation

FRAME, SIZE = (400, 300), 12.0


def crowded(seed, objects=8, relations=16):
    draw = random.Random(seed)
    things = []
    for _ in range(objects):
        x, y = draw.uniform(0, 390), draw.uniform(0, 290)
        box = (x, y, min(400.0, x + draw.uniform(5, 200)), min(300.0, y + draw.uniform(5, 200)))
        things.append(SceneObject(draw.choice(["table", "skateboard", "man"]), box))
    pairs = draw.sample(list(itertools.permutations(range(objects), 2)), relations)
    found = tuple(SceneRelation(s, draw.choice(["on", "on the left of", "wears"]), o) for s, o in pairs)
    return SceneGraph("1.jpg", *FRAME, tuple(things), found)


def pair(*relations, second=(250.0, 100.0, 350.0, 200.0)):
    objects = (SceneObject("man", (50.0, 100.0, 150.0, 200.0)), SceneObject("dog", second))
    return SceneGraph("1.jpg", *FRAME, objects, relations)


def apart(first, second):
    """Whether two rectangles have no more than an edge in common."""
    return any(low >= high - 1e-6 for low, high in ((first[0], second[2]), (second[0], first[2]),
                                                    (first[1], second[3]), (second[1], first[3])))  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_a_crowded_image_do_not_overlap(seed):
    layout = lay_out(crowded(seed), None, FRAME, SIZE)
    labels = [*layout.names, *layout.predicates]
    assert len(labels) == 8 + 16
    assert all(apart(a.area.corners, b.area.corners) for a, b in itertools.combinations(labels, 2))


@pytest.mark.parametrize("seed", range(5))
def test_labels_stay_in_the_frame_even_where_there_is_no_room_left(seed):
    graph = crowded(seed, objects=25, relations=200)
    layout = lay_out(graph, None, FRAME, SIZE)
    for label in [*layout.names, *layout.predicates]:
        x, y, x1, y1 = label.area.corners
        assert min(x, y) > -1e-6
        assert x1 < 400 + 1e-6
        assert y1 < 300 + 1e-6
    assert to_png(graph)


def test_the_name_of_a_box_at_the_right_edge_stays_in_the_frame():
    graph = SceneGraph("1.jpg", *FRAME, (SceneObject("skateboard", (390.0, 295.0, 400.0, 300.0)),), ())
    [text] = [node for node in ElementTree.fromstring(to_svg(graph)).iter() if node.tag.endswith("text")]
    assert text.get("text-anchor") == "middle"
    assert float(text.get("x")) + ImageFont.load_default(size=0.036 * 400).getlength("skateboard") / 2 < 400


def test_a_name_wider_than_the_frame_is_cut_and_the_title_has_it_whole():
    name = "a very long name " * 10
    graph = pair(SceneRelation(0, name, 1))
    [label] = lay_out(graph, None, FRAME, SIZE).predicates
    assert label.text.endswith("…")
    assert name.startswith(label.text[:-1])
    assert f"man {name} dog" in to_svg(graph)


@pytest.mark.parametrize("text", ["table 2", "on the left of", "wwwmmm", "ILLICIT", "HAT"])
def test_a_label_has_room_for_its_text(text):
    [label] = lay_out(pair(SceneRelation(0, text, 1)), None, FRAME, SIZE).predicates
    assert label.area.width > ImageFont.load_default(size=SIZE).getlength(text)


def test_both_directions_of_a_pair_bend_apart_and_stand_nearer_to_their_subject():
    graph = pair(SceneRelation(0, "walks", 1), SceneRelation(1, "follows", 0))
    layout = lay_out(graph, None, FRAME, SIZE)
    there, back = layout.arrows
    assert math.dist(there.at(0.5), back.at(0.5)) > SIZE
    for arrow, label in zip(layout.arrows, layout.predicates, strict=True):
        middle = label.area.x, label.area.y
        assert math.dist(middle, arrow.start) < math.dist(middle, arrow.end)
    assert not layout.ties


def test_recorded_and_other_predicates_of_one_pair_have_arrows_of_their_own():
    relations = SceneRelation(0, "walks", 1), SceneRelation(0, "near", 1)
    graph = pair(*relations)
    near, walks = lay_out(graph, pair(relations[0]), FRAME, SIZE).arrows
    assert walks.color == "c2" != near.color
    assert near.at(0.5) != walks.at(0.5)


def test_objects_with_one_middle_have_dots_of_their_own():
    graph = pair(SceneRelation(0, "is", 1), second=(50.0, 100.0, 150.0, 200.0))
    layout = lay_out(graph, None, FRAME, SIZE)
    assert math.dist(*layout.dots) > SIZE
    assert math.dist(layout.arrows[0].end, layout.dots[1]) > 0.3 * SIZE  # the tip is not beneath the dot


def test_a_label_that_cannot_stand_on_its_arrow_is_tied_to_it():
    graph = pair(SceneRelation(0, "on the left of", 1), second=(60.0, 110.0, 140.0, 190.0))
    layout = lay_out(graph, None, FRAME, SIZE)
    [(begin, end)] = layout.ties
    assert begin == layout.arrows[0].at(0.35)
    assert end == (layout.predicates[0].area.x, layout.predicates[0].area.y)
    assert "stroke-dasharray" in to_svg(graph)


def test_objects_of_one_class_are_numbered_in_pictures_and_sentences_and_not_in_the_file():
    box = (10.0, 10.0, 90.0, 90.0)
    objects = tuple(SceneObject(name, box) for name in ("table", "lamp", "table"))
    graph = SceneGraph("1.jpg", *FRAME, objects, (SceneRelation(1, "stands on", 2),))
    assert graph.names() == ["table 1", "lamp", "table 2"]
    assert graph.sentences() == ["lamp stands on table 2"]
    texts = [node.text for node in ElementTree.fromstring(to_svg(graph)).iter() if node.tag.endswith("text")]
    assert texts == ["table 1", "lamp", "table 2", "stands on"]
    assert graph.to_json().count('"name": "table"') == 2


def test_a_pages_rules_for_text_do_not_reach_the_letters():
    [*texts] = [node for node in ElementTree.fromstring(to_svg(pair())).iter() if node.tag.endswith("text")]
    assert [node.get("style") for node in texts] == ["fill:#ffffff;font-size:14.4px"] * 2


def test_names_with_characters_that_a_page_may_not_have_are_written_out():
    graph = pair(SceneRelation(0, "walks\x00\x1b[31m", 1))
    assert r"walks\x00\x1b[31m" in "".join(ElementTree.fromstring(to_svg(graph)).itertext())


def test_many_labels_are_written_smaller():
    few, many = (
        float(to_svg(crowded(0, objects, relations)).split("font-size:")[1].split("px")[0])
        for objects, relations in ((4, 6), (20, 60))
    )
    assert few == 2 * many
