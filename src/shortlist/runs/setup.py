"""From a config to what it names: data parts, backbone and objective. Names and options are checked first."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from shortlist.data import CORRUPTIONS, Dataset, Images, corrupt, read_beside, shared_examples, split
from shortlist.data.cells import NA_VALUES
from shortlist.data.column_use import as_option
from shortlist.data.duplicates import labelled_otherwise
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.readers.findings import ids_may_repeat, labels_by_name
from shortlist.data.readers.registry import find_reader
from shortlist.data.readers.tables import names_table
from shortlist.data.table_rows import TableRows
from shortlist.data.texts import Texts
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.labels.same_names import check_same_names
from shortlist.metrics.named import find_metric
from shortlist.models import BACKBONES, build_backbone, check_backbone
from shortlist.models.similarities import Similarities
from shortlist.named import Named
from shortlist.objectives import OBJECTIVES, build, check_kind, check_target, make_config
from shortlist.objectives.usual import unknown_as_absent
from shortlist.options import check_call, errors_at
from shortlist.runs.config import PARTS, Column, Corruption, RunConfig, Source
from shortlist.sets.named import check_rule
from shortlist.tasks import kind_of_facts, task_of
from shortlist.training.at_once import start_similarities
from shortlist.training.encoders import encode
from shortlist.training.learner import Learner
from shortlist.verticals import TASKS


def resolve(config: RunConfig, allow_import: Sequence[str] = ()) -> RunConfig:
    """The config with every name and option checked, and the objective's options complete."""
    data = config.data
    for part in PARTS:
        source = getattr(data, part)
        if isinstance(source, Source):
            check_source(f"data.{part}", source, allow_import)
    check_apart(config)
    for number, corruption in enumerate(data.corruptions):
        place = f"data.corruptions.{number}"
        function = CORRUPTIONS.find(corruption.name, allow_import, f"{place}.name")
        check_call(place, function, corruption.options, skip=1)
    for place, backbone in (("backbone", config.backbone), ("data.encoder", data.encoder)):
        if backbone is not None:
            maker = BACKBONES.find(backbone.name, allow_import, f"{place}.name")
            check_backbone(place, maker, backbone.options)
    for number, rule in enumerate(config.rules):
        check_rule(f"rules.{number}", rule, allow_import)
    for place, name in (("stop.metric", config.stop.metric), *(("metrics", name) for name in config.metrics)):
        if name is not None:
            find_metric(name, allow_import=allow_import, place=place)
    kind = OBJECTIVES.find(config.objective.name, allow_import=allow_import, place="objective.name")
    complete = Named.of(config.objective.name, **asdict(make_config(kind, config.objective.options, "objective")))
    return config.model_copy(update={"objective": complete})


def check_source(place: str, source: Source, allow_import: Sequence[str] = ()) -> dict[str, Any]:
    """The options as the reader wants them, or an error."""
    return check_call(place, find_reader(source.reader, allow_import, f"{place}.reader"), source.options)


def read_source(source: Source, place: str = "data", allow_import: Sequence[str] = ()) -> Dataset:
    return find_reader(source.reader, allow_import)(**check_source(place, source, allow_import))


# ---- data


def read_parts(
    config: RunConfig,
    *,
    columns: Sequence[str] | None = None,
    read: Callable[[Source, str], Dataset] | None = None,
    allow_import: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    broken: dict[str, str] | None = None,
    look: bool = False,
) -> dict[str, Dataset]:
    """The data of each part that the config has: read, cut from the training data, and corrupted; always the same.

    ``columns`` are the features of a table, by name, where a run knows them already; without them all parts have those
    of the training data. ``read`` takes a source and its place in the config; whoever reads the same sources often
    gives one that keeps them. ``progress`` is told of how many images there are features by now, where an encoder makes
    them; images that it cannot decode are left out of their parts, which note them as ``skipped``. So are those in
    ``broken``, path -> reason, where images are seen as they are; with ``look`` each is decoded once, and noted there
    if that fails.
    """
    data = config.data
    broken = {} if broken is None else broken

    def read_part(source: Source, place: str) -> Dataset:
        found = read_source(source, place, allow_import) if read is None else read(source, place)
        if data.encoder is None and isinstance(found.inputs, Images) and not found.inputs.in_memory:
            images = replace(found.inputs, broken=broken)
            if look:
                images.look_at_all(progress)
            return replace(found, inputs=images)
        if data.encoder is None or (found.kind == "texts" and data.encoder.name == TfIdf.kind):
            return found  # tf-idf is fitted on the training part
        if found.kind not in ("images", "texts"):
            raise ShortlistError(
                f"data.encoder makes features of images and texts, {place} has {found.kind}: set data.encoder=null"
            )
        return encode(found, data.encoder, data.cache, allow_import=allow_import, progress=progress, broken={})

    seed = config.seed if data.seed is None else data.seed
    whole = read_part(as_table(same_columns(data.train, columns), data.preprocess), "data.train")
    if not len(whole):
        raise ShortlistError("data.train has no examples")
    held = {part: getattr(data, part) for part in PARTS[1:]}
    counts = {
        part: _count(f"data.{part}", value, len(whole)) for part, value in held.items() if isinstance(value, float)
    }
    left = len(whole) - sum(counts.values())
    if left < 1:
        cut = " + ".join(f"{part} {count}" for part, count in counts.items())
        raise ShortlistError(f"data: {cut} leave nothing of the {len(whole)} examples to train on")
    counts["train"] = left if data.use == 1.0 else _count("data.use", data.use, left)
    if data.time is not None:
        counts = {part: counts[part] for part in PARTS if part in counts}  # what is trained on comes first
    beside = {
        name: _beside(whole, data.train, column, f"data.{name}")
        for name, column in (("groups", data.groups), ("time", data.time))
        if column is not None
    }
    pieces = (
        split(whole, list(counts.values()), seed=seed, stratify=data.stratify, **beside)
        if counts["train"] < len(whole)
        else (whole,)
    )
    # after the split: an image that is mended later changes nothing else
    parts = {part: _whole_images(piece) for part, piece in zip(counts, pieces, strict=True)}
    for part, value in held.items():
        if isinstance(value, Source):
            same = same_columns(value, None if whole.columns is None else whole.columns.features)
            same = as_table(same, "auto" if isinstance(whole.inputs, TableRows) else "none")
            with same_names(same, whole.vocabulary) as named:
                parts[part] = _whole_images(read_part(named, f"data.{part}"))
            check_like(parts[part], {"vocabulary": whole.vocabulary, **_facts_of_kind(whole)}, f"data.{part}")
    parts = {part: parts[part] for part in PARTS if part in parts}
    corrupted = {part: _corrupted(found, part, data.corruptions, seed, allow_import) for part, found in parts.items()}
    if data.unknown == "absent" and not whole.is_single:
        train_set = corrupted["train"]
        corrupted["train"] = replace(train_set, target=unknown_as_absent(train_set.target))
    return corrupted


def _whole_images(part: Dataset) -> Dataset:
    """Without the broken images; another one that breaks later is an error, and not seen as black."""
    part = part.without_broken()
    return replace(part, inputs=replace(part.inputs, broken=None)) if isinstance(part.inputs, Images) else part


def _beside(whole: Dataset, source: Source, column: Column, place: str) -> NDArray[Any]:
    """A value of each training example, from the column that the config names."""
    own = column.path is None and source.options.get("path") is not None
    path = source.options.get("path") if column.path is None else column.path
    if path is None:
        raise ShortlistError(f"{place}: the reader {source.reader!r} has no path: say in which file {column.key!r} is")
    with errors_at(place):
        if own and whole.columns is not None and column.key in whole.columns.features:
            raise ShortlistError(
                f"the column {column.key!r} of {path} is taken as a feature too: "
                f"set data.train.other_columns={as_option([column.key])}"
            )
        how = {key: source.options.get(key) for key in ("delimiter", "encoding", "column_names")} if own else {}
        return read_beside(path, column.key, whole, ids_key=column.ids, **how)


def check_apart(config: RunConfig) -> None:
    """Raise a ShortlistError where two parts of the config are read from the same source."""
    seen: dict[str, str] = {}
    for part in PARTS:
        source = getattr(config.data, part)
        if isinstance(source, Source) and "path" in source.options:
            path = os.path.realpath(source.options["path"])
            what = repr((source.reader, sorted({**source.options, "path": path}.items())))
            if seen.setdefault(what, part) != part:
                raise ShortlistError(
                    f"data.{part} is the same data as data.{seen[what]} ({source.options['path']}): "
                    f"give other data, or a share of data.train such as data.{part}=0.1"
                )


def repeated(config: RunConfig, parts: Mapping[str, Dataset]) -> list[str]:
    """What to say about inputs that are in two parts. Data that is made up (no path) may repeat itself by design."""
    read = {part: getattr(config.data, part) for part in parts}
    sources = {part: source if isinstance(source, Source) else config.data.train for part, source in read.items()}
    from_files = {part: data for part, data in parts.items() if "path" in sources[part].options}
    found, otherwise = shared_examples(from_files), labelled_otherwise(from_files)
    by_group = "" if config.data.groups else "; a column of groups (data.groups) would keep them together"
    shared = [f"data: {one}{'' if isinstance(read[one.part], Source) else by_group}" for one in found]
    return [*shared, *(f"data: {said}" for said in otherwise)]


def as_table(source: Source, preprocess: str) -> Source:
    """A table's source that leaves its columns as they are written, where they are preprocessed later."""
    if preprocess == "none" or not _is_table(source) or "as_table" in source.options:
        return source
    return source.model_copy(update={"as_table": True})


def preprocessor_for(config: RunConfig, train_set: Dataset) -> Preprocessor | TfIdf | None:
    """Fitted on the training part of a table, or on its texts where they are counted by tf-idf; None for other data."""
    counted = [one for one in (config.data.encoder, config.backbone) if one is not None and one.name == TfIdf.kind]
    if isinstance(train_set.inputs, Texts) and counted:
        with errors_at(train_set.name):
            options = check_backbone(TfIdf.kind, BACKBONES[TfIdf.kind], counted[0].options)
            return TfIdf.fit(train_set.inputs.source, **options)
    if not isinstance(train_set.inputs, TableRows):
        return None
    blank = NA_VALUES if config.data.na_values is None else config.data.na_values
    with errors_at(train_set.name):
        return Preprocessor.fit(train_set.inputs.frame, na_values=blank)


def prepared_parts(
    config: RunConfig, parts: Mapping[str, Dataset], preprocess: Callable[[Dataset], Dataset]
) -> dict[str, Dataset]:
    """The parts with their columns made numbers. That rows cut from the training table at random hold names or numbers
    that the others do not is chance, and not told."""
    found = {}
    for part, data in parts.items():
        with warnings.catch_warnings():
            if part == "train" or (config.data.time is None and not isinstance(getattr(config.data, part), Source)):
                warnings.simplefilter("ignore", ShortlistWarning)
            found[part] = preprocess(data)
    return found


def _is_table(source: Source) -> bool:
    return source.reader == "features" and names_table(str(source.options.get("path")))


def same_columns(source: Source, features: Sequence[str] | None) -> Source:
    """A table's source that takes these columns, by name, as its features, unless it names its own."""
    if features is None or not _is_table(source) or source.options.get("input_columns") is not None:
        return source
    return source.model_copy(update={"input_columns": list(features)})


@contextmanager
def same_names(source: Source, vocabulary: Sequence[str]) -> Iterator[Source]:
    """A source of features, or of a table of images or texts, to be read in this block, that has these names of labels
    where it does not say what they are called: not every label need occur in it, and columns of labels may have another
    order. Numbers in a table are then no places among these names; in arrays they are."""
    says = {"vocabulary", "vocabulary_key", "num_labels"} & source.options.keys()
    says |= set(source.options.get("label_columns") or ()) & set(vocabulary)  # or these columns hold names
    if source.reader not in ("features", "image-table", "text-table") or says:
        with ids_may_repeat():
            yield source
        return
    file = source.options.get("labels") or source.options.get("path", "")
    with ids_may_repeat(), labels_by_name() if names_table(file) else nullcontext():
        yield source.model_copy(update={"vocabulary": list(vocabulary)})


def _count(place: str, value: float, total: int) -> int:
    """A share below 1 or a number of examples, as a number of examples."""
    count = round(value * total) if value < 1 or (place == "data.use" and value == 1) else int(value)
    if count < 1 or count > total or (value > 1 and value != count):
        raise ShortlistError(f"{place}: {value:g} of {total} examples: give a share below 1, or a whole number of them")
    return count


def _corrupted(
    dataset: Dataset, part: str, corruptions: Sequence[Corruption], seed: int, allow_import: Sequence[str]
) -> Dataset:
    for corruption in corruptions:
        if part in corruption.parts:
            options = {"seed": seed, **corruption.options}
            dataset = corrupt(dataset, corruption.name, allow_import=allow_import, **options)
    return dataset


def check_like(dataset: Dataset, facts: Mapping[str, Any], what: str) -> None:
    """Raise a ValueError where the labels, or the kind of inputs, are not those of the training data of these facts."""
    check_same_names(facts["vocabulary"], dataset.vocabulary, what, "label")
    kind = kind_of_facts(facts)
    own = dataset.kind if dataset.kind in TASKS else None
    if own != kind:
        raise ShortlistError(f"{what}: these are {dataset.kind}, the training data has {kind or 'none'}")
    task = None if kind is None else task_of(kind)
    if task is not None and kind is not None:
        task.same_kind(facts[kind], dataset, what)


def facts_of(train_set: Dataset) -> dict[str, Any]:
    """What prediction has to know about the training data, as JSON."""
    return {
        "in_shape": list(train_set.in_shape),
        "single": train_set.is_single,
        "vocabulary": list(train_set.vocabulary),
        "groups": None if train_set.groups is None else train_set.groups.tolist(),
        "group_names": None if train_set.group_names is None else list(train_set.group_names),
        "num_examples": len(train_set),
        "class_counts": train_set.label_counts().tolist(),
        "corruptions": [dict(done) for done in train_set.corruptions],
        "encoder": None if train_set.encoder is None else train_set.encoder.to_json(),
        "columns": None if train_set.columns is None else list(train_set.columns.features) or None,
        "columns_left_out": [] if train_set.columns is None else list(train_set.columns.ignored),
        **_facts_of_kind(train_set),
    }


def _facts_of_kind(dataset: Dataset) -> dict[str, Any]:
    """What the inputs have to say, under their kind; of features there is nothing."""
    facts = dataset.input_facts()
    of_texts = None if dataset.texts is None else dataset.texts.facts()
    return {**dict.fromkeys([*TASKS, "images"]), "texts": of_texts, **({} if facts is None else {dataset.kind: facts})}


# ---- model


def build_learner(
    config: RunConfig, facts: Mapping[str, Any], allow_import: Sequence[str] = (), train_set: Dataset | None = None
) -> Learner:
    """Backbone and objective with weights drawn from the config's seed; for prediction only, without a training set."""
    objective_kind = OBJECTIVES.find(config.objective.name, allow_import=allow_import)
    kind = kind_of_facts(facts)
    task = None if kind is None else task_of(kind)
    check_kind(objective_kind, kind or "features")
    name = config.backbone.name
    if task is not None and name in BACKBONES and name not in task.backbones:
        raise ShortlistError(f"backbone {name!r} does not take {kind}: set backbone.name={task.backbones[0]}")
    of_texts = facts.get("texts") is not None
    if of_texts and not facts["in_shape"] and name in BACKBONES:
        raise ShortlistError(
            f"backbone {name!r} does not read texts: set data.encoder=tf-idf, data.encoder=hf:NAME or backbone=hf:NAME"
        )
    if name == TfIdf.kind and not of_texts:
        raise ShortlistError("backbone 'tf-idf' counts the words of texts: read them with the reader text-table")
    train_target = None if train_set is None or task is not None else train_set.target
    if train_target is not None:
        check_target(objective_kind, train_target)
    with torch.random.fork_rng([]):
        torch.manual_seed(config.seed)
        backbone: nn.Module = build_backbone(
            config.backbone.name,
            in_shape=tuple(facts["in_shape"]),
            allow_import=allow_import,
            **config.backbone.options,
        )
        objective = build(
            config.objective.name,
            config.objective.options,
            in_features=int(backbone.out_features),  # type: ignore[arg-type]
            num_labels=len(facts["vocabulary"]),
            class_counts=None if train_target is not None else torch.tensor(facts["class_counts"]),
            train_target=train_target,
            label_names=facts["vocabulary"],
            allow_import=allow_import,
        )
        if task is not None and train_set is not None:
            task.start(backbone, train_set)
        if isinstance(backbone, Similarities) and train_set is not None:
            start_similarities(backbone, train_set, config.seed)
    return Learner(backbone, objective)
