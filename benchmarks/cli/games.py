"""``llm-games play``, ``list`` and ``show``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from llm_games.benchmarks.cli.common import PLAIN, AsJson, BaseUrl, console, say


def play(
    game: Annotated[str, typer.Argument(help="a game, see llm-games list")],
    seat: Annotated[int, typer.Option(metavar="N", help="where you sit, from 0")] = 0,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC", help="player for all other seats; repeat it to name one for each"
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="parameter of the game; can be repeated"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="all chance comes from it; drawn if none")
    ] = None,
    prompts: Annotated[str, typer.Option(metavar="VERSION", help="wording: v1 to v5")] = "v1",
    base_url: BaseUrl = None,
) -> None:
    """Play a game yourself, in this terminal. Ctrl-D or Ctrl-C leaves.

    For instance: llm-games play public_goods --params players=4 --params rounds=5
    """
    from llm_games.benchmarks.cli.human_play import PersonsGame, opponents, parameters
    from llm_games.benchmarks.cli.tables import moves_table
    from llm_games.benchmarks.runs.grid import Grid, columns
    from llm_games.registry import rulebook
    from llm_games.wrappers.human import HumanPolicy, PersonLeft

    rules = rulebook(game, **parameters(game, params or ()))
    others = opponents(rules, against or (), {} if base_url is None else {"base_url": base_url})
    table = PersonsGame(rules, seat, HumanPolicy(prompts=prompts), others)
    try:
        episode = table.play(_drawn_seed() if seed is None else seed)
    except (PersonLeft, KeyboardInterrupt):
        say("\nyou have left the table; nothing was recorded")
        return
    terminal = console()
    terminal.print(Grid(columns("seat, player", "payoff", ".2f"), table.payoffs(episode)))
    if table.moves:
        terminal.print(moves_table(table.moves))


def list_all(as_json: AsJson = False) -> None:
    """List the games, and the experiments to run."""
    from llm_games.benchmarks.runs.config import experiments
    from llm_games.registry import list_games

    rows = list_games()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from llm_games.benchmarks.runs.grid import Grid, columns

    heads = columns("name, title, players, moves, source")
    console().print(Grid(heads, [[row[head] for head in heads] for row in rows]))
    for group, names in experiments().items():
        text = f"run {group}, or {group}/NAME: {', '.join(names)}"
        console().print(text, soft_wrap=True, **PLAIN)


def show(
    game: Annotated[str, typer.Argument(help="a game, see llm-games list")],
    prompts: Annotated[str, typer.Option(help="wording of the sample prompt")] = "v1",
    as_json: AsJson = False,
) -> None:
    """Show a game: its parameters with default and range, and what a player reads."""
    from llm_games.baselines.players import players_for
    from llm_games.benchmarks.cli.show import parameters, sample, wordings
    from llm_games.registry import game_class

    found, known = game_class(game), parameters(game)
    texts = sample(game, prompts)
    if as_json:
        plain = [row._asdict() | {"default": str(row.default)} for row in known]
        about: dict[str, Any] = {"name": found.name, "title": found.title, "source": found.source}
        presets = {name: repr(dict(values)) for name, values in found.presets.items()}
        about |= {"presets": presets, "players": players_for(found.name)}
        print(json.dumps(about | {"parameters": plain, "sample": dict(texts)}, indent=2))
        return
    from llm_games.benchmarks.cli.tables import game_tables

    terminal = console()
    terminal.print(f"{found.title} ({found.source}). {_first_lines(found)}", **PLAIN)
    for table in game_tables(known, found.presets, players_for(found.name)):
        terminal.print(table)
        terminal.print()
    terminal.print(f"Wordings: {', '.join(wordings(game))}. The first seat reads in {prompts}:")
    for heading, text in texts:
        terminal.print(f"\n[{heading}]\n{text}", **PLAIN)


def _drawn_seed() -> int:
    import secrets

    return secrets.randbelow(2**31)


def _first_lines(found: type) -> str:
    """Return the description in a game's docstring, on one line."""
    paragraphs = (found.__doc__ or "").split("\n\n")
    return " ".join(" ".join(paragraphs[1:]).split()).replace("``", "")
