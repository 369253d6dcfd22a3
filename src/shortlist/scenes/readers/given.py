"""What a scorer is given of scenes besides what is recorded: features, word vectors, a detector's boxes; the task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, get_args, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import whole
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images, why_not_decoded
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError, nearest
from shortlist.files import PathLike
from shortlist.labels.word_vectors import label_vectors
from shortlist.models import build_backbone
from shortlist.optional import require
from shortlist.options import check_value
from shortlist.scenes.containers import Scenes, SceneTaskName, pairs_of
from shortlist.scenes.matching import box_overlaps, standing_for
from shortlist.scenes.readers.box_table import BoxTable, read_box_table
from shortlist.scenes.regions import region_features
from shortlist.scenes.union_boxes import union_boxes

Features = PathLike | Mapping[str, Any] | None
_APART = 1.0  # pixels by which a box of a file of features may differ from the recorded one
_LIES_ON = 0.5  # overlap over union from which a detected box is taken for a recorded one, to learn from
_SIZE = 224  # of images that a backbone looks at
_AT_ONCE = 8  # images
_Own = ParamSpec("_Own")


class Given(TypedDict, total=False):
    """The options of `with_given`, which every reader of scenes takes; `read_vrd` says what they are."""

    task: SceneTaskName
    features: Features
    detections: PathLike | None
    most_boxes: int
    word_vectors: PathLike | None
    images: PathLike | None


def lists_given(read: Callable[_Own, Dataset]) -> Callable[_Own, Dataset]:
    """Decorates a reader that takes ``**given: Unpack[Given]``: its signature lists the options one by one, as configs,
    commands and the documentation want it."""
    own = inspect.signature(read)
    options = [p for p in inspect.signature(with_given).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    read.__signature__ = own.replace(parameters=[*parameters, *options])  # type: ignore[attr-defined]
    read.__annotations__ = {name: kind for name, kind in read.__annotations__.items() if name != "given"}
    read.__annotations__ |= get_type_hints(Given)
    return read


def with_given(
    dataset: Dataset,
    *,
    task: SceneTaskName = "predcls",
    features: Features = None,
    detections: PathLike | None = None,
    most_boxes: int = 64,
    word_vectors: PathLike | None = None,
    images: PathLike | None = None,
) -> Dataset:
    """The data set of scenes as they are recorded, with what the options of every reader of scenes name; `read_vrd`
    says what they are."""
    whole(most_boxes, "most_boxes", 1)
    if task not in get_args(SceneTaskName):
        known = get_args(SceneTaskName)
        raise ShortlistError(f"task must be one of {', '.join(known)}, got {task!r}{nearest(str(task), known)}")
    if (task == "sgdet") != (detections is not None):
        needs = "needs the boxes of a detector: set detections" if task == "sgdet" else "goes without detections"
        raise ShortlistError(f"the task {task} {needs}")
    scenes: Scenes = dataset.inputs
    ids = dataset.ids or tuple(map(str, range(len(scenes))))
    if images is not None:
        dataset = replace(dataset, pictures=_pictures(images, ids))
        scenes = _with_sizes(scenes, dataset.pictures)
    if word_vectors is not None:
        scenes = replace(scenes, word_vectors=label_vectors(word_vectors, scenes.class_names))
    if detections is not None:
        scenes = detected(scenes, ids, read_box_table(detections, Findings()), most_boxes)
    elif task == "sgcls":
        scenes = replace(scenes, classes_given=False)
    if isinstance(features, Mapping):
        if dataset.pictures is None:
            raise ShortlistError("features of a backbone are of images: set images to the folder that they are in")
        scenes = _seen_by(scenes, dataset.pictures, features)
    elif features is not None:
        scenes = _with_features(scenes, ids, read_box_table(features, Findings()))
    return replace(dataset, inputs=scenes)


def detected(scenes: Scenes, ids: Sequence[str], table: BoxTable, most: int) -> Scenes:
    """The boxes of a detector, the ``most`` with the highest scores of each image, in place of the recorded ones, none
    of which is added (as in Neural Motifs' public code).

    To learn from, a box has the class of the recorded one on which it lies best (overlap over union of at least 0.5),
    or else background. It stands for all recorded boxes of its class on which it lies, and relations hold between boxes
    that stand for those of the relation.
    """
    if table.class_scores is None:
        raise ShortlistError(f"{table.path}: detections need 'scores' or 'probabilities' of the object classes")
    class_scores = _with_background(table, len(scenes.class_names))
    best = class_scores.softmax(1)[:, :-1].amax(1).numpy()
    by_image = table.rows_of_images()
    chosen, classes, relations = [], [], []
    recorded = scenes.answers_of_relations()
    begin = torch.searchsorted(recorded[:, 0].contiguous(), torch.arange(len(scenes) + 1)).tolist()
    for image, name in enumerate(ids):
        rows = _rows(by_image, name)
        rows = np.sort(rows[np.argsort(-best[rows], kind="stable")[:most]])
        boxes = torch.from_numpy(table.boxes[rows]).float()
        own = slice(*scenes.object_offsets[image : image + 2].tolist())
        found, stands_for = _lies_on(boxes, scenes.boxes[own].float(), scenes.classes[own], len(scenes.class_names))
        classes.append(found)
        said = recorded[begin[image] : begin[image + 1], 1:]
        relation, subject, thing = standing_for(stands_for, said)
        relations.append(torch.stack([subject, thing, said[relation, 2]], 1))
        chosen.append(rows)
    at = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
    if len(ids) and not len(at):
        raise ShortlistError(f"{table.path} has no boxes of these images: {_called(by_image, ids)}")
    return replace(
        scenes,
        boxes=torch.from_numpy(table.boxes[at]).float(),
        classes=torch.cat(classes),
        object_offsets=_ends(chosen),
        relations=torch.cat(relations),
        relation_offsets=_ends(relations),
        features=None if table.features is None else table.features[torch.from_numpy(at)],
        class_scores=class_scores[torch.from_numpy(at)],
        classes_given=False,
        recorded=scenes.as_recorded(),
    )


def _lies_on(boxes: Tensor, recorded: Tensor, classes: Tensor, background: int) -> tuple[Tensor, Tensor]:
    """The class of each box, and for which recorded boxes it stands, bool (boxes, recorded)."""
    if not len(recorded) or not len(boxes):
        return torch.full((len(boxes),), background), torch.zeros(len(boxes), len(recorded), dtype=torch.bool)
    shared = box_overlaps(boxes, recorded)
    most, on = shared.max(1)
    found = torch.where(most >= _LIES_ON, classes[on], background)
    return found, (shared >= _LIES_ON) & (found[:, None] == classes)


def _called(by_image: Mapping[str, Any], ids: Sequence[str]) -> str:
    """How file and data call the first of their images."""
    theirs, ours = (", ".join(map(repr, list(names)[:3])) for names in (by_image, ids))
    return f"it calls its images {theirs or 'nothing'}, the data has {ours}"


def _with_features(scenes: Scenes, ids: Sequence[str], table: BoxTable) -> Scenes:
    """Features, and scores of classes, of the boxes that the file has; of the boxes around pairs where it has them."""
    by_image, findings = table.rows_of_images(), Findings()
    if table.features is None and table.class_scores is None:
        raise ShortlistError(f"{table.path}: it has neither 'features' nor 'scores' or 'probabilities' of classes")
    if ids and not any(len(_rows(by_image, name)) for name in ids):
        raise ShortlistError(f"{table.path} has no boxes of these images: {_called(by_image, ids)}")
    objects, unions = [], []
    boxes_of = scenes.boxes.float().split(scenes.object_offsets.diff().tolist())
    for name, boxes in zip(ids, boxes_of, strict=True):
        rows = _rows(by_image, name)
        places = torch.from_numpy(table.boxes[rows]).float()
        at = _same_box(boxes, places)
        for lacking in (at < 0).nonzero()[:, 0].tolist():
            findings.add(table.path, f"image {name!r}: there is no row for the box {boxes[lacking].tolist()}")
        _, subject, thing = pairs_of(torch.tensor([len(boxes)]))
        around = _same_box(union_boxes(boxes, subject, thing), places)
        objects.append(_chosen(rows, at))
        unions.append(_chosen(rows, around))
    findings.stop_if_any()
    at, around = torch.from_numpy(np.concatenate(objects)), torch.from_numpy(np.concatenate(unions))
    lists_unions = table.features is not None and not bool(torch.isin(around[around >= 0], at).all())
    lacking = int((around < 0).sum())
    if lists_unions and lacking:  # the box around a pair may be that of an object: such rows say nothing
        note = f"of the boxes around {len(around)} pairs, {lacking} have no row: list all of them, or none"
        findings.add(table.path, note)
        findings.stop_if_any()
    scores = None if table.class_scores is None else _with_background(table, len(scenes.class_names))
    return replace(
        scenes,
        features=scenes.features if table.features is None else table.features[at],
        union_features=table.features[around] if lists_unions else scenes.union_features,
        class_scores=scenes.class_scores if scores is None else scores[at],
    )


def _same_box(boxes: Tensor, places: Tensor) -> Tensor:
    """Which of the places each box is, -1 where it is none."""
    if not len(places):
        return torch.full((len(boxes),), -1)
    away, at = (boxes[:, None] - places).abs().amax(2).min(1)
    return torch.where(away <= _APART, at, -1)


def _chosen(rows: NDArray[np.int64], at: Tensor) -> NDArray[np.int64]:
    return np.where(at.numpy() < 0, -1, np.append(rows, -1)[at.numpy()])


def _rows(by_image: Mapping[str, NDArray[np.int64]], name: str) -> NDArray[np.int64]:
    """The rows of an image, which the file calls as the data does, or without the ending."""
    found = by_image.get(name)
    found = by_image.get(Path(name).stem) if found is None else found
    return np.zeros(0, dtype=np.int64) if found is None else found


def _with_background(table: BoxTable, classes: int) -> Tensor:
    scores: Tensor = table.class_scores
    if scores.shape[1] not in (classes, classes + 1):
        raise ShortlistError(
            f"{table.path}: there are {classes} object classes, so that a box has {classes} scores, or one more for "
            f"background, which comes last; got {scores.shape[1]}"
        )
    if scores.shape[1] == classes + 1:
        return scores
    return torch.cat([scores, scores.amin(1, keepdim=True)], 1)  # a scorer learns how likely background is


def _ends(parts: Sequence[Any]) -> Tensor:
    return torch.tensor([0, *(len(part) for part in parts)]).cumsum(0)


def _pictures(folder: PathLike, ids: Sequence[str]) -> Images:
    findings = Findings()
    if findings.folder(folder):
        for name in ids:
            if not (Path(folder) / name).is_file():
                findings.add(folder, f"there is no image {name!r} in it")
    findings.stop_if_any()
    return Images.from_files([Path(folder) / name for name in ids], _SIZE, crop=False)


def _with_sizes(scenes: Scenes, pictures: Any) -> Scenes:
    """Where the data has no sizes, those of the images, in whose pixels the boxes are."""
    sizes, pil = scenes.sizes.clone(), require("PIL.Image")
    for row in (sizes <= 0).any(1).nonzero()[:, 0].tolist():
        try:
            with pil.open(pictures.source[row]) as image:
                sizes[row] = torch.tensor(image.size)
        except (OSError, pil.DecompressionBombError) as error:
            raise ShortlistError(f"{pictures.source[row]} cannot be read: {why_not_decoded(error)}") from None
    return replace(scenes, sizes=sizes)


@torch.no_grad()
def _seen_by(scenes: Scenes, pictures: Images, backbone: Mapping[str, Any]) -> Scenes:
    """What a backbone sees in every box and around every pair, by RoI align over its maps of the whole image."""
    options = dict(backbone)
    size = check_value("features.size", options.pop("size", _SIZE), int)
    pooled = check_value("features.pooled", options.pop("pooled", True), bool)
    if "name" not in options:
        raise ShortlistError(f"features of a backbone need its name, such as {{name: resnet50}}, got {dict(backbone)}")
    with torch.random.fork_rng([]):  # one without pretrained weights must be the same for every part and command
        torch.manual_seed(0)
        network = build_backbone(options.pop("name"), in_shape=(3, size, size), **options).eval()
    pictures = replace(pictures, size=(size, size))
    mean, std = getattr(network, "pixel_mean", None), getattr(network, "pixel_std", None)
    if mean is not None and std is not None:
        pictures = pictures.normalised(mean, std)
    objects, unions = [], []
    for rows in torch.arange(len(scenes)).split(_AT_ONCE):
        batch, _ = scenes.batch(rows)
        seen = region_features(
            network, pictures.batch(rows), batch.boxes, batch.counts, batch.subjects, batch.objects, pooled=pooled
        )
        objects.append(seen.boxes.flatten(1))
        unions.append(seen.unions.flatten(1))
    return replace(scenes, features=torch.cat(objects), union_features=torch.cat(unions))
