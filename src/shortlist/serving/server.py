"""Starts the server, and stops it with grace."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shortlist.errors import ShortlistError
from shortlist.optional import require
from shortlist.runs.predictor import Predictor
from shortlist.serving.limits import Limits

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    predictor: Predictor,
    run: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Answer requests until the process is told to stop (SIGINT, SIGTERM); requests that have begun are answered."""
    if not 0 <= port <= 65535:
        raise ShortlistError(f"a port is a whole number from 0 to 65535, got {port}")
    if token is not None and (not token.isascii() or not token.isprintable() or " " in token or not token):
        raise ShortlistError("a token is made of printable ASCII signs without spaces")
    uvicorn = require("uvicorn", "serve")
    require("fastapi", "serve")
    from shortlist.serving.app import make_app

    limits = limits or Limits()
    hosts = (*_LOOPBACK, "[::1]") if host in _LOOPBACK else ()
    app = make_app(predictor, run, token=token, limits=limits, hosts=hosts)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=int(limits.seconds) + 1
    )
    with _listening(host, port) as socket, _signals_end_it():
        bound = socket.getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        say(f"serving {run} at http://{shown}:{bound[1]}/ (Ctrl-C stops it)")
        uvicorn.Server(config).run(sockets=[socket])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ShortlistError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


@contextmanager
def _signals_end_it() -> Iterator[None]:
    """uvicorn stops with grace at a signal and then sends it again, to whoever listened before: that is the end."""
    names = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(name, lambda number, frame: None) for name in names]
    try:
        yield
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)
