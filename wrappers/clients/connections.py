"""Connections to one server: what is sent and what comes back, for as little time as possible."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

PATH = "/chat/completions"


class Connections:
    """Connections of one event loop, one for each call in flight. Headers and errors are openai's.

    ``chat.completions.create`` is not called, since its checks of both sides' types and the layers
    of its HTTP client take more time than everything else of a call. Only where there is a proxy
    or the server sends elsewhere, that client does the rest.

    Args:
        base_url: the server.
        key: sent with each call.
        timeout: seconds for one call, the whole answer included.
    """

    def __init__(self, base_url: str, key: str, timeout: float) -> None:
        import httpcore2
        import httpx2
        import openai

        self.timeout = timeout
        self._url = httpx2.URL(base_url + PATH)
        self._request = httpx2.Request("POST", self._url)  # what responses and errors are of
        self._target = httpcore2.URL(str(self._url))
        self._certificates = httpx2.create_ssl_context()
        anyhow = httpx2.Limits(max_connections=None)
        self._client = httpx2.AsyncClient(
            verify=self._certificates, timeout=None, follow_redirects=True, limits=anyhow
        )
        session = openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=self._client)
        headers = session.default_headers | session.auth_headers
        self._headers = {
            name.lower(): value
            for name, value in headers.items()
            if isinstance(value, str) and not name.startswith("X-Stainless")  # usage statistics
        }
        host = self._url.netloc
        self._raw = [(b"host", host), *((k.encode(), v.encode()) for k, v in self._headers.items())]
        self._proxied = _has_proxy(base_url)
        self._all: set[httpcore2.AsyncHTTPConnection] = set()
        self._idle: list[httpcore2.AsyncHTTPConnection] = []

    async def post(self, body: dict[str, Any]) -> Any:
        """Send a request and return the response, read to its end.

        Raises:
            openai.APIError: the server refuses, or cannot be reached.
            TimeoutError: there is no answer in time.
            ValueError: the request cannot be written as JSON.
        """
        import httpcore2
        import httpx2
        import openai

        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        content = text.encode()
        try:
            async with asyncio.timeout(self.timeout):
                response = None if self._proxied else await self._direct(content)
                if response is None or response.has_redirect_location:
                    response = await self._client.post(
                        self._url, headers=self._headers, content=content
                    )
        except (httpx2.HTTPError, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise openai.APIConnectionError(request=self._request) from error
        if response.is_success:
            return response
        raise openai.APIStatusError("refused", response=response, body=_body(response))

    async def close(self) -> None:
        """Close them all, those in use too."""
        for connection in self._all:
            await connection.aclose()
        await self._client.aclose()

    async def _direct(self, content: bytes) -> Any:
        """Send over a connection of our own; one that fails is not used again."""
        import httpcore2
        import httpx2

        connection = await self._connection()
        headers = [*self._raw, (b"content-length", str(len(content)).encode())]
        request = httpcore2.Request("POST", self._target, headers=headers, content=content)
        try:
            answer = await connection.handle_async_request(request)
            data = await answer.aread()
            await answer.aclose()
        except BaseException:
            self._all.discard(connection)
            raise
        self._idle.append(connection)
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=httpx2.ByteStream(data),
            request=self._request,
        )
        response.read()  # and decode, if it is packed
        return response

    async def _connection(self) -> Any:
        """Return a connection that nobody uses and that the server has not closed."""
        import httpcore2

        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed() and not connection.has_expired():
                return connection
            self._all.discard(connection)
            await connection.aclose()
        connection = httpcore2.AsyncHTTPConnection(self._target.origin, self._certificates)
        self._all.add(connection)
        return connection


def _has_proxy(url: str) -> bool:
    """Return whether the environment names a proxy for an address."""
    parts, proxies = urlsplit(url), getproxies()
    named = parts.scheme in proxies or "all" in proxies
    return named and not proxy_bypass(parts.hostname or "")


def _body(response: Any) -> Any:
    """Return what a server says about its refusal: plain values, or text if it is no JSON."""
    text = response.text.strip()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return said.get("error", said) if isinstance(said, dict) else said
