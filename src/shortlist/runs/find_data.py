"""The data that a command names: a part of a run, another labelled source, or inputs without labels."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shortlist.data import Dataset, Images, TextEncoder, Texts
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.readers.coco import is_coco
from shortlist.data.readers.image_table import root_of_new
from shortlist.data.readers.table_shards import is_url
from shortlist.data.readers.tables import name_of, names_table
from shortlist.data.table_rows import TableRows
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.config import PARTS, Source
from shortlist.runs.run import Run
from shortlist.runs.setup import as_table, check_like, check_source, read_source, same_columns, same_names
from shortlist.runs.written import as_written, like
from shortlist.runs.yaml_text import apply_override, read_yaml


def find_data(
    run: Run,
    data: Dataset | PathLike,
    overrides: Sequence[str] = (),
    labelled: bool = True,
    broken: dict[str, str] | None = None,
) -> tuple[Dataset, str]:
    """Data and its name: a part of the run (``test``), a YAML file with a reader and its options, or the
    path of other data in the format of the training data, with ``key=value`` changes of the reader's options.

    Where no labels are needed, a file of features or a folder of images is enough. Images that cannot be decoded may be
    noted in ``broken``, path -> reason.
    """
    if isinstance(data, Dataset):
        if overrides:
            raise ShortlistError(f"data that is read already is what it is: {overrides[0]!r} cannot change it")
        check_like(data, run.facts, data.name)
        return data, data.name
    data = os.fspath(data)
    if data in PARTS:
        if overrides:
            raise ShortlistError(f"the part {data!r} of a run is what it is: {overrides[0]!r} cannot change it")
        parts = run.parts()
        if data not in parts:
            raise ShortlistError(f"the run has no part {data!r}; it has {', '.join(parts)}")
        return parts[data], data
    found = described(run, data, overrides, labelled)
    return found.read(run, broken=broken), found.name


@dataclass(frozen=True)
class Described:
    """Data at a path, and how a run reads it: ``content`` is a reader and its options."""

    given: str  # what the user said
    content: Mapping[str, Any]
    path: str
    name: str
    overrides: tuple[str, ...] = ()
    labelled: bool = True
    root_is_new: bool = True  # or the folder of images is that of the training data

    def read(self, run: Run, at: PathLike | None = None, broken: dict[str, str] | None = None) -> Dataset:
        """The data set; ``at``: read this file in place of the one at the path."""
        content = dict(self.content) if at is None else {**self.content, "path": os.fspath(at)}
        if not self.labelled:
            return _unlabelled(run, Path(self.path if at is None else at), content, self.overrides, broken)
        if content["reader"] == "image-table" and content.get("root") is not None and not self.root_is_new:
            content["root"] = root_of_new(content["path"], content)
        source = _as_trained(run, Source(**content))
        with same_names(source, run.facts["vocabulary"]) as named:
            dataset = read_source(named, self.given, run.allow_import)
        check_like(dataset, run.facts, self.given)
        run.inputs.mention_ignored({} if dataset.columns is None else dataset.columns.ignored, self.given)
        if run.preprocessor is not None and not isinstance(dataset.inputs, TableRows | Texts):  # arrays, a sparse table
            dataset = replace(dataset, inputs=run.inputs.dataset(dataset.inputs).inputs)
        if isinstance(dataset.inputs, Images) and not dataset.inputs.in_memory:
            dataset = replace(dataset, inputs=replace(dataset.inputs, broken=broken))
        return dataset


def described(run: Run, data: str, overrides: Sequence[str] = (), labelled: bool = True) -> Described:
    """What a path of data means to a run; of the data only is seen how text is written."""
    config, path = run.config, Path(data)
    if not is_url(data) and not path.exists():
        raise ShortlistError(
            f"there is no {data!r}: DATA is one of {', '.join(PARTS)}, or the path of a file or folder"
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ShortlistError(f"{data}: is a pipe or a device, and data is read more than once: save it as a file first")
    options = config.data.train.options
    is_yaml = path.suffix in (".yaml", ".yml") and not is_url(data)
    if is_yaml:
        content = read_yaml(path.read_bytes(), data)
        if not isinstance(content, dict) or not isinstance(content.get("reader"), str):
            raise ShortlistError(f"{data}: a data file names a reader and its options: reader: features, path: ...")
    elif run.inputs.takes_images and (names_table(path) or (path.is_dir() and config.data.train.reader == "features")):
        content = _images_at(run, path)
    else:
        content = {"reader": config.data.train.reader, **options, "path": data}
    if not is_yaml and not is_url(data):
        content = as_written(path, content)
    for override in overrides:
        apply_override(content, override)
    return Described(
        data,
        content,
        str(content.get("path", data)) if is_yaml else data,
        name_of(path),
        tuple(overrides),
        labelled or is_yaml or run.task is not None or is_of_coco(run, path),
        is_yaml or _names_root(overrides),
    )


def is_of_coco(run: Run, path: Path) -> bool:
    """Whether a run that was trained on COCO's annotations is given some more of them."""
    return run.config.data.train.reader == "coco" and path.is_file() and is_coco(path)


def _names_root(overrides: Sequence[str]) -> bool:
    return any(override.startswith("root=") for override in overrides)


def described_part(run: Run, part: str) -> Described | None:
    """A part of a run that is a table of its own, read as it is; None where it is anything else."""
    data = run.config.data
    source = getattr(data, part)
    if not isinstance(source, Source) or part == "train" or any(part in one.parts for one in data.corruptions):
        return None
    path, encoder = source.options.get("path"), data.encoder
    if not isinstance(path, str) or (encoder is not None and encoder.name != TfIdf.kind):
        return None
    return Described(f"data.{part}", {"reader": source.reader, **source.options}, path, part)


def _unlabelled(
    run: Run, path: Path, content: dict[str, Any], overrides: Sequence[str], broken: dict[str, str] | None
) -> Dataset:
    """Inputs without their labels; the options of a reader of labelled data are checked where some were given."""
    if not overrides:
        return replace(run.inputs, options=like(run.inputs.options, content)).of_path(path, broken)
    source = Source(**content)
    check_source(os.fspath(path), source, run.allow_import)
    options = {key: value for key, value in source.options.items() if key != "path"}
    return replace(run.inputs, options=options, root_is_new=_names_root(overrides)).of_path(path, broken)


def _as_trained(run: Run, source: Source) -> Source:
    """A table's source that has the columns that the run was trained with, as they were read then."""
    same = as_table(same_columns(source, run.facts.get("columns")), "none" if run.preprocessor is None else "auto")
    fitted = run.preprocessor
    if not same.options.get("as_table") or not isinstance(fitted, Preprocessor):
        return same
    return same.model_copy(update={"name_columns": list(fitted.name_columns)})


def _images_at(run: Run, path: Path) -> dict[str, Any]:
    """The source of images in a folder for each label, or that a table lists: its own columns say more than those of
    the training data."""
    trained, encoder = run.config.data.train, run.inputs.encoder
    reader = "image-table" if names_table(path) else "image-folder"
    if trained.reader == "coco" and path.suffix.lower() == ".json":
        reader = "coco"
    assert not isinstance(encoder, TextEncoder), "asked for only where the run takes images"
    if trained.reader == reader:
        return {"reader": reader, **trained.options, "path": str(path)}
    shown = {"size": run.inputs.in_shape[1], "crop": run.facts["images"]["crop"]} if encoder is None else {
        "size": encoder.size[0], "crop": encoder.crop
    }  # fmt: skip
    names = {} if reader == "image-table" else {"vocabulary": list(run.facts["vocabulary"])}
    return {"reader": reader, **shown, **names, "path": str(path)}
