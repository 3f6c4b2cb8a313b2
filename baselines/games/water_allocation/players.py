"""Players of the water allocation challenge: rules of thumb, and responses of a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.baselines.games.water_allocation import theory as solution
from llm_games.baselines.policies.base import Rule, shape
from llm_games.questions import NO_BID
from llm_games.rulebook import Array
from llm_games.view import View

GAME = "water_allocation"
HIGHEST_LEVEL = 9


def thumb(name: str) -> dict[str, Rule]:
    """Return a rule of thumb, one of `solution.RULES`, by game."""
    rule = solution.RULES[name]
    return {GAME: lambda view, rng: rule(situation(view), rng)}


def level(number: int) -> dict[str, Rule]:
    """Return the response of a level, see `solution.response`, by game."""

    def bid(view: View, rng: np.random.Generator) -> Array:
        game: Any = view.game
        return solution.response(game, view.seat, number)(situation(view))

    return {GAME: bid}


def cooperate(view: View, rng: np.random.Generator) -> Array:
    """Return an even bid where a planner would serve the seat today, else no bid."""
    game: Any = view.game
    seats, begun = range(game.players), view.number("days") > 0
    hp, dry = (
        np.stack([np.where(begun, view.number(f"{kind}_{seat}"), first) for seat in seats])
        for kind, first in (("hp", game.hp_start), ("dry", 0))
    )
    here = np.stack([(view.number(f"took_part_{seat}") > 0) | ~begun for seat in seats])
    now, keep = situation(view), solution.best_plan(solution.relevant(game))[0]
    slack = solution.endurance(hp.astype(np.int64), dry.astype(np.int64))
    chosen = solution.planned(game, slack, here & (hp > 0), now.supply, now.days_left, keep)
    return np.where(chosen[view.seat], solution.even(now), NO_BID)


def situation(view: View) -> solution.Situation:
    """Return the seat's situation, from its numbers."""
    game: Any = view.game
    hp, dry, days, supply = (_whole(view.number(name)) for name in ("hp", "dry", "days", "supply"))
    return solution.Situation(
        balance=_whole(view.number("balance") * game.unit),
        salary=np.broadcast_to(game.salaries[view.seat], shape(view)),
        hp=hp,
        dry=dry,
        days_left=game.days - days,
        supply=supply,
    )


def _whole(values: Array) -> Array:
    return np.rint(values).astype(np.int64)
