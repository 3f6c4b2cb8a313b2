"""Looking at runs: ``report``, ``compare``, ``replay``, ``talk``, ``judge``, ``export`` etc."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from llm_games.benchmarks.cli import common
from llm_games.benchmarks.cli.common import PLAIN, AsJson, Database, Scoring, console, say, value

SHOWN = 20
"""Differences that a replay prints; the rest is counted."""


def report(
    db: Annotated[list[Path], Argument(metavar="FILE", help="the .db files of runs")],
    out: Annotated[Path, value("DIR", "folder, or HTML file", "--out", "-o")] = Path("report.html"),
    comparing: Annotated[
        bool, Option("--compare", help="compare runs with the first, episode by episode")
    ] = False,
    scoring: Scoring = None,
    baselines: common.Baselines = True,
    only: Annotated[
        list[str] | None, value("LABEL", "a game of the runs, again for more; else all", "--only")
    ] = None,
    conversations: Annotated[
        int, value("N", "decisions of each player shown in full", "--conversations", min=0)
    ] = 0,
    open_it: common.OpenIt = False,
) -> None:
    """Write one HTML page with scores, plots and replies of one run or several.

    Beside it: its figures as SVG and PNG, and its numbers as CSV.
    """
    how: dict[str, Any] = {"scoring": scoring, "comparing": comparing, "baselines": baselines}
    how |= {"only": only or (), "conversations": conversations}
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
    from llm_games.benchmarks.runs.editions import maker
    from llm_games.benchmarks.runs.replay import replay
    from llm_games.benchmarks.runs.store import Records
    from llm_games.version import __version__

    with Records.open_readonly(db) as records:
        done, made_by = replay(records), records.package
    if made_by.partition("+")[0] != __version__:
        say(
            f"{db} was made by {maker(made_by)}, this is {__version__}: wordings and rules may "
            "have changed"
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
    out: Annotated[
        Path | None, value("DIR", "folder; its tables are replaced", "--out", "-o")
    ] = None,
    form: Annotated[str, Option("--format", help="csv, parquet or trace")] = "csv",
    logs: Annotated[
        bool, Option("--eval", help="logs of inspect_ai instead, one for each game")
    ] = False,
    sft: Annotated[
        Path | None, value("FILE", "legal replies, as data for TRL's SFTTrainer", "--sft")
    ] = None,
    preferences: Annotated[
        Path | None, value("FILE", "better and worse replies, for its DPOTrainer", "--preferences")
    ] = None,
    players: Annotated[
        list[str] | None,
        value("NAME", "of whom, again for more; else of all that asked a model", "--player"),
    ] = None,
    most_regret: Annotated[
        float | None, value("X", "of --sft, only moves that lost no more", "--most-regret", min=0)
    ] = None,
    hindsight: Annotated[
        bool, Option("--hindsight", help="judge by regret in hindsight, also where theory has more")
    ] = False,
) -> None:
    """Write episodes, steps, decisions and attempts (with their prompts) as tables.

    A trace is one file of JSON lines, one for each move: what was done, said, heard and recorded.
    """
    from llm_games.benchmarks.runs.export import export
    from llm_games.benchmarks.runs.inspect_log import export_eval
    from llm_games.benchmarks.runs.store import Records
    from llm_games.benchmarks.runs.trace import export_trace
    from llm_games.errors import BadParameter

    if out is None and not (sft or preferences):
        raise BadParameter("say what to write: -o DIR, --sft FILE or --preferences FILE")
    with Records.open_readonly(db) as records:
        how: dict[str, Any] = {"players": players or (), "hindsight": hindsight}
        _export_dialogues(records, sft, preferences, most_regret, how)
        if out is None:
            return
        if logs:
            for path, count in export_eval(records, out).items():
                print(f"{path}: {count} samples")
            return
        made = export_trace(records, out) if form == "trace" else export(records, out, form)
        for path, count in made.items():
            print(f"{path}: {count} rows")


def _export_dialogues(
    records: Any,
    good: Path | None,
    pairs: Path | None,
    most_regret: float | None,
    how: dict[str, Any],
) -> None:
    """Write the files to train a model with that are wanted, and say what is in them."""
    from llm_games.benchmarks.runs.dialogues import preferences, sft, write

    if good is not None:
        print(f"{good}: {write(sft(records, most_regret=most_regret, **how), good)} replies")
    if pairs is not None:
        left_out = Counter[str]()
        print(f"{pairs}: {write(preferences(records, left_out=left_out, **how), pairs)} pairs")
        for why, many in left_out.items():
            say(f"prompts without a pair: {many}, {why}")


def animate(
    db: Database,
    out: Annotated[Path, value("FILE", "a .gif, .png or .webp", "--out", "-o")],
    game: Annotated[str | None, value("GAME", "a game of the run, by its label")] = None,
    episode: Annotated[int, value("N", "which of its episodes", min=0)] = 0,
    speed: Annotated[float, value("N", "pictures a second")] = 4,
) -> None:
    """Draw an episode of a run, round by round, as a moving picture."""
    from llm_games.benchmarks.runs.animate import animate, frames
    from llm_games.benchmarks.runs.reader import games
    from llm_games.benchmarks.runs.records import Records
    from llm_games.errors import BadParameter, unknown

    with Records.open_readonly(db) as records:
        found = {one.label: one for one in games(records)}
        label = game if game is not None else next(iter(found))
        if label not in found:
            raise unknown("game of this run", label, found)
        episodes = found[label].played
        if episode >= len(episodes):
            raise BadParameter(f"{label} has {len(episodes)} episodes that were played")
        many = animate(frames(episodes[episode]), out, speed)
    print(f"{out}: {many} pictures")


def talk(
    db: Database,
    game: Annotated[str | None, value("GAME", "only this game of the run, by its label")] = None,
    episode: Annotated[
        int | None, value("N", "print the conversation of this episode beside its moves", min=0)
    ] = None,
    silent: Annotated[
        Path | None,
        value("FILE", "the same run without talk (--talk turns=0): who persuaded whom"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how players talked: how much, whether they kept their word, and what it changed.

    For instance: llm-games run F.toml --db talk.db; llm-games run F.toml --talk turns=0 --db
    silent.db; llm-games talk talk.db --silent silent.db
    """
    from contextlib import ExitStack

    from llm_games.benchmarks.runs.reader import games
    from llm_games.benchmarks.runs.records import Records
    from llm_games.benchmarks.runs.talk import (
        persuasion,
        persuasion_grids,
        talk_grids,
        transcript,
    )
    from llm_games.errors import BadParameter, unknown

    with ExitStack() as opened:
        files = [opened.enter_context(Records.open_readonly(f)) for f in (db, silent) if f]
        found, *other = ({one.label: one for one in games(file)} for file in files)
        if game is not None and game not in found:
            raise unknown("game of this run", game, found)
        talking = [one for one in found.values() if one.talks and game in (None, one.label)]
        if not talking:
            raise BadParameter(f"nobody can talk in {game or db}: give its games talk, see --talk")
        for one in talking:
            if episode is not None and episode >= len(one.episodes):
                raise BadParameter(f"{one.label} has episodes 0 to {len(one.episodes) - 1}")
        grids = talk_grids(talking)
        if other:
            pairs = [(one, other[0][one.label]) for one in talking if one.label in other[0]]
            if not pairs:
                lost = ", ".join(one.label for one in talking)
                raise BadParameter(f"{silent} has no game {lost} to compare with")
            whole = [persuasion(*pair) for pair in pairs]
            grids += persuasion_grids(whole, None if as_json else 20)
        said = {
            one.label: list(transcript(one.episodes[episode]))
            for one in talking
            if episode is not None
        }
    if as_json:
        told: dict[str, Any] = {}
        for grid in grids:
            told.setdefault(grid.name, []).extend(grid.dicts())
        print(json.dumps(told | {"said": said}))
        return
    for grid in grids:
        console().print(grid)
    for label, lines in said.items():
        said_there = "\n".join([f"{label}, episode {episode}", *lines])
        console().print(said_there, soft_wrap=True, **PLAIN)


def judge(
    db: Database,
    rubric: Annotated[
        str, value("FILE|NAME", "what is asked: a TOML file, or one of a paper's, see docs/talk.md")
    ],
    seat: Annotated[str, value("SPEC", "the judge, as openai:MODEL or PROVIDER/MODEL")],
    game: Annotated[
        list[str] | None, value("GAME", "only this game of the run; can be repeated")
    ] = None,
    base_url: common.BaseUrl = None,
    assigned: Annotated[
        list[str] | None,
        value("NAME=VALUE", "how it is asked, such as max_tokens=500; can be repeated", "--set"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a model give each episode a label by a rubric; they are kept beside the run's file.

    What it has labelled before is not asked again.
    """
    from llm_games.baselines.players import PATIENT, make_player, on_server
    from llm_games.benchmarks.runs import judge as judging
    from llm_games.errors import BadParameter
    from llm_games.wrappers.clients.base import ClientError
    from llm_games.wrappers.llm_policy import LLMPolicy, run_sync

    wanted = judging.rubric(rubric)
    server = {} if base_url is None else {"base_url": base_url}
    asked = common.values_of("--set", assigned)
    if not isinstance(reached := asked.pop("client", {}), dict):
        raise BadParameter(f"--set client: a table of settings, as {{max_wait = 60}}: {reached!r}")
    patient = {"max_wait": PATIENT} if on_server(seat) else {}
    model = make_player(seat, None, patient | reached | server, **asked)
    if not isinstance(model, LLMPolicy):
        raise BadParameter(f"--seat: a judge is a language model, and {seat!r} is none")
    try:
        how = model.sampling
        if "temperature" not in asked:
            how = dataclasses.replace(how, temperature=judging.CALM.temperature)
        rows = judging.label_run(db, wanted, model.client, game or (), how)
    except ClientError as error:
        say(f"stopped: {error}\nwhat was labelled is in {judging.sidecar(db)}; ask again to go on")
        raise Exit(1) from None
    finally:
        run_sync(model.client.close())
    if as_json:
        print(json.dumps([dataclasses.asdict(row) for row in rows]))
        return
    console().print(judging.label_grid(rows))
    if without := judging.unlabelled(rows):
        say(f"no label: {without}; ask again to have them tried again")
    console().print(f"labels: {judging.sidecar(db)}", **PLAIN)


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
