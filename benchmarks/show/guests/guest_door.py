"""What does not come through to a seat: other hosts and pages, large or odd bodies."""

from __future__ import annotations

from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from llm_games.benchmarks.show.view.access import HOSTS, Frame, host_name

LARGEST_BODY = 24 * 1024
"""Bytes of what a link takes: the longest speech, in whatever script."""
JSON = "application/json"


class GuestDoor(Frame):
    """Middleware: requests need a host of ours, no other origin, and a small body of JSON."""

    def __init__(self, app: Any, host: str) -> None:
        super().__init__(app)
        self.hosts = {*HOSTS, host}

    def _answer(self, scope: Any) -> Response | None:
        asked = HTTPConnection(scope)
        headers = asked.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in self.hosts:
            return refusal(421, f"this server does not answer at {host[:80]!r}")
        if origin is not None and origin != f"http://{host}":
            return refusal(403, f"a page of {origin[:80]!r} cannot ask here")
        if scope["type"] == "http" and scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != JSON:
                return refusal(415, f"a body is {JSON}, got {kind[:80]!r}")
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > LARGEST_BODY:
                return too_large()
        return None


def refusal(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)


def too_large() -> Response:
    return refusal(413, f"a body has at most {LARGEST_BODY} bytes")
