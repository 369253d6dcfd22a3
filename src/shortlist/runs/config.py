"""The config of a run: typed, from YAML, with ``key=value`` overrides and errors that name the key and its place."""

import copy
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from shortlist.data.cells import is_number
from shortlist.errors import ShortlistError, nearest
from shortlist.files import PathLike
from shortlist.named import Named
from shortlist.options import in_our_words, unknown_key
from shortlist.runs.search_space import find_searches
from shortlist.runs.written import as_written
from shortlist.runs.yaml_text import apply_override, read_yaml
from shortlist.training.sections import Section
from shortlist.training.settings import TrainSettings

CONFIG = "config.yaml"  # of a run
Part = Literal["train", "validation", "calibration", "test"]
PARTS: tuple[str, ...] = get_args(Part)


class Source(BaseModel):
    """A reader and its options, side by side: ``{reader: features, path: train.npz}``. Paths start from where the
    command runs."""

    model_config = ConfigDict(extra="allow", frozen=True)
    reader: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Column(Section):
    """Something that is known of each training example beside its inputs and labels: a column of the table (or an array
    of the .npz) that it is read from, by its name alone; or of another file."""

    key: str = Field(description="the column, or the array of an .npz")
    path: str | None = Field(default=None, description="the file; none: the path of data.train")
    ids: str | None = Field(
        default=None, description="the column with the examples' names, by which rows are found; none: row by row"
    )

    @model_validator(mode="before")
    @classmethod
    def _key_alone(cls, value: Any) -> Any:
        return {"key": value} if isinstance(value, str) else value


class Corruption(Named):
    parts: tuple[Part, ...] = Field(default=("train",), description="the parts of the data that are changed")


# a source of its own, or a share (or number) of the training examples
Held = Annotated[
    Annotated[Source, Tag("source")] | Annotated[float, Tag("share")],
    Discriminator(lambda value: "source" if isinstance(value, Mapping | Source) else "share"),
]


class DataConfig(Section):
    train: Source = Field(description="what the model is trained on")
    validation: Held | None = Field(
        default=0.1,
        description="what chooses the best epoch: a share or number of train, a source, or the path of another file or "
        "folder that is read as train is",
    )
    calibration: Held | None = Field(default=0.1, description="what the set rules are fitted on: likewise")
    test: Held | None = Field(default=None, description="what shortlist evaluate RUN test judges on: likewise")
    use: float = Field(default=1.0, gt=0, description="the share or number of what is left of train to train on")
    seed: int | None = Field(default=None, ge=0, description="the seed of parts and corruptions; none: the run's seed")
    stratify: bool = Field(True, description="parts cut from train keep its label frequencies")
    groups: Column | None = Field(
        default=None, description="a column, such as patient: examples of a group are never in two parts cut from train"
    )
    time: Column | None = Field(
        default=None, description="a column that sorts: parts cut from train follow each other, test the latest"
    )
    preprocess: Literal["auto", "none"] = Field(
        default="auto",
        description="what is done with a table's columns, fitted on train: numbers standardised, names encoded, blanks "
        "filled and marked; none: only numbers are taken, as they are",
    )
    na_values: tuple[Annotated[str, Field(coerce_numbers_to_str=True)], ...] | None = Field(
        default=None, description="a preprocessed table's cells that mean blank; None: the usual ones (NA, ?, null, ..)"
    )
    encoder: Named | None = Field(
        default=None,
        description="a pretrained backbone, such as efficientnet-lite0, that makes features of images once, before "
        "training; it becomes part of the run",
    )
    cache: str = Field(default=".features", description="the folder in which an encoder's features are kept")
    unknown: Literal["unknown", "absent"] = Field(
        default="unknown",
        description="what unknown labels count as in training; absent: in the rows that have a present label",
    )
    corruptions: tuple[Corruption, ...] = Field(
        default=(), description="changes of labels on purpose: those of train, unless parts are named"
    )

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        """A part that is a path alone is read as train is; its text may be written in another way."""
        train = value.get("train") if isinstance(value, Mapping) else None
        train = dict(train) if isinstance(train, Source | Mapping) else None
        held = {} if train is None else {part: value.get(part) for part in PARTS[1:]}
        paths = {part: path for part, path in held.items() if isinstance(path, str) and not is_number(path)}
        read = {part: {**as_written(Path(path), train or {}), "path": path} for part, path in paths.items()}
        return {**value, **read} if read else value

    @model_validator(mode="after")
    def _one_way_to_cut(self) -> "DataConfig":
        if self.groups is not None and self.time is not None:
            raise ShortlistError("parts are cut by groups or by time, not by both: remove one of them")
        return self


class RunConfig(TrainSettings):
    """Everything that decides what a run computes.

    >>> config = RunConfig.model_validate({"data": {"train": {"reader": "ambiguous-numbers"}}})
    >>> config.objective.name, config.optimizer.lr, config.data.validation
    ('cross-entropy', 0.1, 0.1)
    """

    data: DataConfig = Field(description="what to train, choose, calibrate and test on")
    backbone: Named = Field(default=Named(name="identity"), description="the network that turns inputs into features")
    objective: Named = Field(
        default=Named(name="cross-entropy"), description="the head that turns features into scores, and its loss"
    )
    crops: Literal[1, 5, 10] = Field(
        default=1,
        description="calibrate, predict and evaluate from so many crops of each image: corners and middle, 10 mirrored",
    )
    rules: tuple[Named, ...] = Field(default=(), description="set rules to calibrate; none: the usual ones")

    def to_yaml(self) -> str:
        """The whole config, defaults included; reading it back gives an equal config."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def as_config(config: RunConfig | Mapping[str, Any] | PathLike, overrides: Iterable[str] = ()) -> RunConfig:
    """A config from a config, a mapping of its keys, or the path of a YAML file; with ``key=value`` changes.

    >>> as_config({"data": {"train": {"reader": "ambiguous-numbers"}}}, ["epochs=3"]).epochs
    3
    """
    if isinstance(config, RunConfig):
        overrides = list(overrides)
        return config if not overrides else check_config(config.model_dump(mode="json"), overrides)
    if isinstance(config, Mapping):
        return check_config(config, overrides)
    return load_config(config, overrides)


def content_of(config: Mapping[str, Any] | PathLike, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The keys and values of a mapping or a YAML file, not checked yet, with ``key=value`` overrides applied."""
    if isinstance(config, Mapping):
        changed = copy.deepcopy(dict(config))
    else:
        try:
            changed = _mapping(Path(config).read_bytes(), os.fspath(config))
        except (FileNotFoundError, IsADirectoryError):
            raise ShortlistError(f"there is no config file {os.fspath(config)}") from None
    for override in overrides:
        apply_override(changed, override)
    return changed


def load_config(path: PathLike, overrides: Iterable[str] = ()) -> RunConfig:
    """The config in a YAML file, with ``key=value`` overrides applied; all problems are reported in one error."""
    return check_config(content_of(path), overrides, where=os.fspath(path))


def parse_config(text: str | bytes, overrides: Iterable[str] = (), where: str = "config") -> RunConfig:
    """The config in YAML text, with overrides.

    >>> text = "data: {train: {reader: ambiguous-numbers}}"
    >>> parse_config(text, ["optimizer.lr=1e-3", "data.train.seed=7"]).data.train.options
    {'seed': 7}
    >>> parse_config(text, ["optimizer.lrr=1"])
    Traceback (most recent call last):
    shortlist.ShortlistError: config: optimizer.lrr: there is no such key; did you mean 'lr'?; allowed here: name, ...
    """
    return check_config(_mapping(text, where), overrides, where)


def _mapping(text: str | bytes, where: str) -> dict[str, Any]:
    content = read_yaml(text, where)
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ShortlistError(f"{where}: a config is a mapping of keys to values, got {type(content).__name__}")
    return content


def check_config(content: Mapping[str, Any], overrides: Iterable[str] = (), where: str = "config") -> RunConfig:
    """The config with these keys and overrides; all problems are reported in one error."""
    changed = content_of(content, overrides)
    left_open = find_searches(changed)
    if left_open:
        raise ShortlistError(
            f"{where}: {left_open[0].key} is a search: only shortlist tune takes one, and not among another's choices"
        )
    try:
        return RunConfig.model_validate(changed)
    except ValidationError as error:
        problems = [_explain(detail) for detail in error.errors()]
        raise ShortlistError(f"{where}: " + "\n  ".join(problems)) from None


# ---- pydantic's errors, in our words


def _explain(detail: Any) -> str:
    model: Any = RunConfig
    kept: list[str] = []
    for step in detail["loc"]:
        fields = getattr(model, "model_fields", {})
        if step in fields:
            model = _section(fields[step].annotation)
            kept.append(str(step))
        elif isinstance(step, int) or (step == detail["loc"][-1] and detail["type"] == "extra_forbidden"):
            kept.append(str(step))  # else it is the tag of a union, which is no key
    where = ".".join(kept)
    if detail["type"] == "extra_forbidden":
        return unknown_key(".".join(kept[:-1]), kept[-1], model.model_fields)
    if detail["type"] == "missing":
        meant = nearest(kept[-1], detail["input"]).replace("did you mean", "is it what you mean by")
        return f"{where} must be given{meant}"
    return f"{where}: {in_our_words(detail['msg'])}, got {detail['input']!r}"


def _section(annotation: Any) -> Any:
    """The config section inside an annotation such as ``Source | float | None`` or ``tuple[Named, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _section(inner)
        if found is not None:
            return found
    return None
