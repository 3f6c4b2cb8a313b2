"""``llm-games run`` and ``resume``."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Exit, Option

from llm_games.benchmarks.show.cli import common, serve
from llm_games.benchmarks.show.cli.common import PLAIN, console, say, value, values_of

if TYPE_CHECKING:
    from llm_games.benchmarks.record.store import Store
    from llm_games.benchmarks.run.conduct import Conductor
    from llm_games.benchmarks.run.plan import RunPlan

ReportTo = Annotated[Path | None, value("DIR", "write a report there after the run", "--report")]
CacheFile = Annotated[
    Path | None, value("FILE", "keep replies at temperature 0 there and never ask for them again")
]
NoCache = Annotated[bool, Option("--no-cache", help="keep no replies and use none")]
Calls = Annotated[int | None, value("N", "stop before there are more calls of models")]
Tokens = Annotated[int | None, value("N", "of prompts and replies")]
Money = Annotated[float | None, value("X", "in the currency of the prices; of known ones dollars")]
PerSeat = Annotated[int | None, value("N", "so many for each seat of a game")]
MoneyPerSeat = Annotated[float | None, value("X", "so much for each seat of a game")]
MaxWait = Annotated[
    float | None, value("S", "seconds for which one call waits for its server in all (600)")
]
Workers = Annotated[
    int | None, value("N", "processes that play it, each with its share of limits; by default 1")
]
RayHead = Annotated[
    str | None, value("HOST:PORT", "head of a Ray cluster that has the workers; else they are here")
]
Assigned = Annotated[
    list[str] | None,
    value("NAME=VALUE", "any setting of a model's player, as in TOML; can be repeated", "--set"),
]

Params = Annotated[
    list[str] | None, value("KEY=VALUE", "parameter of all its games; can be repeated", "--param")
]
Talk = Annotated[
    list[str] | None,
    value("KEY=VALUE", "of talk in all its games: turns=2, or turns=0; can be repeated", "--talk"),
]

NEAREST = 12
"""Frames of a traceback that are shown: those of somebody's own code are the last."""


def run(
    context: Context,
    source: Annotated[
        str,
        Argument(
            metavar="FILE|NAME",
            help="a TOML file, or a name from `llm-games list`: gamma-bench, econ-arena/melee, ...",
        ),
    ],
    seat: Annotated[
        list[str] | None,
        value("SPEC", "player for all seats, as vllm/NAME; repeat it to name one for each"),
    ] = None,
    game: Annotated[
        list[str] | None, value("GAME", "play only this game of the file; can be repeated")
    ] = None,
    episodes: Annotated[int | None, value("N", "of each game")] = None,
    seed: Annotated[int | None, value("N", "all randomness comes from it")] = None,
    isomorphs: Annotated[
        int | None,
        value("K", "tell each game in K ways, of other words and units, and say what it changes"),
    ] = None,
    db: Annotated[
        Path | None, value("FILE", "file to record in; by default a new one in this folder")
    ] = None,
    temperature: Annotated[
        str | None, value("T", "sampling temperature, 0 to 2, or default: the server's own")
    ] = None,
    prompts: Annotated[str | None, value("VERSION", "wording: v1 to v5")] = None,
    reasoning: Annotated[
        bool | None, Option("--reasoning/--no-reasoning", help="ask for an explanation first")
    ] = None,
    persona: Annotated[
        str | None, value("WHO", "cooperative, selfish, mathematician, or a sentence")
    ] = None,
    memory: Annotated[
        str | None, value("N", "past decisions in the dialogue: full, none or a number")
    ] = None,
    ask: Annotated[
        list[str] | None,
        value("KIND", "graded questions after each move: payoff, reply, ...; can be repeated"),
    ] = None,
    scoring: common.Scoring = None,
    base_url: common.BaseUrl = None,
    max_wait: MaxWait = None,
    assigned: Assigned = None,
    params: Params = None,
    talk: Talk = None,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    budget_calls: Calls = None,
    budget_tokens: Tokens = None,
    budget_money: Money = None,
    budget_calls_per_seat: PerSeat = None,
    budget_tokens_per_seat: PerSeat = None,
    budget_money_per_seat: MoneyPerSeat = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="print what would be played and asked; play nothing")
    ] = False,
    as_json: common.AsJson = False,
    report_to: ReportTo = None,
    open_it: common.OpenIt = False,
    baselines: common.Baselines = True,
    workers: Workers = None,
    ray: RayHead = None,
    part: Annotated[
        str | None, value("K/N", "play the K-th of N parts of it, for llm-games merge")
    ] = None,
    quiet: common.Quiet = False,
    browser: serve.Browser = False,
    port: serve.Port = None,
    host: serve.Host = None,
) -> None:
    """Play the games of a file and record everything.

    Offline at once: llm-games run gamma-bench --episodes 1
    """
    from llm_games.benchmarks.record.store import check_free
    from llm_games.benchmarks.run.conduct import fresh, start
    from llm_games.benchmarks.run.plan import Overrides, plan_of
    from llm_games.benchmarks.run.processes import by_workers

    named = ["episodes", "seed", "prompts", "reasoning", "persona", "scoring", "base_url"]
    named += ["max_wait", "part", "isomorphs"]
    options = {name: context.params[name] for name in named} | costs(context)
    options |= {"memory": _number(memory), "temperature": _number(temperature)}
    options |= {
        "ask": ask or None,
        "params": values_of("--param", params),
        "talk": values_of("--talk", talk),
    }
    overrides = Overrides.of(seats=seat, games=game, **options)
    settings = {**overrides.settings, **values_of("--set", assigned, overrides.settings)}
    plan = plan_of(source, replace(overrides, settings=settings))
    if dry_run:
        _dry_run(plan, as_json)
        return
    path = db or fresh(source)
    check_free(path)
    _check_report(path, context.params)
    with serve.guests_of(plan, path, browser, port=port, host=host) as served:
        by = by_workers(workers, served, not no_cache, ray)
        carry_out(lambda: start(served, path), path, served, not no_cache, quiet or as_json, by=by)
    _finish(path, context.params)


def resume(
    context: Context,
    db: common.Database,
    episodes: Annotated[
        int | None, value("N", "prolong it to so many of each game; `compare` will say so")
    ] = None,
    max_wait: MaxWait = None,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    budget_calls: Calls = None,
    budget_tokens: Tokens = None,
    budget_money: Money = None,
    budget_calls_per_seat: PerSeat = None,
    budget_tokens_per_seat: PerSeat = None,
    budget_money_per_seat: MoneyPerSeat = None,
    as_json: common.AsJson = False,
    report_to: ReportTo = None,
    open_it: common.OpenIt = False,
    baselines: common.Baselines = True,
    workers: Workers = None,
    ray: RayHead = None,
    quiet: common.Quiet = False,
    browser: serve.Browser = False,
    port: serve.Port = None,
    host: serve.Host = None,
) -> None:
    """Finish a run that was interrupted, or prolong one; what is recorded is not asked again."""
    from llm_games.benchmarks.record.store import Records, Store
    from llm_games.benchmarks.record.worker_files import folder
    from llm_games.benchmarks.run.plan import Overrides
    from llm_games.benchmarks.run.processes import by_workers, check_workers
    from llm_games.benchmarks.run.resume import planned, prolong

    with Records.open_readonly(db) as records:
        plan = planned(records).with_costs(Overrides.of(**costs(context)))
        plan = plan.with_patience(max_wait).with_objects({})
    _check_report(db, context.params)
    check_workers(workers)
    if episodes is not None:
        prolong(db, episodes)
        plan = plan.longer(episodes)
    with Records.open_readonly(db) as records:
        owed = plan.owed(records.episodes())
    if owed or folder(db).exists():
        silent = quiet or as_json
        with serve.guests_of(plan, db, browser, port=port, host=host) as served:
            by = by_workers(workers, served, not no_cache, ray)
            carry_out(lambda: Store.open(db), db, served, not no_cache, silent, resumed=True, by=by)
    elif not as_json:
        say(f"{db} is complete, nothing is left to play")
    _finish(db, context.params)


def _number(text: str | None) -> Any:
    """Read a number; leave a word, or nothing, as it is."""
    for kind in (int, float):
        with suppress(TypeError, ValueError):
            return kind(text)  # type: ignore[arg-type]
    return text


def costs(context: Context) -> dict[str, Any]:
    from llm_games.benchmarks.record.checked_table import ConfigError

    params = context.params
    if params["cache"] is not None and params["no_cache"]:
        raise ConfigError("--cache FILE and --no-cache contradict each other: give only one")
    return {name: params[name] for name in params if name.startswith(("cache", "budget_"))}


def _dry_run(plan: RunPlan, as_json: bool) -> None:
    from llm_games.benchmarks.judge.surface_shares import power_grid
    from llm_games.benchmarks.run.estimate import estimate, fits
    from llm_games.benchmarks.run.needed import needed, needed_grids
    from llm_games.benchmarks.run.plan import players
    from llm_games.benchmarks.show.tables import budget_lines, estimate_table
    from llm_games.wrappers.clients.stack import layers
    from llm_games.wrappers.guests import Guests
    from llm_games.wrappers.llm_policy import LLMPolicy

    unasked = plan.without_keys().model_copy(update={"links": Guests([])})
    shared = unasked.shared(use_cache=False)
    policies, budget = players(unasked, shared), shared.ledger.budget
    with console(stderr=True).status("playing a mute table of each game, offline"):
        rows = estimate(unasked, policies)
    if as_json:
        summary = {"plan": plan.model_dump(), "estimate": [row.plain() for row in rows]}
        summary["prices"] = {name: price.plain() for name, price in shared.ledger.prices.items()}
        summary["budget"] = dict(fits(budget, rows))
        summary["needed"] = [row.plain() for row in needed(plan)]
        if isomorphic := plan.isomorphic():
            summary["surface"] = list(power_grid(isomorphic).dicts())
        print(json.dumps(summary, default=str))  # money is exact, in words
        return
    terminal = console()
    terminal.print(f"{plan.title}, seed {plan.seed}: {_seat_counts(plan)}", **PLAIN)
    terminal.print(estimate_table(rows))
    if plan.batched:
        waves = max(row.chain for row in rows)
        say_waves = f"{waves} waves or more, each of a day at most"
        terminal.print(f"In batches, at half the price: {say_waves}", **PLAIN)
    for line in budget_lines(budget, rows):
        terminal.print(line, **PLAIN)
    clients = [list(layers(p.client))[-1] for p in policies.values() if isinstance(p, LLMPolicy)]
    served = {client.name for client in clients if hasattr(client, "base_url")}
    if unpriced := ", ".join(sorted(served - shared.ledger.prices.keys())):
        terminal.print(f"No price is known of {unpriced}: see [prices]", **PLAIN)
    for grid in needed_grids(needed(plan)):
        terminal.print(grid)
    if isomorphic := plan.isomorphic():
        terminal.print(power_grid(isomorphic))
    for line in _notes(plan):
        terminal.print(line, **PLAIN)
    terminal.print("Re-asks after bad replies come on top. Nothing was played.")


def carry_out(
    open_store: Callable[[], Store],
    path: Path,
    plan: RunPlan,
    use_cache: bool,
    quiet: bool,
    *,
    resumed: bool = False,
    by: Conductor | None = None,
) -> None:
    """Play what is left; turn an early end into its message and exit code."""
    from llm_games.benchmarks.record.checked_table import ConfigError
    from llm_games.benchmarks.record.connection import StoreError, Unwritable
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.spending import Spending, unsure
    from llm_games.benchmarks.run.conduct import (
        RunStopped,
        Terminated,
        go_on,
        play_run,
        seated_players,
    )
    from llm_games.benchmarks.run.progress_bar import progress

    way = go_on(path, "--browser" if plan.links else "")

    def report_stop(text: str) -> None:
        say(text)
        with suppress(StoreError), Records.open_readonly(path) as records:
            if lost := unsure(Spending(records).total):
                say(lost)

    with seated_players(plan, use_cache) as policies:
        if not quiet and any(s.player.startswith("tiny") for g in plan.games for s in g.seats):
            say("tiny is a toy model that shows how things work: no result for a leaderboard")
        if plan.batched and not quiet:
            say(
                f"{plan.batched} is asked in batches, each of which may take a day; stop at any "
                f"time, and go on with: llm-games resume {path}"
            )
        for line in () if quiet else _notes(plan):
            say(line)
        try:
            with progress(console(stderr=True), quiet) as watch:
                play_run(open_store, plan, policies, watch, resumed, by=by)
        except KeyboardInterrupt as stop:
            ended = isinstance(stop, Terminated)
            how = "terminated" if ended else "interrupted"
            report_stop(f"\n{how}; {way if path.exists() else 'nothing was run'}")
            raise Exit(143 if ended else 130) from None
        except (RunStopped, Unwritable) as error:
            if not path.exists():
                raise
            hint = f"\n{way}" if isinstance(error, Unwritable) else ""
            report_stop(f"stopped: {error}{hint}")
            raise Exit(1) from None
        except (StoreError, ConfigError):  # a file, or a model that does not answer
            raise
        except Exception:  # such as of somebody's own player
            if not path.exists():
                raise
            say(traceback.format_exc(limit=-NEAREST).rstrip())
            report_stop(f"stopped by an error; {way}")
            raise Exit(1) from None


def _finish(path: Path, options: Mapping[str, Any]) -> None:
    """Show what was played, as the options of `run` and `resume` say; ends with an exit code."""
    from llm_games.benchmarks.judge.paper import only_owner
    from llm_games.benchmarks.judge.results import run_results, total
    from llm_games.benchmarks.record.recorded_games import games as read_games
    from llm_games.benchmarks.record.spending import Spending
    from llm_games.benchmarks.record.store import Records
    from llm_games.benchmarks.run.resume import planned
    from llm_games.benchmarks.show.tables import run_tables, spent_lines

    as_json, quiet, open_it = (options[name] for name in ("as_json", "quiet", "open_it"))
    prints = not (as_json or quiet)
    waiting = nullcontext() if quiet else console(stderr=True).status("reference rows, offline")
    games, paper_tables, page, code = [], [], None, 0
    with Records.open_readonly(path) as records:
        usage, spent = records.usage(), Spending(records)
        estimated = spent.estimated
        try:
            with waiting:
                recorded = read_games(records)
                paper = only_owner(recorded)
                if paper and (as_json or prints):
                    paper_tables = list(paper.tables(recorded))
                whole = paper is not None and paper.whole
                beside = as_json or (prints and not paper_tables)
                if as_json or not whole:
                    games = run_results(records, options["baselines"] and not whole and beside)
        except KeyboardInterrupt:
            say(f"\ninterrupted; all is recorded in {path}; a report: llm-games report {path}")
            raise Exit(130) from None
        except Exception as error:  # such as of a paper's score; the record and its report stand
            say(f"error: the results cannot be shown: {type(error).__name__}: {error}")
            games, paper_tables, code = [], [], 1
    overall = total(games)
    if prints:
        terminal, plan = console(), planned(records)
        terminal.print(f"{records.title}: {_seat_counts(plan)}", **PLAIN)
        for table in run_tables(games, overall, paper_tables):
            terminal.print(table)
        for line in spent_lines(spent.models, estimated):
            terminal.print(line, soft_wrap=True, **PLAIN)
        message = f"recorded in {path}; every decision: llm-games view {path}"
        message += f"; a report: llm-games report {path}"
        if any(rules.core is not rules for rules in (game.rules() for game in plan.games)):
            message += f"; how players talked: llm-games analyse talk {path}"
        terminal.print(message, soft_wrap=True, **PLAIN)
    if out := _report_of(path, options):
        baselines = options["baselines"]
        page, missing = common.write_report([path], out, open_it, not prints, baselines=baselines)
        code = max(code, missing)
    if as_json:
        kinds = ("models", spent.models), ("seats", spent.seats)
        summary = {
            "db": str(path),
            "report": page and str(page),
            "overall": overall and overall.plain(),
            "games": [game.plain() for game in games],
            "tables": {grid.name: list(grid.dicts()) for grid in paper_tables},
            "usage": usage,
            "estimated": estimated,
            "spent": {
                kind: {name: s.plain() for name, s in named.items()} for kind, named in kinds
            },
        }
        print(json.dumps(summary))
    raise Exit(code)


def _report_of(path: Path, options: Mapping[str, Any]) -> Path | None:
    """Beside the run's file unless a place is named; None: nowhere."""
    out: Path | None = options["report_to"]
    return path.with_suffix(".html") if out is None and options["open_it"] else out


def _check_report(path: Path, options: Mapping[str, Any]) -> None:
    """Before anything is played and paid for."""
    if out := _report_of(path, options):
        from llm_games.benchmarks.show.page import check_out

        check_out(out)


def _notes(plan: RunPlan) -> list[str]:
    """Settings that players ignore, and players whose seats are unevenly good."""
    labels_by_note: dict[str, list[str]] = {}
    for game in plan.games:
        for why in (game.ignored, game.uneven()):
            labels_by_note.setdefault(why, []).append(game.label)
    return [f"{'; '.join(labels)}: {why}" for why, labels in labels_by_note.items() if why]


def _seat_counts(plan: RunPlan) -> str:
    """Number of seats of each player, over all games."""
    seats = Counter(seat.name for game in plan.games for seat in game.seats)
    each = ", ".join(f"{name} in {n} seat{'s' * (n > 1)}" for name, n in seats.items())
    return each if len(seats) > 1 else f"{next(iter(seats))} in all seats"
