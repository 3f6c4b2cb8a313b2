"""The characters that the tiny model imitates: what their scripts have in common.

A script returns an action and a reason in words; ``characters`` has one for each game, by its name.
It is a few cases that can be read off the last message, for each persona of the prompts; ``rng``
gives each character some variety.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from llm_games.questions import Action
from llm_games.view import View

Answer = tuple[Action, str]


class ScriptView(NamedTuple):
    """What a script looks at: the parts of a view, each of the game that the script is for."""

    game: Any
    observation: dict[str, Any]
    question: Any
    seat: int


Script = Callable[[ScriptView, str | None, np.random.Generator], Answer]


def characters_of(game: str) -> Any:
    """Return the module of a game's characters: ``script``, and ``ASIDES`` by kind if it has any.

    As the aside ``speech`` they say something where they have no move to name.
    """
    return import_module(f"llm_games.benchmarks.studies.tiny.characters.{game}")


def asides_of(game: str) -> Mapping[str, Script]:
    return getattr(characters_of(game), "ASIDES", {})


def answer(view: View, persona: str | None, rng: np.random.Generator) -> Answer:
    """Return what a persona does in view of a game, and why."""
    assert view.told is not None
    script: Script = characters_of(view.game.name).script
    return script(ScriptView(view.game, view.told, view.question, view.seat), persona, rng)


def draw(rng: np.random.Generator, *options: tuple[Any, float]) -> Any:
    """Draw one of some options, each given with its weight."""
    weights = np.array([weight for _, weight in options], float)
    return options[rng.choice(len(options), p=weights / weights.sum())][0]


def clip(value: float, view: ScriptView) -> int:
    """Round to a legal whole number."""
    return int(np.clip(round(value), view.question.low, view.question.high))
