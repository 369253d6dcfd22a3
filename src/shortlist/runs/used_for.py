"""What the data that judges a run was used for before."""

from pathlib import Path

from shortlist.files import PathLike
from shortlist.reports.advice import Use
from shortlist.runs.config import PARTS, Source
from shortlist.runs.run import Run


def used_for(run: Run, part: str | None) -> list[Use]:
    """The uses that a part of the run's data had in training; calibration is known to each rule (``fitted_on``)."""
    if part == "train":
        return ["training"]
    return ["choosing the epoch"] if part == "validation" and run.checkpoint.get("best") is not None else []


def file_used_for(run: Run, path: PathLike) -> list[Use]:
    """The uses of a file or folder that a part of the run's data was read from, the first of them if there are
    several."""
    for part in PARTS:
        source = getattr(run.config.data, part)
        if isinstance(source, Source) and _is_at(source, Path(path)):
            return ["calibration"] if part == "calibration" else used_for(run, part)
    return []


def _is_at(source: Source, place: Path) -> bool:
    path = source.options.get("path")
    return isinstance(path, str) and Path(path).exists() and place.samefile(path)
