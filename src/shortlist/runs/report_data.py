"""What `shortlist report` shows: runs scored on a part of their data, or scores from files."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.data.column_use import listed
from shortlist.data.images import left_out_in_words
from shortlist.errors import ShortlistError, errors_name
from shortlist.files import PathLike, read_json
from shortlist.labels import LabelSets
from shortlist.reports import ReportData, RunResult, from_scores
from shortlist.reports.similarity import explain_run
from shortlist.runs.backbone_choice import TRIED, in_words
from shortlist.runs.config import CONFIG
from shortlist.runs.run import ENVIRONMENT, Run
from shortlist.runs.scores import read_labels, read_rows, read_scores, read_truth
from shortlist.runs.used_for import used_for
from shortlist.sets.named import fit_rules, usual_rules
from shortlist.sets.rule_files import given_rules
from shortlist.training import scored
from shortlist.training.encoders import reading_in_words
from shortlist.training.scored import pick

FEWEST = 100  # examples that a report looks at, however many labels there are


def from_runs(
    runs: Sequence[Run],
    part: str | None = None,
    title: str | None = None,
    explain: bool = False,
    groups: PathLike | None = None,
    weights: PathLike | None = None,
) -> ReportData:
    """Runs side by side on the same part of the data; those that differ only in their seed get one name."""
    twice = [path for path, times in Counter(run.path.resolve() for run in runs).items() if times > 1]
    if twice:
        raise ShortlistError(f"{twice[0]} is given more than once")
    results, first = [], None
    for run, name, parts, chosen in each_shown(runs, part):
        rows = read_rows(groups, weights, len(parts[chosen]))
        at = shown_rows(parts[chosen])
        shown = {part: _some_of(data) for part, data in parts.items()}
        rows = rows if at is None else {key: pick(value, at) for key, value in rows.items()}
        results.append(_result(run, name, shown, chosen, explain, rows, parts["train"]))
        if first is None:
            first, heading = shown[chosen], heading_of(run, parts)
            about = described(run, parts, chosen)
            if at is not None:
                about["Shown here"] += (
                    f": {len(at):,} of {len(parts[chosen]):,} examples, drawn at random, because the scores of all "
                    f"would take {4e-9 * len(parts[chosen]) * first.num_labels:.1f} GB"
                )
    if first is None:
        raise ShortlistError("give at least one run directory")
    return ReportData(
        title=title or f"{heading}: {', '.join(dict.fromkeys(result.name for result in results))}",
        runs=results,
        vocabulary=first.vocabulary,
        groups=None if first.groups is None else first.groups.numpy(),
        group_names=first.group_names,
        truth=first.truth,
        images=None if first.images is None else first.images.thumbnail,
        texts=None if first.texts is None else first.texts.source,
        ids=first.ids,
        about=about,
    )


def each_shown(runs: Sequence[Run], part: str | None) -> Iterator[tuple[Run, str, dict[str, Dataset], str]]:
    """Each run, what it is called, the parts of its data and which of them is shown."""
    for run, name in zip(runs, names_of(runs), strict=True):
        parts = run.parts()
        chosen = part or ("test" if "test" in parts else "validation")
        if chosen not in parts:
            raise ShortlistError(f"{run.path} has no part {chosen!r}; it has {', '.join(parts)}: name one with --part")
        yield run, name, parts, chosen
        run.release()


def shown_rows(data: Dataset) -> Tensor | None:
    """Which examples a report looks at, the same of every run; None where all of their scores can be held."""
    most = max(FEWEST, scored.KEPT_BYTES // (4 * data.num_labels))
    if len(data) <= most:
        return None
    return torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:most].sort().values


def _some_of(data: Dataset) -> Dataset:
    rows = shown_rows(data)
    return data if rows is None else data.subset(rows)


def from_files(
    scores: PathLike,
    labels: PathLike,
    link: str | None,
    rules: PathLike | None,
    calibration: PathLike | None,
    names: PathLike | None,
    k: float | None,
    title: str | None,
    allow_import: Sequence[str] = (),
    groups: PathLike | None = None,
    weights: PathLike | None = None,
    truth: PathLike | None = None,
) -> ReportData:
    """The scores of any model."""
    values = read_scores(scores)
    known = None if truth is None else read_truth(truth, values)
    if known is not None and not isinstance(known, LabelSets):
        raise ShortlistError(
            f"{truth}: a report shows all right labels, a matrix of 0 and 1; shortlist evaluate --truth judges by votes"
        )
    with errors_name("" if names is None else names):
        label_names = None if names is None else Path(names).read_text("utf-8").splitlines()
    return from_scores(
        values,
        read_labels(labels, values),
        label_names,
        link,
        k=k,
        name=Path(scores).stem,
        title=title or f"Report on {Path(scores).name}",
        rules=None if rules is None else given_rules(rules, allow_import),
        calibration=None if calibration is None else read_scores(calibration),
        rows=read_rows(groups, weights, len(values)),
        truth=known,
        commands=[shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])],
    )


def _result(
    run: Run,
    name: str,
    parts: dict[str, Dataset],
    chosen: str,
    explain: bool,
    rows: dict[str, Any],
    train_set: Dataset,
) -> RunResult:
    config, explained = run.config, explain or run.config.objective.name == "imcl"
    learner = run.learner(train_set if explained else None)
    link = learner.objective.link
    data = parts[chosen]
    held_out = next((held for held in ("calibration", "validation") if held in parts and held != chosen), None)
    calibration = None if held_out is None else run.scores(parts[held_out])
    scores = run.scores(data)
    rules = run.rules()
    left_out: dict[str, str] = {}
    if not rules:  # not calibrated yet: as `shortlist calibrate` would
        fit_scores, fit_target = (scores, data.target) if held_out is None else (calibration, parts[held_out].target)
        wanted = list(config.rules)
        wanted = wanted or usual_rules(fit_target, data.num_labels, config.objective.options.get("k"), link)
        on = held_out or chosen
        rules = fit_rules(wanted, fit_scores, fit_target, link, on, run.allow_import, left_out=left_out)
    records = run.records()
    return RunResult(
        name=name,
        objective=config.objective.name,
        scores=scores,  # type: ignore[arg-type]  # tensors are turned into arrays
        target=data.target,  # type: ignore[arg-type]
        link=link,
        rules=rules,
        history=records,
        config=config.model_dump(mode="json"),
        commands=commands_of(run),
        train_counts=run.facts["class_counts"],
        seconds=sum(record["seconds"] for record in records),
        seed=config.seed,
        calibration=calibration,  # type: ignore[arg-type]
        why=explain_run(learner, train_set, data, chosen) if explained else None,
        probabilities=not learner.objective.only_ranks,
        on=chosen,
        used_for=used_for(run, chosen),
        left_out=left_out,
        rows=rows,
    )


def commands_of(run: Run) -> list[str]:
    """The command that was given, and commands that make the run again from what it has written down."""
    again = run.path.with_name(f"{run.path.name}-again")
    steps = [["train", str(run.path / CONFIG), "--out", str(again)], ["calibrate", str(again)], ["report", str(again)]]
    if run.task is not None:  # nothing to calibrate
        del steps[1]
    return [
        "# as it was given",
        shlex.join(read_json(run.path / ENVIRONMENT)["command"]),
        "# again, from the complete config",
        *(shlex.join(["shortlist", *step]) for step in steps),
    ]


def names_of(runs: Sequence[Run]) -> list[str]:
    """One name for all runs that differ only in their seed: the objective's, or the first directory's where another
    config has the same objective."""
    keys = [json.dumps(run.config.model_dump(mode="json", exclude={"seed"}), sort_keys=True) for run in runs]
    first = {key: run for key, run in reversed(list(zip(keys, runs, strict=True)))}
    objectives = Counter(run.config.objective.name for run in first.values())
    names = {}
    for key, run in first.items():
        objective = run.config.objective.name
        names[key] = objective if objectives[objective] == 1 else f"{objective} ({run.path.name})"
    return [names[key] for key in keys]


def heading_of(run: Run, parts: dict[str, Dataset]) -> str:
    """The data's name; the run's where every part has a file, and so a name, of its own."""
    return parts["train"].name if len({data.name for data in parts.values()}) == 1 else run.path.resolve().name


def described(run: Run, parts: dict[str, Dataset], chosen: str) -> dict[str, str]:
    about = {"Data": _data(parts), "Shown here": chosen}
    skipped = {name: why for data in parts.values() for name, why in data.skipped.items()}
    if skipped:
        about["Left out"] = f"{left_out_in_words(list(skipped.values()))}: {listed(list(skipped), 3)}"
    chosen_by = run.facts.get(TRIED)
    about["Backbone"] = in_words(run.config.backbone, chosen_by) if chosen_by else run.config.backbone.name
    if run.facts.get("texts"):
        about["Texts"] = reading_in_words(run.facts["texts"])[0]
    if run.facts["corruptions"]:
        about["Training labels changed by"] = ", ".join(str(done.get("name")) for done in run.facts["corruptions"])
    return about


def _data(parts: dict[str, Dataset]) -> str:
    """The name once where all parts have the same, or each part's own; and how many examples."""
    if len({data.name for data in parts.values()}) > 1:
        return ", ".join(f"{part}: {data.name} ({len(data):,})" for part, data in parts.items())
    sizes = ", ".join(f"{len(data):,} {part}" for part, data in parts.items())
    return f"{parts['train'].name} ({sizes})"
