"""``shortlist data``: check files before training, describe them, and run a backbone over them once."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.cli._arguments import AllowImport, ImagesFolder, Json, LabelColumns, Quiet, ReaderOptions, option
from shortlist.cli._output import print_json, print_line, print_table, say, tell_skipped
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.text import command

app = typer.Typer(no_args_is_help=True)
Reader = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A table, a folder of images or a table of images or texts, as for fit; a reader's name; or a YAML file "
        "(a reader and its options, or a config).",
    ),
]


@app.command()
def check(
    reader: Reader,
    options: ReaderOptions = None,
    images: ImagesFolder = None,
    labels: LabelColumns = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """List everything that is wrong with the files: missing, truncated and duplicate images, labels outside the
    vocabulary, ... Exits with 1 if there is anything. Of a path it also says what fit makes of it; what stops fit, but
    may not stop train, is a warning."""
    from shortlist.data.label_concerns import rare_labels
    from shortlist.data.readers.findings import DataError, grouped
    from shortlist.data.readers.registry import check as check_files
    from shortlist.data.readers.registry import read
    from shortlist.runs.setup import check_source

    allowed, plan = allow_import or (), None
    blanks: Sequence[str] = ()
    told: list[str] = []  # what the reader warns of, and what stops fit or cannot be learnt
    try:
        source, blanks, plan = _source(reader, options, labels, images)
        checked = check_source("SOURCE", source, allowed)
        with _told(told):
            dataset, found = check_files(source.reader, allow_import=allowed, **checked)
            if dataset is None:  # what else there is to say, where reading alone finds nothing wrong: of broken images
                with suppress(ShortlistError):
                    dataset = read(source.reader, allow_import=allowed, **checked)
    except DataError as error:  # the table could not even be looked at
        dataset, found = None, error.problems
    told = list(dict.fromkeys(told))
    planned = None if plan is None else _planned(plan, dataset)
    if dataset is not None and planned is not None:
        rare = [] if dataset.columns is None else rare_labels(dataset, dataset.label_counts())
        told += [f"shortlist fit stops: {planned['refused']}"] if planned["refused"] else rare
    if as_json:
        fields = ("file", "row", "unit", "message")
        use = None if dataset is None or dataset.columns is None else dataset.columns.as_json()
        warned = told if dataset is None else [*_prepared(dataset, blanks)[1], *told]
        listed = [{name: getattr(problem, name) for name in fields} for problem in found]
        notes = [] if dataset is None else list(dataset.notes)
        counts = None if dataset is None else dataset.describe()["label_counts"]
        content = {"problems": listed, "columns": use, "labels": counts, "notes": notes, "warnings": warned}
        print_json({**content, **({} if planned is None else {"fit": planned})})
    else:
        _tell_notes(plan)
        for line in grouped(found):
            print_line(line)
        concerns = _show_columns(dataset, blanks, labels=True) + len(told)
        for message in told:
            say(f"warning: {message}")
        if planned is not None and planned["config"]:
            _tell_plan(planned)
        known = f"{len(found)} problem{'s' * (len(found) != 1)}" if found else "no problems"
        say(known + (f", {concerns} warning{'s' * (concerns > 1)}" if concerns else ""))
    if found:
        raise typer.Exit(1)


@app.command()
def describe(
    reader: Reader,
    options: ReaderOptions = None,
    images: ImagesFolder = None,
    labels: LabelColumns = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Count what is in the data: examples, labels, how many are unknown, how many apply at once. Of a path it also says
    what fit makes of it."""
    from shortlist.runs.setup import read_source

    source, blanks, plan = _source(reader, options, labels, images)
    dataset = read_source(source, allow_import=allow_import or ())
    described = dataset.describe()
    planned = None if plan is None else _planned(plan, dataset)
    if as_json:
        fit = {} if planned is None else {"fit": planned}
        print_json(described | {"warnings": _prepared(dataset, blanks)[1]} | fit)
        return
    _tell_notes(plan)
    described.pop("columns", None)
    described.pop("notes", None)
    counts = described.pop("label_counts")
    print_table(described.pop("name"), ["", ""], list(described.items()))
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    shown = by_count if len(by_count) <= 10 else [*by_count[:5], ("...", ""), *by_count[-5:]]
    print_table("\nmost and least frequent labels", ["label", "examples"], shown)
    if dataset.columns is not None or dataset.notes:
        print_line("")
    _show_columns(dataset, blanks, print_line)
    if planned is not None:
        _tell_plan(planned)


@app.command()
def features(
    reader: Reader,
    options: ReaderOptions = None,
    images: ImagesFolder = None,
    labels: LabelColumns = None,
    backbone: Annotated[str, option("NAME[:KEY=VALUE,...]", "The backbone to run.")] = "efficientnet-lite0",
    out: Annotated[Path, option("FILE", "An .npz for the features reader.", "--out", "-o")] = Path("features.npz"),
    cache: Annotated[Path, option("DIR", "Where features are kept, found again by content.")] = Path(".features"),
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a backbone over the data once, and write its features with the labels to a file for the features reader.

    Images that cannot be decoded are left out and listed at the end, and the exit code is then 3.
    """
    from shortlist.data.write_features import write_features
    from shortlist.runs.results import skipped_images
    from shortlist.runs.setup import read_source
    from shortlist.runs.yaml_text import parse_named
    from shortlist.training.encoders import encode

    if out.suffix != ".npz":
        raise ShortlistError(f"-o {out}: features are written as .npz")
    allowed = allow_import or ()
    dataset = read_source(_source(reader, options, labels, images)[0], allow_import=allowed)
    encoder, show = parse_named(backbone), None if quiet else lambda done, total: say(f"{done}/{total}")
    found = encode(dataset, encoder, cache, allow_import=allowed, progress=show, broken={}).without_broken()
    keys = write_features(found, out)
    result = {"written": str(out), "examples": len(found), "features": found.in_features}
    left_out = {"skipped": skipped_images(found.skipped)}
    if as_json:
        print_json(result | {"options": keys} | left_out)
    else:
        print_table(backbone, ["", ""], list(result.items()))
        say("read it with: " + command("features", f"path={out}", *(f"{key}={name}" for key, name in keys.items())))
    tell_skipped(left_out, quiet=as_json)


@contextmanager
def _told(messages: list[str]) -> Iterator[None]:
    """Within this block, warnings meant for the user are added to these; others are given afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShortlistWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, ShortlistWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _prepared(dataset: Any, blanks: Sequence[str]) -> tuple[list[str], list[str]]:
    """What the columns of a table are used for and what a run would make of them, had it all rows to learn from; and
    what there is to warn of."""
    from shortlist.data.column_features import CONSTANT
    from shortlist.data.column_use import listed
    from shortlist.data.preprocessing import Preprocessor
    from shortlist.data.table_concerns import table_concerns
    from shortlist.data.table_rows import TableRows

    concerns = list(table_concerns(dataset, blanks))
    if not isinstance(dataset.inputs, TableRows):
        return [] if dataset.columns is None else dataset.columns.lines(), concerns
    try:
        with _told(concerns):
            prepared = Preprocessor.fit(dataset.inputs.frame, na_values=blanks)
    except ShortlistError as error:
        return dataset.columns.lines(), [*concerns, str(error)]
    left = prepared.columns_left_out
    same = [repr(name) for name, why in left.items() if why == CONSTANT]
    if same:
        concerns.append(f"columns left out, which are always the same: {listed(same, 3)}: name them in other_columns")
    return [*dataset.columns.without(left).lines(), *prepared.describe(left_out=False).splitlines()], concerns


def _show_columns(
    dataset: Any, blanks: Sequence[str], show: Callable[[str], None] = say, *, labels: bool = False
) -> int:
    """Say what the columns of a table are used for, what the reader decided, and what to look at again; returns how
    much that is."""
    if dataset is None:
        return 0
    lines, concerns = _prepared(dataset, blanks)
    for line in (*lines, *dataset.notes, *([_labels_found(dataset)] if labels else [])):
        show(line)
    for concern in concerns:
        say(f"warning: {concern}")
    return len(concerns)


def _labels_found(dataset: Any) -> str:
    """The labels by how often they are present, and how much is unknown of them."""
    from shortlist.data.column_use import listed

    counts = dict(zip(dataset.vocabulary, dataset.label_counts().tolist(), strict=True))
    shown = listed([f"{name!r} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])], 10)
    unknown = int((dataset.target == -1).sum())
    of = "examples have no known label" if dataset.is_single else f"of {dataset.target.numel()} answers are unknown"
    return f"labels in {len(dataset)} examples: {shown or 'none'}" + (f"; {unknown} {of}" if unknown else "")


def _tell_notes(plan: Any) -> None:
    for note in () if plan is None else plan.notes:
        say(note)


def _planned(plan: Any, dataset: Any) -> dict[str, Any]:
    """What `fit` would do with this data, or why it would not, and what it guessed."""
    if dataset is None:
        return {"notes": plan.notes, "config": None, "refused": "the data has problems"}
    from shortlist.runs.setup import preprocessor_for

    try:
        config = plan.decide(dataset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortlistWarning)  # told above
            preprocessor_for(config, dataset)
    except ShortlistError as error:
        return {"notes": plan.notes, "config": None, "refused": str(error)}
    return {"notes": plan.notes, "config": plan.shown(), "refused": None}


def _tell_plan(planned: dict[str, Any]) -> None:
    does = f"does this:\n\n{planned['config']}" if planned["config"] else f"stops: {planned['refused']}"
    say(f"shortlist fit {does}")


def _source(
    reader: str, options: list[str] | None, labels: list[str] | None = None, images: Path | None = None
) -> tuple[Any, Sequence[str], Any]:
    """The reader and options that the arguments name, the cells of a table that mean blank, and the plan that `fit`
    would make, where a path is named instead of a reader."""
    from shortlist.data.cells import NA_VALUES
    from shortlist.data.readers import READERS
    from shortlist.runs.config import Source
    from shortlist.runs.plan import Plan
    from shortlist.runs.setup import as_table
    from shortlist.runs.yaml_text import apply_override, read_yaml

    content: Any = {"reader": reader}
    run: dict[str, Any] = {}  # what a config says of its data besides the source, and what it says of the source
    of_config = reader.endswith((".yaml", ".yml"))
    like_a_path = Path(reader).exists() or (":" not in reader and bool(Path(reader).suffix or Path(reader).parent.name))
    if like_a_path and reader not in READERS and not of_config:
        plan = Plan.of(reader, images, labels or (), options or ())
        data = plan.reading().data
        return as_table(data.train, data.preprocess), NA_VALUES if data.na_values is None else data.na_values, plan
    if labels or images:
        raise ShortlistError(f"--labels and --images go with the path of a table; {reader!r} has options: key=value")
    if of_config:
        if not Path(reader).is_file():
            raise ShortlistError(f"there is no file {reader}")
        content = read_yaml(Path(reader).read_bytes(), reader)
        if isinstance(content, dict) and isinstance(content.get("data"), dict):
            run = dict(content["data"])
            content = run.get("train")
        if not isinstance(content, dict) or "reader" not in content:
            raise ShortlistError(f"{reader}: it names no reader; a data file looks like: reader: features, path: ...")
    for given in options or ():
        key = given.removeprefix("data.")
        apply_override(run if key.startswith(("preprocess=", "na_values=")) else content, key.removeprefix("train."))
    blanks = run.get("na_values")
    source = as_table(Source(**content), run.get("preprocess", "auto"))
    return source, NA_VALUES if blanks is None else tuple(map(str, blanks)), None
