"""The report on scene graphs: recall against K, drawn graphs, every predicate, the training; one page, offline."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.files import PathLike
from shortlist.reports.charts import Chart, in_percent, line_points, nice_ticks, training_charts
from shortlist.reports.data import seeds_by_name
from shortlist.reports.drawing import picture_of
from shortlist.reports.figures import as_files
from shortlist.reports.page import in_frame
from shortlist.reports.repeat import how_to_repeat
from shortlist.reports.training import training_curves
from shortlist.reports.words import fixed, percent
from shortlist.reports.write import put
from shortlist.scenes.drawing import to_png, to_svg
from shortlist.scenes.found import found_relations
from shortlist.scenes.graphs import SceneGraph, agreement, predicted_graphs, recorded_graphs
from shortlist.scenes.pictures import Pictures
from shortlist.scenes.recall import image_recalls, predicate_recalls
from shortlist.tasks import ScoredRun

KS = (1, 2, 5, 10, 20, 50, 100)
_TABLE = (20, 50, 100)
_SHOWN_GRAPHS, _SHOWN_RELATIONS = 9, 10
_LONGEST = 480  # pixels of an image on the page
_PREDICATES_AT = 50  # relations per image, where predicates are looked at one by one
_EXAMPLES = 2  # relations that are named of each predicate, recalled and missed
_CURVES = ("loss", "scene-recall@50", "scene-recall-unconstrained@50")
_KINDS = {"constrained": True, "unconstrained": False}


def write_scenes(
    title: str, runs: Sequence[ScoredRun], dataset: Dataset, directory: PathLike, about: Mapping[str, str]
) -> Path:
    """Write ``index.html`` and its figures, all of it or nothing; returns the page's path."""
    from markupsafe import Markup

    by_name = seeds_by_name(runs)
    measured = {name: [_measured(run, dataset) for run in seeds] for name, seeds in by_name.items()}
    names = [(name, place, "") for place, name in enumerate(by_name)]
    pictures = {"recall": picture_of(_recall_charts(measured), names)}
    curves = [curve for curve in training_curves(by_name) if curve["name"] in _CURVES]
    if curves:
        pictures["training"] = picture_of(training_charts(curves, list(by_name)), names)
    files = as_files(pictures)
    shown = max(3, _SHOWN_GRAPHS // len(by_name))  # of each name, on the same images
    cards = [card for name, seeds in by_name.items() for card in _cards(name, seeds[0], dataset, shown)]
    for number, card in enumerate(cards, 1):
        files |= {f"graph-{number}.svg": card["picture"].encode(), f"graph-{number}.png": card.pop("png")}
    template = (resources("shortlist.scenes") / "assets" / "scenes.html").read_text(encoding="utf-8")
    page = in_frame(
        template,
        title=title,
        lead=_lead(measured),
        about={**about, "Images": f"{len(dataset):,}", "Predicates": f"{dataset.num_labels:,}"},
        columns=[f"{kind}{'' if kind == 'mR' else ' R'}@{k}" for kind in (*_KINDS, "mR") for k in _TABLE],
        rows=[_row(name, seeds) for name, seeds in measured.items()],
        charts={"training": None} | {name: Markup(picture.to_svg(in_page=True)) for name, picture in pictures.items()},
        graphs=[{**card, "picture": Markup(card["picture"])} for card in cards],
        shown=_SHOWN_RELATIONS,
        predicates=_predicates(measured, dataset),
        reproduce=[how_to_repeat(run, len(by_name[run.name]) > 1) for run in runs],
        figures=list(files),
    )
    return put(directory, page, files)


@dataclass(frozen=True)
class _Measured:
    recall: Mapping[tuple[str, int], float]  # (kind, k) -> value
    mean_recall: Mapping[int, float]  # constrained
    by_predicate: Tensor  # at 50, constrained; NaN where it does not occur
    images: Tensor  # that have each predicate
    found: Tensor  # at 50, constrained: which of `Scenes.answers_of_relations`


def _measured(run: ScoredRun, dataset: Dataset) -> _Measured:
    answers = dataset.answers
    recall, mean_recall = {}, {}
    for kind, constrained in _KINDS.items():
        inputs, found_at_ks = found_relations(run.scores, answers, KS, constrained)
        for k, found in zip(KS, found_at_ks, strict=True):
            recall[kind, k] = float(image_recalls(inputs, found).mean())
            if constrained:
                total, count = predicate_recalls(inputs, found)
                mean_recall[k] = float((total / count)[count > 0].mean())
                if k == _PREDICATES_AT:
                    by_predicate, images, hits = total / count, count, found
    return _Measured(recall, mean_recall, by_predicate, images, hits)


def _lead(measured: Mapping[str, Sequence[_Measured]]) -> str:
    """The finding in a sentence, as measured."""
    means = {name: statistics.fmean(one.recall["constrained", 50] for one in seeds) for name, seeds in measured.items()}
    best = max(means, key=means.__getitem__)
    return (
        f"With 50 relations per image and one per pair of objects, {best} finds {percent(means[best])} of the "
        "recorded relations of an image on average" + ("." if len(means) == 1 else f", the most of {len(means)}.")
    )


def _row(name: str, seeds: Sequence[_Measured]) -> dict[str, Any]:
    values = [[one.recall[kind, k] for one in seeds] for kind in _KINDS for k in _TABLE]
    values += [[one.mean_recall[k] for one in seeds] for k in _TABLE]
    cells = [
        {
            "value": percent(statistics.fmean(value)),
            "spread": f"± {fixed(100 * statistics.stdev(value), 1)}" if len(value) > 1 else "",
        }
        for value in values
    ]
    return {"name": name, "seeds": len(seeds), "cells": cells}


def _cards(name: str, run: ScoredRun, dataset: Dataset, count: int) -> list[dict[str, Any]]:
    """Images spread evenly over the data, of those with at least two relations; drawn on, where they are known."""
    recorded = dataset.inputs.recorded or dataset.inputs
    enough = (recorded.relation_offsets.diff() >= 2).nonzero()[:, 0]
    places = torch.linspace(0, len(enough) - 1, min(count, len(enough))).long()
    wanted = enough[places].tolist() if len(enough) else []
    offsets = dataset.inputs.pair_offsets().tolist()
    rows = [torch.arange(offsets[image], offsets[image + 1]) for image in wanted]
    part = dataset.subset(wanted)
    scores = run.scores[torch.cat(rows)] if rows else run.scores[:0]
    pictures = Pictures(part, longest=_LONGEST)
    graphs = zip(predicted_graphs(part, scores, _SHOWN_RELATIONS), recorded_graphs(part), strict=True)
    return [{"run": name, **_card(*pictures.under(graph, row), right)} for row, (graph, right) in enumerate(graphs)]


def _card(image: bytes | None, graph: SceneGraph, right: SceneGraph) -> dict[str, Any]:
    are_right, are_found = agreement(graph, right)
    sentences = [{"text": text, "right": is_right} for text, is_right in zip(graph.sentences(), are_right, strict=True)]
    missed = [text for text, is_found in zip(right.sentences(), are_found, strict=True) if not is_found]
    drawn = {"picture": to_svg(graph, image=image, right=right), "png": to_png(graph, image=image, right=right)}
    return {"name": graph.image, **drawn, "sentences": sentences, "missed": missed}


def _predicates(measured: Mapping[str, Sequence[_Measured]], dataset: Dataset) -> list[dict[str, Any]]:
    """Recall at 50 of every predicate that occurs, the most frequent first; and some of what the first run recalls and
    misses."""
    first = next(iter(measured.values()))[0]
    images = first.images
    means = [torch.stack([one.by_predicate for one in seeds]).mean(0) for seeds in measured.values()]
    relations = (dataset.inputs.recorded or dataset.inputs).answers_of_relations()
    return [
        {
            "name": dataset.vocabulary[predicate],
            "images": int(images[predicate]),
            "relations": int((relations[:, 3] == predicate).sum()),
            "cells": [percent(float(mean[predicate])) for mean in means],
            "recalled": _some(relations[(relations[:, 3] == predicate) & first.found], dataset),
            "missed": _some(relations[(relations[:, 3] == predicate) & ~first.found], dataset),
        }
        for predicate in images.argsort(descending=True, stable=True).tolist()
        if images[predicate]
    ]


def _some(relations: Tensor, dataset: Dataset) -> str:
    """The first few of these relations in words, of different images where there are some, and how many there are."""
    scenes = dataset.inputs.recorded or dataset.inputs
    shown: dict[int, str] = {}
    for image, subject, thing, predicate in relations[:200].tolist():
        begin = int(scenes.object_offsets[image])
        ends = [scenes.class_names[int(scenes.classes[begin + place])] for place in (subject, thing)]
        name = image if dataset.ids is None else dataset.ids[image]
        shown.setdefault(image, f"{ends[0]} {dataset.vocabulary[predicate]} {ends[1]} ({name})")
        if len(shown) == _EXAMPLES:
            break
    return f"{len(relations):,}" + (f": {'; '.join(shown.values())}" if shown else "")


def _recall_charts(measured: Mapping[str, Sequence[_Measured]]) -> list[Chart]:
    means = {
        kind: [[statistics.fmean(one.recall[kind, k] for one in seeds) for k in KS] for seeds in measured.values()]
        for kind in _KINDS
    }
    return [recall_chart(kind, KS, values) for kind, values in means.items()]


def recall_chart(title: str, ks: Sequence[int], recalls: Sequence[Sequence[float]]) -> Chart:
    """Recall of scene graphs against K, a line for each run."""
    most = max([0.05, *(value for line in recalls for value in line)])
    low, high = 0.0, min(1.0, 1.05 * most)
    lines = [line_points(ks, values) for values in recalls]
    return {
        "title": title,
        "height": 300,
        "x": {
            "from": ks[0], "to": ks[-1], "log": True, "name": "K, relations per image (log scale)",
            "ticks": [[k, str(k)] for k in ks],
        },
        "y": {"from": low, "to": high, "ticks": in_percent(nice_ticks(low, high)), "name": "recall"},
        "lines": [{"color": color, "kind": "", "points": points} for color, points in enumerate(lines)],
        "dots": [{"color": color, "point": point} for color, points in enumerate(lines) for point in points],
        "description": f"Recall against K, {title}.",
    }  # fmt: skip
