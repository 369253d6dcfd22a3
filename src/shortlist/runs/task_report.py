"""Reports on runs of a vertical room's task, which brings the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist.errors import ShortlistError
from shortlist.runs.report_data import commands_of, described, heading_of, names_of
from shortlist.runs.run import Run
from shortlist.tasks import ScoredRun, Task, kind_of_facts


def only_task(runs: Sequence[Run]) -> Task | None:
    """The task of all runs, None where they answer with sets of labels; runs of two tasks do not go together."""
    kinds = {kind_of_facts(run.facts) for run in runs}
    if len(kinds) > 1:
        special = " and ".join(sorted(filter(None, kinds)))
        raise ShortlistError(f"runs on {special} and runs on other data cannot be shown side by side")
    return runs[0].task if runs else None


def write_task_report(
    task: Task, runs: Sequence[Run], part: str | None, title: str | None, folder: Path
) -> dict[str, Any]:
    """Runs side by side on the same examples; those that differ only in their seed get one name."""
    shown, first, about = [], None, {}
    for run, name in zip(runs, names_of(runs), strict=True):
        parts = run.parts()
        chosen = part or ("test" if "test" in parts else "validation")
        if chosen not in parts:
            raise ShortlistError(f"{run.path} has no part {chosen!r}; it has {', '.join(parts)}: name one with --part")
        if first is None:
            first, about = parts[chosen], described(run, parts, chosen)
            heading = heading_of(run, parts)
        elif parts[chosen].ids != first.ids:
            raise ShortlistError(f"{run.path}: its {chosen} images are not those of {runs[0].path}")
        content = run.config.model_dump(mode="json")
        scores = run.scores(parts[chosen])
        run.release()
        shown.append(ScoredRun(name, scores, run.records(), content, commands_of(run), run.config.seed))
    if first is None:
        raise ShortlistError("give at least one run directory")
    names = list(dict.fromkeys(run.name for run in shown))
    page = task.write_report(title or f"{heading}: {', '.join(names)}", shown, first, folder, about)
    return {"written": str(page), "runs": [run.name for run in shown], "examples": len(first)}
