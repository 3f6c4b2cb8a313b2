"""The door before all seats: refuses other hosts and origins, and bodies too large or not JSON."""

from __future__ import annotations

from asyncio import Transport
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from llm_games.benchmarks.show.view.access import HOSTS, Frame, host_name

LARGEST_BODY = 64 * 1024
"""Bytes of a body; the longest reply fits in, in any script."""
JSON = "application/json"


class GuestDoor(Frame):
    """Middleware: requests need a host of ours, no other origin, and a small body of JSON.

    `hosts` are ours besides this machine's; ``"*"``: any.
    """

    def __init__(self, app: Any, hosts: Sequence[str] = ()) -> None:
        super().__init__(partial(_small, app))
        self.hosts = {*HOSTS, *hosts}

    def _answer(self, scope: Any) -> Response | None:
        headers = HTTPConnection(scope).headers
        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in self.hosts and "*" not in self.hosts:
            return refusal(421, f"this server does not answer at {host[:80]!r}")
        if origin is not None and origin.partition("://")[2] != host:
            return refusal(403, f"a page of {origin[:80]!r} cannot ask here")
        if scope["type"] == "http" and scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != JSON:
                return refusal(415, f"a body is {JSON}, got {kind[:80]!r}")
        return None


class Connection(H11Protocol):
    """A connection, cut off where there are more than `most`: a run needs files of its own."""

    def __init__(self, most: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.most = most

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()


async def _small(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Read a body before the application does; refuse a large one."""
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            answer = refusal(413, f"a body has at most {LARGEST_BODY} bytes")
            await answer(scope, receive, send)
            return
    whole = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Any:
        return whole.pop() if whole else await receive()

    await app(scope, received, send)


def refusal(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
