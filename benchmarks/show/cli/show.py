"""One game in words: what it is, its parameters, and what a player reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from llm_games.baselines import scenarios
from llm_games.baselines.deviation import caveats, claimed
from llm_games.baselines.players import players_for
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.run import plan  # noqa: F401 - brings a kind of player
from llm_games.facts import allowed
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.talk import Talk
from llm_games.view import View
from llm_games.words import Prompts

SERVED = {"<provider>/<model>": "a language model, as vllm/NAME or openai/NAME"}


def about(found: type[Rulebook], version: str) -> dict[str, Any]:
    """Return what there is to know of a game as plain values; its own parameters come first.

    Raises:
        UnknownName: there is no such wording.
    """
    shared = {f.name for f in dataclasses.fields(Rulebook)}
    rules = rulebook(found.name)
    fields = sorted(dataclasses.fields(found), key=lambda f: f.name in shared)
    return {
        **{"name": found.name, "title": found.title, "source": found.source},
        "presets": {name: repr(dict(values)) for name, values in found.presets.items()},
        "seats": rules.seats_differ,
        "caveats": caveats(rules),
        "players": _players(found.name) | SERVED,
        "scenarios": _scenarios(found.name),
        "parameters": _parameters(fields),
        "talk": [] if found.wordless else _parameters(dataclasses.fields(Talk)),
        "sample": _sample(rules, version),
    }


def _parameters(fields: Iterable[dataclasses.Field[Any]]) -> list[dict[str, str]]:
    """Return of each parameter its name, its default, and what it means with its range."""
    return [
        {
            "name": f.name,
            "default": str(f.default),
            "meaning": "; ".join(filter(None, (f.metadata["meaning"], allowed(f)))),
        }
        for f in fields
    ]


def _players(game: str) -> dict[str, str]:
    """Return the players with a line on each; on the rational one, what it is in this game."""
    known, claim = players_for(game), claimed(rulebook(game))
    return known | {"rational": claim} if claim and "rational" in known else known


def _scenarios(game: str) -> dict[str, str]:
    """Return the scenarios with a line on each."""
    known = scenarios.scenarios(game) if game in scenarios.games() else {}
    training = {True: "training may use it", False: "held out"}
    return {name: f"{one.about}; {training[one.train]}" for name, one in known.items()}


def _sample(rules: Rulebook, version: str) -> dict[str, str]:
    """Return what the first seat reads at the start of a game, and an answer, by heading."""
    prompts, state = Prompts(rules.name, version), rules.reset(0)
    seat = int(np.flatnonzero(rules.asked(state))[0])
    view = View.of(rules, state, seat)
    assert view.question is not None
    return {
        "system": prompts.rules(rules, seat),
        "user": "\n\n".join(filter(None, (prompts.report(view), prompts.request(view)))),
        "a legal reply": view.question.reply(view.question.sample(Noise(0))),
    }


def grids(found: type[Rulebook], known: Mapping[str, Any]) -> list[ResultTable]:
    """Return the tables of a game's parameters, its talk's, presets and players."""
    own, talk = (
        [[text.replace("`", "") for text in row.values()] for row in known[name]]
        for name in ("parameters", "talk")
    )
    sets = [
        (name, ", ".join(f"{key} {value}" for key, value in values.items()) or "as by default")
        for name, values in found.presets.items()
    ]
    return [
        ResultTable(columns("parameter, default, meaning and range"), own),
        ResultTable(columns("talk, default, meaning and range"), talk),
        ResultTable(columns("preset, parameters"), sets),
        ResultTable(columns("player, what it does"), [*known["players"].items()]),
        ResultTable(columns("scenario, others at the table"), [*known["scenarios"].items()]),
    ]
