"""The viewer's pages, pictures, raw files and live socket, as an application for a server.

Nothing is written to a run; a ``POST`` plays a branch, or keeps labels, beside it. Needs the extra
``serve``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.labels import EPISODE, Place
from llm_games.benchmarks.show.page.report_page import css
from llm_games.benchmarks.show.view import (
    branching,
    compare_page,
    decision_page,
    episode_page,
    labelling,
    list_page,
    run_page,
    texts,
)
from llm_games.benchmarks.show.view.access import Door
from llm_games.benchmarks.show.view.render import Context, Crumb, render
from llm_games.benchmarks.show.view.replayed import NoSuchPage, read
from llm_games.benchmarks.show.view.run_shelf import Gone, NoSuchRun, RunFile, RunShelf
from llm_games.errors import BadParameter, LLMGamesError, UnknownName

BEAT = 10.0  # seconds between two signs of life of a live socket
INTERVAL = 0.5  # seconds between two looks at whether there is more
LARGEST_FORM = 128 * 1024  # bytes
STATIC = Path(__file__).parent / "static"
STATUS: dict[type[LLMGamesError], int] = {
    NoSuchRun: 404,
    NoSuchPage: 404,
    UnknownName: 404,
    BadParameter: 400,
    Gone: 410,
    StoreError: 503,
}
"""Of the first kind of error that fits."""


def app(shelf: RunShelf, token: str, budget: float | None = None) -> Door:
    """`budget`: the money that models may be asked for from pages; None: none that could cost."""
    handlers: Any = {LLMGamesError: _refused, 404: _nowhere, 405: _nowhere, 500: _failed}
    # Around all of it, not as its middleware: an answer to a failure needs its headers too.
    purse = branching.Purse(None if budget is None else Decimal(str(budget)))
    return Door(Starlette(routes=_Site(shelf, purse).routes(), exception_handlers=handlers), token)


class _Number(IntegerConvertor):
    """An integer of as many digits as one of the file can have."""

    regex = "[0-9]{1,18}"


register_url_convertor("number", _Number())


class _Site:
    """Handlers by address; those of pages return the template's context."""

    def __init__(self, shelf: RunShelf, purse: branching.Purse) -> None:
        self.shelf, self.purse = shelf, purse

    def routes(self) -> list[Any]:
        address = "{episode:number}/{step:number}/{seat:number}"
        shown: dict[str, tuple[str, Callable[[Request], Context]]] = {
            "/": ("runs", self.runs),
            "/compare": ("compare", self.compare),
            "/run/{run}": ("run", lambda r: run_page.run(self.run(r))),
            "/run/{run}/scores": ("scores", lambda r: run_page.scores(self.run(r))),
            "/run/{run}/score": ("score", lambda r: run_page.score(self.run(r))),
            "/run/{run}/types": ("types", lambda r: run_page.types(self.run(r))),
            "/run/{run}/settings": ("settings", lambda r: run_page.settings(self.run(r))),
            "/run/{run}/game": ("game", self.game),
            "/run/{run}/report": ("report", self.report),
            "/run/{run}/decisions": ("decisions", self.decisions),
            "/run/{run}/episode/{episode:number}": ("episode", self.episode),
            f"/run/{{run}}/decision/{address}": ("decision", self.decision),
        }
        text = f"{address}/{{name}}"
        return [
            *(Route(path, partial(_page, *what), methods=["GET"]) for path, what in shown.items()),
            Route(f"/run/{{run}}/decision/{address}/branch", self.branch, methods=["POST"]),
            Route(f"/run/{{run}}/decision/{address}/label", self.label, methods=["POST"]),
            Route("/run/{run}/episode/{episode:number}/label", self.label, methods=["POST"]),
            Route("/run/{run}/episode/{episode:number}/picture/{number:number}", self.picture),
            Route(f"/run/{{run}}/raw/{text}", self.raw),
            Route(f"/run/{{run}}/more/{text}", self.continuation),
            WebSocketRoute("/live", self.live),
            Route("/static/report.css", lambda _: Response(css(), media_type="text/css")),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def run(self, request: Request) -> RunFile:
        """The run of an address; its file is followed while somebody asks for it."""
        run = self.shelf.run(request.path_params["run"])
        run.follow()
        return run

    # -- pages ---------------------------------------------------------------------------------

    def runs(self, request: Request) -> Context:
        return run_page.runs(self.shelf, request.query_params.get("text", "")[:200])

    def game(self, request: Request) -> Context:
        return run_page.game(self.run(request), request.query_params.get("label", ""))

    def decisions(self, request: Request) -> Context:
        return list_page.decisions(self.run(request), request.query_params.multi_items())

    def compare(self, request: Request) -> Context:
        asked = request.query_params
        marked = asked.getlist("compare")
        names = [*marked, asked.get("a"), asked.get("b")]
        return compare_page.compare(self.shelf, [name for name in names if name], bool(marked))

    def report(self, request: Request) -> Context:
        return run_page.report(self.run(request), request.query_params.get("whole") == "1")

    def episode(self, request: Request) -> Context:
        run, number = self.run(request), request.path_params["episode"]
        first, picture = _integer(request, "first") or 1, _integer(request, "picture")
        with run.records() as records:
            page = episode_page.page(read(records, number), f"/run/{run.id}", first, picture)
        return _framed(run, page, (number, EPISODE, EPISODE))

    def decision(self, request: Request) -> Context:
        run = self.run(request)
        with run.records() as records:
            numbers, query = _decision_numbers(request), request.query_params.multi_items()
            beside = list_page.beside(run, numbers, query)
            page = decision_page.page(records, *numbers, f"/run/{run.id}", beside=beside)
            replayed, (_, step, seat) = page.replayed, numbers
            asked = replayed.attempts.get((step, seat), [])
            form = branching.branch_form(records, replayed.row, asked, seat, self.purse)
            turn = replayed.turn_of(step)
            question = turn.questions.get(seat) if turn else None
            legal = question.wanted() if question else ""
        return _framed(run, page, numbers) | {"form": form, "legal": legal}

    async def branch(self, request: Request) -> Response:
        """Play a branch, and go to its page; or show first what it would cost."""
        run, form = await run_in_threadpool(self.run, request), await _form(request)
        numbers = _decision_numbers(request)
        made = await run_in_threadpool(branching.branch, run, numbers, form, self.purse)
        if isinstance(made, Path):
            return RedirectResponse(f"/run/{self.shelf.add(made).id}", 303)
        crumbs = [("Decision", f"/run/{run.id}/decision/{'/'.join(map(str, numbers))}")]
        about = {"title": "What it would cost", "crumbs": crumbs, "live": "", "quote": made}
        return HTMLResponse(render("quote", **about, address=request.url.path))

    async def label(self, request: Request) -> Response:
        """Keep a person's labels and note, and go back to the page that has them."""
        run, form = await run_in_threadpool(self.run, request), await _form(request)
        await run_in_threadpool(labelling.label, run, request.path_params, form)
        return RedirectResponse(request.url.path.removesuffix("/label"), 303)

    # -- other files ---------------------------------------------------------------------------

    def picture(self, request: Request) -> Response:
        numbers = request.path_params["episode"], request.path_params["number"]
        with self.run(request).records() as records:
            drawing = episode_page.picture(records, *numbers)
        dark = request.query_params.get("dark") == "1"
        return Response(drawing.svg(dark=dark), media_type="image/svg+xml")

    def text(self, request: Request) -> str:
        numbers, name = _decision_numbers(request), request.path_params["name"]
        with self.run(request).records() as records:
            return decision_page.text(records, *numbers, name)

    def raw(self, request: Request) -> Response:
        text, name = self.text(request), request.path_params["name"]
        numbers = "-".join(map(str, _decision_numbers(request)))
        file = f"{numbers}-{name}.{'json' if name == 'all' else 'txt'}"
        headers = {"content-disposition": f'attachment; filename="{file}"'}
        return PlainTextResponse(text.encode(errors="replace"), headers=headers)

    def continuation(self, request: Request) -> Response:
        begin = _integer(request, "from") or 0
        return JSONResponse(texts.piece(self.text(request), begin, texts.MORE)._asdict())

    # -- what grows ----------------------------------------------------------------------------

    async def live(self, socket: WebSocket) -> None:
        """Send the number of the run, or of the shelf, whenever it is another one."""
        name, last = socket.query_params.get("run"), socket.query_params.get("after")
        await socket.accept()
        gone = asyncio.ensure_future(until_gone(socket))
        last_sent = monotonic()
        with suppress(WebSocketDisconnect, RuntimeError):
            while not gone.done():
                try:
                    number = await run_in_threadpool(self._number, name)
                except NoSuchRun:
                    break
                if str(number) != last or monotonic() > last_sent + BEAT:
                    await socket.send_json({"number": number} if str(number) != last else {})
                    last, last_sent = str(number), monotonic()
                await asyncio.wait([gone], timeout=INTERVAL)
            if not gone.done():
                await socket.close(1008)
        gone.cancel()

    def _number(self, name: str | None) -> int:
        if name is None:
            return self.shelf.number()
        run = self.shelf.run(name)
        run.follow()
        return run.number


async def until_gone(socket: WebSocket) -> None:
    """Wait for the disconnect; messages of the browser are ignored."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form; BadParameter: it is too large, or none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise BadParameter(f"a form has at most {LARGEST_FORM} bytes")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=60)
    except ValueError:
        raise BadParameter("the body is no form") from None
    return dict(pairs)


def _page(template: str, shown: Callable[[Request], Context], request: Request) -> Response:
    return HTMLResponse(render(template, **shown(request)))


def _framed(run: RunFile, page: Any, place: Place) -> Context:
    live = run_page.live(run)
    return {
        "title": page.title,
        "crumbs": page.crumbs,
        "live": live,
        "page": page,
        "labelled": run.labels().get(place),
    }


def _decision_numbers(request: Request) -> tuple[int, int, int]:
    asked = request.path_params
    return asked["episode"], asked["step"], asked["seat"]


def _integer(request: Request, name: str) -> int | None:
    """Read a number of the query, None without; raises BadParameter."""
    if not (text := request.query_params.get(name, "")):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadParameter(f"{name}: an integer from 0 is needed, got {text[:40]!r}")
    return int(text)


# -- what cannot be shown --------------------------------------------------------------------------


def problem(
    title: str, why: str, status: int, way: str = "", crumbs: Sequence[Crumb] = ()
) -> Response:
    about = {"title": title, "problem": why, "way": way, "crumbs": crumbs, "live": ""}
    return HTMLResponse(render("problem", **about), status)


def _refused(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
    run = request.path_params.get("run")
    if request.method == "POST":
        back = [("Back to the form", request.url.path.rpartition("/")[0])]
        return problem("Not done", str(error), status, crumbs=back)
    listed = [("Decisions", f"/run/{run}/decisions")] if isinstance(error, Gone) and run else []
    return problem("Not shown", str(error), status, crumbs=listed)


def _nowhere(request: Request, _: Exception) -> Response:
    way = "The viewer answers links and forms of its own pages."
    return problem("No such page", f"There is nothing at {request.url.path[:200]}.", 404, way)


def _failed(_: Request, error: Exception) -> Response:
    way = "The terminal of llm-games view has the details; please report them."
    return problem("Failed", f"{type(error).__name__}: {error}", 500, way)
