"""One game in words: what it is, its parameters, and what a player reads."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from llm_games.facts import allowed
from llm_games.noise import Noise
from llm_games.questions import Question
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import Prompts, versions


class Parameter(NamedTuple):
    """One parameter of a game: name, default, and meaning with the legal values."""

    name: str
    default: Any
    meaning: str


def parameters(game: str) -> list[Parameter]:
    """Return a game's parameters, its own first.

    Raises:
        UnknownName: there is no such game.
    """
    found = game_class(game)
    own = [
        Parameter(f.name, f.default, "; ".join(filter(None, (f.metadata["meaning"], allowed(f)))))
        for f in dataclasses.fields(found)
    ]
    shared = {f.name for f in dataclasses.fields(Rulebook)}
    return sorted(own, key=lambda parameter: parameter.name in shared)


def sample(game: str, version: str = "v1") -> list[tuple[str, str]]:
    """Return what the first seat reads at the start of a game: pairs of a heading and a text.

    Raises:
        UnknownName: there is no such game or wording.
    """
    rules = rulebook(game)
    prompts = Prompts(rules.name, version)
    state = rules.reset(0)
    seat = int(np.flatnonzero(rules.asked(state))[0])
    view = View.of(rules, state, seat)
    question = view.question
    assert isinstance(question, Question)
    return [
        ("system", prompts.rules(rules, seat)),
        ("user", "\n\n".join(filter(None, (prompts.report(view), prompts.request(view))))),
        ("a legal reply", question.reply(question.sample(Noise(0)))),
    ]


def wordings(game: str) -> list[str]:
    """Return the versions of a game's prompts."""
    return versions(game_class(game).name)
