"""Runs on scenes: predicted graphs in files, and the report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import written_whole
from shortlist.reports.scenes import SceneRun, write_scenes
from shortlist.runs.given import Given, relations_wanted
from shortlist.runs.report_data import commands_of, described, heading_of, names_of
from shortlist.runs.run import Run
from shortlist.scenes import SceneGraph, predicted_graphs, recorded_graphs, to_svg, write_graphs


def write_predictions(
    given: Given, scenes: Dataset, run: Run, out: Path | None, rule: str | None, draw: Path | None, images: Path | None
) -> dict[str, Any]:
    """The graph of every image, one JSON object per line, and pictures where they are wanted."""
    k, constrained = relations_wanted(given, rule)
    if out is None:
        out = run.path / "predictions" / f"{given.name}-top-{k}{'' if constrained else '-unconstrained'}.jsonl"
        out.parent.mkdir(exist_ok=True)
    if out.suffix != ".jsonl":
        raise ShortlistError(f"-o {out}: graphs are written as .jsonl")
    graphs = list(predicted_graphs(scenes, given.scores, k, constrained=constrained))
    number = write_graphs(out, graphs)
    written = [str(out)]
    if draw is not None:
        draw.mkdir(parents=True, exist_ok=True)
        for graph, right in zip(graphs, recorded_graphs(scenes), strict=True):
            name = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in graph.image)
            image, graph = (None, graph) if images is None else _on_its_image(graph, images)
            with written_whole(draw / f"{name}.svg") as file:
                file.write(to_svg(graph, image=image, right=right if right.relations else None).encode())
        written.append(str(draw))
    rule = f"top-k-{k}"
    return {
        "written": written,
        "objective": given.objective,
        "rule": rule,
        "constrained": constrained,
        "examples": number,
    }


def _on_its_image(graph: SceneGraph, folder: Path) -> tuple[bytes, SceneGraph]:
    """The image, and the graph in the image's own size: boxes are in its pixels."""
    from PIL import Image

    path = folder / graph.image
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise ShortlistError(f"--images {folder}: there is no {graph.image} in it")
    with Image.open(path) as image:
        width, height = image.size
    return path.read_bytes(), replace(graph, width=width, height=height)


def are_of_scenes(runs: Sequence[Run]) -> bool:
    """Whether these are runs on scenes; runs on other data do not go with them."""
    found = {run.is_of_scenes for run in runs}
    if len(found) > 1:
        raise ShortlistError("runs on scenes and runs on other data cannot be shown side by side")
    return found.pop()


def scene_report(runs: Sequence[Run], part: str | None, title: str | None, folder: Path) -> dict[str, Any]:
    """Runs side by side on the same images; those that differ only in their seed get one name."""
    shown, first, about = [], None, {}
    for run, name in zip(runs, names_of(runs), strict=True):
        parts = run.parts()
        chosen = part or ("test" if "test" in parts else "validation")
        if chosen not in parts:
            raise ShortlistError(f"{run.path} has no part {chosen!r}; it has {', '.join(parts)}: name one with --part")
        if first is None:
            first, about = parts[chosen], described(run, parts, chosen)
            heading = heading_of(run, parts)
        elif parts[chosen].ids != first.ids:
            raise ShortlistError(f"{run.path}: its {chosen} images are not those of {runs[0].path}")
        content = run.config.model_dump(mode="json")
        scores = run.scores(parts[chosen])
        run.release()
        shown.append(SceneRun(name, scores, run.records(), content, commands_of(run), run.config.seed))
    if first is None:
        raise ShortlistError("give at least one run directory")
    names = list(dict.fromkeys(run.name for run in shown))
    page = write_scenes(title or f"{heading}: {', '.join(names)}", shown, first, folder, about)
    return {"written": str(page), "runs": [run.name for run in shown], "examples": len(first)}
