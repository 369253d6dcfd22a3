"""The application: its addresses, what guards them, and how errors are answered."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist import __version__
from shortlist.errors import ShortlistError
from shortlist.runs.predictor import Predictor
from shortlist.serving.answers import Answers
from shortlist.serving.batches import Batches, OverloadedError
from shortlist.serving.counters import Counters
from shortlist.serving.limits import Limits
from shortlist.serving.messages import Answer, Health, Model, Problem, Request

_PAGE_MAY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'"
)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body cannot be read."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    413: {"model": Problem, "description": "The body is too large."},
    422: {"model": Problem, "description": "The request is not what the run takes."},
    503: {"model": Problem, "description": "Too much is waiting: try again."},
    504: {"model": Problem, "description": "The time for an answer was up."},
}
_GUARDED: dict[int | str, dict[str, Any]] = {401: _PROBLEMS[401]}


def make_app(
    predictor: Predictor,
    run: str,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    hosts: tuple[str, ...] = (),
) -> FastAPI:
    """The application that serves a predictor. ``run``: what it is called. ``token``: what requests must carry.
    ``hosts``: the names under which it may be asked for; any if there are none."""
    limits = limits or Limits()
    answers, counters = Answers(predictor, run, limits), Counters(run)
    batches = Batches(predictor.scores_of, limits.rows, limits.waiting, counters.batch)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        batches.close()

    app = FastAPI(
        title=f"shortlist: {run}",
        description="Sets of labels with probabilities, and what the rule that made them promises.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # these pages would fetch their code from elsewhere
        redoc_url=None,
    )
    app.add_middleware(_Guard, token=token, limits=limits, hosts=hosts)
    app.add_middleware(_Counted, counters=counters)

    @app.post("/predict", responses=_PROBLEMS, response_model=Answer)
    async def predict(request: Request) -> Response:
        """The set of labels of every example."""
        try:
            async with asyncio.timeout(limits.seconds):
                if answers.is_quick(request):
                    prepared, remarks = answers.prepared(request)
                else:
                    prepared, remarks = await asyncio.to_thread(answers.prepared, request)
                scores = await batches.scores(prepared)
            answer = answers.answer(request, scores, remarks)
            return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")
        except TimeoutError:
            raise HTTPException(504, f"the answer took longer than {limits.seconds:g} seconds") from None
        except OverloadedError as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from None

    @app.get("/model", responses=_GUARDED)
    async def model() -> Model:
        """What the run takes and gives."""
        return answers.model()

    @app.get("/healthz")
    async def healthz() -> Health:
        """Whether it answers at all."""
        return Health(status="ok")

    @app.get("/metrics", response_class=PlainTextResponse, responses=_GUARDED)
    async def metrics() -> Response:
        """Counters, for Prometheus."""
        text = counters.text(batches.rows_waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    page = files("shortlist.serving").joinpath("page.html").read_text("utf-8")

    @app.get("/", response_class=HTMLResponse)
    async def by_hand() -> Response:
        """A page to try it by hand."""
        return HTMLResponse(page, headers={"Content-Security-Policy": _PAGE_MAY, "Cache-Control": "no-store"})

    app.add_exception_handler(ShortlistError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return app


async def _refused(request: HttpRequest, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 422)


async def _http(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400 and error.__cause__ is not None:  # FastAPI's, which does not say what is wrong
        return JSONResponse({"error": f"the body is no JSON: {_unread(error.__cause__)}"}, 400)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


async def _invalid(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    said = dict.fromkeys(_in_words(one) for one in error.errors())  # a row has a line for each type it is not
    return JSONResponse({"error": "; ".join(list(said)[:3])}, 422)


def _unread(error: BaseException) -> str:
    """Why a body could not be read as JSON."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 from byte {error.start} on"
    if isinstance(error, RecursionError):
        return "lists or objects stand too deep inside each other"
    return "a number in it has too many digits" if "digits" in str(error) else "it cannot be read"


def _in_words(one: dict[str, Any]) -> str:
    """What is wrong with a request, and what is allowed there."""
    place = [str(part) for part in one["loc"][1:]]
    if not place:
        return "a request is a JSON object, sent with the header Content-Type: application/json"
    if one["type"] == "json_invalid":
        return f"the body is no JSON from character {place[0]} on"
    if one["type"] == "extra_forbidden":
        return f"{place[0]!r} is not known: a request may have {', '.join(Request.model_fields)}"
    if place[0] == "rows" and len(place) > 1:
        return f"row {place[1]} must be an object (column -> text, number, true, false or null) or a list of numbers"
    return f"{'.'.join(place)}: {one['msg']}"


class _Counted:
    """Counts every answer to /predict, whoever gives it: the guard, the reader of bodies or the model."""

    def __init__(self, app: ASGIApp, counters: Counters) -> None:
        self._app, self._counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/predict":
            return await self._app(scope, receive, send)
        began, status = time.perf_counter(), 500  # what the server answers where nobody else does

        async def seen(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            self._counters.answered(status, time.perf_counter() - began)


class _Guard:
    """Before anything is read: who asks, under which name, and how much comes."""

    def __init__(self, app: ASGIApp, token: str | None, limits: Limits, hosts: tuple[str, ...]) -> None:
        self._app, self._limits, self._hosts = app, limits, hosts
        self._token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts and host.rpartition(":")[0] not in self._hosts and host not in self._hosts:
            # a page from elsewhere may lead its own name to this address
            allowed = ", ".join(self._hosts)
            return await _refuse(scope, receive, send, 400, f"asked for as {host!r}: allowed are {allowed}")
        if self._token is not None and scope["path"] not in ("/", "/healthz", "/openapi.json"):
            given = headers.get(b"authorization", b"")
            if not secrets.compare_digest(given, self._token):
                wanted = {"WWW-Authenticate": "Bearer"}
                return await _refuse(scope, receive, send, 401, "give the token: Authorization: Bearer TOKEN", wanted)
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limits.body:
            return await _refuse(scope, receive, send, 413, f"a request may have {self._limits.body} bytes")
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limits.body:
                raise HTTPException(413, f"a request may have {self._limits.body} bytes")
            return message

        return counted


async def _refuse(
    scope: Scope, receive: Receive, send: Send, status: int, error: str, headers: dict[str, str] | None = None
) -> None:
    await JSONResponse({"error": error}, status, headers)(scope, receive, send)
