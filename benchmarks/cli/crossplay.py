"""Every player with each: ``crossplay``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Exit, Option

from llm_games.benchmarks.cli import run
from llm_games.benchmarks.cli.common import PLAIN, AsJson, OpenIt, Quiet, console, say, value

if TYPE_CHECKING:
    from llm_games.benchmarks.runs.crossplay import CrossPlayed, Ready


def crossplay(
    context: Context,
    source: Annotated[str, Argument(metavar="FILE", help="a TOML file with players and a game")],
    episodes: Annotated[int | None, value("N", "of each line-up")] = None,
    seed: Annotated[int | None, value("N", "all randomness comes from it")] = None,
    db: Annotated[
        Path | None,
        value("FILE", "where models' answers are kept; by default named after the TOML file"),
    ] = None,
    cache: run.CacheFile = None,
    no_cache: run.NoCache = False,
    budget_calls: run.Calls = None,
    budget_tokens: run.Tokens = None,
    budget_money: run.Money = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="print how much would be played; play nothing")
    ] = False,
    report_to: run.ReportTo = None,
    open_it: OpenIt = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Play every player of a file with each, and solve the game between them.

    The same command goes on where one was stopped.
    """
    from llm_games.benchmarks.runs.crossed import Crossed
    from llm_games.benchmarks.runs.crossplay import plan_of, prepared

    given = {name: str(v) for name, v in run.costs(context).items() if name == "cache" and v}
    limits = {"calls": budget_calls, "tokens": budget_tokens, "money": budget_money}
    budget = {name: limit for name, limit in limits.items() if limit is not None}
    plan = plan_of(source, episodes=episodes, seed=seed, budget=budget or None, **given)
    path = db or plan.file()
    out = path.with_suffix("") if report_to is None and open_it else report_to
    if out is not None and not dry_run:
        from llm_games.benchmarks.report import check_out

        check_out(out)
    ready = prepared(plan, path)
    if dry_run:
        _dry_run(ready, as_json)
        return
    if (why := plan.uneven()) and not (quiet or as_json):
        say(f"seats are not worth the same: {why}")
    if ready.run is not None:
        asked, hushed = ready.run, quiet or as_json
        again = f"llm-games crossplay {shlex.quote(source)}" + f" --db {path}" * (db is not None)
        run.carry_out(ready.open, path, asked, not no_cache, hushed, ready.resumed, again)
    with console(stderr=True).status("line-ups that ask nobody, offline"):
        played = ready.played()
    crossed = Crossed(played.cross)
    if as_json:
        print(json.dumps(crossed.plain() | {"db": played.db and str(played.db)}, default=float))
    elif not quiet:
        for grid in (crossed.standings(), *crossed.solved()):
            console().print(grid, "")
        if played.db:
            where = f"recorded in {path}; every decision: llm-games view {path}"
            console().print(where, soft_wrap=True, **PLAIN)
    if out is not None:
        _write(played, out, open_it, quiet or as_json)


def _dry_run(ready: Ready, as_json: bool) -> None:
    """Print how many line-ups and episodes there are, and what models would be asked."""
    from llm_games.benchmarks.runs.estimate import added, estimate
    from llm_games.benchmarks.runs.plan import players

    many, plan = ready.plan.about.episodes, ready.run
    told: dict[str, Any] = {"lineups": len(ready.plan.counts), "asked": len(ready.asked)}
    told |= {"episodes": many * told["lineups"], "episodes asked": many * told["asked"]}
    if plan is not None:
        unasked = plan.without_keys()
        rows = estimate(unasked, players(unasked, unasked.shared(use_cache=False)))
        for name, find in (("low", "low"), ("high", "high")):
            total = added(getattr(row, find) for row in rows)
            told[name] = {"calls": total.calls, "tokens": total.tokens, "money": str(total.money)}
    if as_json:
        print(json.dumps(told))
        return
    write = console().print
    write(f"{told['lineups']:,} line-ups of {ready.plan.rules.players} seats, {many} episodes each")
    if plan is not None:
        low, high = told["low"], told["high"]
        write(
            f"{told['asked']:,} of them ask a model, {low['calls']:,} to {high['calls']:,} calls, "
            f"{low['tokens']:,} to {high['tokens']:,} tokens"
        )
    write("Nothing was played.")


def _write(played: CrossPlayed, out: Path, open_it: bool, quiet: bool) -> None:
    """Write the page, say where it is, and open it if asked for."""
    from llm_games.benchmarks.report import ReportIncomplete
    from llm_games.benchmarks.report.crossplay import page

    missing = None
    try:
        path = page(played, out)
    except ReportIncomplete as error:
        path, missing = error.path, error
    if not quiet or missing:
        say(f"report: {path}")
    if open_it:
        import webbrowser

        webbrowser.open(path.absolute().as_uri())
    if missing:
        say(f"error: the report is incomplete:\n{missing}")
        raise Exit(1)
