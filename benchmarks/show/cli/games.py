"""``llm-games play``, ``list``, ``show`` and ``serve-tiny``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from llm_games.benchmarks.show.cli.common import PLAIN, AsJson, BaseUrl, console, say, value
from llm_games.benchmarks.show.cli.serve import Host, Limit, Port, guests_of
from llm_games.errors import BadParameter

Game = Annotated[str, Argument(help="a game, see llm-games list")]


def play(
    game: Game,
    seat: Annotated[int, value("N", "where you sit, from 0")] = 0,
    against: Annotated[
        list[str] | None,
        value("SPEC", "player for all other seats; repeat it to name one for each"),
    ] = None,
    params: Annotated[
        list[str] | None,
        value("KEY=VALUE", "parameter of the game; can be repeated", "--param", "--params"),
    ] = None,
    talk: Annotated[
        list[str] | None,
        value("KEY=VALUE", "of talk before moves, such as turns=1; can be repeated", "--talk"),
    ] = None,
    seed: Annotated[
        int | None, value("N", "all chance comes from it; drawn if none", min=0)
    ] = None,
    prompts: Annotated[str, value("VERSION", "wording: v1 to v5")] = "v1",
    base_url: BaseUrl = None,
    db: Annotated[
        Path | None, value("FILE", "file to record in; by default a new one in this folder")
    ] = None,
    browser: Annotated[bool, Option("--browser", help="play on a page, by a link")] = False,
    limit: Limit = None,
    port: Port = None,
    host: Host = None,
) -> None:
    """Play a game yourself, here or in a browser, and see what a best reply had brought.

    It is recorded as a run of one episode. Ctrl-D or Ctrl-C leaves; what was played is kept.

    For instance: llm-games play public_goods --param players=4 --param rounds=5
    """
    import secrets

    from llm_games.benchmarks.record.store import check_free
    from llm_games.benchmarks.run.conduct import fresh, go_on
    from llm_games.benchmarks.show.cli import human_play
    from llm_games.registry import rulebook
    from llm_games.wrappers.human import HumanPolicy, PersonLeft

    raw = human_play.entries(params or (), talk or ())
    rules = rulebook(game, **human_play.parameters(game, raw))
    server = {} if base_url is None else {"base_url": base_url}
    seed = secrets.randbelow(2**31) if seed is None else seed
    path, code = db or fresh(rules.name), 0
    person = {"player": "human", "prompts": prompts} if browser else HumanPolicy(prompts=prompts)
    if limit is not None:
        if not browser:
            raise BadParameter("--limit is for a person at a link: give --browser too")
        raw["guests"] = {"limit": limit}
    plan = human_play.planned(rules, raw, seat, person, against or (), server=server, seed=seed)
    check_free(path)
    try:
        with guests_of(plan, path, browser, port=port, host=host, open_it=True) as served:
            human_play.record(served, path)
    except (PersonLeft, KeyboardInterrupt) as ending:
        code = 130 if isinstance(ending, KeyboardInterrupt) else 0
        say("\nyou have left the table")
        if browser and path.exists():
            say(go_on(path, "--browser"))
    if path.exists():
        _show_played(path, seat, prompts)
    raise Exit(code)


def _show_played(path: Path, seat: int, prompts: str) -> None:
    from llm_games.benchmarks.judge.result_table import ResultTable, columns
    from llm_games.benchmarks.show.cli import human_play
    from llm_games.benchmarks.show.tables import moves_table
    from llm_games.wrappers.human import show

    game = human_play.played(path, seat, prompts)
    if game.payoffs:
        show(f"\n{game.report}")
        console().print(ResultTable(columns("seat, player", "payoff", ".2f"), game.payoffs))
    if game.moves:
        console().print(moves_table(game.moves))
    if game.best:
        console().print(f"best reply in your place, {game.best}", **PLAIN)
    console().print(f"recorded in {path}: llm-games view {path}", soft_wrap=True, **PLAIN)


def list_all(as_json: AsJson = False) -> None:
    """List the games, and the experiments to run."""
    from llm_games.benchmarks.judge.result_table import ResultTable, columns
    from llm_games.benchmarks.run.config import experiments
    from llm_games.registry import list_games

    rows = list_games()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    heads = columns("name, title, players, moves, source")
    console().print(ResultTable(heads, [[row[head] for head in heads] for row in rows]))
    for group, names in experiments().items():
        text = f"run {group}, or {group}/NAME: {', '.join(names)}"
        console().print(text, **PLAIN)


def show(
    game: Game,
    prompts: Annotated[str, Option(help="wording of the sample prompt")] = "v1",
    as_json: AsJson = False,
) -> None:
    """Show a game: its parameters with default and range, and what a player reads."""
    from llm_games.benchmarks.show.cli.show import about, grids
    from llm_games.registry import game_class
    from llm_games.words import versions

    rules = game_class(game)
    facts = about(rules, prompts)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    terminal = console()
    description = " ".join((rules.__doc__ or "").partition("\n\n")[2].split()).replace("``", "")
    terminal.print(f"{rules.title} ({rules.source}). {description}", **PLAIN)
    if facts["seats"]:
        terminal.print(f"Seats are not worth the same: {facts['seats']}.", **PLAIN)
    for caveat in facts["caveats"]:
        terminal.print(caveat, **PLAIN)
    for grid in grids(rules, facts):
        terminal.print(grid)
        terminal.print()
    terminal.print(
        f"Wordings: {', '.join(versions(rules.name))}. The first seat reads in {prompts}:"
    )
    for heading, text in facts["sample"].items():
        terminal.print(f"\n[{heading}]\n{text}", **PLAIN)


def serve_tiny(
    host: Annotated[str, Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="port to listen on")] = 8000,
) -> None:
    """Serve the embedded tiny model to OpenAI-compatible clients until interrupted."""
    from llm_games.baselines.tiny.server import serve

    says = f"tiny, a toy model, answers at http://{host}:{port}/v1 (Ctrl-C stops it)"
    serve(host, port, ready=lambda: say(says))
