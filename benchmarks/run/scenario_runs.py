"""Scenarios as a run: games with seats of ``default`` and a background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llm_games.baselines.scenarios import Scenario, read, scenarios
from llm_games.benchmarks.judge.scenario_scores import BACKGROUND
from llm_games.errors import BadParameter


def config_of(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the configuration that plays the held-out scenarios of a file's content.

    Raises:
        BadParameter: there is none, or what `read` raises.
    """
    found = read(raw, source).values()
    if all(one.train for one in found):
        raise BadParameter(
            f"{source} has no scenario that is held out: [[backgrounds]] without train = true"
        )
    said = {"title": raw.get("title", f"Scenarios of {raw['game']}")}
    said |= {"seed": raw["seed"]} if "seed" in raw else {}
    return said | {"games": _games(found)}


def all_of(games: Iterable[str]) -> dict[str, Any]:
    """Return the configuration that plays the held-out scenarios of some games."""
    found = [one for game in games for one in scenarios(game).values()]
    return {"title": "Scenarios", "games": _games(found)}


def _games(found: Iterable[Scenario]) -> list[dict[str, Any]]:
    return [
        {
            "game": one.game,
            "label": f"{one.game}/{one.name}",
            "params": dict(one.params),
            "seats": [*["default"] * one.focal, *map(_background, one.background)],
            "episodes": one.episodes,
            **({"max_steps": one.max_steps} if one.max_steps else {}),
        }
        for one in found
        if not one.train
    ]


def _background(player: str) -> dict[str, str]:
    return {"player": player, "name": BACKGROUND + player}
