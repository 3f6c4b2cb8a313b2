"""Looking at runs: ``report``, ``compare``, ``replay``, ``watch``, ``export`` and ``rate``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from llm_games.benchmarks.cli import common
from llm_games.benchmarks.cli.common import PLAIN, AsJson, Database, Scoring, console, say, value

SHOWN = 20
"""Differences that a replay prints; the rest is counted."""


def report(
    db: Annotated[list[Path], Argument(metavar="FILE...", help="the .db files of runs")],
    out: Annotated[Path, value("DIR", "folder, or HTML file", "--out", "-o")] = Path("report.html"),
    comparing: Annotated[
        bool, Option("--compare", help="compare two runs, episode by episode")
    ] = False,
    scoring: Scoring = None,
    baselines: common.Baselines = True,
    open_it: common.OpenIt = False,
) -> None:
    """Write one HTML page with scores, plots and replies of one run or several.

    Beside it: its figures as SVG and PNG, and its numbers as CSV.
    """
    how: dict[str, Any] = {"scoring": scoring, "comparing": comparing, "baselines": baselines}
    raise Exit(common.write_report(db, out, open_it, **how)[1])


def compare(
    a: Annotated[Path, Argument(metavar="A", help="the .db file of a run")],
    b: Annotated[Path, Argument(metavar="B", help="that of another run of the same games")],
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs game by game, over the episodes that both played with the same seed."""
    from llm_games.benchmarks.runs.compare import compare
    from llm_games.benchmarks.runs.compared import TESTS, VALUES

    found = compare(a, b, scoring)
    if as_json:
        print(json.dumps(found.plain()))
        return
    terminal = console()
    terminal.print(f"A: {a}\nB: {b}", **PLAIN)
    terminal.print(found.grid(*VALUES))
    terminal.print(found.grid(*TESTS))
    for game in found.games:
        for note in (*game.notes, *game.alone):
            terminal.print(f"{game.label}: {note}", **PLAIN)


def reliability(
    db: Database,
    success: Annotated[
        str | None,
        value(
            "WHAT", "what an episode must come to, as 'score >= 80'; else as the run's file says"
        ),
    ] = None,
    k: Annotated[
        int | None, value("K", "how many runs must all succeed; by default several", "-k")
    ] = None,
    game: Annotated[
        list[str] | None, value("GAME", "only this game of the run; can be repeated")
    ] = None,
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Say how reliable players are: pass^k over the games, and where the variance comes from."""
    from llm_games.benchmarks.runs.paper import edition_of
    from llm_games.benchmarks.runs.reader import games
    from llm_games.benchmarks.runs.records import Records
    from llm_games.benchmarks.runs.reliability import reliability
    from llm_games.errors import BadParameter, unknown

    with Records.open_readonly(db) as records:
        found = {one.label: one for one in games(records)}
        for name in game or ():
            if name not in found:
                raise unknown("game of this run", name, found)
        chosen = [found[name] for name in game] if game else list(found.values())
        grids = reliability(chosen, scoring or edition_of(records.config), success, k)
    if not grids:
        raise BadParameter(
            f"{db} says nothing of reliability: give --success, such as --success 'score >= 80', "
            "and play 5 episodes or more to see where the variance comes from"
        )
    if as_json:
        told: dict[str, list[Any]] = {g.name: list(g.dicts()) for g in grids if g.name}
        print(json.dumps(told | {"missing": [grid.note for grid in grids if not grid.name]}))
        return
    for grid in grids:
        console().print(grid)


def replay(db: Database, as_json: AsJson = False) -> None:
    """Play a recorded run again without its models and compare everything bit for bit.

    Exit code 1: something differs, and is named.
    """
    from llm_games.benchmarks.runs.replay import replay
    from llm_games.benchmarks.runs.store import Records
    from llm_games.version import __version__

    with Records.open_readonly(db) as records:
        done, made_by = replay(records), records.package
    if made_by != __version__:
        say(
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
    raise Exit(1 if done.differences else 0)


def watch(db: Database) -> None:
    """Follow a run that is going on, from another terminal; Ctrl-C leaves the run alone."""
    from llm_games.benchmarks.runs.watch import watch

    try:
        stand = watch(db, console())
    except KeyboardInterrupt:
        say(f"\nno longer watching; the run goes on, look again with: llm-games watch {db}")
        return
    if not stand.complete:
        say(f"{db} is not complete and nobody plays it; go on with: llm-games resume {db}")


def export(
    db: Database,
    out: Annotated[Path, value("DIR", "folder; its tables are replaced", "--out", "-o")],
    form: Annotated[str, Option("--format", help="csv or parquet")] = "csv",
) -> None:
    """Write episodes, steps, decisions and attempts (with their prompts) as tables."""
    from llm_games.benchmarks.runs.export import export
    from llm_games.benchmarks.runs.store import Records

    with Records.open_readonly(db) as records:
        for path, count in export(records, out, form).items():
            print(f"{path}: {count} rows")


def rate(
    db: Database,
    out: Annotated[Path, value("DIR", "folder of the forms and stories", "--out", "-o")],
    judge: Annotated[list[str], value("NAME", "who rates; repeat it for several")],
    cases: Annotated[int, value("N", "players' games to draw; by default all", min=0)] = 0,
    seed: Annotated[int, value("N", "of that draw", min=0)] = 1,
) -> None:
    """Write rating forms for people, or read those that are there, beside the published ratings."""
    from llm_games.benchmarks.runs.paper import rated
    from llm_games.benchmarks.runs.records import Records

    with Records.open_readonly(db) as records:
        console().print(rated(records, out, judge, cases, seed))
