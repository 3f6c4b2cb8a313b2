"""``llm-games analyse collusion``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Context, Exit, Option

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli import run as running
from llm_games.benchmarks.show.cli.common import console, say, value


def collusion(
    context: Context,
    db: common.Database,
    game: common.Labels = None,
    seat: Annotated[
        list[int] | None,
        value("SEAT", "whose price is forced, from 0; by default each in turn; can be repeated"),
    ] = None,
    at: Annotated[
        int | None, value("ROUND", "the round, from 0; by default the middle one")
    ] = None,
    by: Annotated[
        str | None,
        value("X|best", "how far down and up; best: down to the best reply (half to the cartel)"),
    ] = None,
    times: Annotated[int, value("K", "branches of each, for players that draw")] = 1,
    beside: Annotated[
        list[str] | None,
        value("SPEC", "a rule player in all seats from there on; can be repeated (those known)"),
    ] = None,
    alone: Annotated[bool, Option("--alone", help="no rule players beside")] = False,
    new_db: Annotated[Path | None, value("FILE", "a new file for the branches", "--db")] = None,
    cache: running.CacheFile = None,
    no_cache: running.NoCache = False,
    budget_calls: running.Calls = None,
    budget_tokens: running.Tokens = None,
    budget_money: running.Money = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="print what it would ask of models; play nothing")
    ] = False,
) -> None:
    """Force a price down and up where firms compete, and see what the others answer.

    Branches of the run with equal chance: with the price as it was, with a cut, with a raise. Given
    the file of such branches, nothing is played.
    """
    from llm_games.benchmarks.judge.impulse_responses import impulse_responses, response_table
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.recorded_games import games
    from llm_games.benchmarks.record.store import check_free
    from llm_games.benchmarks.run import conduct
    from llm_games.benchmarks.run.estimate import branch_estimates
    from llm_games.benchmarks.run.plan import Overrides
    from llm_games.benchmarks.run.price_probes import PriceProbes
    from llm_games.benchmarks.show.tables import estimate_table

    with Records.open_readonly(db) as records:
        played = any(recorded.planned.get("branch") for recorded in games(records))
    path = db
    if not played:
        path = new_db or conduct.fresh(f"{db.stem}-collusion")
        check_free(path)
        others = [] if alone else beside or None
        costs = Overrides.of(**running.costs(context))
        probes = PriceProbes(seat or None, at, by, times, others)
        plan = probes.planned(db, path.parent, game or (), {}).with_costs(costs)
        if dry_run:
            rows = branch_estimates(plan, path)
            if as_json:
                print(json.dumps([row.plain() for row in rows]))
            else:
                console().print(estimate_table(rows))
            raise Exit(0)
        silent = quiet or as_json
        running.carry_out(lambda: conduct.start(plan, path), path, plan, not no_cache, silent)
    with Records.open_readonly(path) as records:
        responses = impulse_responses(games(records))
    if as_json:
        plain = [response.plain() for response in responses]
        print(json.dumps({"db": str(path), "responses": plain}))
    else:
        console().print(response_table(responses))
        if not played:
            say(f"recorded in {path}; every decision: llm-games view {path}")
