"""The charts: described once, drawn the same on the page and in files."""

import io
from xml.etree import ElementTree

import pytest
from PIL import Image

from shortlist.reports.charts import nice_ticks, training_charts
from shortlist.reports.contents import contents
from shortlist.reports.drawing import Picture, label_graph, picture_of
from shortlist.reports.similarity import place_graph
from shortlist.scenes.report import recall_chart
from tests.reports.made_up import made_up_report

NASTY = "<script>alert(1)</script> [/red] & \"'"


def texts(svg: str) -> list[str | None]:
    return [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 100])
def test_epochs_are_marked_at_whole_numbers(epochs: int) -> None:
    lines = [{"model": 0, "points": [[float(e), 1 / e] for e in range(1, epochs + 1)]}]
    [chart] = training_charts([{"name": "loss", "lines": lines}], ["a"])
    shown = [value for value, _ in chart["x"]["ticks"]]
    assert shown
    assert all(1 <= tick <= epochs and tick == round(tick) for tick in shown)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0), (0.31, 0.48), (-3, 1e6), (0, 1e-9), (0.999, 1.0)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 * max(1, high) for tick in ticks)


def test_names_stay_text_in_every_picture() -> None:
    graph = place_graph([(NASTY, "b", 0.5)])
    assert graph is not None
    charts = [{**recall_chart(NASTY, (1, 2), [[0.1, 0.2]]), "notes": [[1, 0.1, NASTY]]}]
    for picture in (label_graph(graph), picture_of(charts, [(NASTY, 0, "")])):
        for in_page in (False, True):
            svg = picture.to_svg(in_page=in_page)
            assert "<script" not in svg
            assert NASTY in texts(svg)
        assert Image.open(io.BytesIO(picture.to_png())).size[0] == 2 * picture.box[2]


def test_colors_follow_the_theme_in_a_page_and_are_fixed_in_a_file() -> None:
    picture = Picture(10, 10, "a line")
    picture.line([(0, 5), (10, 5)], "c1", 2, (2, 2))
    assert "stroke:var(--c1)" in picture.to_svg(in_page=True)
    assert "#" not in picture.to_svg(in_page=True).replace("http://www.w3.org/2000/svg", "")
    assert "stroke:#c24e00" in picture.to_svg()
    assert "var(" not in picture.to_svg()
    blue = Image.open(io.BytesIO(picture.to_png())).convert("RGB").crop((0, 10, 20, 11)).tobytes()[2::3]
    assert min(blue) < 30  # dashes
    assert max(blue) > 230  # and gaps


def test_bars_are_the_shares_and_the_last_stands_for_all_larger_sets() -> None:
    found = contents(made_up_report())
    for model, chart in zip(found["models"], found["charts"]["sizes"], strict=True):
        for shares, at in zip(model["average"]["histogram"], chart["at"], strict=True):
            assert sum(at["bars"]) == pytest.approx(1, abs=2e-3)
            kept = len(at["bars"]) - (1 if at["x"]["more"] else 0)
            assert at["bars"][:kept] == pytest.approx([*shares, *[0] * 99][:kept], abs=1e-4)


def test_a_gap_in_a_line_is_not_bridged() -> None:
    chart = recall_chart("a", (1, 2, 5, 10), [[0.1, 0.2, 0.3, 0.4]])
    chart["lines"][0]["points"][1][1] = None
    chart["dots"] = []
    drawn = [points for kind, points, color, _ in picture_of([chart]).shapes if kind == "line" and color == "c0"]
    assert [len(points) for points in drawn] == [1, 2]
