"""The pages, the JSON and the sockets of all links of a run, as an application for a server.

A link is ``/seat/TOKEN``, and the token is all that lets in. No ``GET`` ever acts.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from llm_games.benchmarks.show.guests.guest_door import GuestDoor, refusal
from llm_games.benchmarks.show.guests.openapi import CURL, openapi
from llm_games.benchmarks.show.view import app as viewer
from llm_games.benchmarks.show.view.render import environment
from llm_games.errors import install
from llm_games.wrappers.guest_seat import GuestSeat, NotNow, NotTaken
from llm_games.wrappers.guests import Guests

BEAT = 10.0  # seconds between two signs of life of a socket
LONGEST_WAIT = 30.0  # seconds for which a program waits for news at a time
STATIC = Path(__file__).parent / "static"


def guest_app(guests: Guests, host: str = "127.0.0.1") -> GuestDoor:
    """Return the application; with MCP, or OpenEnv, where its package is installed."""
    served: dict[str, Any] = {}  # by path
    with suppress(ImportError):
        from llm_games.benchmarks.show.guests.guest_tools import SeatTools

        paths = {f"/seat/{token}/mcp": seat for token, seat in guests.by_token.items()}
        served = {path: SeatTools(seat, path) for path, seat in paths.items()}
    environments: list[Any] = []
    with suppress(ImportError):
        from llm_games.benchmarks.show.guests.openenv_server import link_app

        environments = [Mount(f"/seat/{t}", link_app(s)) for t, s in guests.by_token.items()]
    site = _GuestSite(guests)
    agents = [Route(path, server.app) for path, server in served.items()]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for server in served.values():
                await running.enter_async_context(server.running())
            yield

    handlers: Any = {
        NotNow: partial(_refused, 409),
        NotTaken: partial(_refused, 422),
        HTTPException: _nowhere,
        500: _failed,
    }
    routes = [*agents, *site.routes(), *environments]
    inside = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    return GuestDoor(inside, [host])


class _GuestSite:
    def __init__(self, guests: Guests) -> None:
        self.guests = guests

    def routes(self) -> list[Any]:
        seat = "/seat/{token}"
        return [
            Route("/", self.about, methods=["GET"]),
            Route("/openapi.json", lambda _: JSONResponse(openapi()), methods=["GET"]),
            Route(seat, self.page, methods=["GET"]),
            Route(f"{seat}/sees", self.sees, methods=["GET"]),
            Route(f"{seat}/join", self.join, methods=["POST"]),
            Route(f"{seat}/act", self.act, methods=["POST"]),
            Route(f"{seat}/leave", self.leave, methods=["POST"]),
            Route(f"{seat}/mcp", self.no_mcp, methods=["GET", "POST"]),
            WebSocketRoute(f"{seat}/live", self.live),
            Mount("/static/view", StaticFiles(directory=viewer.STATIC)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def seat(self, asked: Request | WebSocket) -> GuestSeat:
        seat = self.guests.by_token.get(asked.path_params["token"])
        if seat is None:
            raise HTTPException(404)
        return seat

    async def about(self, request: Request) -> Response:
        return _page("api", curl=CURL.replace("http://127.0.0.1:8640", _address(request)))

    async def page(self, request: Request) -> Response:
        return _page("seat", name=self.seat(request).name)

    async def sees(self, request: Request) -> Response:
        """With ``?wait=SECONDS`` (and ``after=NUMBER``), once there is news or so long later."""
        seat, asked = self.seat(request), request.query_params
        try:
            wait = max(0.0, min(float(asked.get("wait", 0)), LONGEST_WAIT))  # 0 for nan
            after = int(asked.get("after", -1))
        except ValueError:
            raise NotTaken("wait is a number of seconds, and after an integer") from None
        await seat.wait(wait, after)
        return JSONResponse(seat.sees())

    async def join(self, request: Request) -> Response:
        seat, body = self.seat(request), await _body(request)
        pseudonym, consent = body.get("pseudonym", ""), body.get("consent", False)
        if not isinstance(pseudonym, str):
            raise NotTaken("a pseudonym is a text")
        return JSONResponse(seat.join(pseudonym, consent))

    async def act(self, request: Request) -> Response:
        seat, body = self.seat(request), await _body(request)
        turn = body.get("turn")
        if not isinstance(turn, str) or "reply" not in body:
            raise NotTaken('an answer is {"turn": "EPISODE.STEP.CALL", "reply": ...}')
        return JSONResponse(seat.act(turn, body["reply"]))

    async def leave(self, request: Request) -> Response:
        seat = self.seat(request)
        seat.leave()
        return JSONResponse(seat.sees())

    async def no_mcp(self, request: Request) -> Response:
        """Stand in the place of tools whose package is missing."""
        self.seat(request)
        return refusal(501, f"where the run is played, MCP needs `{install('mcp')}`")

    async def live(self, socket: WebSocket) -> None:
        """Send the number of the seat's last change whenever it is another one."""
        seat = self.guests.by_token.get(socket.path_params["token"])
        if seat is None:
            await socket.close(1008)
            return
        await socket.accept()
        gone = asyncio.ensure_future(viewer.until_gone(socket))
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        ringing, last, end = partial(loop.call_soon_threadsafe, rung.set), -1, 0.0
        with suppress(WebSocketDisconnect, RuntimeError), seat.ringing(ringing):
            while not gone.done():
                rung.clear()  # first, so that what changes meanwhile is not missed
                if seat.number != last or monotonic() > end:
                    last, end = seat.number, monotonic() + BEAT
                    await socket.send_json({"look": last})
                bell = asyncio.ensure_future(rung.wait())
                await asyncio.wait([gone, bell], timeout=BEAT, return_when="FIRST_COMPLETED")
                bell.cancel()
        gone.cancel()


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request."""
    body = await request.body()
    try:
        value = json.loads(body or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise NotTaken("the body is no JSON") from None
    if not isinstance(value, dict):
        raise NotTaken("the body is a JSON object")
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _address(request: Request) -> str:
    return f"http://{request.headers['host']}"


def _page(template: str, **context: Any) -> Response:
    templates = environment(__name__.rpartition(".")[0])
    return HTMLResponse(templates.get_template(f"{template}.html.j2").render(context))


def _refused(status: int, _: Request, error: Exception) -> Response:
    return refusal(status, str(error))


def _nowhere(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    why = "this link takes another method" if status == 405 else "no such link"
    return refusal(status, why)


def _failed(_: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    return refusal(500, f"{type(error).__name__}; the terminal of the run has the details")
