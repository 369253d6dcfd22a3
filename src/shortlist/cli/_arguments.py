"""Arguments and options that several commands share."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer


def option(metavar: str, told: str, *names: str) -> Any:
    """An option that takes a value; it is called after its parameter where no names are given."""
    return typer.Option(*names, metavar=metavar, help=told)


Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Changes, such as optimizer.lr=0.01.", show_default=False),
]
ReaderOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Options of the reader, such as labels=y.npy.", show_default=False),
]
AllowImport = Annotated[
    list[str] | None,
    option("MODULE", "Code of this module may run (for module:name in a config).", "--allow-import"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
RunPath = Annotated[Path | None, typer.Argument(metavar="RUN", help="The run directory.", show_default=False)]
DataName = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A part of the run (train, validation, calibration, test), a data file or folder, or a YAML file with "
        "a reader and its options.",
        show_default=False,
    ),
]
ImagesFolder = Annotated[Path | None, option("FOLDER", "Where the images are that a table lists.", "--images")]
LabelColumns = Annotated[
    list[str] | None,
    option("COLUMN", "The columns of labels, with commas between; guessed if not given.", "--labels"),
]
Rules = Annotated[
    Path | None,
    option("DIR", "With --scores: the rules that calibrate wrote (or one file of them)."),
]


@dataclass(frozen=True)
class Scores:
    """Another model instead of a run, and what rules may want to know of each row."""

    scores: Annotated[
        Path | None,
        option("FILE", "Scores of any other model instead of a run: raw, (rows, labels); npy, npz, parquet."),
    ] = None
    link: Annotated[
        str | None,
        option(
            "NAME",
            "With --scores: softmax, sigmoid or none; softmax for class indices and sigmoid for a label matrix if not "
            "given.",
        ),
    ] = None
    groups: Annotated[
        Path | None,
        option("FILE", "The group of each row, for rules by_group: a column in npy, npz or parquet."),
    ] = None
    weights: Annotated[
        Path | None,
        option("FILE", "The weight of each row, for weighted rules: a column in npy, npz or parquet."),
    ] = None


@dataclass(frozen=True)
class LabelledScores(Scores):
    labels: Annotated[
        Path | None,
        option("FILE", "The labels that go with --scores: class indices or a label matrix of 1, 0, -1."),
    ] = None
    truth: Annotated[
        Path | None,
        option(
            "FILE",
            "With --scores: all right labels (a matrix of 0 and 1), or the votes for every label (other numbers).",
        ),
    ] = None


@dataclass(frozen=True)
class Engine:
    engine: Annotated[str | None, option("ray", "Let the workers of a Ray cluster do it.", "--engine")] = None
    address: Annotated[
        str | None,
        option("HOST:PORT", "With --engine: the cluster; one on this machine if not given."),
    ] = None
    workers: Annotated[
        int | None,
        option("N", "With --engine: how many hold the model; one for each CPU if not given."),
    ] = None
    gpus_per_worker: Annotated[float, option("N", "With --engine: graphics cards of each worker.")] = 0

    def made(self) -> Any:
        """The engine that the options ask for, which shows how far it is; None without --engine."""
        from shortlist import runs
        from shortlist.cli._progress import show_examples
        from shortlist.errors import ShortlistError

        if self.engine is None:
            if self.address is not None or self.workers is not None or self.gpus_per_worker:
                raise ShortlistError("--address, --workers and --gpus-per-worker go with --engine ray")
            return None
        if self.engine != "ray":
            raise ShortlistError(f"--engine must be ray, or not be given; got {self.engine!r}")
        return runs.Ray(self.address, self.workers, self.gpus_per_worker, show_examples)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with an option for each field of those of its parameters that are dataclasses."""
    own = inspect.signature(command)
    annotations = {name: one.annotation for name, one in own.parameters.items()}
    kinds: dict[str, Any] = {name: kind for name, kind in annotations.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        parts = fields(kinds[name]) if name in kinds else ()
        options = [parameter.replace(name=one.name, default=one.default, annotation=one.type) for one in parts]
        parameters += options or [parameter]

    @wraps(command)
    def spread(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in kinds.items()}
        command(**given, **made)

    spread.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread


def split_overrides(data: str | None, overrides: list[str] | None) -> tuple[str | None, list[str]]:
    """A key=value that took DATA's place goes where it belongs."""
    rest = list(overrides or [])
    if data is not None and "=" in data and not Path(data).exists():
        return None, [data, *rest]
    return data, rest
