"""The task of scenes: recall of relations, graphs in files and drawings, the report. See ``shortlist.tasks.Task``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import written_whole
from shortlist.labels.same_names import check_same_names
from shortlist.metrics.named import find_metric
from shortlist.named import Named
from shortlist.scenes.containers import Relations
from shortlist.scenes.drawing import to_svg
from shortlist.scenes.graphs import SceneGraph, predicted_graphs, recorded_graphs, write_graphs
from shortlist.scenes.motifnet import MotifNet
from shortlist.scenes.pictures import Pictures
from shortlist.scenes.report import write_scenes
from shortlist.scenes.scorer import RelationScorer
from shortlist.tasks import Predictions, ScoredRun

_KS = (20, 50, 100)


class SceneTask:
    """Every image is answered with its k best relations.

    >>> SceneTask().epoch_metrics()[::3]
    ['scene-recall@20', 'scene-recall-unconstrained@20']
    """

    readers = ("vrd", "vrd-pairs", "visual-genome")
    backbones = ("relations-light", "motifnet", "relations")
    calibration = "scenes are answered with the k best relations of each image: there is nothing to calibrate"

    def epoch_metrics(self) -> list[str]:
        """Recall with one relation per pair, and with any number of them."""
        return [f"{name}@{k}" for name in ("scene-recall", "scene-recall-unconstrained") for k in _KS]

    def same_kind(self, facts: Mapping[str, Any], dataset: Dataset, what: str) -> None:
        check_same_names(facts["objects"], dataset.inputs.class_names, what, "object class")
        trained = facts.get("task", "predcls")
        if dataset.inputs.task != trained:
            raise ShortlistError(
                f"{what}: its task is {dataset.inputs.task}, that of the training data is {trained}: set task={trained}"
            )

        for name, where in (("features", "in a box"), ("union_features", "in the box around a pair")):
            rows = getattr(dataset.inputs, name)
            here, wanted = 0 if rows is None else int(rows.shape[1]), facts.get(name, 0)
            if wanted and here != wanted:
                raise ShortlistError(
                    f"{what}: {here} numbers say what is seen {where}, in the training data {wanted}: set features to "
                    "a file of the same kind, or to the same backbone"
                )

    def answers(self, dataset: Dataset, facts: Mapping[str, Any]) -> Relations:
        """The recorded relations, and of which of them no training image has the like."""
        recorded = dataset.inputs.recorded or dataset.inputs
        unseen = ~torch.isin(recorded.kinds_of_relations(), torch.tensor(facts["seen"], dtype=torch.int64))
        return dataset.answers._replace(unseen=unseen)

    def start(self, backbone: nn.Module, train_set: Dataset) -> None:
        _check_relations(train_set, "learn from")
        if not len(train_set.inputs.relations):
            raise ShortlistError(
                "no two boxes of the detector lie on those of a recorded relation (overlap over union of 0.5 or more), "
                "so that there is nothing to learn from: they must be in the pixels of the reader's boxes"
            )
        if isinstance(backbone, RelationScorer | MotifNet):
            backbone.start_from(train_set.inputs)

    def results(
        self,
        dataset: Dataset,
        scores: Tensor,
        metrics: Sequence[str],
        facts: Mapping[str, Any],
        allow_import: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Recall of the k best relations of each image, and its mean over predicates."""
        _check_relations(dataset, "evaluate against")
        relations = self.answers(dataset, facts)
        names = metrics or [*self.epoch_metrics(), *(f"scene-mean-recall@{k}" for k in _KS)]
        wanted = [find_metric(name, kind="scenes", allow_import=allow_import) for name in names]
        values = {metric.name: metric(scores, relations, "none") for metric in wanted}
        return {"examples": len(dataset), "metrics": values, "rules": {}}

    def write_predictions(self, dataset: Dataset, scores: Tensor, wanted: Predictions) -> dict[str, Any]:
        """The graph of every image, one JSON object per line, and pictures where they are wanted."""
        k, constrained = _relations_wanted(wanted)
        out = wanted.out
        if out is None:
            wanted.folder.mkdir(exist_ok=True)
            out = wanted.folder / f"{wanted.data}-top-{k}{'' if constrained else '-unconstrained'}.jsonl"
        if out.suffix != ".jsonl":
            raise ShortlistError(f"-o {out}: graphs are written as .jsonl")
        graphs = list(predicted_graphs(dataset, scores, k, constrained=constrained))
        number = write_graphs(out, graphs)
        written = [str(out)]
        if wanted.draw is not None:
            _draw(wanted.draw, wanted.images, graphs, dataset)
            written.append(str(wanted.draw))
        return {"written": written, "rule": f"top-k-{k}", "constrained": constrained, "examples": number}

    def write_report(
        self, title: str, runs: Sequence[ScoredRun], dataset: Dataset, folder: Path, about: Mapping[str, str]
    ) -> Path:
        _check_relations(dataset, "report on")
        return write_scenes(title, runs, dataset, folder, about)


def _check_relations(dataset: Dataset, use: str) -> None:
    if not len((dataset.inputs.recorded or dataset.inputs).relations):
        raise ShortlistError(f"no image has a recorded relation: there is nothing to {use}")


def _relations_wanted(wanted: Predictions) -> tuple[int, bool]:
    """How many relations an image is answered with, and whether a pair has at most one: ``top-k:k=20``,
    ``top-k:k=20,constrained=false``; without a rule as many as the objective was trained for, else 20."""
    rule = wanted.rule or Named(name="top-k")
    options = {"k": int(wanted.k) if wanted.k and wanted.k >= 1 else 20, "constrained": True, **rule.options}
    k, constrained = options.pop("k"), options.pop("constrained")
    if rule.name != "top-k" or options or not isinstance(constrained, bool):
        given = f"{rule.name}:{','.join(f'{key}={value}' for key, value in rule.options.items())}"
        raise ShortlistError(
            f"--rule for scenes is top-k:k=20 or top-k:k=20,constrained=false; got {given.removesuffix(':')!r}"
        )
    return whole(k, "k", 1), constrained


def _draw(folder: Path, images: Path | None, graphs: Sequence[SceneGraph], dataset: Dataset) -> None:
    for option, path in (("--draw", folder), ("--images", images)):
        if path is not None and path.exists() and not path.is_dir():
            raise ShortlistError(f"{option} {path}: is a file, not a folder")
    if images is not None and not images.is_dir():
        raise ShortlistError(f"--images {images}: there is no such folder")
    folder.mkdir(parents=True, exist_ok=True)
    pictures = Pictures(dataset, images)
    names = _file_names(graph.image for graph in graphs)
    for row, (name, graph, right) in enumerate(zip(names, graphs, recorded_graphs(dataset), strict=True)):
        image, graph = pictures.under(graph, row)
        with written_whole(folder / f"{name}.svg") as file:
            file.write(to_svg(graph, image=image, right=right if right.relations else None).encode())


def _file_names(images: Iterable[str]) -> Iterator[str]:
    """Names of images without what a file's name may not have, and with a number where they have become equal."""
    taken = set()
    for image in images:
        name = cleaned = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in image)
        number = 1
        while name.casefold() in taken:  # some systems take capitals for small letters
            number += 1
            name = f"{cleaned}-{number}"
        taken.add(name.casefold())
        yield name
