"""Rule-following opponents: all moves that they may make, with their chances."""

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
from llm_games.wrappers.player_mixture import PlayerMixture
from llm_games.wrappers.policy import Policy

MOST = 60_000_000  # moves of all beliefs of one step together, up to which value iteration is done
AT_ONCE = 400_000  # tables that are stepped at once
STRATA = 1024  # parts of its chance in which each move of an opponent that draws is looked up
NOBODY = -1  # in place of a rule where a seat is not asked
KINDS = 64  # different moves of an opponent that draws


class NoRule(BadParameter):
    """What opponents or chance do cannot be foretold by rules alone."""


class _DrawnOpponents(Exception):
    """A rule drew something."""


def _draw() -> Any:
    raise _DrawnOpponents


class Others:
    """Opponents as rules: one rule in each other seat, different ones by world, else `NoRule`.

    `worlds` are indices of `rules`, ``(worlds, players - 1)``, `chances` are of the worlds.
    """

    def __init__(self, game: Rulebook, seat: int, players: Sequence[Policy]) -> None:
        self.game, self.seat = game, seat
        self.seats = [other for other in range(game.players) if other != seat]
        options = [_options(player) for player in players]
        names = {policy.name: policy for choices in options for policy, _ in choices}
        self.rules = list(names.values())
        self.game_rules: list[Rule] = [rule.rule_in(game) for rule in self.rules]
        indices = {name: i for i, name in enumerate(names)}
        if prod(len(choices) for choices in options) > MOST // 1000:
            raise TooLarge("there are too many combinations of opponents")
        each = list(product(*options))
        self.worlds = np.array(
            [[indices[policy.name] for policy, _ in world] for world in each], np.int64
        )
        self.chances = np.array([prod(w for _, w in world) for world in each])

    def repeat(self, count: int) -> None:
        """Replace each world by `count` copies of it, one after another."""
        self.worlds = np.repeat(self.worlds, count, axis=0)
        self.chances = np.repeat(self.chances, count)

    def moves(self, state: Any, world: Array) -> tuple[Array, Array]:
        """Return others' joint moves, ``(players - 1, tables, joint)``, and chances by table.

        One that is not asked makes move 0, which plays nothing.
        """
        parts, turn = [], self.game.asked(state)
        for column, other in enumerate(self.seats):
            kinds = np.where(turn[other], self.worlds[world, column], NOBODY)
            met = np.unique(kinds[turn[other]]).tolist()
            answers = {k: self._answers(k, other, state, kinds == k) for k in met}
            width = max((values.shape[1] for values, _ in answers.values()), default=1)
            values = np.zeros((len(world), width), np.int64)
            chances = np.zeros((len(world), width))
            chances[kinds == NOBODY, 0] = 1
            for k, (moves, likely) in answers.items():
                tables = np.flatnonzero(kinds == k)
                values[tables, : moves.shape[1]] = moves
                chances[tables, : moves.shape[1]] = likely
            parts.append((values, chances))
        joint: Array = np.ones((len(world), 1))
        actions = np.zeros((0, len(world), 1), np.int64)
        for values, chances in parts:
            count = joint.shape[1] * values.shape[1]
            if count * len(world) > MOST // 10:
                raise TooLarge("the others' moves have too many combinations")
            others, own = np.repeat(actions, values.shape[1], axis=2), (1, joint.shape[1])
            actions = np.concatenate([others, np.tile(values, own)[None]])
            joint = np.repeat(joint, values.shape[1], axis=1) * np.tile(chances, joint.shape[1])
            possible = (joint > 0).any(axis=0)
            actions, joint = actions[:, :, possible], joint[:, possible]
        return actions, joint

    def _answers(self, kind: int, other: int, state: Any, mask: Array) -> tuple[Array, Array]:
        """Return a rule's moves in a seat, ``(tables, moves)``, and their chances."""
        here = state.table(np.flatnonzero(mask))
        return rule_moves(self.game, self.game_rules[kind], self.rules[kind].name, here, other)


def rule_moves(
    game: Rulebook, rule: Rule, name: str, state: Any, seat: int, strata: int = STRATA
) -> tuple[Array, Array]:
    """Return a rule's moves in a seat, ``(tables, moves)``, and their chances.

    Where it draws, chances are counted in so many `strata`, a power of 2. TooLarge: it makes more
    than `KINDS` different moves.
    """
    tables = np.arange(state.over.shape[-1])
    view = Sight(game, state).view(seat)
    try:
        moves = legal(view, rule(view, Noise.due(view.batch, _draw)))
        return np.broadcast_to(moves, tables.shape)[:, None], np.ones((len(tables), 1))
    except _DrawnOpponents:
        pass
    step, parts = max(1, AT_ONCE // strata), []
    for first in range(0, len(tables), step):
        here = np.repeat(tables[first : first + step], strata)
        view = Sight(game, state.table(here)).view(seat)
        moves = np.broadcast_to(
            legal(view, rule(view, Strata(len(here), parts=strata))), here.shape
        )
        parts.append(_distinct_moves(moves.reshape(-1, strata)))
    width = max(values.shape[1] for values, _ in parts)
    if width > KINDS:
        raise TooLarge(f"{name} makes more than {KINDS} different moves")
    padded = [[np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in part] for part in parts]
    return tuple(np.concatenate(columns) for columns in zip(*padded, strict=True))  # type: ignore[return-value]


def _options(player: Policy) -> list[tuple[RulePolicy, float]]:
    """Return the rules that a player may follow, and their chances."""
    if isinstance(player, PlayerMixture):
        shares = player.weights / player.weights.sum()
        each = zip(player.players, shares.tolist(), strict=True)
        return [(rule, w * share) for member, w in each for rule, share in _options(member)]
    if not isinstance(player, RulePolicy):
        raise NoRule(f"{player.name} follows no rule")
    return [(player, 1.0)]


def _distinct_moves(moves: Array) -> tuple[Array, Array]:
    """Return the distinct moves of each row and their frequencies, padded with 0."""
    ordered = np.sort(moves, axis=1)
    new = np.concatenate([np.ones((len(moves), 1), bool), np.diff(ordered, axis=1) > 0], axis=1)
    column, rows = np.cumsum(new, axis=1) - 1, np.arange(len(moves))[:, None]
    values = np.zeros((len(moves), int(column.max()) + 1), np.int64)
    chances = np.zeros(values.shape)
    values[np.broadcast_to(rows, column.shape), column] = ordered
    np.add.at(chances, (np.broadcast_to(rows, column.shape), column), 1 / moves.shape[1])
    return values, chances


class Strata(Noise):
    """Noise of tables in groups of `parts`, each with another part of all chance.

    A single draw occurs as often as it is likely, to one in `parts`; several as in so many games.
    """

    __slots__ = ("parts", "path")

    def __init__(self, tables: int, path: int = 1, parts: int = STRATA) -> None:
        self._keep(np.zeros(tables, np.uint64))
        self.path, self.parts = path, parts

    def of(self, *key: Any) -> Strata:
        """Return the noise under a longer key; all tables have the same words."""
        word = sha256(repr([self.path, *key]).encode()).digest()[:8]
        return Strata(self.batch[0], int.from_bytes(word, "little"), self.parts)

    def bits(self, shape: Any = ()) -> Any:
        """Return the middle of each table's part of the range of uint64."""
        lead = (shape,) if isinstance(shape, int) else tuple(shape)
        drawn = np.empty((*lead, *self.batch), np.uint64)
        for index in np.ndindex(lead):
            key = Noise(self.path % 2**63).of("strata", *index) if index else Noise(self.path)
            order = key.order(self.parts).astype(np.uint64)
            part = (order * np.uint64(2) + np.uint64(1)) * np.uint64(2**63 // self.parts)
            drawn[index] = np.resize(part, self.batch)
        return drawn
