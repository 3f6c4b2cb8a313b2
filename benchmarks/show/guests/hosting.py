"""A run's links, served while it is played; they outlive a restart in a file beside the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.plan import RunPlan
from llm_games.benchmarks.show.guests.kept_links import Kept, LinksFile, kept_links
from llm_games.benchmarks.show.view.serve import LARGEST
from llm_games.errors import BadParameter, LLMGamesError, install
from llm_games.wrappers.guest_seat import GuestSeat, Joined
from llm_games.wrappers.guests import Guests

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
) -> Iterator[Hosted]:
    """Serve the links of a run in a thread, to this machine alone by default.

    Raises BadParameter: nobody is to join, or what `kept_links` raises.
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
    with kept_links(path, [*plan.guest_kinds()], host, port) as links, ExitStack() as bells:
        guests = Guests(_seats(plan, path, links.kept), plan.guests.limit)
        for seat in guests.seats.values():
            bells.enter_context(seat.ringing(partial(_note, links, guests)))
        http: Any = partial(Connection, CONNECTIONS[0] + CONNECTIONS[1] * len(guests.seats))
        app = guest_app(guests, links.kept.host)
        server = uvicorn.Server(uvicorn.Config(app, http=http, **OPTIONS))
        run: Any = {"sockets": [links.listener]}
        thread = threading.Thread(target=server.run, kwargs=run, name="links", daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            if not server.started:
                raise LLMGamesError("the links could not be served; the terminal says why")
            mine = Hosted(plan.model_copy(update={"links": guests}), guests, links.kept)
            yield mine
        finally:
            server.should_exit = True
            thread.join()


def _note(links: LinksFile, guests: Guests) -> None:
    left = [name for name, seat in guests.seats.items() if seat.left]
    if left != [*links.kept.left]:
        links.write(left)


def _seats(plan: RunPlan, path: Path, kept: Kept) -> list[GuestSeat]:
    """Return the seats of a run's links, with whom the record has there."""
    options: Any = {"consent": plan.guests.consent or "", "pseudonyms": plan.guests.pseudonyms}
    seats = [GuestSeat(n, k, kept.tokens[n], **options) for n, k in plan.guest_kinds().items()]
    joined = _joined(path)
    for seat in seats:
        seat.joined = joined.get(seat.name)
        seat.has_begun, seat.left = seat.joined is not None, seat.name in kept.left
    return seats


def _joined(path: Path) -> dict[str, Joined]:
    if not path.exists():
        return {}
    with Records.open_readonly(path) as records:
        return {row.seat: Joined(*vars(row).values()) for row in records.guests()}
