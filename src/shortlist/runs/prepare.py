"""Everything that training needs, ready: the config checked, the data read, the model built."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from shortlist.data import Dataset
from shortlist.data.cells import NA_VALUES
from shortlist.data.label_concerns import rare_labels, untrained_labels
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.table_concerns import table_concerns
from shortlist.data.table_rows import TableRows
from shortlist.data.tf_idf import TfIdf
from shortlist.files import PathLike
from shortlist.runs.backbone_choice import TRIED, settled_backbone, tried
from shortlist.runs.config import RunConfig, Source, as_config
from shortlist.runs.setup import (
    build_learner,
    facts_of,
    prepared_parts,
    preprocessor_for,
    read_parts,
    repeated,
    resolve,
)
from shortlist.training.auto_settings import settled
from shortlist.training.batches import augmentation, batches
from shortlist.training.encoders import reading, reading_in_words
from shortlist.training.learner import Learner, encoding, features_of
from shortlist.training.linear_head import Choice
from shortlist.training.loop import choose_metrics


@dataclass(frozen=True)
class Prepared:
    """A config, its data by part, what prediction has to know of the training data, the model to train, what makes
    numbers of a table or of texts, what there is to remark on it, and the modules whose code may run."""

    config: RunConfig
    parts: Mapping[str, Dataset]
    facts: Mapping[str, Any]
    learner: Learner
    preprocessor: Preprocessor | TfIdf | None = None
    remarks: tuple[str, ...] = ()
    allow_import: tuple[str, ...] = ()
    repeats: tuple[str, ...] | None = None  # of a table, rows that are in two parts, as they are written
    choice: Choice | None = None  # how the head is fitted at once, where the backbone was chosen by it


def prepare(
    config: RunConfig | Mapping[str, Any] | PathLike,
    *,
    overrides: Sequence[str] = (),
    parts: Mapping[str, Dataset] | None = None,
    read: Callable[[Source, str], Dataset] | None = None,
    preprocessor: Preprocessor | TfIdf | None = None,
    broken: Mapping[str, str] | None = None,
    allow_import: Sequence[str] = (),
) -> Prepared:
    """Check the config, read its data, settle what follows from their size, build its model. Whatever can be wrong with
    them is found here, before anything is written. ``parts``: the data, where it is read already; ``read``: as of
    `read_parts`; ``preprocessor``: what makes numbers of a table, where it is fitted already; ``broken``: the images
    that cannot be decoded, path -> reason, where that is known already; otherwise each image is decoded once to know
    it.

    >>> ready = prepare({"data": {"train": {"reader": "ambiguous-numbers", "size": 200}}})
    >>> {part: len(data) for part, data in ready.parts.items()}, ready.learner.objective.name
    ({'train': 160, 'validation': 20, 'calibration': 20}, 'cross-entropy')
    """
    checked = resolve(as_config(config, overrides), allow_import)
    left_out = dict(broken or {})
    if parts is None:
        parts = read_parts(checked, read=read, allow_import=allow_import, broken=left_out, look=broken is None)
    blanks = NA_VALUES if checked.data.na_values is None else checked.data.na_values
    train_set, alike = parts["train"], [one for one in parts.values() if one.vocabulary == parts["train"].vocabulary]
    counts = torch.stack([one.label_counts() for one in alike]).sum(0)  # of the whole file, not of the training part
    remarks = table_concerns(train_set, blanks, counts)
    if train_set.columns is not None:
        remarks += untrained_labels(train_set, counts) + rare_labels(train_set, counts)
    # prepared, rows may be alike that are not: rare categories are taken together
    repeats = tuple(repeated(checked, parts)) if isinstance(parts["train"].inputs, TableRows) else None
    if preprocessor is None:
        preprocessor = preprocessor_for(checked, parts["train"])
    parts = prepared_parts(checked, parts, lambda data: data.preprocessed(preprocessor))
    train_set = parts["train"]
    checked = settled(checked, len(train_set))
    facts = facts_of(train_set)
    checked, choice = settled_backbone(checked, facts, train_set, allow_import)
    facts[TRIED] = tried(choice)
    learner = build_learner(checked, facts, allow_import, train_set=train_set)
    if train_set.kind == "texts":
        facts["texts"] = as_read = reading(learner.backbone, train_set)
        train_set = replace(train_set, notes=(*train_set.notes, *reading_in_words(as_read)))
        parts = {**parts, "train": train_set}
    facts["scores_by_blocks"] = learner.objective.by_blocks((checked.batch_size or 1) // checked.devices)
    facts["broken_images"] = left_out
    choose_metrics(learner.objective, train_set, parts.get("validation"), checked, allow_import)
    augmentation(checked, train_set)
    batches(torch.arange(len(train_set)), checked.batch_size or 1, checked.devices)
    return Prepared(checked, parts, facts, learner, preprocessor, tuple(remarks), tuple(allow_import), repeats, choice)


def try_out(
    config: RunConfig | Mapping[str, Any] | PathLike, *, overrides: Sequence[str] = (), allow_import: Sequence[str] = ()
) -> dict[str, Any]:
    """One training step on the first batch, and what there is to say about the run; nothing is written. It is what
    ``shortlist train --dry-run`` does.

    >>> data = {"train": {"reader": "ambiguous-numbers", "size": 200}}
    >>> try_out({"data": data, "batch_size": 50})["batches per epoch"]
    4
    """
    ready = prepare(config, overrides=overrides, allow_import=allow_import)
    settings, learner, objective, train_set = ready.config, ready.learner, ready.learner.objective, ready.parts["train"]
    metric, _ = choose_metrics(objective, train_set, ready.parts.get("validation"), settings, allow_import)
    assert settings.epochs is not None
    steps = batches(torch.arange(len(train_set)), settings.batch_size or 1, settings.devices)
    if train_set.side is not None:
        objective.see_side_labels(train_set.side)
    objective.start_epoch(settings.epochs - 1, settings.epochs)  # past any warm-up
    wanted = objective.wanted_rows(changing=False)
    if wanted is not None:
        objective.remember(features_of(learner, train_set, wanted))
    inputs, target = train_set.normalised_for(learner.backbone).batch(steps[0])
    with encoding(learner, train_set):
        loss = learner.train()(inputs, target, steps[0])
        loss.backward()
    return {
        **{f"{part} examples": len(data) for part, data in ready.parts.items()},
        "input shape": list(train_set.in_shape),
        "labels": train_set.num_labels,
        "weights": sum(weight.numel() for weight in learner.parameters()),
        "batches per epoch": len(steps),
        "batch size": settings.batch_size,
        "epochs": settings.epochs,
        "chosen by": metric or "last epoch",
        "loss of the first batch": loss.item(),
    }
