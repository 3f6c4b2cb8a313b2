"""``llm-games leaderboard``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument

from llm_games.benchmarks.show.cli.common import AsJson, Scoring, console


def leaderboard(
    db: Annotated[
        list[Path],
        Argument(metavar="FILE|FOLDER", help="the .db files of runs, or folders of them"),
    ],
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Rank the players of many runs, table by table, beside rational and random play."""
    from contextlib import ExitStack

    from llm_games.benchmarks.judge.leaderboard import files, leaderboard
    from llm_games.benchmarks.judge.paper import edition_of
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.recorded_games import read

    with ExitStack() as stack:
        records = [stack.enter_context(Records.open_readonly(path)) for path in files(db)]
        edition = scoring or edition_of(records[0].config)
        board = leaderboard((read(file, edition) for file in records), edition)
        if as_json:
            print(json.dumps(board.plain()))
            return
        for grid in board.grids():
            console().print(grid, "")
