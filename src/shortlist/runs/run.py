"""A run directory. Every file in it is written whole or not at all, so that it can be read after any interruption.

config.yaml         the resolved config: written last, so that a directory with it is a run
format.json         the version of this format, and which shortlist wrote it; a run without it is of version 1
environment.json    versions, machine, command, and the config that training began with
preprocessing.json  of a run on a table or on texts, what was fitted on its training part to make numbers of them
network/            of a run on texts by a network of Hugging Face's, its config and tokenizer
facts.json          what prediction needs to know about the training data: labels, columns, shapes, counts
metrics.jsonl       one record per epoch
checkpoint.json     which epoch is the last and which the best; what it does not name does not count
checkpoints/        epoch-0003.safetensors (weights) of these two, epoch-0003.pt (optimizer) of the last; and
                    part-0004.pt in the middle of a long epoch
rules/              fitted set rules, JSON
predictions/        sets
tensorboard/, csv/  the records again, where the config has such loggers
.lock               who trains it now: see lock.py
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor

from shortlist import __version__
from shortlist.data import Dataset, Encoder, TextEncoder
from shortlist.data.encoder import read_encoder
from shortlist.data.preprocessing import Preprocessor, read_preprocessing
from shortlist.data.readers.table_shards import is_url
from shortlist.data.table_rows import TableRows
from shortlist.data.texts import Texts
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import MissingFileError, ShortlistError, errors_name
from shortlist.files import PathLike, is_draft, parse_json, read_json, write_json, write_text
from shortlist.named import Named
from shortlist.options import check_value
from shortlist.runs.config import CONFIG, PARTS, RunConfig, Source, parse_config
from shortlist.runs.environment import environment
from shortlist.runs.inputs import Inputs
from shortlist.runs.lock import LOCK
from shortlist.runs.predictor import Predictor
from shortlist.runs.saved_epochs import SavedEpochs
from shortlist.runs.setup import build_learner, prepared_parts, read_parts
from shortlist.sets import SetRule
from shortlist.sets.named import file_name
from shortlist.sets.rule_files import load_rules
from shortlist.tasks import Task, kind_of_facts, task_of
from shortlist.text import command
from shortlist.training.learner import Learner

FORMAT = 1  # what this program writes, and the newest that it reads
ENVIRONMENT, FACTS, FORMAT_FILE = "environment.json", "facts.json", "format.json"
PREPROCESSING, NETWORK = "preprocessing.json", "network"
# what a resumed run may do otherwise than it began: none of it changes what the epochs so far mean
MAY_CHANGE = (
    "epochs", "stop.patience", "rules", "crops", "accelerator", "devices", "workers", "checkpoint_minutes", "loggers",
)  # fmt: skip

_COUNT = Annotated[int, Field(ge=0, lt=2**63)]
_FACTS: dict[str, Any] = {  # what prediction relies on; None: files of earlier versions may have none
    "in_shape": list[_COUNT], "single": bool, "vocabulary": list[str], "num_examples": _COUNT,
    "class_counts": list[_COUNT], "columns": list[str] | None, "columns_left_out": list[str] | None,
    "images": dict[str, Any] | None, "texts": dict[str, Any] | None, "broken_images": dict[str, str] | None,
}  # fmt: skip


class Run(SavedEpochs):
    """A run that exists; `Run.create` makes a new one. Config, facts, data and model are read on first use, and
    once.

    ``allow_import``: the modules whose code may run, where the config names a ``module:thing``.

    >>> import tempfile
    >>> config = parse_config("data: {train: {reader: ambiguous-numbers}}")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Run.create(Path(folder) / "first", config, facts={"num_labels": 100})
    ...     Run(run.path).config == config, run.records(), run.state()
    (True, [], None)
    """

    def __init__(self, path: PathLike, allow_import: Sequence[str] = ()) -> None:
        self.path = Path(path)
        self.allow_import = tuple(allow_import)
        self._learner: Learner | None = None
        self._predictor: Predictor | None = None
        self._parts: Mapping[str, Dataset] = {}
        if not (self.path / CONFIG).is_file():
            why = f"it has no {CONFIG}" if self.path.exists() else "there is no such folder"
            raise ShortlistError(f"{self.path} is not a run: {why}")
        _check_format(self.path)

    @classmethod
    def create(
        cls,
        path: PathLike,
        config: RunConfig,
        facts: Mapping[str, Any],
        preprocessor: Preprocessor | TfIdf | None = None,
        network: Mapping[str, str] | None = None,
    ) -> "Run":
        """A new run in a directory that is new or empty. ``network``: what it keeps of a network of Hugging Face's, by
        file name."""
        cls.check_new(path)
        folder = Path(path)
        for part in ("checkpoints", "rules", "predictions"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        write_json(folder / ENVIRONMENT, {**environment(), "config": config.model_dump(mode="json")})
        write_json(folder / FACTS, {**facts, **({"preprocessed": True} if preprocessor else {})})
        if preprocessor is not None:
            write_json(folder / PREPROCESSING, preprocessor.to_json())
        for name, content in (network or {}).items():
            (folder / NETWORK).mkdir(exist_ok=True)
            write_text(folder / NETWORK / name, content)
        write_json(folder / FORMAT_FILE, {"format": FORMAT, "shortlist": __version__})
        write_text(folder / CONFIG, config.to_yaml())
        return cls(folder)

    def discard(self) -> None:
        """Remove a run that has saved nothing of its training yet; one that has is left alone."""
        if not self.checkpoint and not self._part_file(1).exists():
            shutil.rmtree(self.path, ignore_errors=True)

    @staticmethod
    def check_new(path: PathLike) -> None:
        """Raise a ValueError where a new run could not be made here."""
        folder = Path(path)
        if (folder / CONFIG).exists():
            raise ShortlistError(
                f"{folder} is a run already: continue it with {command('shortlist', 'train', '--resume', folder)}, or "
                f"choose another --out"
            )
        if folder.exists() and (not folder.is_dir() or any(not _is_leftover(file) for file in folder.iterdir())):
            raise ShortlistError(f"{folder} exists and is not an empty directory: choose another --out")
        if not (above := next(one for one in folder.absolute().parents if one.exists())).is_dir():
            raise ShortlistError(f"{folder} cannot be made: {above} is a file; choose another --out")

    @cached_property
    def config(self) -> RunConfig:
        file = self.path / CONFIG
        return parse_config(file.read_bytes(), where=str(file))

    @cached_property
    def facts(self) -> dict[str, Any]:
        file = self.path / FACTS
        found = read_json(file)
        check_value(str(file), found, dict[str, Any])
        for key, kind in _FACTS.items():
            check_value(f"{file}: {key}", found.get(key), kind)
        return found

    @cached_property
    def preprocessor(self) -> Preprocessor | TfIdf | None:
        """What makes numbers of a table's columns, or counts the words of texts; None where nothing does."""
        file = self.path / PREPROCESSING
        if not file.exists():
            if self.facts.get("preprocessed"):
                raise MissingFileError(f"there is no file {file}: is the run complete?")
            return None
        with errors_name(file):
            return read_preprocessing(parse_json(file.read_bytes()))

    @cached_property
    def inputs(self) -> Inputs:
        """What the run takes, and what it does to it."""
        facts = self.facts
        columns, encoder = facts.get("columns"), facts.get("encoder")
        return Inputs(
            tuple(facts["in_shape"]),
            tuple(facts["vocabulary"]),
            None if columns is None else tuple(columns),
            self.preprocessor,
            facts["images"],
            self._encoder(encoder),
            self.config.data.train.options,
            tuple(facts.get("columns_left_out", ())),
            facts.get("texts"),
        )

    def _encoder(self, facts: Any) -> Encoder | TextEncoder | None:
        """What made the features of the training data; of texts with the tokenizer that this run keeps."""
        found = None if facts is None else read_encoder(facts)
        kept = self.path / NETWORK
        return replace(found, folder=str(kept)) if isinstance(found, TextEncoder) and kept.is_dir() else found

    @property
    def broken_images(self) -> Mapping[str, str]:
        """The images that training left out, path -> reason, where it saw images as they are."""
        return self.facts.get("broken_images", {})

    @cached_property
    def task(self) -> Task | None:
        """What is done with the inputs of a vertical room; None where the run answers with sets of labels."""
        kind = kind_of_facts(self.facts)
        return None if kind is None else task_of(kind)

    def check_predicts(self) -> None:
        """Raise a ShortlistError where the run does not answer with sets of labels."""
        if self.task is not None:
            kind = kind_of_facts(self.facts)
            raise ShortlistError(f"{self.path} is a run on {kind}: this is for runs on features, tables or images")

    def check_resumable(self) -> None:
        """Raise a ShortlistError where config.yaml is no longer what training began with, but for what may change."""
        began = read_json(self.path / ENVIRONMENT).get("config", {})
        now = self.config.model_dump(mode="json")
        changed = [key for key in _leaves(began) | _leaves(now) if _leaf(began, key) != _leaf(now, key)]
        refused = sorted(key for key in changed if key not in MAY_CHANGE and key.split(".")[0] not in MAY_CHANGE)
        if refused:
            said = [f"{key} was {_leaf(began, key)!r} and is {_leaf(now, key)!r}" for key in refused]
            raise ShortlistError(
                f"{self.path / CONFIG} was edited since training began: {'; '.join(said)}. A run is resumed as it "
                f"began: only {', '.join(MAY_CHANGE)} may change. Change it back, or train a new run: "
                + command("shortlist", "train", self.path / CONFIG, "--out", f"{self.path}-new")
            )

    def keep(self, parts: Mapping[str, Dataset]) -> None:
        """What `parts` gives, where it is read already."""
        self._parts = parts

    def parts(self) -> dict[str, Dataset]:
        """The data of the config, with the columns that the run was trained with."""
        if self._parts:
            return dict(self._parts)
        try:
            parts = read_parts(
                self.config,
                columns=self.facts.get("columns"),
                allow_import=self.allow_import,
                broken=dict(self.broken_images),
            )
        except ShortlistError as error:
            if hint := self._where_data_was():
                raise MissingFileError(f"{error}{hint}") from error
            raise
        self.keep(prepared_parts(self.config, parts, self.preprocessed))
        return dict(self._parts)

    def _where_data_was(self) -> str:
        """What to do where the data is not, or no longer, where the config says."""
        sources = {part: getattr(self.config.data, part) for part in PARTS}
        options = {part: source.options for part, source in sources.items() if isinstance(source, Source)}
        for part, key in product(options, ("path", "root")):
            path = options[part].get(key)
            if isinstance(path, str) and not is_url(path) and not os.path.exists(path):
                back = "" if os.path.isabs(path) else "give the command in the folder where the run was trained, or "
                return f"; {back}say in {self.path / CONFIG}, data.{part}.{key}, where it is now"
        return ""

    def preprocessed(self, dataset: Dataset) -> Dataset:
        """With a table's columns, or texts, made numbers as in training; other data as it is."""
        counted = isinstance(dataset.inputs, Texts) and bool(self.facts["in_shape"]) and self.inputs.encoder is None
        if (counted or isinstance(dataset.inputs, TableRows)) and self.preprocessor is None:
            raise MissingFileError(f"there is no file {self.path / PREPROCESSING}: is the run complete?")
        return dataset.preprocessed(self.preprocessor)

    # ---- the model

    def learner(self, train_set: Dataset | None = None) -> Learner:
        """The best model, ready to predict. On first use it is built and its weights are read: with ``train_set``
        (the run's own training data) an objective also has what it keeps of that data, to explain its answers."""
        if self._learner is None:
            learner = build_learner(self._as_kept(), self.facts, self.allow_import, train_set)
            try:
                learner.load_state_dict(self.weights("best"))
            except RuntimeError as error:
                raise ShortlistError(
                    f"the weights of {self.path} do not fit the model of its {CONFIG}: was it edited? {error}"
                ) from None
            self._learner = learner.eval()
        return self._learner

    def _as_kept(self) -> RunConfig:
        """The config with a backbone of Hugging Face's as this run keeps it, without the weights it began with."""
        backbone, kept = self.config.backbone, self.path / NETWORK
        if not backbone.name.startswith("hf:") or not kept.is_dir():
            return self.config
        options = {**backbone.options, "pretrained": False, "tokenizer": None}
        return self.config.model_copy(update={"backbone": Named.of(f"hf:{kept}", **options)})

    def predictor(self) -> Predictor:
        """The best model with the fitted rules and all that prediction does to its inputs. It is made once; the rules
        are read each time."""
        if self._predictor is None:
            rules = self.config.rules
            self._predictor = Predictor(
                self.learner(),
                self.facts["vocabulary"],
                link=self.learner().objective.link,
                single=self.facts["single"],
                inputs=self.inputs,
                crops=self.config.crops,
                first_rule=file_name(rules[0], self.allow_import) if rules else None,
                allow_import=self.allow_import,
            )
        self._predictor.rules = self.rules()
        return self._predictor

    def scores(self, dataset: Dataset) -> Tensor:
        """The best model's scores on a data set, float32 (N, L)."""
        predictor = self._predictor or self.predictor()  # the rules of one that is made already need no reading
        return predictor.scores(self.preprocessed(dataset))

    def release(self) -> None:
        """Let data and model go from memory: for whoever looks at many runs in turn."""
        self._learner, self._predictor, self._parts = None, None, {}

    # ---- set rules

    def rules(self) -> dict[str, SetRule]:
        return load_rules(self.path / "rules", self.allow_import)


def load_run(path: PathLike, *, allow_import: Sequence[str] = ()) -> Predictor:
    """The trained model of a run directory, ready to predict: see `Predictor`. Nothing in the directory is run as code;
    where its config names a ``module:thing``, ``allow_import`` lists the modules whose code may run.

    >>> import tempfile, torch, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 20}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sl.runs.calibrate(sl.runs.train(config, f"{folder}/first")["run"])["written"]
    ...     predictor = sl.load_run(f"{folder}/first")
    '.../first/rules'
    >>> list(predictor.rules), predictor.scores(torch.zeros(2, 128)).shape
    (['average-k-5', 'conformal-0.1', 'top-k-5'], torch.Size([2, 100]))
    """
    return Run(path, allow_import).predictor()


def open_run(run: Run | PathLike, allow_import: Sequence[str] = ()) -> Run:
    """The run at a path; one that is open already stays as it is."""
    if not isinstance(run, Run):
        return Run(run, allow_import)
    run.allow_import = tuple(dict.fromkeys([*run.allow_import, *allow_import]))
    return run


def _check_format(path: Path) -> None:
    """Raise a ShortlistError where a run is of a format that this program does not read."""
    file = path / FORMAT_FILE
    if not file.exists():
        return  # the first format had no such file
    content = read_json(file)
    found = content.get("format") if isinstance(content, dict) else None
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise ShortlistError(
            f"{file}: a format is a whole number from 1, got {found!r}; if the run is otherwise whole, remove the file "
            f"and it counts as format 1, else train it again: "
            + command("shortlist", "train", path / CONFIG, "--out", f"{path}-again")
        )
    if found > FORMAT:
        writer = content.get("shortlist", "a newer version")
        raise ShortlistError(
            f"{path} is a run of format {found}, written by shortlist {writer}; this is shortlist {__version__}, which "
            f"reads formats up to {FORMAT}: pip install --upgrade shortlist"
        )


def _leaves(content: Mapping[str, Any], above: str = "") -> set[str]:
    """The dotted keys of everything in nested mappings that is no mapping itself."""
    found: set[str] = set()
    for key, value in content.items():
        found |= _leaves(value, f"{above}{key}.") if isinstance(value, Mapping) and value else {f"{above}{key}"}
    return found


def _leaf(content: Any, key: str) -> Any:
    for part in key.split("."):
        content = content.get(part) if isinstance(content, Mapping) else None
    return content


def _is_leftover(path: Path) -> bool:
    """What an interrupted `Run.create` can leave behind."""
    if is_draft(path):
        return True
    if path.is_dir() and path.name == NETWORK:
        return all(file.name in ("config.json", "tokenizer.json") or is_draft(file) for file in path.iterdir())
    if path.is_dir():
        return path.name in ("checkpoints", "rules", "predictions") and not any(path.iterdir())
    return path.name in (ENVIRONMENT, FACTS, PREPROCESSING, FORMAT_FILE, LOCK)
