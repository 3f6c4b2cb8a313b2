"""The characters that the tiny model imitates: what their scripts have in common.

A script returns an action and a reason in words; each game's room has one, as ``PLAYERS.script``.
It is a few cases that can be read off the last message, for each persona of the prompts; ``rng``
gives each character some variety.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from llm_games.questions import Action
from llm_games.view import View

Answer = tuple[Action, str]


class Seen(NamedTuple):
    """What a script looks at: the parts of a view, each of the game that the script is for."""

    game: Any
    told: dict[str, Any]
    question: Any
    seat: int


Script = Callable[[Seen, str | None, np.random.Generator], Answer]


def answer(view: View, persona: str | None, rng: np.random.Generator) -> Answer:
    """Return what a persona does in view of a game, and why."""
    from llm_games.baselines.players import handed

    script = handed(view.game.name).script
    assert script is not None, "only games that the tiny model learns have a script"
    assert view.told is not None
    return script(Seen(view.game, view.told, view.question, view.seat), persona, rng)


def draw(rng: np.random.Generator, *options: tuple[Any, float]) -> Any:
    """Draw one of some options, each given with its weight."""
    weights = np.array([weight for _, weight in options], float)
    return options[rng.choice(len(options), p=weights / weights.sum())][0]


def clip(value: float, seen: Seen) -> int:
    """Round to a legal whole number."""
    return int(np.clip(round(value), seen.question.low, seen.question.high))
