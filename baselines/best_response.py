"""The best response to given opponents: exact by value iteration where that can be, else bounds.

What a learner cannot know of its table is a *world*: which player each opponent is, where they are
mixtures. All that it has seen and done leaves a belief over worlds and states. Value iteration goes
over these beliefs, from the last step back, so that its policy is the best of all, also of those
that remember everything and pay for finding out. Opponents follow rules; one that draws is met in
all its moves, as likely as they are.

Opponents that say how likely they make each move of a tree (``strategy``: ghosts) are met in the
tree of all games, where that is not too large.

Where opponents do not mind what the seat did before, which is tried, beliefs are over worlds alone;
else over worlds and states. Where chance is drawn in the game, or opponents follow no rule, there
are bounds: the best policy that is found, valued in fresh games, and one that knows all that others
do before it moves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.beliefs import Iteration
from llm_games.baselines.cache import remember
from llm_games.baselines.deviation import has, replies
from llm_games.baselines.opponents import NoRule, Others
from llm_games.baselines.players import make_player, reading
from llm_games.baselines.skill import ENDLESS, play_batch
from llm_games.baselines.tree import TooLarge, Tree
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.tables import Tables
from llm_games.version import __version__
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.tabular import Rows, parameters_of, table_of

METHOD = 1  # of this file and of beliefs.py, for what is kept on disk
EDGES = 100_000  # joint moves up to which a tree is made
ACTIONS = 2001  # legal moves up to which all are tried
GAMES = 2000
"""Fresh games in which a policy is valued."""
CHOSEN = 256  # games in which each of some policies is tried


class Reply(NamedTuple):
    """The best response that was found in a seat.

    `value` is what it gets in a whole game: exact, or else the mean of `policy` over fresh games,
    whose standard error is `error` (0 where it is exact), and which the best response has at least.
    It gets no more than `upper`, infinite where nothing is known; where it is an estimate, two
    standard errors are added. `how` says in words how it was found.
    """

    policy: Policy
    value: float
    error: float
    upper: float
    exact: bool
    how: str

    def share(self, payoff: float) -> tuple[float, float]:
        """Return what share of the best response a payoff is: the least, and the most."""
        ends = [payoff / self.upper, payoff / self.value] if self.value > 0 else [np.nan] * 2
        return min(ends), max(ends)


def best_response(
    rules: Rulebook,
    seat: int,
    opponents: str | Policy | Sequence[str | Policy],
    *,
    actions: Sequence[int] | None = None,
    games: int = GAMES,
    seed: int = 10**9,
) -> Reply:
    """Return the best response of a seat to its opponents, or bounds of what it gets.

    Args:
        rules: the game; what is paid is the sum of its rewards.
        seat: whose response.
        opponents: one player for all other seats, or one for each in their order.
        actions: moves to choose among, by default all legal ones.
        games: how many fresh games a policy is valued in where the value is not exact.
        seed: the first of their seeds.

    Raises:
        BadParameter: there is no such seat, not one opponent for each other, or one that asks a
            model.
    """
    game = rules.core
    if not 0 <= seat < game.players:
        raise BadParameter(f"seat must be from 0 to {game.players - 1}, got {seat}")
    if isinstance(opponents, (str, Policy)):
        each: list[Any] = [opponents] * (game.players - 1)
    else:
        each = list(opponents)
    if len(each) != game.players - 1:
        raise BadParameter(f"{game.players - 1} other seats need as many players, got {len(each)}")
    made = {one: make_player(one, game) for one in dict.fromkeys(each)}
    players = [made[one] for one in each]
    try:
        told = players and all(hasattr(player, "strategy") for player in players)
        if told and actions is None:
            return _in_tree(game, seat, players)
        return _exact(game, seat, players, actions)
    except (TooLarge, NoRule) as fault:
        return _bounds(game, seat, players, games, seed, str(fault))


def _exact(
    game: Rulebook, seat: int, players: list[Policy], actions: Sequence[int] | None
) -> Reply:
    """Return the exact best response, kept on disk; `TooLarge` or `NoRule` where there is none."""
    others = Others(game, seat, players)
    moves = _moves(game, actions)
    about = [METHOD, __version__, game.name, game.edition, parameters_of(game), seat]
    about += [[rule.name for rule in others.rules], others.worlds.tolist(), others.chances.tolist()]
    name = sha256(json.dumps([*about, moves.tolist()]).encode()).hexdigest()
    solve = Iteration(game, seat, others, moves).solved
    known = all(reading(rule.name) == "kind" for rule in others.rules)  # and not by its own code
    found = remember(f"best-response-{name[:32]}", solve) if known else solve()
    rows = Rows(*(found[part] for part in Rows._fields))
    policy = table_of(game, rows, np.ones(len(rows.seat)), name=f"best response, seat {seat}")
    kept = "worlds" if found["forgets"] else "worlds and states"
    how = f"exact: value iteration over {int(found['beliefs'])} beliefs about {kept}"
    value = float(found["value"])
    return Reply(policy, value, 0.0, value, True, how)


def _in_tree(game: Rulebook, seat: int, players: list[Policy]) -> Reply:
    """Return the exact best response to players who say how likely they make each move of a tree.

    Raises `NoRule` or `TooLarge` where there is no such tree.
    """
    if game.division is not None:
        raise NoRule(f"plans are made in {game.name}")
    tree = Tree(game, deals=1, most=EDGES)
    if tree.deals:
        raise NoRule(f"chance is drawn in {game.name}")
    others: list[Any] = [*players[:seat], None, *players[seat:]]
    said = [other.strategy(tree, place) for place, other in enumerate(others) if place != seat]
    replies, worth = tree.best_response(tree.scaled(np.sum(said, axis=0)))
    policy = table_of(game, *tree.rows.of(seat, replies), name=f"best response, seat {seat}")
    how = f"exact: a tree of {sum(len(level.node) for level in tree.levels)} joint moves"
    value = float(worth[seat])
    return Reply(policy, value, 0.0, value, True, how)


def _moves(game: Rulebook, actions: Sequence[int] | None) -> Array:
    """Return the moves to choose among; raises `NoRule` or `TooLarge` where these are not few."""
    if game.turns or game.division is not None:
        raise NoRule(f"{game.name} has turns")
    if game.length() is None:
        raise NoRule(f"{game.name} has no end")
    low, high = game.bounds()
    if actions is not None:
        given = np.unique(np.asarray(actions, np.int64))
        if not len(given) or given[0] < low or given[-1] > high:
            raise BadParameter(f"actions must be some from {low} to {high}, got {actions!r}")
        return given
    if game.grid is not None:
        return np.array(game.grid)
    if high - low >= ACTIONS:
        raise TooLarge(f"{game.name} has {high - low + 1} moves; give some actions")
    return np.arange(low, high + 1)


# -- bounds ----------------------------------------------------------------------------------------


def _bounds(
    game: Rulebook, seat: int, players: list[Policy], games: int, seed: int, why: str
) -> Reply:
    """Return the best rule player that is found, and what one gets who knows others' moves."""
    names = replies(game) if has(game.name, "replies") else ("rational", "random")
    tried = [make_player(name, game) for name in names]
    # Each is tried in the same games, the best is valued in others.
    which = np.repeat(np.arange(len(tried)), CHOSEN)
    seeds = np.tile(np.arange(CHOSEN), len(tried)) + seed + games
    each, sits = [*tried, *players], _sits(seat, which, len(tried) + np.arange(len(players)))
    paid = sum(o.rewards[seat] for _, o in play_batch(game, each, sits, seeds.tolist()))
    best = tried[int(np.reshape(paid, (len(tried), CHOSEN)).mean(axis=1).argmax())]
    fresh = list(range(seed, seed + games))
    found = _known(game, seat, [*players[:seat], best, *players[seat:]], fresh)
    other = [*players[:seat], make_player("random", game), *players[seat:]]
    mean, error = float(found.paid.mean()), float(found.paid.std() / np.sqrt(games))
    upper, how = np.inf, f"bounds ({why}): {best.name}"
    if found.best is not None and found.same(_known(game, seat, other, fresh)):
        spread = found.best.std() / np.sqrt(games)
        upper = float(found.best.mean() + 2 * spread)
        how += ", and one who knows what others are about to do"
    return Reply(best, mean, error, max(upper, mean), False, how)


def _sits(seat: int, own: Array, others: Array) -> Array:
    """Return who sits where, ``(players, tables)``: others are the same at all tables."""
    rows = np.tile(others[:, None], len(own))
    return np.concatenate([rows[:seat], own[None], rows[seat:]])


class _Known(NamedTuple):
    """What a seat was paid in some games, and what the best moves had paid; and others' moves.

    `best` is what it gets that knows in each step what others do there, None if too much is legal.
    """

    paid: Array
    best: Array | None
    moves: list[Array]
    possible: list[Array]

    def same(self, other: _Known) -> bool:
        """Return whether others did the same here, and as much could be had in each step."""
        pairs = [(self.moves, other.moves), (self.possible, other.possible)]
        return all(
            len(ours) == len(theirs)
            and all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
            for ours, theirs in pairs
        )


def _known(game: Rulebook, seat: int, players: list[Policy], seeds: list[int]) -> _Known:
    """Play games, and try in each step all that the seat could do."""
    tables = Tables(game, len(seeds))
    seats = BatchSeats(tables, players, np.tile(np.arange(game.players)[:, None], len(seeds)))
    tables.reset(seeds)
    seats.start(np.ones(len(seeds), np.bool_))
    few = game.division is None and game.bounds()[1] - game.bounds()[0] < ACTIONS
    paid, best, moves, possible = np.zeros(len(seeds)), np.zeros(len(seeds)), [], []
    for _ in range(game.length() or ENDLESS):
        over, state = tables.state.over, tables.state
        if over.all():
            break
        actions = seats.ask_now(tables.ready().turn)
        if few:
            low, high = (limit[seat] for limit in game.legal(state))
            most = np.full(len(seeds), -np.inf)
            for own in range(int(low.min()), int(high.max()) + 1):
                tried = actions.copy()
                tried[seat] = np.clip(own, low, high)
                most = np.maximum(most, game.step(state, tried)[1].rewards[seat])
            best += np.where(over, 0.0, most)
            moves.append(np.delete(actions, seat, axis=0))
            possible.append(most)
        paid += tables.step(actions).rewards[seat]
        seats.hear(~over)
    return _Known(paid, best if few else None, moves, possible)
