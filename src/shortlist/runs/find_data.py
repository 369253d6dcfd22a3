"""The data that a command names: a part of a run, another labelled source, or inputs without labels."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from shortlist.data import Dataset, Images
from shortlist.data.column_use import ColumnUse, listed
from shortlist.data.readers.features import read_inputs
from shortlist.data.readers.image_folder import IMAGE_ENDINGS, images_under
from shortlist.data.readers.image_table import listed_images
from shortlist.data.readers.tables import TABLE_ENDINGS
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import PathLike
from shortlist.runs.config import PARTS, Source, apply_override, read_yaml
from shortlist.runs.run import Run
from shortlist.runs.setup import as_table, check_same_labels, read_source, same_columns, same_names


def find_data(
    run: Run, data: Dataset | PathLike, overrides: Sequence[str] = (), labelled: bool = True
) -> tuple[Dataset, str]:
    """Data and its name: a part of the run (``test``), a YAML file with a reader and its options, or the
    path of other data in the format of the training data, with ``key=value`` changes of the reader's options.

    Where no labels are needed, a file of features or a folder of images is enough.
    """
    objects = (run.facts.get("scenes") or {}).get("objects")
    if isinstance(data, Dataset):
        if overrides:
            raise ShortlistError(f"data that is read already is what it is: {overrides[0]!r} cannot change it")
        check_same_labels(data, run.facts["vocabulary"], data.name, objects)
        return data, data.name
    data, config = os.fspath(data), run.config
    if data in PARTS:
        if overrides:
            raise ShortlistError(f"the part {data!r} of a run is what it is: {overrides[0]!r} cannot change it")
        parts = run.parts()
        if data not in parts:
            raise ShortlistError(f"the run has no part {data!r}; it has {', '.join(parts)}")
        return parts[data], data
    path = Path(data)
    if not path.exists():
        raise ShortlistError(
            f"there is no {data!r}: DATA is one of {', '.join(PARTS)}, or the path of a file or folder"
        )
    if path.suffix in (".yaml", ".yml"):
        content = read_yaml(path.read_text("utf-8"), data)
        if not isinstance(content, dict) or not isinstance(content.get("reader"), str):
            raise ShortlistError(f"{data}: a data file names a reader and its options: reader: features, path: ...")
    elif not labelled and not overrides and run.facts.get("scenes") is None:
        return unlabelled(run, path), path.stem
    elif run.facts["images"] is not None and path.suffix.lower() in TABLE_ENDINGS:
        content = _listed_images(run, path)
    else:
        content = {"reader": config.data.train.reader, **config.data.train.options, "path": data}
    for override in overrides:
        apply_override(content, override)
    source = _as_trained(run, Source(**content))
    dataset = read_source(same_names(source, run.facts["vocabulary"], run.facts["single"]), data)
    check_same_labels(dataset, run.facts["vocabulary"], data, objects)
    mention_ignored(dataset.columns, data)
    return dataset, path.stem


def _as_trained(run: Run, source: Source) -> Source:
    """A table's source that has the columns that the run was trained with, as they were read then."""
    return as_table(same_columns(source, run.facts.get("columns")), "none" if run.preprocessor is None else "auto")


def mention_ignored(use: ColumnUse | None, what: str) -> None:
    """A warning of the columns of a table that the run does not use."""
    if use is not None and use.ignored:
        names = listed([repr(name) for name in use.ignored])
        warnings.warn(f"{what}: columns that the run does not use are ignored: {names}", ShortlistWarning, stacklevel=3)


def _listed_images(run: Run, path: Path) -> dict[str, Any]:
    """The source of images that a table lists; its own columns say more than those of the training data."""
    trained = run.config.data.train
    if trained.reader == "image-table":
        return {"reader": trained.reader, **trained.options, "path": str(path)}
    shown = {"size": run.facts["in_shape"][1], "crop": run.facts["images"]["crop"]}
    return {"reader": "image-table", **shown, "vocabulary": list(run.facts["vocabulary"]), "path": str(path)}


def unlabelled(run: Run, path: Path) -> Dataset:
    """Features from a file, the images of a folder in the order of their names, or those that a table lists in its
    column ``path``; every label unknown."""
    facts = run.facts
    vocabulary = tuple(facts["vocabulary"])
    if facts["images"] is None:
        source = Source(**{"reader": "features", **run.config.data.train.options, "path": str(path)})
        inputs, ids, use = read_inputs(path, _as_trained(run, source).options)
        mention_ignored(use, str(path))
        return Dataset(inputs, torch.full((inputs.shape[0],), -1), vocabulary, ids=ids, name=path.stem, columns=use)
    if path.suffix.lower() in TABLE_ENDINGS:
        options = run.config.data.train.options
        files = listed_images(path, options.get("path_column", "path"), options.get("root"))
    else:
        files = [path] if path.suffix.lower() in IMAGE_ENDINGS and path.is_file() else images_under(path)
    if not files:
        raise ShortlistError(f"{path}: no images there; known endings: {', '.join(sorted(IMAGE_ENDINGS))}")
    channels = facts["images"]
    images = Images(
        tuple(map(str, files)),
        size=tuple(facts["in_shape"][1:]),
        crop=channels["crop"],
        mean=tuple(channels["mean"]),
        std=tuple(channels["std"]),
    )
    folder = path if path.is_dir() else path.parent
    ids = tuple(os.path.relpath(file, folder) for file in files)
    return Dataset(images, torch.full((len(files),), -1), vocabulary, ids=ids, name=path.stem)
