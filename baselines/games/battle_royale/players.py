"""Players of battle royale. Among equal hit rates the later seat counts as the stronger one."""

from functools import partial
from typing import Any

import numpy as np

from llm_games.arrays import entry
from llm_games.baselines.games.battle_royale import theory
from llm_games.baselines.rules import Players, cannot_play, pick, shape
from llm_games.games.battle_royale.rules import MISS
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

WORDS = ("strongest", "weakest", "nobody")


def living_others(view: View) -> Array:
    seats = np.arange(view.game.players)
    return np.moveaxis(view.each("living"), 0, -1) & (seats != np.asarray(view.seat)[..., None])


def shoot(chances: Array, noise: Noise) -> Array:
    """Draw a target from chances by seat, the last one for missing on purpose."""
    target = pick(chances, noise)
    return np.where(target == chances.shape[-1] - 1, MISS, target)


def shoot_any(others: Array, nobody: Array, noise: Noise) -> Array:
    """Draw a seat, or nobody where `nobody` ``(*batch, 1)``, all equally likely."""
    return shoot(np.concatenate([others, nobody], axis=-1).astype(float), noise)


def shoot_first(order: Array, others: Array) -> Array:
    """Return which of some seats has the largest number in `order`, or a miss if there are none."""
    best = np.where(others, order, np.iinfo(np.int64).min).argmax(axis=-1)
    return np.where(others.any(axis=-1), best, MISS)


def follow(policy: Array, view: View, noise: Noise) -> Array:
    """Draw from a policy of all seats, ``([shots left,] sets, seats, actions)``."""
    others = living_others(view)
    state: tuple[Any, ...] = theory.mask_of(others) | (1 << view.seat), view.seat
    if policy.ndim > 3:
        shots_left = len(policy) - 1 - view.number("shots").astype(np.int64)
        state = np.maximum(shots_left, 0), *state
    return shoot(entry(policy, state), noise)


def rational(view: View, noise: Noise) -> Array:
    return follow(theory.solution(view.game).policy, view, noise)


def level_k(level: int, view: View, noise: Noise) -> Array:
    """Level 0 shoots any living other, level 1 the strongest."""
    others = living_others(view)
    if level == 0:
        nobody = np.logical_not(others.any(axis=-1, keepdims=True))
        return shoot_any(others, nobody, noise)
    if level == 1:
        return shoot_first(theory.strength(view.game.rates), others)
    return follow(theory.level_k(level, view.game), view, noise)


def cooperative(view: View, noise: Noise) -> Array:
    """Shoot only at who has shot at this seat since its last turn."""
    aimed = [
        (view.number(f"shot_{i}") > 0) & (view.number(f"target_{i}") == view.seat)
        for i in range(view.game.players)
    ]
    enemies = np.stack(aimed, axis=-1) & living_others(view)
    return shoot_first(theory.strength(view.game.rates), enemies)


def any_legal(view: View, noise: Noise) -> Array:
    return shoot_any(living_others(view), np.ones((*shape(view), 1), bool), noise)


def fixed(word: str, view: View, noise: Noise) -> Array:
    """Shoot at the strongest, weakest, nobody, or a player (the strongest if dead or oneself)."""
    if word == "nobody":
        return np.full(shape(view), MISS)
    others, order = living_others(view), theory.strength(view.game.rates)
    best = shoot_first(-order if word == "weakest" else order, others)
    if word in WORDS:
        return best
    wanted = view.game.names().index(word)
    return np.where(others[..., wanted], wanted, best)


def meaning(game: Rulebook, value: str) -> str:
    words = (*WORDS, *game.names())
    if value not in words:
        raise cannot_play(game, value, f"one of {', '.join(words)}")
    return value


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": partial(level_k, 2),  # one shot says little about the others
        "level_k": level_k,
        "cooperative": cooperative,
        "random": any_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the others always shoot at the strongest (it is level_k:2)",
    mixed=True,
    broadcasts=True,
)
