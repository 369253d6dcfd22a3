"""The charts of the page as PNG and SVG files beside it, for papers and slides."""

from __future__ import annotations

from typing import Any

from shortlist.reports.drawing import label_graph, picture_of
from shortlist.reports.picture import Picture


def draw_figures(contents: dict[str, Any]) -> dict[str, bytes]:
    """File name -> bytes: every figure that there is data for, as PNG and SVG, at the K where the slider starts."""
    charts, legend, at = contents["charts"], contents["legend"], contents["start"]
    runs = [(model["name"], place, "") for place, model in enumerate(contents["models"])]
    pictures: dict[str, Picture] = {}
    if charts["accuracy"]:
        titled = {**charts["accuracy"], "title": contents["words"]["accuracy"]}
        pictures["accuracy"] = picture_of([titled], legend, at)
    pictures["set_sizes"] = picture_of(charts["sizes"], at=at)
    if contents["shots"]:
        by_run = zip(contents["models"], charts["shots"], strict=True)
        named = [{**chart, "title": f"{model['name']}, {chart['title']} shots"} for model, of in by_run for chart in of]
        pictures["set_sizes_by_shots"] = picture_of(named, at=at)
    if charts["levels"]:
        pictures["ambiguity"] = picture_of([charts["levels"]], runs, at)
    if charts["training"]:
        pictures["training"] = picture_of(charts["training"], runs)
    for number, model in enumerate(contents["similarity"], 1):
        if model["graph"]:
            pictures["label_graph" if number == 1 else f"label_graph_{number}"] = label_graph(model["graph"])
    return as_files(pictures)


def as_files(pictures: dict[str, Picture]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for name, picture in pictures.items():
        files |= {f"{name}.png": picture.to_png(), f"{name}.svg": picture.to_svg().encode()}
    return files
