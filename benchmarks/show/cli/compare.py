"""``llm-games compare``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from llm_games.benchmarks.show.cli.common import PLAIN, AsJson, Scoring, console

if TYPE_CHECKING:
    from llm_games.benchmarks.judge.result_table import ResultTable


def compare(
    a: Annotated[Path, Argument(metavar="A", help="the .db file of a run")],
    b: Annotated[Path, Argument(metavar="B", help="that of another run of the same games")],
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs game by game, over the episodes that both played with the same seed."""
    from llm_games.benchmarks.judge.compare import TESTS, VALUES, compare

    comparison, grids = compare(a, b, scoring), _surfaces({"A": a, "B": b}, scoring)
    if as_json:
        surfaces = {name: list(grid.dicts()) for name, grid in grids.items()}
        print(json.dumps(comparison.plain() | ({"surface": surfaces} if surfaces else {})))
        return
    terminal = console()
    terminal.print(f"A: {a}\nB: {b}", **PLAIN)
    if a.resolve() == b.resolve():
        terminal.print("A and B are one file: nothing can differ.", **PLAIN)
    terminal.print(comparison.grid(*VALUES))
    terminal.print(comparison.grid(*TESTS))
    for name, grid in grids.items():
        terminal.print(f"{name}, which was played in isomorphs:", **PLAIN)
        terminal.print(grid)
    for game in comparison.games:
        for note in (*game.notes, *game.alone):
            terminal.print(f"{game.label}: {note}", **PLAIN)


def _surfaces(runs: Mapping[str, Path], scoring: str | None) -> dict[str, ResultTable]:
    """The share of the surface in runs that were played in isomorphs, by name."""
    from llm_games.benchmarks.judge.paper import edition_of
    from llm_games.benchmarks.judge.surface_shares import surface_grid
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.recorded_games import games

    grids: dict[str, ResultTable] = {}
    for name, path in runs.items():
        with Records.open_readonly(path) as records:
            if grid := surface_grid(games(records), scoring or edition_of(records.config)):
                grids[name] = grid
    return grids
