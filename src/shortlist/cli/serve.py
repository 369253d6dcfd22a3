"""``shortlist serve``: a run behind HTTP."""

import os
from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import AllowImport
from shortlist.cli._output import say

_TOKEN = "SHORTLIST_TOKEN"


def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run directory.")],
    host: Annotated[str, typer.Option(help="Where to listen; this machine only if not given.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=f"What requests must carry; {_TOKEN} in the environment if not given."),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Examples in one request.")] = 1024,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Bytes of one request.")] = 16_000_000,
    max_pixels: Annotated[int, typer.Option(min=1, help="Pixels of one image.")] = 50_000_000,
    max_seconds: Annotated[float, typer.Option(min=0.01, help="Seconds until an answer.")] = 30.0,
    allow_import: AllowImport = None,
) -> None:
    """Answer with sets of labels over HTTP: POST /predict takes rows or images, one or many.

    GET / is a page to try it by hand; /openapi.json describes the requests, /healthz and /metrics are for whoever
    watches it. It listens on this machine only, unless --host says otherwise. Ctrl-C stops it once the requests that
    have begun are answered.
    """
    from shortlist.runs.run import Run
    from shortlist.serving.limits import Limits
    from shortlist.serving.server import serve as listen

    opened = Run(run, allow_import or ())
    opened.check_predicts()
    limits = Limits(body=max_body, rows=max_rows, pixels=max_pixels, seconds=max_seconds)
    token = token or os.environ.get(_TOKEN) or None
    if token is None and host not in ("127.0.0.1", "localhost", "::1"):
        say(f"note: anyone who reaches {host} can ask: --token TEXT asks for a password")
    listen(opened.predictor(), opened.path.name, host=host, port=port, token=token, limits=limits, say=say)
