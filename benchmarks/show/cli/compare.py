"""``llm-games compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument

from llm_games.benchmarks.show.cli.common import PLAIN, AsJson, Scoring, console


def compare(
    a: Annotated[Path, Argument(metavar="A", help="the .db file of a run")],
    b: Annotated[Path, Argument(metavar="B", help="that of another run of the same games")],
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs game by game, over the episodes that both played with the same seed."""
    from llm_games.benchmarks.judge.compare import TESTS, VALUES, compare

    comparison = compare(a, b, scoring)
    if as_json:
        print(json.dumps(comparison.plain()))
        return
    terminal = console()
    terminal.print(f"A: {a}\nB: {b}", **PLAIN)
    if a.resolve() == b.resolve():
        terminal.print("A and B are one file: nothing can differ.", **PLAIN)
    terminal.print(comparison.grid(*VALUES))
    terminal.print(comparison.grid(*TESTS))
    for game in comparison.games:
        for note in (*game.notes, *game.alone):
            terminal.print(f"{game.label}: {note}", **PLAIN)
