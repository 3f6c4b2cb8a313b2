"""Level-k players: level 0 plays at random, level k replies best to everybody at level k - 1.

In the beauty contest level 0 names the midpoint, and level k ``ratio`` times level k - 1 (the own
weight in the mean is ignored, as in Nagel 1995). In El Farol level 0 goes with probability 1/2.
In battle royale level 0 shoots any living other, level 1 the strongest.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.battle_royale import theory as battle_royale
from llm_games.baselines.games.beauty_contest import theory as beauty_contest
from llm_games.baselines.games.el_farol_bar import theory as el_farol_bar
from llm_games.baselines.policies.base import (
    Rule,
    living_others,
    shape,
    shoot,
    shoot_first,
    strength,
)
from llm_games.rulebook import Array
from llm_games.view import View


def rules(level: int) -> dict[str, Rule]:
    """Return what a player of this level does, by game."""

    def guess(view: View, rng: np.random.Generator) -> Array:
        contest = models.contest(view.game)  # type: ignore[arg-type]
        number, highest = np.zeros(shape(view), np.int64), np.minimum(view.high, contest.high)
        for high in np.unique(highest):  # of each table
            of_table = dataclasses.replace(contest, high=int(high))
            number[highest == high] = beauty_contest.level_k(level, of_table)
        return number

    def go(view: View, rng: np.random.Generator) -> Array:
        bar = models.bar(view.game)  # type: ignore[arg-type]
        return rng.random(shape(view)) < _chance_to_go(level, bar)

    def target(view: View, rng: np.random.Generator) -> Array:
        return _target(level, view, rng)

    return {"beauty_contest": guess, "el_farol_bar": go, "battle_royale": target}


def _chance_to_go(level: int, bar: el_farol_bar.Bar) -> float:
    if level == 0:
        return 0.5
    # All at level 1 do the same, so from there on the levels alternate (or repeat).
    before = _chance_to_go(1 + level % 2 if level > 2 else level - 1, bar)
    good = el_farol_bar.good_if_i_go(before, bar)
    go = bar.crowded + (bar.good - bar.crowded) * good
    return float(go > bar.home)


def _target(level: int, view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    others = living_others(view)
    if level == 0:
        nobody = ~others.any(axis=-1, keepdims=True)
        return shoot(np.concatenate([others, nobody], axis=-1).astype(float), rng)
    if level == 1:
        return shoot_first(strength(view), view)
    cap = models.cap(game)
    policy = shooting(level, game.rates, cap, game.cap_outcome == "share")
    mask = (others << np.arange(game.players)).sum(axis=-1) | (1 << view.seat)
    if cap is None:
        return shoot(policy[mask, view.seat], rng)
    left = np.maximum(cap - view.number("shots").astype(np.int64), 0)
    return shoot(policy[left, mask, view.seat], rng)


@lru_cache(maxsize=8)
def shooting(level: int, rates: tuple[int, ...], cap: int | None, share: bool) -> Array:
    """Return the policy of all seats at a level, ``([shots left,] sets, seats, actions)``."""
    if level <= 1:
        policy = battle_royale.shoot_strongest(rates)
        return policy if cap is None else np.broadcast_to(policy, (cap + 1, *policy.shape))
    before = shooting(level - 1, rates, cap, share)
    policy = before.copy()
    for seat in range(len(rates)):
        reply = battle_royale.best_response(rates, before, seat, cap, share)[1]
        policy[..., seat, :] = reply[..., seat, :]
    return policy
