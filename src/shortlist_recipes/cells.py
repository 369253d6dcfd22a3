"""The cells of a grid: a training run and what is measured of it, or any other function."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from torch import Tensor

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.runs.config import CONFIG, RunConfig
from shortlist.runs.prepare import prepare
from shortlist.runs.train import train_prepared
from shortlist.training.history import History
from shortlist.training.learner import Learner, score
from shortlist.training.loop import Progress
from shortlist_recipes.sources import parts_of

Key = str | int | float | bool
Numbers = Mapping[str, Any]  # floats, None where there is no number, and lists of them


@dataclass(frozen=True)
class Trained:
    """A trained model (the best validation epoch's weights) and the data it was trained on."""

    config: RunConfig
    learner: Learner
    parts: Mapping[str, Dataset]
    history: History
    watched: Any = None  # what ``watch`` made
    _scores: dict[str, Tensor] = field(default_factory=dict)

    def scores(self, part: str) -> Tensor:
        """The scores of a part's examples, computed once."""
        if part not in self._scores:
            self._scores[part] = score(self.learner, self.parts[part])
        return self._scores[part]


def train_model(
    config: RunConfig,
    folder: Path | None = None,
    parts: Mapping[str, Dataset] | None = None,
    watch: Callable[[Learner, Dataset], Progress] | None = None,
) -> Trained:
    """Train as the config says, in memory; or in a run directory, going on where it stopped.

    ``parts``: the data, where it is not as the config says but changed by the recipe. ``watch``: of model and
    training data makes what is told of every epoch.

    >>> data = {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 50}
    >>> trained = train_model(RunConfig.model_validate({"data": data, "epochs": 1}))
    >>> trained.scores("test").shape
    torch.Size([50, 100])
    """
    ready = prepare(config, parts=parts_of(config) if parts is None else parts)
    watched = None if watch is None else watch(ready.learner, ready.parts["train"])
    begun = folder is not None and (folder / CONFIG).exists()
    _, history = train_prepared(ready, folder, resume=begun, progress=watched)
    return Trained(ready.config, ready.learner, ready.parts, history, watched)


class Cell:
    """One point of the grid: what it is called, and what decides its numbers."""

    keys: Mapping[str, Key]

    def work(self) -> dict[str, Any]:
        """Everything that decides the numbers."""
        raise NotImplementedError

    def run(self, folder: Path | None) -> Numbers:
        """The numbers; ``folder`` is where long work can be resumed, None where it need not be."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.keys.items())

    @cached_property
    def fingerprint(self) -> str:
        """Of keys and work: results of another fingerprint are not this cell's."""
        content = {"keys": dict(self.keys), **self.work()}
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=_what_decides).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class TrainCell(Cell):
    """Train as a config says, and measure."""

    keys: Mapping[str, Key]
    config: RunConfig
    measure: Callable[[Trained], Numbers]

    def work(self) -> dict[str, Any]:
        return {"config": self.config, "measure": self.measure}

    def run(self, folder: Path | None) -> Numbers:
        return self.measure(train_model(self.config, folder))


@dataclass(frozen=True)
class FunctionCell(Cell):
    """Call a function with these options, which JSON can hold (configs and paths are fine too).

    >>> cell = FunctionCell({"k": 5}, dict, {"seconds": 0.1})
    >>> cell.title, cell.run(None)
    ('k=5', {'seconds': 0.1})
    >>> cell.fingerprint == FunctionCell({"k": 5}, dict, {"seconds": 0.2}).fingerprint
    False
    """

    keys: Mapping[str, Key]
    function: Callable[..., Numbers]
    options: Mapping[str, Any] = field(default_factory=dict)
    resumable: bool = False  # the function takes folder=: where to resume at pixels and paper scale, else None

    def work(self) -> dict[str, Any]:
        return {"function": self.function, "options": dict(self.options)}

    def run(self, folder: Path | None) -> Numbers:
        return self.function(**self.options, **({"folder": folder} if self.resumable else {}))


def _what_decides(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return str(value)
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    raise ShortlistError(f"what decides a cell must be plain values, configs, paths and named functions, got {value!r}")
