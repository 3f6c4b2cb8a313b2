"""Scenarios as a run: games with seats of ``default`` and a background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llm_games.baselines.scenarios import Scenario, read, scenarios
from llm_games.benchmarks.judge.scenario_scores import BACKGROUND
from llm_games.errors import BadParameter


def config_of(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The configuration that plays held-out scenarios; BadParameter: none, or as of `read`."""
    chosen = read(raw, source).values()
    if all(scenario.train for scenario in chosen):
        raise BadParameter(
            f"{source} has no scenario that is held out: [[backgrounds]] without train = true"
        )
    config = {"title": raw.get("title", f"Scenarios of {raw['game']}")}
    config |= {"seed": raw["seed"]} if "seed" in raw else {}
    return config | {"games": _games(chosen)}


def all_of(games: Iterable[str]) -> dict[str, Any]:
    chosen = [scenario for game in games for scenario in scenarios(game).values()]
    return {"title": "Scenarios", "games": _games(chosen)}


def _games(chosen: Iterable[Scenario]) -> list[dict[str, Any]]:
    return [
        {
            "game": scenario.game,
            "label": f"{scenario.game}/{scenario.name}",
            "params": dict(scenario.params),
            "seats": [
                *["default"] * scenario.focal,
                *({"player": name, "name": BACKGROUND + name} for name in scenario.background),
            ],
            "episodes": scenario.episodes,
            **({"max_steps": scenario.max_steps} if scenario.max_steps else {}),
        }
        for scenario in chosen
        if not scenario.train
    ]
