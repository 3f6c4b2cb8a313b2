"""``llm-games branch``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Context, Exit, Option

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli import run as running
from llm_games.benchmarks.show.cli.common import EXAMPLES, console, say, value, values_of


def branch(
    context: Context,
    db: common.Database,
    place: Annotated[
        str, value("LABEL/NUMBER/STEP", "the decision: game, episode and step, from 0", "--at")
    ],
    players: Annotated[
        list[str] | None,
        value("SEAT=SPEC", "another player from there on; can be repeated", "--seat"),
    ] = None,
    assigned: Annotated[
        list[str] | None,
        value("SEAT.NAME=VALUE", "another setting of a model's player, as 0.prompts=v2", "--set"),
    ] = None,
    moves: Annotated[
        list[str] | None,
        value("SEAT=MOVE", "what a seat does at that step in place of what it did", "--move"),
    ] = None,
    texts: Annotated[
        list[str] | None,
        value("SEAT=TEXT", "what a model reads there in place of its last message", "--text"),
    ] = None,
    asked: Annotated[
        int | None, value("SEAT", "only ask this seat again, and play no further", "--ask")
    ] = None,
    times: Annotated[int, value("K", "episodes; more than one have seeds of their own")] = 1,
    chance: Annotated[
        str, value("WHICH", "recorded, or fresh: what nobody had seen is drawn anew")
    ] = "recorded",
    new_db: Annotated[Path | None, value("FILE", "a new file for the branch", "--db")] = None,
    cache: running.CacheFile = None,
    no_cache: running.NoCache = False,
    budget_calls: running.Calls = None,
    budget_tokens: running.Tokens = None,
    budget_money: running.Money = None,
    budget_calls_per_seat: running.PerSeat = None,
    budget_tokens_per_seat: running.PerSeat = None,
    budget_money_per_seat: running.MoneyPerSeat = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="print the plan and what it would ask of models; play nothing"),
    ] = False,
) -> None:
    """Play on from a decision of a recorded run, with something changed, as a run of its own.

    All before that step, what others did at it, and by default chance, stay as recorded. The run is
    left alone.
    """
    from llm_games.benchmarks.run.api import Results, branch_plan
    from llm_games.benchmarks.run.branch import Changes
    from llm_games.benchmarks.run.conduct import start
    from llm_games.benchmarks.run.estimate import branch_estimates

    specs = _by_seat("--seat", values_of("--seat", players))
    changes = Changes(
        seats={seat: str(spec) for seat, spec in specs.items()},
        settings=_settings(assigned),
        moves=_by_seat("--move", values_of("--move", moves)),
        texts=_by_seat(
            "--text", {s: t for s, _, t in (pair.partition("=") for pair in texts or ())}
        ),
        asked=asked,
        times=times,
        chance=chance,
    )
    costs = running.costs(context)
    plan, path = branch_plan(db, place, new_db, changes=changes, overrides=costs, own={})
    if dry_run:
        plain = {"plan": plan.model_dump(), "estimate": branch_estimates(plan, path)[0].plain()}
        print(json.dumps(plain, default=str))
        return
    running.carry_out(lambda: start(plan, path), path, plan, not no_cache, quiet or as_json)
    outcomes = Results(path).branch
    if as_json:
        print(json.dumps({"db": str(path), "seats": [outcome.plain() for outcome in outcomes]}))
    elif not quiet:
        from llm_games.benchmarks.show.tables import branch_table

        console().print(branch_table(outcomes))
        say(f"recorded in {path}; every decision: llm-games view {path}")
    raise Exit(0)


def _by_seat(flag: str, values: dict[str, Any]) -> dict[int, Any]:
    from llm_games.benchmarks.record.checked_table import ConfigError

    for seat in values:
        if not (seat.isascii() and seat.isdigit()):
            form = f"write SEAT=VALUE, such as {EXAMPLES[flag]}"
            raise ConfigError(f"{flag} {seat}=...: {form}")
    return {int(seat): value for seat, value in values.items()}


def _settings(pairs: list[str] | None) -> dict[int, dict[str, Any]]:
    from llm_games.benchmarks.record.checked_table import ConfigError

    settings: dict[int, dict[str, Any]] = {}
    for name, setting in values_of("--set", pairs).items():
        seat, dot, key = name.partition(".")
        if not dot or not (seat.isascii() and seat.isdigit()):
            form = "write SEAT.NAME=VALUE, such as 0.prompts=v2"
            raise ConfigError(f"--set {name}=...: {form}")
        settings.setdefault(int(seat), {})[key] = setting
    return settings
