"""What players that follow a rule have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from llm_games.errors import BadParameter
from llm_games.games.battle_royale.rules import MISS
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy

Rule = Callable[[View, np.random.Generator], Any]
"""Turns what a seat sees, and chance, into its action: ``(*batch)``; a plan has the seats first."""


@dataclass(frozen=True)
class Memory:
    """All that a rule player remembers: its seed, and how often it has decided."""

    seed: int
    count: int = 0

    def chance(self) -> np.random.Generator:
        """Return the generator of this decision alone."""
        return cast(np.random.Generator, _Chance(self))

    def next(self) -> Memory:
        """Return the memory after this decision."""
        return Memory(self.seed, self.count + 1)


class _Chance:
    """A generator that is made when it is first drawn from: most rules never draw."""

    def __init__(self, memory: Memory) -> None:
        self._seeds = memory.seed, memory.count

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seeds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


class RulePolicy(Policy):
    """A player that follows one rule in each game.

    It acts on the numbers of a view, of one table or of a whole batch; the action is then an
    int64 array ``(*batch)``. In the pirate game it is ``(players, *batch)``: a plan by seat
    where the seat proposes, and 0 but for its own vote where it votes.

    Args:
        name: the player's name.
        rules: what it does, by game.
    """

    def __init__(self, name: str, rules: Mapping[str, Rule]) -> None:
        self.name, self.rules = name, rules

    def start(self, game: Rulebook, seat: int, seed: int) -> Memory:
        """Return the memory at the start.

        Raises:
            BadParameter: the player is not defined for this game.
        """
        if game.name not in self.rules:
            raise not_defined(self.name, game.name, self.rules)
        return Memory(seed)

    def act(self, view: View, memory: Memory) -> tuple[Decision, Memory]:
        """Decide by the game's rule."""
        action = self.rules[view.game.name](view, memory.chance())
        return decision(view, action), memory.next()


def not_defined(name: str, game: str, games: Mapping[str, Any]) -> BadParameter:
    """Return the error for a player that has no rule for a game."""
    return BadParameter(f"player {name!r} is not defined for {game}; it is for {', '.join(games)}")


def decision(view: View, action: Any) -> Decision:
    """Return a decision; numbers are kept within what is legal now."""
    values = np.asarray(action)
    if values.ndim == view.numbers.ndim - 1:
        values = np.clip(values, view.low, view.high)
    values = values.astype(np.int64)
    if view.numbers.ndim > 1:
        return Decision(values)  # type: ignore[arg-type]  # a whole batch
    return Decision(tuple(values.tolist()) if values.ndim else int(values))


def shape(view: View) -> tuple[int, ...]:
    """Return the batch of a view, () for one table."""
    return view.numbers.shape[:-1]


def pick(chances: Array, rng: np.random.Generator) -> Array:
    """Draw an index of the last axis with these chances, ``(*batch)``."""
    below = np.cumsum(chances, axis=-1)
    mark = rng.random(below.shape[:-1]) * below[..., -1]
    return (mark[..., None] >= below).sum(axis=-1)


def living_others(view: View) -> Array:
    """Return who else is alive in battle royale, bool ``(*batch, players)``."""
    seats = range(view.game.players)
    alive = np.stack([view.number(f"living_{i}") > 0 for i in seats], axis=-1)
    return alive & (np.array(seats) != view.seat)


def shoot(chances: Array, rng: np.random.Generator) -> Array:
    """Draw a target from chances by seat, the last one for missing on purpose."""
    target = pick(chances, rng)
    return np.where(target == chances.shape[-1] - 1, MISS, target)


def shoot_first(order: Array, view: View) -> Array:
    """Return the living other who comes first in `order` (largest number), or a miss if none."""
    others = living_others(view)
    best = np.where(others, order, np.iinfo(np.int64).min).argmax(axis=-1)
    return np.where(others.any(axis=-1), best, MISS)


def strength(view: View) -> Array:
    """Return the seats' rank by hit rate, later seats first among equals."""
    players = view.game.players
    rates: tuple[int, ...] = view.game.rates  # type: ignore[attr-defined]
    return np.array(rates) * players + np.arange(players)


def ballot(view: View, plan: Array, accepts: Array) -> Array:
    """Return a pirate's action: its plan ``(players,)`` if it proposes, its vote if it votes."""
    batch = shape(view)
    voting = view.number("phase") > 0
    if not batch:
        return np.asarray(int(accepts)) if voting else plan
    mine = np.arange(len(plan)).reshape(-1, *(1 for _ in batch)) == view.seat
    plans = plan.reshape(-1, *(1 for _ in batch))
    return np.where(voting, mine * accepts, plans)


def equal_shares(view: View) -> Array:
    """Return the plan that gives all living pirates the same; the proposer keeps the rest."""
    players, gold = view.game.players, view.game.gold  # type: ignore[attr-defined]
    plan = np.where(np.arange(players) >= view.seat, gold // (players - view.seat), 0)
    plan[view.seat] += gold - plan.sum()
    return plan
