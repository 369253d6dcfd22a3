"""What suits some data where nobody decides otherwise: its parts, objective, optimizer and set rules."""

import copy
import difflib
import inspect
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import yaml
from pydantic import BaseModel
from torch import Tensor

from shortlist.data import Dataset, Texts
from shortlist.data.cells import has_words
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.readers.registry import find_reader
from shortlist.data.table_rows import TableRows
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError, ShortlistWarning, nearest
from shortlist.files import PathLike
from shortlist.objectives import OBJECTIVES
from shortlist.objectives.usual import is_one_hot, unknown_as_absent, usual_objective
from shortlist.runs.backbone_choice import may_have_similarities
from shortlist.runs.config import PARTS, DataConfig, RunConfig, check_config
from shortlist.runs.guess import Guess, guess_source
from shortlist.runs.setup import preprocessor_for, resolve
from shortlist.runs.written import OPTIONS
from shortlist.runs.yaml_text import apply_override
from shortlist.sets.named import usual_rules
from shortlist.training.linear_head import FULL_BATCH, fits_full_batch
from shortlist.training.settings import OptimizerSettings, ScheduleSettings, StopSettings

_ENCODER, _TEXT_ENCODER = "efficientnet-lite0", "tf-idf"
_MOST_TERMS = 50_000  # that tf-idf takes of one text
_FEW = 1000  # examples, below which more of them calibrate and judge
_FEWEST = 20  # labelled examples of which a fifth judges
_ALPHA = 0.1
_STEPPING = (  # keys that have a meaning only where training takes steps
    "epochs", "batch_size", "accumulate", "schedule", "ema", "imbalance", "precision", "devices", "accelerator",
)  # fmt: skip
# of standardised columns or a network's features, where training takes steps: the best of five on four small sets
_OPTIMIZER = {"name": "adamw", "lr": 0.01, "weight_decay": 0.3}
_FINE_TUNING = {"name": "adamw", "lr": 0.001, "backbone_lr": 0.05, "weight_decay": 0.01}  # of a pretrained network
# of a linear model on sparse rows of length 1, as of texts: large steps, and logistic regression's decay with C = 5
_TEXTS_LR, _TEXTS_C = 8, 5
_MEAN_OVER_LABELS = ("asymmetric", "binary", "curriculum", "partial-binary")  # and rows: each label has a share of it
_MEAN_OVER_ROWS = ("assume-negative", "average-k", "cross-entropy", "multilabel-softmax", "smooth-topk")
_ALONE = {"validation": None, "calibration": None}


class Plan:
    """The config for a guess and what was given, which `decide` completes by looking at the data.

    >>> import torch
    >>> data = Dataset(torch.randn(200, 2), torch.arange(200) % 3, ("ant", "bee", "cat"))
    >>> config = Plan(Guess({"reader": "features", "path": "small.csv"}), ["epochs=5"]).decide(data)
    >>> config.objective.name, config.data.test, [rule.name for rule in config.rules]
    ('cross-entropy', 0.2, ['conformal', 'top-k'])
    """

    def __init__(self, guess: Guess, overrides: Sequence[str] = (), allow_import: Sequence[str] = ()) -> None:
        self.overrides, self.allow_import = list(overrides), tuple(allow_import)
        self.given: dict[str, Any] = {}
        for override in overrides:
            apply_override(self.given, override)
        decided = [f"data.train.{option}=" for option in self.given.get("data", {}).get("train", {})]
        self.images, self.parts = guess.images, guess.parts
        self.notes = [note for note in guess.notes if not any(option in note for option in decided)]
        self.content: dict[str, Any] = {"data": {"train": guess.source}}
        if guess.images:
            self.content["data"]["encoder"] = _ENCODER
            from_pixels = "data.encoder=null backbone=convnet data.train.size=64"
            self.notes.append(f"images are seen through {_ENCODER} (from their pixels: {from_pixels})")
        self.fine_tunes = str(_name(self.given.get("backbone"))).startswith("hf:")
        if guess.texts and not self.fine_tunes:
            self.content["data"]["encoder"] = _TEXT_ENCODER
            if "encoder" not in self.given.get("data", {}):
                self.notes.append("texts are counted word by word, by tf-idf (read by a network: data.encoder=hf:NAME)")

    @classmethod
    def of(
        cls,
        path: PathLike,
        images: PathLike | None = None,
        labels: Sequence[str] = (),
        overrides: Sequence[str] = (),
        allow_import: Sequence[str] = (),
    ) -> "Plan":
        """For files. Overrides are keys of a config, or options of the reader: ``separator=;`` for
        ``data.train.separator=;``."""
        keys = [override.split("=", 1)[0].split(".", 1)[0] for override in overrides]
        whole = [
            override if key in RunConfig.model_fields or "=" not in override else f"data.train.{override}"
            for key, override in zip(keys, overrides, strict=True)
        ]
        given: dict[str, Any] = {}
        for override in whole:
            apply_override(given, override)
        source = given.get("data", {}).get("train", {})
        if _holds_one_array(Path(path)) and "labels" not in source:
            raise ShortlistError(f"{path}: it holds one array: give the file of the labels, data.train.labels=FILE.npy")
        named = [source.get(key) for key in ("labels_key", "label_column", "label_columns") if key in source]
        columns = [name for one in named for name in (one if isinstance(one, list) else [one])]
        networks = [_name(section) for section in (given.get("backbone"), given.get("data", {}).get("encoder"))]
        reader = "text-table" if any(str(name).startswith("hf:") for name in networks) else None  # it reads one text
        chosen = {"reader": source.get("reader", reader), "text": source.get("text_column")}
        taken = [source.get("ids_key"), *(source.get("other_columns") or ())]
        guess = guess_source(
            path, images or source.get("images"), labels, list(map(str, columns)), **chosen,
            column_names=source.get("column_names"), taken=[name for name in taken if isinstance(name, str)],
            written={option: source[option] for option in OPTIONS if source.get(option) is not None},
        )  # fmt: skip
        options = inspect.signature(find_reader(source.get("reader", guess.source["reader"]), allow_import)).parameters
        for key in keys:
            _check_meant(key, [*options, "reader"])
        return cls(guess, whole, allow_import)

    def reading(self) -> RunConfig:
        """How all the data is read, before any of it is held out."""
        by_name = [override for override in self.overrides if not override.startswith("objective.")]  # chosen later
        first = check_config({**self.content, "data": {**self.content["data"], **_ALONE}}, by_name)
        only = first.model_copy(update={"data": first.data.model_copy(update={**_ALONE, "test": None, "use": 1.0})})
        resolve(only, self.allow_import)
        return only

    def single(self, whole: Dataset) -> Dataset:
        """The data with class indices for a label matrix with exactly one present label in every row, and all the data
        read so; other data, and where something is given that wants a matrix, as it is."""
        source, given, target = self.content["data"]["train"], self.given.get("data", {}), whole.target
        if not isinstance(target, Tensor) or not is_one_hot(target):
            return whole
        wanted = _name(self.given.get("objective"))
        takes_indices = wanted is None or "indices" in OBJECTIVES.find(wanted, self.allow_import).accepts
        reader = find_reader(given.get("train", {}).get("reader", source["reader"]), self.allow_import)
        own_options = any(isinstance(given.get(part), Mapping) for part in PARTS[1:])
        decided = {"unknown", "corruptions"} & given.keys() or {"coding", "unknown_key"} & given.get("train", {}).keys()
        if not takes_indices or "coding" not in inspect.signature(reader).parameters or own_options or decided:
            return whole
        source["coding"] = "one-hot"
        self.notes.append(
            f"each of the {len(whole)} examples has exactly one of the {whole.num_labels} labels: single labels, that "
            f"exclude each other (any number of them: data.train.coding=label-matrix)"
        )
        return replace(whole, target=(target == 1).int().argmax(1))

    def decide(self, whole: Dataset) -> RunConfig:
        """What suits the data, where no override decides."""
        whole = self.single(whole)
        content, given = self.content, self.given
        known = int((whole.target >= 0).sum() if whole.is_single else (whole.target >= 0).any(1).sum())
        if known < _FEWEST:
            raise ShortlistError(
                f"{known} examples have a known label: at least {_FEWEST} are needed to train, calibrate and judge; "
                f"shortlist train trains on fewer"
            )
        occur = [name for name, count in zip(whole.vocabulary, whole.label_counts().tolist(), strict=True) if count]
        if len(occur) < 2 and (whole.is_single or not occur):
            found = f"all labels that are known are {occur[0]!r}" if occur else "no label is ever present"
            raise ShortlistError(f"{found}: there is nothing to tell apart. Name other columns with --labels")
        share = 0.2 if len(whole) < _FEW else 0.1
        apart = {part: {**content["data"]["train"], **keys} for part, keys in self.parts.items()}
        held = {**_ALONE, "calibration": share, "test": share, **apart}  # the rate ends at zero: the last epoch is best
        content["data"] |= {part: value for part, value in held.items() if part not in given.get("data", {})}
        self.notes += [
            f"{part}: the array {keys['inputs_key']!r} of the file (a share of the other rows: data.{part}={share})"
            for part, keys in self.parts.items()
            if content["data"].get(part) == apart[part]
        ]
        name, unknown_is_absent = ("", False) if _name(given.get("objective")) else usual_objective(whole.target)
        if name:
            content["objective"] = {"name": name}
        if unknown_is_absent:
            content["data"]["unknown"] = "absent"
        if not _name(given.get("optimizer")):  # options that are given without a name are options of the usual one
            content["optimizer"] = dict(_FINE_TUNING if self.fine_tunes else _OPTIMIZER)
            config = check_config(content, self.overrides)
            if not self._steps() and _is_linear(config, whole):
                content["optimizer"] = {"name": "lbfgs"}
            else:
                content["optimizer"] = _plain_steps(config, whole, known) or content["optimizer"]
        if "backbone" not in given and may_have_similarities(check_config(content, self.overrides), whole):
            content["backbone"] = {"name": "auto"}
        if "schedule" not in given and _name(content.get("optimizer", given.get("optimizer"))) != "lbfgs":
            content["schedule"] = "cosine"
        if "rules" not in given:
            config = check_config(content, self.overrides)
            content["rules"] = _rules(config, whole, known, self.allow_import)
        config = resolve(check_config(content, self.overrides), self.allow_import)
        if config.data.calibration is None and config.data.validation is None:
            raise ShortlistError(
                "data.calibration is null, and sets are calibrated on it: give a share, such as 0.2; shortlist train "
                "needs none"
            )
        return config

    def _steps(self) -> bool:
        """Whether something is given that has a meaning only where training takes steps."""
        return "optimizer" in self.given or any(key in self.given for key in _STEPPING)

    def shown(self) -> str:
        """What was decided, with what was given, as it could be written in a file."""
        shown = copy.deepcopy(self.content)
        for override in self.overrides:
            apply_override(shown, override)
        return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, default_flow_style=None)


def kind_of(data: Dataset) -> str:
    """What the examples have as labels, in words."""
    if data.is_single:
        return f"one of {data.num_labels} labels each"
    unknown = int((data.target == -1).sum()) / max(1, data.target.numel())
    return f"any of {data.num_labels} labels" + (f", {unknown:.0%} of them unknown" if unknown else "")


def _rules(config: RunConfig, whole: Dataset, known: int, allow_import: Sequence[str]) -> list[dict[str, Any]]:
    """The rules to fit, the first of which `predict` uses: of single labels sets that hold the right one nine times in
    ten and are never empty, of several as many as an example has on average."""
    link = OBJECTIVES.find(config.objective.name, allow_import=allow_import).link
    k = config.objective.options.get("k")
    target = whole.target
    if config.data.unknown == "absent" and not whole.is_single:
        target = unknown_as_absent(target)  # of known labels alone, all may be present
    usual = [{"name": rule.name, **rule.options} for rule in usual_rules(target, whole.num_labels, k, link)]
    held = config.data.calibration
    rows = round(held * len(whole)) if isinstance(held, float) and held < 1 else held
    rows = rows * known / len(whole) if isinstance(rows, int | float) else rows
    enough = not isinstance(rows, int | float) or rows * _ALPHA >= 1  # of fewer rows it would answer with every label
    usual = [rule for rule in usual if rule["name"] != "conformal" or enough]
    if not whole.is_single:
        return sorted(usual, key=lambda rule: rule["name"] != "average-k")
    usual = [{**rule, "min_size": 1} if rule["name"] == "conformal" else rule for rule in usual]
    if k is None:
        kept = ("conformal", "average-k") if whole.num_labels >= 10 else ("conformal",)
        usual = [*(rule for rule in usual if rule["name"] in kept), {"name": "top-k", "k": 1}]
    return sorted(usual, key=lambda rule: rule["name"] != "conformal")


def _is_linear(config: RunConfig, whole: Dataset) -> bool:
    """Whether the model is a linear one that can be fitted to all rows at once, without steps and their rate."""
    linear = config.backbone.name == "identity" or _counts_words(config)
    return linear and config.objective.name in FULL_BATCH and _fits_at_once(config, whole)


def _fits_at_once(config: RunConfig, whole: Dataset) -> bool:
    """Whether as many rows and features as there will be, but for categories, are few enough. Texts have at most a term
    for each letter; their terms are counted only where so many would be too many."""
    alone = isinstance(whole.inputs, Texts)
    letters = [sum(map(len, whole.inputs.source))] if isinstance(whole.inputs, Texts) else _letters_beside(whole)
    if not letters:
        sparse = hasattr(whole.inputs, "nnz")
        size = whole.inputs if sparse else torch.empty(len(whole), whole.in_features, device="meta")
        return fits_full_batch(size, whole.num_labels)
    others = 0 if alone else whole.in_features
    values = len(whole) * others + sum(letters)
    terms = sum(min(_MOST_TERMS, count) for count in letters)

    def fit(columns: int) -> bool:
        return fits_full_batch(SimpleNamespace(shape=(len(whole), columns), nnz=values), whole.num_labels)

    # in a table each text is counted alone and once more with the others
    return fit(terms if alone else others + 2 * terms) or (fit(0) and fit(_prepared(config, whole)[1].in_features))


def _letters_beside(whole: Dataset) -> list[int]:
    """How many letters each column of texts of a table has."""
    if not isinstance(whole.inputs, TableRows):
        return []
    frame = whole.inputs.frame
    names = [name for name, kind in frame.dtypes.items() if kind.kind == "O" and kind != "category"]
    cells = (frame[name].dropna().map(str).tolist() for name in names)
    return [sum(map(len, texts)) for texts in cells if has_words(texts)]


def _prepared(config: RunConfig, data: Dataset) -> tuple[Preprocessor | TfIdf | None, Dataset]:
    """What makes numbers of the data, and these; what there is to warn of is told by training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortlistWarning)
        preprocessor = preprocessor_for(config, data)
        return preprocessor, data.preprocessed(preprocessor)


def _counts_words(config: RunConfig) -> bool:
    """Whether the model is linear on the words of texts."""
    return _TEXT_ENCODER in (config.backbone.name, _still(config))


def _still(config: RunConfig) -> str | None:
    """The encoder whose features a linear model takes as they are; None where there is none."""
    encoder = config.data.encoder
    return None if encoder is None or config.backbone.name != "identity" else encoder.name


def _vectors_of_texts(config: RunConfig, whole: Dataset) -> bool:
    return _still(config) is not None and whole.texts is not None and whole.kind == "features"


def _plain_steps(config: RunConfig, whole: Dataset, known: int) -> dict[str, Any] | None:
    """The optimizer of a linear model on words counted by tf-idf, also beside other columns, on sparse features or on
    a still network's vectors of texts; None for other models.

    Adam would let every rare word jump. Plain steps do not, but have to be large: rows of length 1 with few words make
    small gradients, and a loss that is a mean over the labels smaller ones still. Longer rows want smaller steps.
    """
    objective = config.objective.name
    if objective not in _MEAN_OVER_LABELS + _MEAN_OVER_ROWS:
        return None
    length: float | None = 1.0
    if not _counts_words(config):
        length = _squared_length(config, whole) if config.backbone.name == "identity" else None
    if length is None:
        return None
    share = whole.num_labels if objective in _MEAN_OVER_LABELS else 1
    lr, decay = _TEXTS_LR * share / length, length / (_TEXTS_C * known * share)
    return {"name": "sgd-nesterov", "lr": float(f"{lr:.3g}"), "weight_decay": float(f"{decay:.1e}")}


def _squared_length(config: RunConfig, whole: Dataset) -> float | None:
    """That of a row as the model will see it, on average; None where its columns are dense, or most of it is none of
    texts: steps as small as other columns want would teach no words."""
    sparse, table = hasattr(whole.inputs, "nnz"), isinstance(whole.inputs, TableRows)
    if not (sparse or table or _vectors_of_texts(config, whole)):
        return None
    some = whole.subset(torch.linspace(0, len(whole) - 1, min(len(whole), 1000)).long())
    preprocessor, some = _prepared(config, some)
    rows = some.inputs if hasattr(some.inputs, "nnz") else some.batch(torch.arange(len(some)))[0].float()
    length = float(rows.multiply(rows).sum()) / len(some) or 1.0
    texts = len(preprocessor.texts) if isinstance(preprocessor, Preprocessor) else 0
    return None if table and length > 2 * texts else length


def _check_meant(key: str, options: Sequence[str]) -> None:
    """Raise a ShortlistError where a key that is none of a config, and like none of the reader's options, is that of a
    section: lr for optimizer.lr."""
    if key in RunConfig.model_fields or key in options:
        return
    sections: dict[str, type[BaseModel]]
    sections = {"optimizer": OptimizerSettings, "schedule": ScheduleSettings, "stop": StopSettings, "data": DataConfig}
    known = {name: name for name in RunConfig.model_fields}
    known |= {name: f"{section}.{name}" for section, model in sections.items() for name in model.model_fields}
    of_reader = key not in known and nearest(key, options)  # which says so itself
    if close := [] if of_reader else difflib.get_close_matches(key, known, n=1):
        raise ShortlistError(f"{key}: there is no such key; did you mean {known[close[0]]!r}?")


def _holds_one_array(path: Path) -> bool:
    """Whether it is a .npy, or an .npz that scipy wrote."""
    if path.suffix.lower() == ".npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            return {"indptr.npy", "shape.npy"} <= set(file.namelist())
    return path.suffix.lower() == ".npy"


def _name(section: Any) -> Any:
    """The name in a section, which may stand alone; None where there is none."""
    return section.get("name") if isinstance(section, Mapping) else section
