"""All that one player can do against others who follow rules, tried through `step` alone.

The others follow rule players; the one seat tries every move after everything it was shown: whole
plans, broken rules among them. Chance is what the rules bring, each with its probability;
information sets are what the seat saw and did so far.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.baselines.games.battle_royale import theory as shooting
from llm_games.baselines.games.budget_auction import budget_first_price
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.baselines.games.matrix_game import theory as matrices
from llm_games.baselines.games.money_request import theory as requests
from llm_games.baselines.games.sealed_bid_auction import sealed_first_price
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import QUANTILES
from llm_games.baselines.players import _rule_in
from llm_games.baselines.rules import legal, whole
from llm_games.baselines.tree import together
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.view import Sight

WIDE = 60  # more moves than these are tried by name
MOST = 100_000  # edges of a layer
LAYERS = 150  # of a game without an end


class TooLarge(Exception):
    """There is more to try than can be."""


class Worth(NamedTuple):
    """What a seat gets by its own rule, and by the best that it can do, and the largest payoff."""

    own: float
    best: float
    size: float

    @property
    def gain(self):
        return self.best - self.own


# -- what differs by game --------------------------------------------------------------------------


def _bar(game, view):
    often = bar.mixed_equilibrium(bar.Bar.of(game))
    return np.array([0, 1]), np.array([1 - often, often])[:, None].repeat(view.batch[0], 1)


def _requests(game, view):
    downward = requests.symmetric_equilibrium(game)
    moves = game.high - np.arange(len(downward))
    return moves, np.array(downward, np.float64)[:, None].repeat(view.batch[0], 1)


def _actions(game, view):
    profile, likely = matrices.selected(game), matrices.mixed(game)
    pure = game.table.safe if profile is None and likely is None else profile
    own = likely[view.seat] if pure is None else np.eye(max(game.actions))[pure[view.seat]]
    return np.arange(len(own)), np.array(own, np.float64)[:, None].repeat(view.batch[0], 1)


def _shots(game, view):
    policy = shooting.solution(game).policy
    living = np.moveaxis(view.each("living"), 0, -1)
    state: Any = shooting.mask_of(living.astype(np.int64)), view.seat
    if policy.ndim > 3:
        left = len(policy) - 1 - view.number("shots").astype(np.int64)
        state = np.maximum(left, 0), *state
    return np.array([*range(game.players), -1]), np.moveaxis(policy[state], -1, 0)


def _waters(game, most):
    each = range(game.supply_low, game.supply_top + 1)
    supplies = np.array([*product(each, repeat=game.days)], np.int64).T
    return {"supplies": supplies}, np.full(supplies.shape[1], 1 / supplies.shape[1])


def _plans(game, state, seat):
    """Return plans of the pirate game as columns: all of shares from 0, or some beyond."""
    living = game.players - int(state.proposer[0])
    least = -3 if game.proposal_check == "sum_and_length" else -1
    shares = range(least, game.gold - least + 1)
    some = np.array([*product(shares, repeat=living - 1)], np.int64).reshape(-1, living - 1).T
    first = game.gold - some.sum(axis=0)
    dead = np.zeros((int(state.proposer[0]), some.shape[1]), np.int64)
    return np.concatenate([dead, first[None], some])


def _sealed(game, view):
    return _bids(whole(view, "valuation"), sealed_first_price.equilibrium(game).draw)


def _budgets(game, view):
    bids = budget_first_price.equilibrium(game)
    values = whole(view, "valuation", game.unit)
    return _bids(values, lambda own, chance: bids.draw(view.seat, own, chance))


def _bids(values, draw):
    """Return all bids that are drawn for values, and how likely each is."""
    chances = (np.arange(QUANTILES) + 0.5) / QUANTILES
    drawn = draw(values[:, None], np.broadcast_to(chances, (len(values), QUANTILES))).T
    moves = np.unique(drawn)
    return moves, (drawn[:, None] == moves[:, None]).mean(axis=0)


def _valuations(game, most):
    """Return all rows of valuations with a chance of more than one in a billion each."""
    if game.valuations is not None:
        return {"valuations": np.array(game.valuations, np.float64).T}, np.ones(1)
    laws = []
    for money in game.of_each("assets"):
        own = budget_first_price.equilibrium(
            dataclasses.replace(game, assets=money, entrance_fee=0)
        )
        chances = np.diff(own.below)
        laws.append([(v, p) for v, p in zip(own.values, chances, strict=True) if p > 1e-9])
    if np.prod([len(law) for law in laws]) > most:
        return None
    rows = [*product(*laws)]
    values = np.array([[v for v, _ in row] for row in rows], np.float64).T / game.unit
    likely = np.array([np.prod([p for _, p in row]) for row in rows])
    return {"valuations": values}, likely / likely.sum()


def _worths(game, most):
    """Return private values and lots of the one tie that two bidders can have at most."""
    from scipy.special import ndtr

    chance, laws = game.chance(Noise(0)), []
    ties = game.players > 1 and game.bidding == "rounds" and game.tie_rule != "lowest_index"
    if len(game.catalogue) > 1 or game.values != "private" or (ties and game.players > 2):
        return None
    for seat, money in enumerate(game.of_each("budgets")):
        if game.private_values or not game.value_sd:
            laws.append([(int(chance["values"][seat, 0]), 1.0)])
            continue
        below = ndtr((np.arange(1, money + 2) - game.value_mean) / game.value_sd)
        chances = np.diff(below) / (below[-1] - below[0])
        laws.append([(v, p) for v, p in zip(range(1, money + 1), chances, strict=True) if p > 1e-9])
    firsts = range(game.players) if game.first_bidder == "random" else (game.first_bidder,)
    lots = (1 / 8, 3 / 8, 5 / 8, 7 / 8) if ties else (0.5,)
    size = np.prod([len(law) for law in laws]) * len(firsts) * len(lots)
    if size > most:
        return None
    rows = [*product(product(*laws), firsts, lots)]
    likely = np.array([np.prod([p for _, p in own]) for own, _, _ in rows])
    lengths = min(game.length(), 1000)
    return {
        "order": np.zeros((1, len(rows)), np.int64),
        "values": np.array([[v for v, _ in own] for own, _, _ in rows], np.int64).T[:, None],
        "first": np.array([first for _, first, _ in rows], np.int64),
        "lots": np.tile([lot for _, _, lot in rows], (lengths, 1)),
    }, likely / likely.sum()


def _slips(game, most):
    """Return all that moves, or what is seen of them, can become; nothing where nothing slips."""
    if not game.noise:
        return {}, np.ones(1)
    shifts = range(lcm(*(count - 1 for count in game.actions)))
    places = (game.rounds, *(game.players,) * (1 + game.sees_wrong))
    each, count = [*product((0, game.noise.numerator), shifts)], int(np.prod(places))
    if len(each) ** count > most:
        return None
    rows = np.array([*product(each, repeat=count)], np.int64).transpose(2, 1, 0)
    slip, shift = rows.reshape(2, *places, -1)
    often = np.where(rows[0] == 0, float(game.noise), 1 - float(game.noise)) / len(shifts)
    return {"slip": slip, "shift": shift}, often.prod(axis=0)


MIXES: dict[str, Callable] = {
    "el_farol_bar": _bar,
    "matrix_game": _actions,
    "money_request": _requests,
    "battle_royale": _shots,
    "sealed_bid_auction": _sealed,
    "budget_auction": _budgets,
}
"""Chances of the moves of ``rational`` where it plays by chance: ``(moves, (moves, tables))``."""
DEALS: dict[str, Callable] = {
    "water_allocation": _waters,
    "budget_auction": _valuations,
    "english_auction": _worths,
    "matrix_game": _slips,
}
"""All that chance may bring where a room does not say so, as ``theory.deals``."""
MERGED: dict[str, Callable] = {
    "battle_royale": lambda s: np.concatenate([s.living, s.shooter[None], s.round[None]])
}
"""What matters of a state, in games where everybody sees everything."""
SOME: dict[str, Callable] = {
    "sealed_bid_auction": lambda game: [*range(-3, game.valuation_max + 4), -1000, 1000],
    "budget_auction": lambda game: range(-1, game.bounds()[1] + 2),
    "deal_or_no_deal": lambda game: range(-1, game.accept + 2),
    "divide_dollar": lambda game: range(-3, game.golds + 4),
    "public_goods": lambda game: range(-3, game.tokens + 4),
    "beauty_contest": lambda game: [
        *range(int(game.min * game.unit) - 12, int(game.max * game.unit) + 13),
        *(sign * far for sign in (-1, 1) for far in (50, 100, 1000, game.limit)),
    ],
    "bertrand_competition": lambda game: (
        range(game.limit + 1)
        if game.limit < 300
        else [*range(2 * game.bounds()[1] + 20), *(10**k for k in range(2, 8))]
    ),
}
"""Moves that are tried where not all can be."""


# -- trying ----------------------------------------------------------------------------------------


@dataclass
class Layer:
    """A step: what leaves each node, and where it leads."""

    sets: int
    moves: int
    where: np.ndarray  # set of each edge
    move: np.ndarray
    chance: np.ndarray  # of the edge, given its set and the move
    paid: np.ndarray
    child: np.ndarray  # set of the next layer, -1: over
    own: np.ndarray  # how likely the own rule makes the move at this edge's node
    barred: np.ndarray  # against the rules where that ends a run


def chances(game, most=50_000):
    theory = rooms.part(game.name, "theory")
    found = None
    deals = DEALS.get(game.name, getattr(theory, "deals", None))
    if deals is not None:
        found = deals(game, most)
        if found is None:
            raise TooLarge(game)
    if found is None:
        count = 1 if hasattr(theory, "nature") or not game.draws() else 24
        found = game.chance(Noise.copies(1, (count,))), np.full(count, 1 / count)
    if len(found[1]) > most:
        raise TooLarge(game)
    return game.begin(found[0], found[1].shape), found[1]


def mixed(game, sight, seat, name):
    """Return what a player may do and how likely, ``([players,] moves, tables)`` and chances."""
    view = sight.view(seat)
    truthful = getattr(game, "price", "") == "second" or getattr(game, "sigma", 1) == 0
    if name == "rational" and game.name in MIXES and not truthful:
        moves, likely = MIXES[game.name](game, view)
        return moves[:, None].repeat(view.batch[0], 1), likely
    rule = _rule_in(name, game)
    found = legal(view, rule(view, Noise.copies(seat + 1, view.batch)))
    found = np.broadcast_to(found, (*found.shape[: found.ndim - 1], *view.batch))
    return np.expand_dims(found, -2), np.ones((1, *view.batch))


def candidates(game, state, seat):
    """Return the moves that a seat tries: all, some beyond the limits, and none at all."""
    if game.division is not None and not state.phase[0]:
        return _plans(game, state, seat)
    low, high = (int(f(x[seat])) for f, x in zip((np.min, np.max), game.legal(state), strict=True))
    if getattr(game, "rule_breaker", "") == "include":  # who bids more than it has may win
        high = game.bounds()[1]
    tried = [*range(low - 1, high + 2)] if high - low <= WIDE else [*SOME[game.name](game)]
    return np.array(sorted({*tried, MISSING}), np.int64)


def layers(game, seat, rivals, own, branch):
    state, likely = chances(game)
    nature = getattr(rooms.part(game.name, "theory"), "nature", None)
    sets, reach, found = _sets(game, state, seat), likely, []
    while len(reach):
        if len(found) >= LAYERS:
            break
        if nature is not None:
            parts = [(np.broadcast_to(p, reach.shape), s) for p, s in nature(game, state)]
            likely, node = np.concatenate([p for p, _ in parts]), np.arange(len(reach))
            kept = np.flatnonzero(likely > 0)
            node = np.tile(node, len(parts))[kept]
            state = together([s for _, s in parts]).table(kept)
            reach, sets = (reach[node] * likely[kept]), sets[node]
        weight = reach / np.bincount(sets, reach)[sets]
        layer, state, sets, reach = _step(game, state, seat, rivals, own, branch, sets, weight,
                                          reach)  # fmt: skip
        found.append(layer)
    return found


def _step(game, state, seat, rivals, own, branch, sets, weight, reach):
    count, sight, asked = len(reach), Sight(game, state), game.asked(state)
    planning = game.division is not None and not state.phase[0]
    # What the others may do, and how likely.
    joint = [(np.full((game.players, count), MISSING, np.int64), np.ones(count))]
    for other in range(game.players):
        if other == seat or not asked[other].any():
            continue
        moves, likely = mixed(game, sight, other, rivals)
        after = []
        for before, chance in joint:
            for k in range(len(likely)):
                now = before.copy()
                if planning:
                    now[:] = np.where(asked[other], moves[:, k], now)
                elif moves.ndim > 2:  # votes among zeros
                    now[other] = np.where(asked[other], moves[other, k], MISSING)
                else:
                    now[other] = np.where(asked[other], moves[k], MISSING)
                after.append((now, chance * np.where(asked[other], likely[k], k == 0)))
        joint = [(m, c) for m, c in after if c.any()]
    # What the seat tries, and what its own rule does.
    mine = asked[seat]
    tried, rule = np.full((1,), MISSING), np.ones((1, count))
    if mine.any():
        moves, likely = mixed(game, sight, seat, own)
        if not planning and moves.ndim > 2:
            moves = moves[seat]
        used = np.unique(moves.reshape(*moves.shape[:-2], -1), axis=-1)
        tried = candidates(game, state, seat) if branch else used
        tried = np.unique(np.concatenate([tried, used], axis=-1), axis=-1)
        same = moves[..., None, :] == tried[..., None, :, None]  # ([players,] rule's, tried, count)
        same = same.all(axis=0) if moves.ndim > 2 else same
        rule = (same * likely[:, None]).sum(axis=0)
        rule[:, ~mine] = 0
        rule[0, ~mine] = 1
    size = tried.shape[-1]
    if count * size * len(joint) > MOST:
        raise TooLarge(game)
    parts = []
    for moves, likely in joint:
        node, move = (x.ravel() for x in np.indices((count, size)))
        kept = (mine[node] | (move == 0)) & (likely[node] > 0)
        if not branch:
            kept &= rule[move, node] > 0
        node, move = node[kept], move[kept]
        actions = moves[:, node].copy()
        if planning:
            actions = np.where(mine[node], tried[..., move], actions)
        elif mine.any():
            actions[seat] = np.where(mine[node], tried[move], MISSING)
        parts.append((node, move, likely[node], actions))
    node, move, likely, actions = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    after, outcome = game.step(state.table(node), actions)
    barred = outcome.broke[seat] & (game.failed_reply == "void_run")
    going = np.flatnonzero(~after.over)
    child = np.full(len(node), -1)
    state, reached = after.table(going), reach[node[going]] * likely[going]
    if game.name in MERGED:
        key = MERGED[game.name](state).T
        _, first, kind = np.unique(key, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
        child[going] = kind
        state = state.table(first)
        # Only whose turn it is differs: each state is a set of its own.
        sets_after, reached = np.arange(len(first)), np.ones(len(first))
    else:
        before = np.stack([sets[node[going]], move[going]])
        sets_after = _sets(game, state, seat, before) if len(going) else going
        child[going] = sets_after
    layer = Layer(
        int(sets.max()) + 1, size, sets[node], move, weight[node] * likely,
        outcome.rewards[seat], child, rule[move, node], barred,
    )  # fmt: skip
    return layer, state, sets_after, reached


def _sets(game, state, seat, before=None):
    """Return the information set of each node, by what the seat saw and did."""
    seen = game.observe(state)[seat].astype(np.float64)
    rows = [seen, game.asked(state)[seat][:, None]]
    if before is not None:
        rows.append(before.T)
    found = np.zeros(len(seen), np.int64)
    for column in np.concatenate(rows, axis=1).T:  # sorting whole rows takes ten times as long
        if (column != column[:1]).any():
            kinds, kind = np.unique(column, return_inverse=True)
            _, found = np.unique(found * len(kinds) + kind, return_inverse=True)
    return found


def tried(game, seat, rivals="rational", own="rational", branch=True):
    """Return what a seat gets by its own player, and the most it can get, among the others."""
    value = best = None
    size = 0.0
    for layer in reversed(layers(game, seat, rivals, own, branch)):
        size = max(size, float(np.abs(layer.paid).max(initial=0)))
        at = layer.where * layer.moves + layer.move
        future = layer.child >= 0
        later = [np.where(future, v[layer.child], 0) if v is not None else 0 for v in (value, best)]
        cells = layer.sets * layer.moves

        def sums(what, at=at, cells=cells, layer=layer):
            return np.bincount(at, what, cells).reshape(layer.sets, layer.moves)

        most = sums(layer.chance * (layer.paid + later[1]))
        shut = (sums(np.ones(len(at))) == 0) | (sums(layer.barred * 1.0) > 0)
        best_here = np.where(shut, -np.inf, most).max(axis=1)
        own_here = sums(layer.chance * layer.own * (layer.paid + later[0])).sum(axis=1)
        value, best = own_here, best_here
    state, likely = chances(game)
    share = np.bincount(_sets(game, state, seat), likely)
    return Worth(float(value @ share), float(best @ share), size)
