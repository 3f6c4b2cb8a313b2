"""The command line: ``llm-games``."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm_games.benchmarks.cli.rate import rate
from llm_games.errors import LLMGamesError

if TYPE_CHECKING:
    from rich.console import Console

    from llm_games.benchmarks.runs.plan import Overrides, Plan
    from llm_games.benchmarks.runs.store import Store
    from llm_games.wrappers.clients.cache import ReplyCache
    from llm_games.wrappers.clients.stack import Shared

HELP = """Economic and strategic games for language models, learners and equilibria.

Exit codes:

0  done

1  stopped early, since the model or the disk failed or the budget is spent; go on with:
llm-games resume FILE (of a replay: something differs)

2  something is wrong with what was asked; the message says what and the way out

130  interrupted with Ctrl-C; go on with: llm-games resume FILE
"""

app = typer.Typer(
    help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)

PLAIN: dict[str, Any] = {"markup": False, "highlight": False}
"""For text that is to be printed as it is."""
Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="a TOML file, or a name from `llm-games list`: gamma-bench, econ-arena/melee, ...",
    ),
]
Database = Annotated[Path, typer.Argument(metavar="FILE", help="the .db file of a run")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")]
SHOWN = 20
"""Differences that a replay prints; the rest is counted."""
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress bar, no table")]
ReportTo = Annotated[
    Path | None, typer.Option("--report", metavar="DIR", help="write a report there after the run")
]
Scoring = Annotated[
    str | None,
    typer.Option(metavar="EDITION", help="formulas of the scores: corrected, published, v4 or v2"),
]
OpenIt = Annotated[bool, typer.Option("--open", help="open the report in a browser")]
CacheFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="keep replies at temperature 0 there and never ask for them again"
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="keep no replies and use none")]
BudgetCalls = Annotated[
    int | None, typer.Option(metavar="N", help="stop before there are more calls of models")
]
BudgetTokens = Annotated[int | None, typer.Option(metavar="N", help="of prompts and replies")]
BudgetMoney = Annotated[
    float | None, typer.Option(metavar="X", help="in the currency of the prices in the file")
]
BudgetCallsPerSeat = Annotated[
    int | None, typer.Option(metavar="N", help="so many for each seat of a game")
]
BudgetTokensPerSeat = Annotated[
    int | None, typer.Option(metavar="N", help="so many for each seat of a game")
]
BudgetMoneyPerSeat = Annotated[
    float | None, typer.Option(metavar="X", help="so much for each seat of a game")
]
ReplyFile = Annotated[Path, typer.Argument(metavar="FILE", help="a file of replies")]


replies = typer.Typer(no_args_is_help=True)
app.add_typer(replies, name="cache", help="Look into a file of kept replies, or shrink it.")


def main() -> None:
    """Run the command line; what a user can cause ends with one message and exit code 2."""
    try:
        app()
    except LLMGamesError as error:
        _say(f"error: {error}")
        raise SystemExit(2) from None


def _version(wanted: bool) -> None:
    if wanted:
        from llm_games import __version__

        print(f"llm-games {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    context: typer.Context,
    source: Source,
    seat: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="player for all seats; repeat it to name one for each"),
    ] = None,
    game: Annotated[
        list[str] | None,
        typer.Option(metavar="GAME", help="play only this game of the file; can be repeated"),
    ] = None,
    episodes: Annotated[int | None, typer.Option(metavar="N", help="of each game")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="all randomness comes from it")
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="file to record in; by default a new one in this folder"),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="sampling temperature, 0 to 2")
    ] = None,
    prompts: Annotated[
        str | None, typer.Option(metavar="VERSION", help="wording: v1 to v5")
    ] = None,
    reasoning: Annotated[
        bool | None, typer.Option("--reasoning/--no-reasoning", help="ask for an explanation first")
    ] = None,
    persona: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="cooperative, selfish, mathematician, or a sentence"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="N", help="past decisions in the dialogue: full, none or a number"),
    ] = None,
    scoring: Scoring = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="the OpenAI-compatible server of openai:MODEL players"),
    ] = None,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    budget_calls_per_seat: BudgetCallsPerSeat = None,
    budget_tokens_per_seat: BudgetTokensPerSeat = None,
    budget_money_per_seat: BudgetMoneyPerSeat = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print what would be played and asked; play nothing")
    ] = False,
    as_json: AsJson = False,
    report_to: ReportTo = None,
    open_it: OpenIt = False,
    quiet: Quiet = False,
) -> None:
    """Play the games of a file and record everything.

    Offline at once: llm-games run gamma-bench --episodes 1
    """
    from llm_games.benchmarks.runs.plan import Overrides

    settings = {
        "temperature": temperature,
        "prompts": prompts,
        "reasoning": reasoning,
        "persona": persona,
        "memory": int(memory) if memory is not None and memory.isdecimal() else memory,
        "base_url": base_url,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    plan = _plan(source, Overrides(seat or (), game or (), episodes, seed, given, scoring))
    plan = _with_costs(plan, context)
    if dry_run:
        _dry_run(plan, as_json)
        return
    from llm_games.benchmarks.runs.run import start
    from llm_games.benchmarks.runs.store import check_free

    path = db or _fresh(source)
    check_free(path)
    _check_report(report_to, open_it)
    shared = plan.shared(use_cache=not no_cache)
    _play(lambda: start(plan, path), path, plan, shared, quiet or as_json)
    _finish(path, as_json, quiet, report_to, open_it)


@app.command()
def resume(
    context: typer.Context,
    db: Database,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    budget_calls_per_seat: BudgetCallsPerSeat = None,
    budget_tokens_per_seat: BudgetTokensPerSeat = None,
    budget_money_per_seat: BudgetMoneyPerSeat = None,
    as_json: AsJson = False,
    report_to: ReportTo = None,
    open_it: OpenIt = False,
    quiet: Quiet = False,
) -> None:
    """Finish a run that was interrupted; what is recorded is not asked again."""
    from llm_games.benchmarks.runs.run import planned
    from llm_games.benchmarks.runs.store import Records, Store

    _check_report(report_to, open_it)
    with Records.open_readonly(db) as records:
        plan = _with_costs(planned(records), context)
        owed = [e for e in records.episodes() if e.status in ("pending", "running")]
    if owed:
        shared = plan.shared(use_cache=not no_cache)
        _play(lambda: Store.open(db), db, plan, shared, quiet or as_json, resumed=True)
    elif not as_json:
        _say(f"{db} is complete, nothing is left to play")
    _finish(db, as_json, quiet, report_to, open_it)


@app.command()
def report(
    db: Annotated[list[Path], typer.Argument(metavar="FILE...", help="the .db files of runs")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="folder, or HTML file")
    ] = Path("report.html"),
    comparing: Annotated[
        bool, typer.Option("--compare", help="compare two runs, episode by episode")
    ] = False,
    scoring: Scoring = None,
    open_it: OpenIt = False,
) -> None:
    """Write one HTML page with scores, plots and replies of one run or several.

    Beside it: its figures as SVG and PNG, and its numbers as CSV.
    """
    _report(db, out, open_it, scoring=scoring, comparing=comparing)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="the .db file of a run")],
    b: Annotated[Path, typer.Argument(metavar="B", help="that of another run of the same games")],
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs game by game, over the episodes that both played with the same seed."""
    from llm_games.benchmarks.runs.compare import compare

    found = compare(a, b, scoring)
    if as_json:
        print(json.dumps([game.plain() for game in found]))
        return
    from llm_games.benchmarks.cli.tables import comparison_table

    console = _console()
    console.print(f"A: {a}\nB: {b}", **PLAIN)
    console.print(comparison_table(found))
    if all(game.score is None and game.payoff is None for game in found):
        console.print("A and B have no finished episode of the same game in common", **PLAIN)
    for game in found:
        for note in (*game.notes, *game.alone):
            console.print(f"{game.label}: {note}", **PLAIN)


@app.command()
def replay(db: Database, as_json: AsJson = False) -> None:
    """Play a recorded run again without its models and compare everything bit for bit.

    Exit code 1: something differs, and is named.
    """
    from llm_games import __version__
    from llm_games.benchmarks.runs.replay import replay
    from llm_games.benchmarks.runs.store import Records

    with Records.open_readonly(db) as records:
        done, made_by = replay(records), records.package
    if made_by != __version__:
        _say(
            f"{db} was made by llm-games {made_by}, this is {__version__}: wordings and rules may "
            f"have changed; to compare with those of then: pip install llm-games=={made_by}"
        )
    if as_json:
        print(json.dumps({"db": str(db), "package": made_by} | dataclasses.asdict(done)))
    else:
        print(done.summary())
        for difference in done.differences[:SHOWN]:
            print(difference)
        if len(done.differences) > SHOWN:
            print(f"and {len(done.differences) - SHOWN} more; all of them with --json")
    raise typer.Exit(1 if done.differences else 0)


@app.command()
def watch(db: Database) -> None:
    """Follow a run that is going on, from another terminal; Ctrl-C leaves the run alone."""
    from llm_games.benchmarks.runs.watch import watch

    try:
        stand = watch(db, _console())
    except KeyboardInterrupt:
        _say(f"\nno longer watching; the run goes on, look again with: llm-games watch {db}")
        return
    if not stand.complete:
        _say(f"{db} is not complete and nobody plays it; go on with: llm-games resume {db}")


@app.command()
def export(
    db: Database,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="folder; its tables are replaced")
    ],
    form: Annotated[str, typer.Option("--format", help="csv or parquet")] = "csv",
) -> None:
    """Write episodes, steps, decisions and attempts (with their prompts) as tables."""
    from llm_games.benchmarks.runs.export import export
    from llm_games.benchmarks.runs.store import Records

    with Records.open_readonly(db) as records:
        for path, count in export(records, out, form).items():
            print(f"{path}: {count} rows")


app.command()(rate)


@app.command()
def play(
    game: Annotated[str, typer.Argument(help="a game, such as public_goods")],
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
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="the OpenAI-compatible server of openai:MODEL players"),
    ] = None,
) -> None:
    """Play a game yourself, in this terminal. Ctrl-D or Ctrl-C leaves.

    For instance: llm-games play public_goods --params players=4 --params rounds=5
    """
    from llm_games.benchmarks.cli.human_play import Table, opponents, parameters
    from llm_games.benchmarks.cli.tables import moves_table, payoffs_table
    from llm_games.registry import rulebook
    from llm_games.wrappers.human import HumanPolicy, PersonLeft

    rules = rulebook(game, **parameters(game, params or ()))
    settings = {} if base_url is None else {"base_url": base_url}
    others = opponents(rules, against or (), settings)
    table = Table(rules, seat, HumanPolicy(prompts=prompts), others)
    try:
        episode = table.play(_drawn_seed() if seed is None else seed)
    except (PersonLeft, KeyboardInterrupt):
        _say("\nyou have left the table; nothing was recorded")
        return
    console = _console()
    console.print(payoffs_table(table.payoffs(episode)))
    if table.moves:
        console.print(moves_table(table.moves))


@app.command("list")
def list_games(as_json: AsJson = False) -> None:
    """List the games, and the experiments to run."""
    from llm_games.benchmarks.runs.config import experiments
    from llm_games.registry import games

    rows = games()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from llm_games.benchmarks.cli.tables import games_table

    _console().print(games_table(rows))
    for group, names in experiments().items():
        text = f"run {group}, or {group}/NAME: {', '.join(names)}"
        _console().print(text, soft_wrap=True, **PLAIN)


@app.command()
def show(
    game: Annotated[str, typer.Argument(help="a game, such as public_goods")],
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
    from llm_games.benchmarks.cli.tables import parameters_table, players_for_table, presets_table

    console = _console()
    console.print(f"{found.title} ({found.source}). {_first_lines(found)}", **PLAIN)
    for table in (
        parameters_table(known),
        presets_table(found.presets),
        players_for_table(players_for(found.name)),
    ):
        console.print(table)
        console.print()
    console.print(f"Wordings: {', '.join(wordings(game))}. The first seat reads in {prompts}:")
    for heading, text in texts:
        console.print(f"\n[{heading}]\n{text}", **PLAIN)


@replies.command("list")
def list_replies(file: ReplyFile, as_json: AsJson = False) -> None:
    """List the models whose replies a file keeps."""
    with closing(_replies(file)) as kept:
        rows = kept.contents()
    if as_json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    from llm_games.benchmarks.cli.tables import replies_table

    _console().print(replies_table(rows))


@replies.command()
def prune(
    file: ReplyFile,
    older_than: Annotated[
        float, typer.Option(metavar="DAYS", help="only replies that are older; 0: all")
    ] = 0.0,
) -> None:
    """Drop replies from a file, by default all."""
    from llm_games.errors import BadParameter

    if not 0 <= older_than < float("inf"):
        raise BadParameter(f"--older-than must be a number of days from 0, not {older_than}")
    with closing(_replies(file)) as kept:
        print(f"{kept.prune(older_than=older_than * 86_400)} replies dropped from {file}")


@app.command("serve-tiny")
def serve_tiny(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="port to listen on")] = 8000,
) -> None:
    """Serve the embedded tiny model to OpenAI-compatible clients until interrupted."""
    from llm_games.baselines.tiny.server import serve

    says = f"tiny, a toy model, answers at http://{host}:{port}/v1 (Ctrl-C stops it)"
    serve(host, port, ready=lambda: _say(says))


# -- parts of the commands ------------------------------------------------------------------------


def _plan(source: str, overrides: Overrides) -> Plan:
    from llm_games.benchmarks.runs.config import load, parse
    from llm_games.benchmarks.runs.plan import resolve

    return resolve(parse(overrides.apply(load(source)), source), source, overrides)


def _with_costs(plan: Plan, context: typer.Context) -> Plan:
    """Return the plan with the cache and the limits that the command line names."""
    from llm_games.benchmarks.runs.config import ConfigError

    given = {name: value for name, value in context.params.items() if value is not None}
    if "cache" in given:
        if given["no_cache"]:
            raise ConfigError("--cache FILE and --no-cache contradict each other: give only one")
        plan = plan.model_copy(update={"cache": str(given["cache"])})
    start = "budget_"
    limits = {name[len(start) :]: given[name] for name in given if name.startswith(start)}
    return plan.with_budget(**limits) if limits else plan


def _replies(file: Path) -> ReplyCache:
    from llm_games.wrappers.clients.cache import CacheError, ReplyCache

    if not file.exists():
        raise CacheError(f"there is no file {file}; one is made by: llm-games run … --cache {file}")
    return ReplyCache(file)


def _dry_run(plan: Plan, as_json: bool) -> None:
    from llm_games.benchmarks.cli.tables import estimate_table
    from llm_games.benchmarks.runs.estimate import estimate
    from llm_games.benchmarks.runs.plan import players

    unasked = plan.without_keys()
    rows = estimate(unasked, players(unasked, unasked.shared(use_cache=False)))
    if as_json:
        print(json.dumps({"plan": plan.model_dump(), "estimate": [r.__dict__ for r in rows]}))
        return
    console = _console()
    console.print(f"{plan.title}, seed {plan.seed}: {_who(plan)}", **PLAIN)
    console.print(estimate_table(rows))
    console.print("Re-asks after bad replies come on top. Nothing was played.")


def _play(
    open_store: Callable[[], Store],
    path: Path,
    plan: Plan,
    shared: Shared,
    quiet: bool,
    resumed: bool = False,
) -> None:
    """Play what is left; turn an early end into its message and exit code."""
    from llm_games.benchmarks.runs.plan import players
    from llm_games.benchmarks.runs.progress import progress
    from llm_games.benchmarks.runs.run import RunStopped, play_run
    from llm_games.benchmarks.runs.store import Unwritable

    made = players(plan, shared)
    if not quiet and any(seat.player.startswith("tiny") for g in plan.games for seat in g.seats):
        _say("tiny is a toy model that shows how things work: no result for a leaderboard")
    how = f"all that happened is in {path}; go on with: llm-games resume {path}"
    try:
        with progress(_console(stderr=True), quiet) as watch:
            play_run(open_store, plan, made, watch, resumed)
    except KeyboardInterrupt:
        _say(f"\ninterrupted; {how}" if path.exists() else "\ninterrupted; nothing was run")
        raise typer.Exit(130) from None
    except (RunStopped, Unwritable) as error:
        if not path.exists():
            raise
        _say(f"stopped: {error}\n{how} {getattr(error, 'flags', '')}".rstrip())
        raise typer.Exit(1) from None
    finally:
        if shared.replies is not None:
            shared.replies.close()


def _finish(path: Path, as_json: bool, quiet: bool, report_to: Path | None, open_it: bool) -> None:
    """Print what a run came to, and write the report that was asked for."""
    from llm_games.benchmarks.runs.run import planned
    from llm_games.benchmarks.runs.store import Records
    from llm_games.benchmarks.runs.summary import spending, summary, total

    with Records.open_readonly(path) as records:
        games, usage, spent = summary(records), records.usage(), spending(records.spent())
    page = None
    if not as_json and not quiet:
        from llm_games.benchmarks.cli.tables import players_table, spending_table, summary_table

        console = _console()
        console.print(f"{records.title}: {_who(planned(records))}", **PLAIN)
        console.print(summary_table(games, total(games)))
        if (payoffs := players_table(games)) is not None:
            console.print(payoffs)
        for table in (spending_table(kind, named) for kind, named in spent.items() if named):
            console.print(table)
        console.print(
            f"recorded in {path}; a report: llm-games report {path}", soft_wrap=True, **PLAIN
        )
    if report_to is not None or open_it:
        page = _report([path], report_to or path.with_suffix(".html"), open_it, quiet or as_json)
    if as_json:
        overall = total(games)
        print(
            json.dumps(
                {
                    "db": str(path),
                    "report": page and str(page),
                    "overall": overall and {"mean": overall.mean, "std": overall.std},
                    "games": [game.plain() for game in games],
                    "usage": usage,
                    "spent": {
                        kind: {name: found.plain() for name, found in named.items()}
                        for kind, named in spent.items()
                    },
                }
            )
        )


def _check_report(report_to: Path | None, open_it: bool) -> None:
    """Learn before anything is played and paid for whether the report can be written."""
    if report_to is not None or open_it:
        from llm_games.benchmarks.report import check_out

        check_out(report_to or Path("report.html"))


def _report(
    paths: list[Path],
    out: Path,
    open_it: bool,
    quiet: bool = False,
    scoring: str | None = None,
    comparing: bool = False,
) -> Path:
    from llm_games.benchmarks.report import build

    page = build(paths, out, scoring, comparing)
    if not quiet:
        _say(f"report: {page}")
    if open_it:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return page


def _who(plan: Plan) -> str:
    """Name the players and how many seats each has, over all games."""
    seats = Counter(seat.name for game in plan.games for seat in game.seats)
    if len(seats) == 1:
        return f"{next(iter(seats))} in all seats"
    return ", ".join(f"{name} in {count} seats" for name, count in seats.items())


def _drawn_seed() -> int:
    import secrets

    return secrets.randbelow(2**31)


def _fresh(source: str) -> Path:
    """Return a new file in this folder, named after what is run and when."""
    stem = Path(source.replace("/", "-") if not Path(source).exists() else source).stem
    return Path(f"{stem}-{datetime.now():%Y%m%d-%H%M%S}.db")


def _first_lines(found: type) -> str:
    """Return the description in a game's docstring, on one line."""
    paragraphs = (found.__doc__ or "").split("\n\n")
    return " ".join(" ".join(paragraphs[1:]).split()).replace("``", "")


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
