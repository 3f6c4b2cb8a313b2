"""Opponents that follow rules: all that they may do, and how likely each of it is."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.rules import Rule, RulePolicy, legal
from llm_games.baselines.tree import TooLarge
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import Rulebook
from llm_games.view import Sight
from llm_games.wrappers.mixture import Mixture
from llm_games.wrappers.policy import Policy

MOST = 60_000_000
"""Moves of all beliefs of one step together, up to which value iteration is done."""
AT_ONCE = 400_000  # tables that are stepped at once
STRATA = 1024
"""Parts of its chance in which each move of an opponent that draws is looked up."""
KINDS = 64  # different moves of an opponent that draws


class NoRule(BadParameter):
    """What opponents or chance do cannot be foretold by rules alone."""


class _Drawn(Exception):
    """A rule drew something."""


def _draw() -> Any:
    raise _Drawn


class Others:
    """Opponents as rules: a rule in each other seat, another one in each world.

    `worlds` are places in `rules`, ``(worlds, players - 1)``, `chances` how likely each is.

    Raises:
        NoRule: one of them follows no rule.
    """

    def __init__(self, game: Rulebook, seat: int, players: Sequence[Policy]) -> None:
        self.game, self.seat = game, seat
        self.seats = [other for other in range(game.players) if other != seat]
        options = [_options(player) for player in players]
        names = {one.name: one for own in options for one, _ in own}
        self.rules = list(names.values())
        self.found: list[Rule] = [rule.rule_in(game) for rule in self.rules]
        place = {name: i for i, name in enumerate(names)}
        if prod(len(own) for own in options) > MOST // 1000:
            raise TooLarge("there are too many combinations of opponents")
        each = list(product(*options))
        self.worlds = np.array([[place[one.name] for one, _ in world] for world in each], np.int64)
        self.chances = np.array([prod(w for _, w in world) for world in each])

    def repeat(self, many: int) -> None:
        """Have so many worlds, one after another, where there was one."""
        self.worlds = np.repeat(self.worlds, many, axis=0)
        self.chances = np.repeat(self.chances, many)

    def moves(self, state: Any, world: Array) -> tuple[Array, Array]:
        """Return all joint moves of the others, and their chances.

        ``(players - 1, tables, joint)`` and ``(tables, joint)``, of tables in these worlds.
        """
        parts = []
        for place, other in enumerate(self.seats):
            kinds = self.worlds[world, place]
            answers = {k: self._answers(k, other, state, kinds == k) for k in np.unique(kinds)}
            wide = max(values.shape[1] for values, _ in answers.values())
            values = np.zeros((len(world), wide), np.int64)
            chances = np.zeros((len(world), wide))
            for k, (own, likely) in answers.items():
                where = np.flatnonzero(kinds == k)
                values[where, : own.shape[1]] = own
                chances[where, : own.shape[1]] = likely
            parts.append((values, chances))
        joint: Array = np.ones((len(world), 1))
        actions = np.zeros((0, len(world), 1), np.int64)
        for values, chances in parts:
            count = joint.shape[1] * values.shape[1]
            if count * len(world) > MOST // 10:
                raise TooLarge("the others' moves have too many combinations")
            actions = np.concatenate(
                [
                    np.repeat(actions, values.shape[1], axis=2),
                    np.tile(values, (1, joint.shape[1]))[None],
                ]
            )
            joint = np.repeat(joint, values.shape[1], axis=1) * np.tile(chances, joint.shape[1])
            met = (joint > 0).any(axis=0)
            actions, joint = actions[:, :, met], joint[:, met]
        return actions, joint

    def _answers(self, kind: int, other: int, state: Any, where: Array) -> tuple[Array, Array]:
        """Return what a rule does in a seat at some tables, ``(tables, moves)``, and how often."""
        rule, some = self.found[kind], np.flatnonzero(where)
        view = Sight(self.game, state.table(some)).view(other)
        try:
            moves = legal(view, rule(view, Noise.due(view.batch, _draw)))
            return np.broadcast_to(moves, some.shape)[:, None], np.ones((len(some), 1))
        except _Drawn:
            pass
        step, parts = max(1, AT_ONCE // STRATA), []
        for first in range(0, len(some), step):
            here = np.repeat(some[first : first + step], STRATA)
            view = Sight(self.game, state.table(here)).view(other)
            moves = np.broadcast_to(legal(view, rule(view, Strata(len(here)))), here.shape)
            parts.append(_counted(moves.reshape(-1, STRATA)))
        wide = max(values.shape[1] for values, _ in parts)
        if wide > KINDS:
            raise TooLarge(f"{self.rules[kind].name} makes more than {KINDS} different moves")
        padded = [[np.pad(p, ((0, 0), (0, wide - p.shape[1]))) for p in part] for part in parts]
        return tuple(np.concatenate(own) for own in zip(*padded, strict=True))  # type: ignore[return-value]


def _options(player: Policy) -> list[tuple[RulePolicy, float]]:
    """Return the rules that a player may be, and how likely each is."""
    if isinstance(player, Mixture):
        shares = player.weights / player.weights.sum()
        each = zip(player.players, shares.tolist(), strict=True)
        return [(rule, w * own) for one, w in each for rule, own in _options(one)]
    if not isinstance(player, RulePolicy):
        raise NoRule(f"{player.name} follows no rule")
    return [(player, 1.0)]


def _counted(moves: Array) -> tuple[Array, Array]:
    """Return the different moves of each row and how often each is met, padded with 0."""
    ordered = np.sort(moves, axis=1)
    new = np.concatenate([np.ones((len(moves), 1), bool), np.diff(ordered, axis=1) > 0], axis=1)
    place, rows = np.cumsum(new, axis=1) - 1, np.arange(len(moves))[:, None]
    values = np.zeros((len(moves), int(place.max()) + 1), np.int64)
    chances = np.zeros(values.shape)
    values[np.broadcast_to(rows, place.shape), place] = ordered
    np.add.at(chances, (np.broadcast_to(rows, place.shape), place), 1 / moves.shape[1])
    return values, chances


class Strata(Noise):
    """Noise of tables that come in groups of `STRATA`: each has another part of all chance.

    What is drawn once is met as often as it is likely, to one in `STRATA`; of several draws each,
    and together as in so many games.
    """

    __slots__ = ("path",)

    def __init__(self, tables: int, path: int = 1) -> None:
        """Make the noise of so many tables, under a key."""
        self._keep(np.zeros(tables, np.uint64))
        self.path = path

    def of(self, *key: Any) -> Strata:
        """Return the noise under a longer key; all tables have the same words."""
        word = sha256(repr([self.path, *key]).encode()).digest()[:8]
        return Strata(self.batch[0], int.from_bytes(word, "little"))

    def bits(self, shape: Any = ()) -> Any:
        """Return the middle of each table's part."""
        lead = (shape,) if isinstance(shape, int) else tuple(shape)
        drawn = np.empty((*lead, *self.batch), np.uint64)
        for place in np.ndindex(lead):
            key = Noise(self.path % 2**63).of("strata", *place) if place else Noise(self.path)
            order = key.order(STRATA).astype(np.uint64)
            part = (order * np.uint64(2) + np.uint64(1)) * np.uint64(2**63 // STRATA)
            drawn[place] = np.resize(part, self.batch)
        return drawn
