"""``llm-games types``."""

from __future__ import annotations

import json
from typing import Annotated

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli.common import by_label, console, value


def types(
    db: common.Database,
    game: common.Labels = None,
    looked_for: Annotated[
        list[str] | None,
        value("SPEC", "a type, as level_k:2; can be repeated (the game's rules)", "--type"),
    ] = None,
    as_json: common.AsJson = False,
) -> None:
    """Say which rules stand behind the moves of a run's players, and how sure that is.

    Each seat is of one type, with errors; beside the types stands a rule that follows the last
    round. Where neither is likely, or the record cannot tell, it says so.
    """
    from llm_games.benchmarks.judge.player_types import player_types
    from llm_games.benchmarks.judge.type_tables import FEW_ROWS, type_grids
    from llm_games.benchmarks.record.queries import Records

    with Records.open_readonly(db) as records:
        recorded = by_label(records, game or ())
        players = [
            player
            for recorded_game in recorded.values()
            for player in player_types(recorded_game, tuple(looked_for or ()))
        ]
    if as_json:
        print(json.dumps([player.plain() for player in players]))
        return
    for grid in type_grids(players, FEW_ROWS):
        console().print(grid)
