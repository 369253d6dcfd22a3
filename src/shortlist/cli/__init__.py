"""The command line, ``shortlist ...``. Nothing but the command that was asked for is imported, and that lazily.

Exit codes: 0 all is well, 1 something failed, 2 the command or its input is wrong, 3 done, but some images could not be
decoded and were left out, 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from shortlist.cli._errors import errors_as_messages
from shortlist.cli._progress import reading_shown
from shortlist.errors import ShortlistError

# command -> (where its function or group is, what the overview says)
COMMANDS = {
    "demo": ("shortlist.cli.demo:demo", "See what it is for: train, calibrate and compare on embedded data."),
    "fit": ("shortlist.cli.fit:fit", "From your files to a trained, calibrated and judged model, by one command."),
    "train": ("shortlist.cli.train:train", "Train a model as a config file says."),
    "tune": ("shortlist.cli.tune:tune", "Search the values that a config leaves open."),
    "calibrate": ("shortlist.cli.calibrate:calibrate", "Fit set rules on held-out scores."),
    "predict": ("shortlist.cli.predict:predict", "Write the predicted sets of labels of some data."),
    "evaluate": ("shortlist.cli.evaluate:evaluate", "Measure scores and sets against known labels."),
    "report": ("shortlist.cli.report:report", "Write the HTML report of one or more runs."),
    "export": ("shortlist.cli.export:export", "Write a run as one ONNX file: from inputs to sets of labels."),
    "serve": ("shortlist.cli.serve:serve", "Answer with sets of labels over HTTP."),
    "recipe": ("shortlist.cli.recipe:recipe", "Reproduce an experiment of a paper, with its table."),
    "bench": ("shortlist.cli.bench:bench", "Measure the speed of the losses on this machine."),
    "data": ("shortlist.cli.data:app", "Check, describe and prepare data."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; exits with its code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        import typer
    except ModuleNotFoundError:
        raise SystemExit("error: the command line needs: pip install 'shortlist[train]'") from None
    with errors_as_messages(), reading_shown():
        make_app(typer, _chosen(given))(given, prog_name="shortlist")


def make_app(typer: Any, chosen: str | None) -> Any:
    """The app, in which only the chosen command is the real one; of the others it knows name and summary."""
    app = typer.Typer(
        help="PyTorch classifiers that answer with the right set of labels.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options(typer))
    for name, (place, summary) in COMMANDS.items():
        if name != chosen:
            app.command(name, help=summary)(_not_loaded)
            continue
        module, _, attribute = place.partition(":")
        try:
            command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise ShortlistError(f"shortlist {name} is not part of this installation ({module} is missing)") from None
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, help=summary)
        else:
            app.command(name, help=_unwrapped(command.__doc__))(command)
    return app


def _unwrapped(text: str | None) -> str:
    """Each paragraph on one line, for the terminal to wrap; brackets are no markup."""
    paragraphs = (text or "").replace("[", "\\[").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _options(typer: Any) -> Any:
    def show_version(wanted: bool) -> None:
        if wanted:
            from shortlist import __version__

            typer.echo(f"shortlist {__version__}")
            raise typer.Exit

    option = typer.Option(False, "--version", help="Show the version and stop.", callback=show_version, is_eager=True)

    def options(version: bool = option) -> None: ...

    return options


def _not_loaded() -> None:
    raise AssertionError("only the chosen command is called")


def _chosen(arguments: Sequence[str]) -> str | None:
    """The command that is named, also while a shell completes a line."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = [*arguments, *line.split()[1:]]
    return next((word for word in words if not word.startswith("-")), None)
