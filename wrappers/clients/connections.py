"""Connections to one server: what is sent and what comes back, for as little time as possible."""

from __future__ import annotations

import asyncio
import json
from typing import Any

PATH = "/chat/completions"


class Connections:
    """Connections of one event loop, one for each call in flight. Headers and errors are openai's.

    Each is an HTTP client of its own: the pool inside a client looks through all its connections
    twice a call, which with 64 of them takes longer than the rest. Nor is
    ``chat.completions.create`` called: its checks of both sides' types cost as much again.

    Args:
        base_url: the server.
        key: sent with each call.
        timeout: seconds for one call, the whole answer included.
    """

    def __init__(self, base_url: str, key: str, timeout: float) -> None:
        import httpx2
        import openai

        self.timeout = timeout
        self._url = httpx2.URL(base_url + PATH)
        self._certificates = httpx2.create_ssl_context()
        self._all: list[httpx2.AsyncClient] = []
        self._idle = [self._connection()]
        session = openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=self._idle[0])
        headers = session.default_headers | session.auth_headers
        self._headers = {
            name.lower(): value
            for name, value in headers.items()
            if isinstance(value, str) and not name.startswith("X-Stainless")  # usage statistics
        }

    async def post(self, body: dict[str, Any]) -> Any:
        """Send a request and return the response, read to its end.

        Raises:
            openai.APIError: the server refuses, or cannot be reached.
            TimeoutError: there is no answer in time.
            ValueError: the request cannot be written as JSON.
        """
        import httpx2
        import openai

        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        request = httpx2.Request("POST", self._url, headers=self._headers, content=text.encode())
        connection = self._idle.pop() if self._idle else self._connection()
        try:
            async with asyncio.timeout(self.timeout):
                response = await connection.send(request)
        except httpx2.HTTPError as error:
            raise openai.APIConnectionError(request=request) from error
        finally:
            self._idle.append(connection)
        if response.is_success:
            return response
        raise openai.APIStatusError("refused", response=response, body=_body(response))

    async def close(self) -> None:
        """Close them all, those in use too."""
        for connection in self._all:
            await connection.aclose()

    def _connection(self) -> Any:
        import httpx2

        self._all.append(
            httpx2.AsyncClient(verify=self._certificates, timeout=None, follow_redirects=True)
        )
        return self._all[-1]


def _body(response: Any) -> Any:
    """Return what a server says about its refusal: plain values, or text if it is no JSON."""
    text = response.text.strip()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return said.get("error", said) if isinstance(said, dict) else said
