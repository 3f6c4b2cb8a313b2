"""One game in words: what it is, its parameters, and what a player reads."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from typing import Any, NamedTuple

import numpy as np

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
    meanings: dict[str, str] = {}
    for base in reversed(found.__mro__):
        if issubclass(base, Rulebook):
            meanings |= _meanings(base)
    own = [
        Parameter(f.name, f.default, meanings.get(f.name, "")) for f in dataclasses.fields(found)
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


def _meanings(found: type[Rulebook]) -> dict[str, str]:
    """Read the string under each field of a class; of fields that share one, each gets it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
    assert isinstance(body, ast.ClassDef)
    meanings: dict[str, str] = {}
    waiting: list[str] = []
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            waiting.append(node.target.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and waiting:
            text = " ".join(str(node.value.value).split())
            meanings |= dict.fromkeys(waiting, text)
            waiting = []
        else:
            waiting = []
    return meanings
