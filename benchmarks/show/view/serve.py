"""Serving the viewer at this machine's own address until it is interrupted."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from llm_games.benchmarks.show.view.run_shelf import RunShelf
from llm_games.errors import BadParameter, LLMGamesError, install

HOST, PORT = "127.0.0.1", 8640
LARGEST = 64 * 1024  # bytes of a message, and of an address with its headers


class ViewerExtraMissing(LLMGamesError, ImportError):
    """Starlette, uvicorn or websockets is missing."""

    def __init__(self, error: ImportError) -> None:
        super().__init__(f"the viewer needs `{install('serve')}` ({error})")


def serve(
    paths: Sequence[Path],
    port: int | None = None,
    ready: Callable[[str, RunShelf], None] = lambda address, shelf: None,
    budget: float | None = None,
) -> None:
    """Serve runs until interrupted; `ready` gets the address, `budget` is as of `app`.

    Raises NotARun, BadParameter.
    """
    try:
        import uvicorn
        import websockets  # noqa: F401

        from llm_games.benchmarks.show.view.app import app
    except ImportError as error:
        raise ViewerExtraMissing(error) from error
    shelf, token = RunShelf(paths), secrets.token_urlsafe(24)
    shelf.check()
    with closing(shelf), listening(port) as taken:
        ready(f"http://{HOST}:{taken.getsockname()[1]}/?token={token}", shelf)
        config = uvicorn.Config(
            app(shelf, token, budget),
            log_level="error",
            access_log=False,
            http="h11",
            h11_max_incomplete_event_size=LARGEST,
            ws_max_size=LARGEST,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        # Of a page that is still being made when it ends, uvicorn would print a traceback.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[taken])


def listening(port: int | None, host: str = HOST) -> socket.socket:
    """Take a port; raises BadParameter if it is taken."""
    for wanted in [PORT, 0] if port is None else [port]:
        try:
            return socket.create_server((host, wanted))
        except OSError as error:
            code = error.errno or 0  # negative where no such host is known
            why = os.strerror(code) if code > 0 else str(error)
    way = "give another --port, or 0 for any free one"
    if host != HOST:
        way += ", and a --host that is an address of this machine"
    raise BadParameter(f"cannot listen at {host}, port {wanted}: {why}; {way}")
