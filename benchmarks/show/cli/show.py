"""One game in words: what it is, its parameters, and what a player reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from llm_games.baselines import scenarios
from llm_games.baselines.players import players_for
from llm_games.baselines.regret import caveats, claimed
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.run import plan  # noqa: F401 - brings a kind of player
from llm_games.facts import allowed, as_given
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.talk import Talk
from llm_games.view import View
from llm_games.words import Prompts

SERVED = {"<provider>/<model>": "a language model, as vllm/NAME or openai/NAME"}


def about(game: type[Rulebook], version: str) -> dict[str, Any]:
    """Facts of a game as plain values, its own parameters first; UnknownName: no such wording."""
    shared = {f.name for f in dataclasses.fields(Rulebook)}
    rules = rulebook(game.name)
    fields = sorted(dataclasses.fields(game), key=lambda f: f.name in shared)
    return {
        **{"name": game.name, "title": game.title, "source": game.source},
        "presets": {name: repr(as_given(values)) for name, values in game.presets.items()},
        "seats": rules.seats_differ,
        "caveats": caveats(rules),
        "players": _players(game.name) | SERVED,
        "scenarios": _scenarios(game.name),
        "parameters": _parameters(fields),
        "talk": [] if game.wordless else _parameters(dataclasses.fields(Talk)),
        "sample": _sample(rules, version),
    }


def _parameters(fields: Iterable[dataclasses.Field[Any]]) -> list[dict[str, str]]:
    return [
        {
            "name": f.name,
            "default": str(as_given(f.default)),
            "meaning": "; ".join(filter(None, (f.metadata["meaning"], allowed(f)))),
        }
        for f in fields
    ]


def _players(game: str) -> dict[str, str]:
    """A line on each; on the rational one, what it is in this game."""
    players, claim = players_for(game), claimed(rulebook(game))
    return players | {"rational": claim} if claim and "rational" in players else players


def _scenarios(game: str) -> dict[str, str]:
    scenarios_by_name = scenarios.scenarios(game) if game in scenarios.games() else {}
    training = {True: "training may use it", False: "held out"}
    return {
        name: f"{scenario.about}; {training[scenario.train]}"
        for name, scenario in scenarios_by_name.items()
    }


def _sample(rules: Rulebook, version: str) -> dict[str, str]:
    """Prompts of the first seat at the start of a game, and an answer, by heading."""
    prompts, state = Prompts(rules.name, version), rules.reset(0)
    seat = int(np.flatnonzero(rules.asked(state))[0])
    view = View.of(rules, state, seat)
    assert view.question is not None
    return {
        "system": prompts.rules(rules, seat),
        "user": "\n\n".join(filter(None, (prompts.report(view), prompts.request(view)))),
        "a legal reply": view.question.reply(view.question.sample(Noise(0))),
    }


def grids(game: type[Rulebook], facts: Mapping[str, Any]) -> list[ResultTable]:
    parameters, talk = (
        [[text.replace("`", "") for text in row.values()] for row in facts[name]]
        for name in ("parameters", "talk")
    )
    sets = [
        (name, ", ".join(f"{k} {v}" for k, v in as_given(values).items()) or "as by default")
        for name, values in game.presets.items()
    ]
    return [
        ResultTable(columns("parameter, default, meaning and range"), parameters),
        ResultTable(columns("talk, default, meaning and range"), talk),
        ResultTable(columns("preset, parameters"), sets),
        ResultTable(columns("player, what it does"), [*facts["players"].items()]),
        ResultTable(columns("scenario, others at the table"), [*facts["scenarios"].items()]),
    ]
