"""``llm-games serve`` and ``seat``, and what lets guests into a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from llm_games.benchmarks.show.cli.common import say, value, values_of
from llm_games.errors import BadParameter

if TYPE_CHECKING:
    from llm_games.benchmarks.run.plan import RunPlan

Browser = Annotated[
    bool, Option("--browser", help="let people and programs in by links (players human, program)")
]
Port = Annotated[
    int | None, value("N", "port of the links; 0 takes any free one", min=0, max=65535)
]
Host = Annotated[
    str | None, value("ADDRESS", "let others than this machine in, by this address of it")
]
Limit = Annotated[
    float | None, value("S", "seconds for an answer; then the game's own move is played")
]


@contextmanager
def guests_of(
    plan: RunPlan,
    path: Path,
    browser: bool = True,
    *,
    port: int | None = None,
    host: str | None = None,
    open_it: bool = False,
) -> Iterator[RunPlan]:
    """Serve a run's links while it is played, and show its results there; without, do nothing."""
    if not browser:
        if port is not None or host is not None:
            raise BadParameter("--port and --host are of links: give --browser too")
        yield plan
        return
    from llm_games.benchmarks.show.cli.human_play import results_of_guests
    from llm_games.benchmarks.show.guests.hosting import hosted

    with hosted(plan, path, host=host, port=port) as serving:
        if serving.is_abroad:
            say("warning: whoever has a link can play; nothing of it is encrypted on its way")
        for name, link in serving.links.items():
            say(f"{name}: {link}")
        say(f"for programs: {serving.address}/ (every link keeps to itself who plays by it)")
        if open_it and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(next(iter(serving.links.values())))
        yield serving.plan
        serving.end(results_of_guests(path, plan))


def serve(
    source: Annotated[str, Argument(metavar="GAME|FILE", help="a game, or the TOML file of a run")],
    seat: Annotated[
        list[str] | None,
        value("SPEC", "player for all seats; repeat it to name one for each (a game: program)"),
    ] = None,
    params: Annotated[
        list[str] | None, value("KEY=VALUE", "parameter of the game; can be repeated", "--param")
    ] = None,
    talk: Annotated[
        list[str] | None, value("KEY=VALUE", "of talk before moves; can be repeated", "--talk")
    ] = None,
    episodes: Annotated[int | None, value("N", "of each game")] = None,
    seed: Annotated[int | None, value("N", "all randomness comes from it")] = None,
    limit: Limit = None,
    port: Port = None,
    host: Host = None,
    db: Annotated[
        Path | None, value("FILE", "file to record in; by default a new one in this folder")
    ] = None,
) -> None:
    """Let programs and people play, by links: JSON over HTTP, MCP or OpenEnv, and pages.

    It is recorded as a run, and ends with it. For instance: llm-games serve public_goods --seat
    program --seat human --seat tiny --param players=3
    """
    from llm_games.benchmarks.record.store import check_free
    from llm_games.benchmarks.run.conduct import fresh, start
    from llm_games.benchmarks.run.config import experiments, load
    from llm_games.benchmarks.run.plan import Overrides, plan_of
    from llm_games.benchmarks.show.cli.run import carry_out
    from llm_games.errors import unknown
    from llm_games.game_rooms import ROOMS

    is_game = source in ROOMS and not Path(source).is_file()
    if not is_game and "." not in source and "/" not in source and source not in experiments():
        raise unknown("game or file", source, ROOMS)
    raw: dict[str, Any] = {"games": [{"game": source}], "seats": ["program"]}
    raw = {"title": f"{source}, served"} | raw if is_game else load(source)
    if limit is not None:
        raw = raw | {"guests": {**raw.get("guests", {}), "limit": limit}}
    parts = {"params": values_of("--param", params), "talk": values_of("--talk", talk)}
    plan = plan_of(raw, Overrides.of(seats=seat or (), episodes=episodes, seed=seed, **parts))
    path = db or fresh(source)
    check_free(path)
    with guests_of(plan, path, port=port, host=host) as served:
        carry_out(lambda: start(served, path), path, served, use_cache=True, quiet=False)
    say(f"recorded in {path}; every decision: llm-games view {path}")


def seat(
    link: Annotated[str, Argument(metavar="LINK", help="as the run's terminal printed it")],
) -> None:
    """Pass a link on to an agent that speaks MCP over stdin and stdout, as desktop ones do.

    Its configuration names this command; the tools are observe and act.
    """
    from urllib.error import URLError
    from urllib.request import urlopen

    from llm_games.errors import LLMGamesError, install

    try:
        from llm_games.benchmarks.show.guests.guest_tools import relay
    except ImportError as error:
        raise LLMGamesError(f"MCP needs `{install('mcp')}` ({error})") from None
    try:
        urlopen(f"{link}/sees", timeout=30).close()
    except (URLError, ValueError, OSError) as error:
        raise BadParameter(f"nobody answers at {link}: {error}; is the run still on?") from None
    relay(link).run("stdio")
