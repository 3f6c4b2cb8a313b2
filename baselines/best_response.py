"""Best response to given opponents: exact by value iteration where possible, else bounds.

A learner does not know its *world*: which player each opponent is, where these are mixtures. What
it has observed and done leaves a belief over worlds and states (over worlds alone, if opponents
ignore what the seat did before, which is tested). Value iteration goes over beliefs backward from
the last step, so its policy is the best of all. Seats may move in turn, and a game may end by
chance. Opponents must follow rules, drawn moves being weighted by their chances, or have a
``strategy`` (ghosts) in the tree of the game, if that has at most `EDGES` joint moves. If other
chance is drawn during the game, or an opponent follows no rule, there are only bounds: the best
rule player, valued in fresh games, and a player that knows all other moves of each step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.batch_play import ENDLESS, play_batch
from llm_games.baselines.beliefs import Iteration
from llm_games.baselines.disk_arrays import remember
from llm_games.baselines.move_chances import NoRule, Others
from llm_games.baselines.players import make_player, reading
from llm_games.baselines.regret import has, replies
from llm_games.baselines.tree import TooLarge, Tree
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.table_batch import Tables
from llm_games.version import __version__
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.tabular_player import InformationSets, parameters_of, table_of

METHOD = 1  # of this file and of beliefs.py, for what is kept on disk
EDGES = 100_000  # joint moves up to which a tree is made
ACTIONS = 2001  # legal moves up to which all are tried
GAMES = 2000  # fresh games in which a policy is valued
CHOSEN = 256  # games in which each of some policies is tried


class BestResponse(NamedTuple):
    """The best response of a seat, or bounds of its payoff.

    `value` is its payoff over a whole game: exact, or the mean of `policy` over fresh games with
    the standard error `error`, a lower bound. `upper` is the upper bound, infinite where unknown,
    with two standard errors where estimated. `how` names the method.
    """

    policy: Policy
    value: float
    error: float
    upper: float
    exact: bool
    how: str

    def share(self, payoff: float) -> tuple[float, float]:
        """Return the least and the largest share of the best response that a payoff can be."""
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
) -> BestResponse:
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
    count = game.players - 1
    each: list[Any] = [opponents] * count if isinstance(opponents, str | Policy) else [*opponents]
    if len(each) != count:
        raise BadParameter(f"{count} other seats need as many players, got {len(each)}")
    policies = {opponent: make_player(opponent, game) for opponent in dict.fromkeys(each)}
    players = [policies[opponent] for opponent in each]
    try:
        in_tree = players and all(hasattr(player, "strategy") for player in players)
        if in_tree and actions is None:
            return _in_tree(game, seat, players)
        return _exact(game, seat, players, actions)
    except (TooLarge, NoRule) as fault:
        return _bounds(game, seat, players, games, seed, str(fault))


def _exact(
    game: Rulebook, seat: int, players: list[Policy], actions: Sequence[int] | None
) -> BestResponse:
    """Return the exact best response, cached on disk; raises `TooLarge` or `NoRule`."""
    others, moves = Others(game, seat, players), _moves(game, actions)
    about = [METHOD, __version__, game.name, game.edition, parameters_of(game), seat]
    about += [[rule.name for rule in others.rules], others.worlds.tolist(), others.chances.tolist()]
    name = sha256(json.dumps([*about, moves.tolist()]).encode()).hexdigest()
    solve = Iteration(game, seat, others, moves).solved
    by_kind = all(reading(rule.name) == "kind" for rule in others.rules)  # and not by its own code
    arrays = remember(f"best-response-{name[:32]}", solve) if by_kind else solve()
    rows = InformationSets(*(arrays[part] for part in InformationSets._fields))
    policy = table_of(game, rows, np.ones(len(rows.seat)), name=f"best response, seat {seat}")
    belief_space = "worlds" if arrays["forgets"] else "worlds and states"
    how = f"exact: value iteration over {int(arrays['beliefs'])} beliefs about {belief_space}"
    value = float(arrays["value"])
    return BestResponse(policy, value, 0.0, value, True, how)


def _in_tree(game: Rulebook, seat: int, players: list[Policy]) -> BestResponse:
    """Return the exact response to players with a ``strategy`` in a tree; `NoRule`, `TooLarge`."""
    if game.division is not None:
        raise NoRule(f"plans are made in {game.name}")
    tree = Tree(game, deals=1, limit=EDGES)
    if tree.deals:
        raise NoRule(f"chance is drawn in {game.name}")
    others: list[Any] = [*players[:seat], None, *players[seat:]]
    strategies = [other.strategy(tree, index) for index, other in enumerate(others) if other]
    replies, worth = tree.best_response(tree.scaled(np.sum(strategies, axis=0)))
    policy = table_of(game, *tree.rows.of(seat, replies), name=f"best response, seat {seat}")
    how = f"exact: a tree of {sum(len(level.node) for level in tree.levels)} joint moves"
    value = float(worth[seat])
    return BestResponse(policy, value, 0.0, value, True, how)


def _moves(game: Rulebook, actions: Sequence[int] | None) -> Array:
    """Return the moves to choose among; raises `NoRule` or `TooLarge` if they cannot be listed."""
    if game.division is not None:
        raise NoRule(f"plans are made in {game.name}")
    if game.length() is None:
        raise NoRule(f"{game.name} has no end")
    low, high = game.bounds()
    if actions is not None:
        moves = np.unique(np.asarray(actions, np.int64))
        if not len(moves) or moves[0] < low or moves[-1] > high:
            raise BadParameter(f"actions must be some from {low} to {high}, got {actions!r}")
        return moves
    if game.grid is not None:
        return np.array(game.grid)
    if high - low >= ACTIONS:
        raise TooLarge(f"{game.name} has {high - low + 1} moves; give some actions")
    return np.arange(low, high + 1)


def _bounds(
    game: Rulebook, seat: int, players: list[Policy], games: int, seed: int, why: str
) -> BestResponse:
    """Return the best rule player as a lower bound, and what a seat that knows all moves gets."""
    names = replies(game) if has(game.name, "replies") else ("rational", "random")
    tried = [make_player(name, game) for name in names]
    # Each is tried in the same games, the best is valued in others.
    which = np.repeat(np.arange(len(tried)), CHOSEN)
    seeds = np.tile(np.arange(CHOSEN), len(tried)) + seed + games
    each, others = [*tried, *players], len(tried) + np.arange(len(players))
    rows = np.tile(others[:, None], len(which))
    sits = np.concatenate([rows[:seat], which[None], rows[seat:]])
    payoffs = sum(o.rewards[seat] for _, o in play_batch(game, each, sits, seeds.tolist()))
    best = tried[int(np.reshape(payoffs, (len(tried), CHOSEN)).mean(axis=1).argmax())]
    fresh = list(range(seed, seed + games))
    play = _play_beside_best(game, seat, [*players[:seat], best, *players[seat:]], fresh)
    other = [*players[:seat], make_player("random", game), *players[seat:]]
    mean, error = float(play.payoffs.mean()), float(play.payoffs.std() / np.sqrt(games))
    upper, how = np.inf, f"bounds ({why}): {best.name}"
    if play.best is not None and play.same(_play_beside_best(game, seat, other, fresh)):
        spread = play.best.std() / np.sqrt(games)
        upper = float(play.best.mean() + 2 * spread)
        how += ", and one who knows what others are about to do"
    return BestResponse(best, mean, error, max(upper, mean), False, how)


class _PlayBesideBest(NamedTuple):
    """A seat's payoffs in some games beside the best possible ones, and others' moves.

    `best` is of a seat that knows others' moves of a step, None beyond `ACTIONS` legal moves.
    """

    payoffs: Array
    best: Array | None
    moves: list[Array]
    possible: list[Array]

    def same(self, other: _PlayBesideBest) -> bool:
        pairs = [(self.moves, other.moves), (self.possible, other.possible)]
        alike = (len(ours) == len(theirs) for ours, theirs in pairs)
        return all(alike) and all(all(map(np.array_equal, *pair)) for pair in pairs)


def _play_beside_best(
    game: Rulebook, seat: int, players: list[Policy], seeds: list[int]
) -> _PlayBesideBest:
    """Play games, and value in each step every legal move of the seat."""
    tables = Tables(game, len(seeds))
    seats = BatchSeats(tables, players, np.tile(np.arange(game.players)[:, None], len(seeds)))
    tables.reset(seeds)
    seats.start(np.ones(len(seeds), np.bool_))
    enumerable = game.division is None and game.bounds()[1] - game.bounds()[0] < ACTIONS
    payoffs, best, moves, possible = np.zeros(len(seeds)), np.zeros(len(seeds)), [], []
    for _ in range(game.length() or ENDLESS):
        over, state = tables.state.over, tables.state
        if over.all():
            break
        actions = seats.ask_now(tables.ready().turn)
        if enumerable:
            low, high = (limit[seat] for limit in game.legal(state))
            best_payoffs = np.full(len(seeds), -np.inf)
            for move in range(int(low.min()), int(high.max()) + 1):
                tried = actions.copy()
                tried[seat] = np.clip(move, low, high)
                best_payoffs = np.maximum(best_payoffs, game.step(state, tried)[1].rewards[seat])
            best += np.where(over, 0.0, best_payoffs)
            moves.append(np.delete(actions, seat, axis=0))
            possible.append(best_payoffs)
        payoffs += tables.step(actions).rewards[seat]
        seats.hear(~over)
    return _PlayBesideBest(payoffs, best if enumerable else None, moves, possible)
