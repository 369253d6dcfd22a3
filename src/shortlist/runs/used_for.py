"""What the data that judges a run was used for before."""

from shortlist.reports.advice import Use
from shortlist.runs.run import Run


def used_for(run: Run, part: str | None) -> list[Use]:
    """The uses that a part of the run's data had in training; calibration is known to each rule (``fitted_on``)."""
    if part == "train":
        return ["training"]
    return ["choosing the epoch"] if part == "validation" and run.checkpoint.get("best") is not None else []
