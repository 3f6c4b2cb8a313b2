"""Graded questions as a run: games with drawn parameters, a model beside random players."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llm_games.baselines.drawn_games import drawn_parameters
from llm_games.baselines.graded_questions import KINDS
from llm_games.noise import Noise
from llm_games.registry import rulebook

EPISODES = 8
SEED = 1  # of the drawn parameters: the same for all who are compared


def graded_run(games: Iterable[str]) -> dict[str, Any]:
    """Return the configuration of a run that asks all kinds of graded questions."""
    return {
        "title": "Graded questions",
        "episodes": EPISODES,
        "player": {"ask": list(KINDS)},
        "games": [_game(name) for name in games],
    }


def _game(name: str) -> dict[str, Any]:
    parameters = drawn_parameters(name, Noise(SEED).of(name))
    others = rulebook(name, **parameters).players - 1
    seats = ["default", *[{"player": "random", "name": "random"}] * others]
    return {"game": name, "params": parameters, "seats": seats}
