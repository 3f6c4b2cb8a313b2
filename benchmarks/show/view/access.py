"""Requests need the token of the printed address, and this machine's host."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response

from llm_games.benchmarks.show.view.render import POLICY, render

HOSTS = "127.0.0.1", "localhost", "::1"
HEADERS = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OPEN = "/static/"  # what shows nothing of a run
WAY = "Open the address that llm-games view printed: it holds a token, another one at every start."


class Frame:
    """Middleware: answers what must not come through itself, and gives all answers our headers."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, guarded)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, guarded)

    def _answer(self, scope: Any) -> Response | None:
        """Return an answer in place of the application's; None: it may come through."""
        return None


class Door(Frame):
    """Middleware: requests need this machine's host, no other origin, and the token."""

    def __init__(self, app: Any, token: str) -> None:
        super().__init__(app)
        self.token = token
        self.cookie = f"llm-games-{sha256(token.encode()).hexdigest()[:12]}"

    def _answer(self, scope: Any) -> Response | None:
        asked = HTTPConnection(scope)
        headers = asked.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in HOSTS:
            return _closed("another host", f"This viewer answers at 127.0.0.1, not at {host[:80]}.")
        if origin is not None and origin != f"http://{host}":
            return _closed("another page", f"A page of {origin[:80]} cannot ask this viewer.")
        if scope.get("method") == "POST" and origin is None:
            return _closed("from nowhere", "A form is taken from a page of this viewer alone.")
        if scope["path"].startswith(OPEN):
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in pairs if name == "token"]
        if tokens and scope["type"] == "http":
            return self._welcome(scope, tokens[0], [p for p in pairs if p[0] != "token"])
        if self._knows(asked.cookies.get(self.cookie, "")):
            return None
        return _closed("a token is missing", "This page needs the token of this viewer.")

    def _welcome(self, scope: Any, token: str, rest: list[tuple[str, str]]) -> Response:
        if not self._knows(token):
            return _closed("wrong token", "The token of this address is not that of this viewer.")
        # A path that begins with two slashes would lead to another host.
        path = "/" + scope["path"].lstrip("/")
        answer = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return answer

    def _knows(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())


def host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _closed(title: str, why: str) -> Response:
    about = {"title": f"Not shown: {title}", "problem": why, "way": WAY, "crumbs": None, "live": ""}
    return HTMLResponse(render("problem", **about), 403)
