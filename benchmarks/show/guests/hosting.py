"""A run's links, served while it is played; they outlive a restart in a file beside the run."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.plan import RunPlan
from llm_games.benchmarks.show.guests.guest_door import LARGEST_BODY
from llm_games.benchmarks.show.view.access import HOSTS
from llm_games.benchmarks.show.view.serve import HOST, LARGEST, listening
from llm_games.errors import BadParameter, LLMGamesError, install
from llm_games.wrappers.guests import Guests, GuestSeat, Joined

LAST_LOOK = 3.0
"""Seconds for which links are served after the end, for pages to read the results."""


class GuestsExtraMissing(LLMGamesError, ImportError):
    """Starlette, uvicorn or websockets is missing."""

    def __init__(self, error: ImportError) -> None:
        super().__init__(f"seats for guests need `{install('serve')}` ({error})")


class Hosted:
    """A run whose links are served: its plan, and the addresses by seat."""

    def __init__(self, plan: RunPlan, guests: Guests, address: str) -> None:
        self.plan, self.guests, self.address = plan, guests, address

    @property
    def links(self) -> dict[str, str]:
        seats = self.guests.seats.items()
        return {name: f"{self.address}/seat/{seat.token}" for name, seat in seats}

    def end(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Let each link show what its games came to, and give its pages time to read it."""
        for name, seat in self.guests.seats.items():
            seat.end(results.get(name, {}))
        time.sleep(LAST_LOOK)


@contextmanager
def hosted(
    plan: RunPlan,
    path: Path,
    *,
    host: str = HOST,
    port: int | None = None,
    ready: Callable[[Hosted], None] = lambda hosted: None,
) -> Iterator[Hosted]:
    """Serve the links of a run in a thread. Raises BadParameter: nobody is to join, or the port.

    Links are those of the file beside the run, if it has them for the same seats; it is removed
    once the run is complete.
    """
    try:
        import uvicorn
        import websockets  # noqa: F401

        from llm_games.benchmarks.show.guests.guest_app import guest_app
    except ImportError as error:
        raise GuestsExtraMissing(error) from error
    kinds, settings = plan.guest_kinds(), plan.guests
    if not kinds:
        raise BadParameter(
            "nobody joins this run by a link: no seat has the player human or program; "
            'give one, such as seats = ["human", "tiny"], or leave --browser out'
        )
    if host in ("0.0.0.0", "::", ""):
        raise BadParameter(f"--host {host}: give the address by which others reach this machine")
    listener = listening(port, host)
    tokens, joined = _tokens(path, [*kinds]), _joined(path)
    options: Any = {"consent": settings.consent or "", "pseudonyms": settings.pseudonyms}
    seats = [GuestSeat(name, kinds[name], tokens[name], **options) for name in kinds]
    for seat in seats:
        seat.joined = joined.get(seat.name)
    guests = Guests(seats, settings.limit)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        guest_app(guests, host),
        log_level="critical",
        access_log=False,
        http="h11",
        h11_max_incomplete_event_size=LARGEST,
        ws_max_size=LARGEST_BODY,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    run: Any = {"sockets": [listener]}
    thread = threading.Thread(target=server.run, kwargs=run, name="links", daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        mine = Hosted(plan.model_copy(update={"links": guests}), guests, address)
        ready(mine)
        yield mine
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
        if _complete(path):
            links_file(path).unlink(missing_ok=True)


def links_file(path: Path) -> Path:
    """Return the file of a run's tokens."""
    return path.with_name(f"{path.name}.links")


def is_abroad(host: str) -> bool:
    return host not in HOSTS


def _tokens(path: Path, names: list[str]) -> dict[str, str]:
    """Return the token of each seat: as written down, else new ones, which are written down."""
    file = links_file(path)
    with suppress(OSError, ValueError):
        tokens = json.loads(file.read_text("utf-8"))
        if isinstance(tokens, dict) and [*tokens] == names:
            return tokens
    tokens = {name: secrets.token_urlsafe(32) for name in names}
    file.unlink(missing_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadParameter(f"{file} cannot be written, which keeps the links: {error}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as writing:
        json.dump(tokens, writing)
    return tokens


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
