"""A run's links, served while it is played; they outlive a restart in a file beside the run."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.plan import RunPlan
from llm_games.benchmarks.show.view.serve import HOST, LARGEST, listening
from llm_games.errors import BadParameter, LLMGamesError, install
from llm_games.wrappers.guests import Guests, GuestSeat, Joined

LAST_LOOK = 3.0
"""Seconds for which links are served after the end, for pages to read the results."""


OPTIONS: dict[str, Any] = {
    "log_level": "critical",
    "access_log": False,
    "h11_max_incomplete_event_size": LARGEST,
    "ws_max_size": LARGEST,
    "timeout_graceful_shutdown": 1,
}
CONNECTIONS = 64, 8
"""At a time in all, and more for each link: tabs, and what browsers keep."""


class GuestsExtraMissing(LLMGamesError, ImportError):
    """Starlette, uvicorn or websockets is missing."""

    def __init__(self, error: ImportError) -> None:
        super().__init__(f"seats for guests need `{install('serve')}` ({error})")


class Kept(NamedTuple):
    """What outlives a restart of a run's links."""

    host: str
    port: int | None
    tokens: dict[str, str]


class Hosted:
    """A run whose links are served: its plan, and the addresses by seat."""

    def __init__(self, plan: RunPlan, guests: Guests, kept: Kept) -> None:
        from llm_games.benchmarks.show.view.access import HOSTS

        self.plan, self.guests, self.is_abroad = plan, guests, kept.host not in HOSTS
        host = f"[{kept.host}]" if ":" in kept.host else kept.host
        self.address = f"http://{host}:{kept.port}"

    @property
    def links(self) -> dict[str, str]:
        seats = self.guests.seats.items()
        return {name: f"{self.address}/seat/{seat.token}" for name, seat in seats}

    def end(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Let each link show what its games came to, and give its pages time to read it."""
        for name, seat in self.guests.seats.items():
            seat.end(results.get(name, {}))
        with suppress(KeyboardInterrupt):  # all is recorded
            time.sleep(LAST_LOOK)


@contextmanager
def hosted(
    plan: RunPlan,
    path: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    ready: Callable[[Hosted], None] = lambda hosted: None,
) -> Iterator[Hosted]:
    """Serve the links of a run in a thread, to this machine alone by default.

    Links, with host and port, are those of the file beside the run, if it has them for the same
    seats. It is removed once the run is complete, or ends before it begins. Raises BadParameter:
    nobody is to join, another process serves these links, or the port cannot be had.
    """
    try:
        import uvicorn
        import websockets  # noqa: F401

        from llm_games.benchmarks.show.guests.guest_app import guest_app
        from llm_games.benchmarks.show.guests.guest_door import Connection
    except ImportError as error:
        raise GuestsExtraMissing(error) from error
    if not plan.guest_kinds():
        raise BadParameter(
            "nobody joins this run by a link: no seat has the player human or program; "
            'give one, such as seats = ["human", "tiny"], or run it without links'
        )
    if host in ("0.0.0.0", "::", ""):
        raise BadParameter(f"--host {host}: give the address by which others reach this machine")
    with _kept(plan, path, host, port) as (kept, listener):
        guests = Guests(_seats(plan, path, kept), plan.guests.limit)
        http: Any = partial(Connection, CONNECTIONS[0] + CONNECTIONS[1] * len(guests.seats))
        app = guest_app(guests, kept.host)
        server = uvicorn.Server(uvicorn.Config(app, http=http, **OPTIONS))
        run: Any = {"sockets": [listener]}
        thread = threading.Thread(target=server.run, kwargs=run, name="links", daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            mine = Hosted(plan.model_copy(update={"links": guests}), guests, kept)
            ready(mine)
            yield mine
        finally:
            server.should_exit = True
            thread.join()


def links_file(path: Path) -> Path:
    """Return the file of a run's tokens."""
    return path.with_name(f"{path.name}.links")


@contextmanager
def _kept(
    plan: RunPlan, path: Path, host: str | None, port: int | None
) -> Iterator[tuple[Kept, socket]]:
    """Hold the file of a run's links, and their port; no other process can at the same time."""
    file = links_file(path)
    held = _held(file)
    try:
        with closing(held):
            kept = _read(held, [*plan.guest_kinds()])
            with listening(kept.port if port is None else port, host or kept.host) as listener:
                kept = Kept(host or kept.host, listener.getsockname()[1], kept.tokens)
                held.execute("DELETE FROM kept")
                held.execute("INSERT INTO kept VALUES (?)", (json.dumps(kept._asdict()),))
                held.execute("COMMIT")
                yield kept, listener
    finally:
        if not path.exists() or _complete(path):
            file.unlink(missing_ok=True)


def _held(file: Path) -> sqlite3.Connection:
    """Open a file of links; as long as it is open, no other process can."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        file.chmod(0o600)
        held = sqlite3.connect(file, timeout=0, isolation_level=None)
        held.execute("PRAGMA locking_mode = EXCLUSIVE")
        held.execute("BEGIN EXCLUSIVE")
        held.execute("CREATE TABLE IF NOT EXISTS kept (links TEXT)")
    except (OSError, sqlite3.DatabaseError) as error:
        fault = f"{file}, which keeps the links, cannot be used: {error}"
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            fault = f"another process serves the links in {file}: wait until it ends, or stop it"
        raise BadParameter(fault) from None
    return held


def _read(held: sqlite3.Connection, names: list[str]) -> Kept:
    """Return what is kept for seats of these names, else new tokens."""
    for (text,) in held.execute("SELECT links FROM kept"):
        kept = Kept(**json.loads(text))
        if [*kept.tokens] == names:
            return kept
    return Kept(HOST, None, {name: secrets.token_urlsafe(32) for name in names})


def _seats(plan: RunPlan, path: Path, kept: Kept) -> list[GuestSeat]:
    """Return the seats of a run's links, with whom the record has there."""
    options: Any = {"consent": plan.guests.consent or "", "pseudonyms": plan.guests.pseudonyms}
    seats = [GuestSeat(n, k, kept.tokens[n], **options) for n, k in plan.guest_kinds().items()]
    joined = _joined(path)
    for seat in seats:
        seat.joined = joined.get(seat.name)
    return seats


def _joined(path: Path) -> dict[str, Joined]:
    if not path.exists():
        return {}
    with Records.open_readonly(path) as records:
        return {row.seat: Joined(*vars(row).values()) for row in records.guests()}


def _complete(path: Path) -> bool:
    if not path.exists():
        return False
    with Records.open_readonly(path) as records:
        return all(row.status in ("done", "void") for row in records.episodes())
