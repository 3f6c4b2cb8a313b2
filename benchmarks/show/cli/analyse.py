"""``llm-games analyse``: talk, labels by a model, ratings by people, reliability."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

from typer import Exit, Typer

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli.collusion import collusion
from llm_games.benchmarks.show.cli.common import (
    PLAIN,
    AsJson,
    Database,
    Scoring,
    by_label,
    console,
    say,
    value,
)


def talk(
    db: Database,
    game: Annotated[str | None, value("GAME", "only this game of the run, by its label")] = None,
    episode: Annotated[
        int | None, value("N", "print the conversation of this episode beside its moves", min=0)
    ] = None,
    silent: Annotated[
        Path | None, value("FILE", "the same run without talk (--talk turns=0): who persuaded whom")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how players talked: how much, whether they kept their word, and what it changed.

    For instance: llm-games run F.toml --db talk.db; llm-games run F.toml --talk turns=0 --db
    silent.db; llm-games analyse talk talk.db --silent silent.db
    """
    from contextlib import ExitStack

    from llm_games.benchmarks.judge.talk_measures import (
        persuasion,
        persuasion_grids,
        talk_grids,
        transcript,
    )
    from llm_games.benchmarks.record.queries import Records
    from llm_games.errors import BadParameter

    with ExitStack() as opened:
        records, *silent_records = (
            opened.enter_context(Records.open_readonly(file)) for file in (db, silent) if file
        )
        chosen = by_label(records, () if game is None else [game])
        talking = [recorded for recorded in chosen.values() if recorded.talks]
        if not talking:
            raise BadParameter(f"nobody can talk in {game or db}: give its games talk, see --talk")
        for recorded in talking:
            if episode is not None and episode >= len(recorded.episodes):
                raise BadParameter(
                    f"{recorded.label} has episodes 0 to {len(recorded.episodes) - 1}"
                )
        grids = talk_grids(talking)
        for silent_games in map(by_label, silent_records):
            pairs = [
                (recorded, silent_games[recorded.label])
                for recorded in talking
                if recorded.label in silent_games
            ]
            if not pairs:
                labels = ", ".join(recorded.label for recorded in talking)
                raise BadParameter(f"{silent} has no game {labels} to compare with")
            persuasions = [persuasion(*pair) for pair in pairs]
            grids += persuasion_grids(persuasions, None if as_json else 20)
        transcripts = {
            recorded.label: list(transcript(recorded.episodes[episode]))
            for recorded in talking
            if episode is not None
        }
    if as_json:
        tables: dict[str, Any] = {}
        for grid in grids:
            tables.setdefault(grid.name, []).extend(grid.dicts())
        print(json.dumps(tables | {"said": transcripts}))
        return
    for grid in grids:
        console().print(grid)
    for label, lines in transcripts.items():
        text = "\n".join([f"{label}, episode {episode}", *lines])
        console().print(text, soft_wrap=True, **PLAIN)


def judge(
    db: Database,
    rubric: Annotated[
        str, value("FILE|NAME", "what is asked: a TOML file, or one of a paper's, see docs/talk.md")
    ],
    seat: Annotated[str, value("SPEC", "the judge, as openai:MODEL or PROVIDER/MODEL")],
    game: common.Labels = None,
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
    from llm_games.benchmarks.judge import model_labels
    from llm_games.errors import BadParameter
    from llm_games.wrappers.clients.base import ClientError
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.together import run_sync

    questions = model_labels.rubric(rubric)
    server = {} if base_url is None else {"base_url": base_url}
    settings = common.values_of("--set", assigned)
    client = settings.pop("client", {})
    if not isinstance(client, dict):
        raise BadParameter(f"--set client: a table of settings, as {{max_wait = 60}}: {client!r}")
    patience = {"max_wait": PATIENT} if on_server(seat) else {}
    model = make_player(seat, None, patience | client | server, **settings)
    if not isinstance(model, LLMPolicy):
        raise BadParameter(f"--seat: a judge is a language model, and {seat!r} is none")
    try:
        sampling = model.sampling
        if "temperature" not in settings:
            sampling = dataclasses.replace(sampling, temperature=model_labels.CALM.temperature)
        labels = model_labels.label_run(db, questions, model.client, game or (), sampling)
    except ClientError as error:
        hint = f"what was labelled is in {model_labels.sidecar(db)}"
        say(f"stopped: {error}\n{hint}; ask again to go on")
        raise Exit(1) from None
    finally:
        run_sync(model.client.close())
    if as_json:
        print(json.dumps([dataclasses.asdict(label) for label in labels]))
        return
    console().print(model_labels.label_grid(labels))
    if unlabelled := model_labels.unlabelled(labels):
        say(f"no label: {unlabelled}; ask again to have them tried again")
    console().print(f"labels: {model_labels.sidecar(db)}", **PLAIN)


def rate(
    db: Database,
    out: Annotated[Path, value("DIR", "folder of the forms and stories", "--out", "-o")],
    judge: Annotated[list[str], value("NAME", "who rates; repeat it for several")],
    cases: Annotated[int, value("N", "players' games to draw; by default all", min=0)] = 0,
    seed: Annotated[int, value("N", "of that draw", min=0)] = 1,
) -> None:
    """Write rating forms for people, or read those that are there, beside the published ratings."""
    from llm_games.benchmarks.judge.paper import rated
    from llm_games.benchmarks.record.queries import Records

    with Records.open_readonly(db) as records:
        console().print(rated(records, out, judge, cases, seed))


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
    game: common.Labels = None,
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Say how reliable players are: pass^k over the games, and where the variance comes from."""
    from llm_games.benchmarks.judge.paper import edition_of
    from llm_games.benchmarks.judge.reliability import reliability
    from llm_games.benchmarks.record.queries import Records
    from llm_games.errors import BadParameter

    with Records.open_readonly(db) as records:
        edition = scoring or edition_of(records.config)
        grids = reliability([*by_label(records, game or ()).values()], edition, success, k)
    if not grids:
        raise BadParameter(
            f"{db} says nothing of reliability: give --success, such as --success 'score >= 80', "
            "and play 5 episodes or more to see where the variance comes from"
        )
    if as_json:
        tables = {grid.name: list(grid.dicts()) for grid in grids if grid.name}
        print(json.dumps(tables | {"missing": [grid.note for grid in grids if not grid.name]}))
        return
    for grid in grids:
        console().print(grid)


app = Typer(cls=common.Commands, no_args_is_help=True, rich_markup_mode=None)
for _command in (talk, collusion, judge, rate, reliability):
    app.command(short_help=str(_command.__doc__).partition("\n")[0])(_command)
