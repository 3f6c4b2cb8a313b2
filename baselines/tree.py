"""The whole tree of a small game: all moves, the information sets before them, and the payoffs.

It is made from the rules alone, one step of all its nodes at once; seats that move in the same step
do not see each other's moves. An information set is a seat, its observation (the columns of
`Rulebook.observe`) and the last of its own moves, which stands for all it observed and did before:
perfect recall. Each legal move of one is a *row*; a strategy gives each row its probability,
``(rows,)``, those of a set adding up to 1. Chance is exact where a room enumerates it, of a whole
game in ``theory.deals(game, most)`` or of a step in ``theory.nature(game, state)``; else it is
approximated by some drawn, equally likely deals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.arrays import Array
from llm_games.codecs import MOST_INDEXES, codec
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import PerPlayer, Rulebook, State
from llm_games.view import Sight
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.tabular_player import InformationSets, keys_of, likeliest
from llm_games.wrappers.together import at_once

MOST_EDGES = 1_000_000  # joint moves, of all nodes together, up to which a tree is made
DEALS = 256  # deals that are drawn where no room says what chance may bring
TRIED = 64  # tables in which it is tried whether chance brings anything
ASKED = 50_000  # tables at which players are asked at once
TIED = 1e-12


class TooLarge(BadParameter):
    """A game has more moves than a tree can hold, `MOST_EDGES`."""


class Level(NamedTuple):
    """One step of all games: nodes, and the joint moves (edges) that leave them, node by node.

    A node is entered by an `edge` of the level before, ``(nodes,)``, with a `chance`; `begin` is
    its first edge, `node` the node of each edge. `rows` ``(players, edges)`` are the moves (of a
    seat that is not asked, the last row, which is always played), `rewards` the payoffs.
    """

    edge: Array
    chance: Array
    begin: Array
    node: Array
    rows: PerPlayer
    rewards: PerPlayer


@dataclass
class _Sets:
    """Information sets, collected while the tree is made."""

    width: int
    index_by_key: dict[bytes, int] = field(default_factory=dict)
    seat: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    observations: list[Array] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    moves: list[Array] = field(default_factory=list)

    def of(
        self, seat: int, previous_rows: Array, observations: Array, moves: Callable[[int], Array]
    ) -> Array:
        """Return the information sets of a seat at some nodes; new ones are added."""
        keys = keys_of(seat, previous_rows, observations)
        _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
        sets = np.empty(len(firsts), np.int64)
        for index, node in enumerate(firsts.tolist()):
            key = keys[node].tobytes()
            if key not in self.index_by_key:
                self.index_by_key[key] = len(self.seat)
                legal = moves(node).reshape(-1, self.width)
                self.seat.append(seat)
                self.before.append(int(previous_rows[node]))
                self.observations.append(observations[node])
                self.first.append(self.first[-1] + len(legal))
                self.moves.append(legal)
            sets[index] = self.index_by_key[key]
        return sets[inverse.reshape(-1)]


class Tree:
    """A game's tree without talk, see the module; `rows` are its information sets and their moves.

    `deals` are drawn with `seed` where no room enumerates chance. Raises `TooLarge` if there are
    more joint moves than `limit`, of all nodes together.
    """

    def __init__(
        self, game: Rulebook, seed: int = 1, deals: int = DEALS, limit: int = MOST_EDGES
    ) -> None:
        self.game, self.limit = game.core, limit
        game = game.core
        nature = getattr(rooms.part(game.name, "theory"), "nature", None)
        deals_and_chances = None if nature else deals_of(game, MOST_EDGES)
        drawn = nature is None and deals_and_chances is None
        self.deals = deals if drawn else 0  # how many were drawn; 0: chance is exact
        if deals_and_chances is None:
            noise = Noise.copies(seed, (deals if drawn else 1,))
            deals_and_chances = game.chance(noise), np.full(noise.batch, 1 / noise.batch[0])
        chance, likely = deals_and_chances
        state = game.begin(chance, likely.shape)
        states = _after_nature(game, nature, state, np.full(len(likely), -1), likely)
        sets = _Sets(game.players if game.division is not None else 1)
        self.levels: list[Level] = []
        self.sets: list[tuple[Array, Any]] = []  # of each level, with a state for each
        last, edges = np.full((game.players, len(states[1])), -1), 0
        while len(states[1]):
            level, next_states, taken = self._level(sets, *states, last, edges)
            self.levels.append(level)
            edges += len(level.node)
            going = np.flatnonzero(~next_states.over)
            going_on = next_states.table(going)
            states = _after_nature(game, nature, going_on, going, np.ones(len(going)))
            last = taken[:, states[1]]
        self._finish(sets)

    def _level(
        self, sets: _Sets, state: Any, edge: Array, chance: Array, last: PerPlayer, edges: int
    ) -> tuple[Level, Any, PerPlayer]:
        """Return one step, the states after its edges, and everybody's last row so far."""
        game, nodes = self.game, len(edge)
        turn, legal = game.asked(state), _Legal(game, state)
        self._check(edges, np.where(turn, legal.fewest(), 1))  # before what takes long
        observations, known_count, nodes_of = game.observe(state), len(sets.seat), dict[int, int]()
        set_by_node, counts = np.full(turn.shape, -1), np.ones(turn.shape, np.int64)
        for seat in range(game.players):
            nodes_asked = np.flatnonzero(turn[seat])
            if len(nodes_asked):
                moves = partial(legal.moves, seat, nodes_asked)
                set_by_node[seat, nodes_asked] = node_sets = sets.of(
                    seat, last[seat, nodes_asked], observations[seat, nodes_asked], moves
                )
                counts[seat, nodes_asked] = np.diff(sets.first)[node_sets]
                nodes_of |= dict(zip(node_sets.tolist(), nodes_asked.tolist(), strict=True))
        new = np.arange(known_count, len(sets.seat))
        new_nodes = np.array([nodes_of[set_index] for set_index in new.tolist()], np.int64)
        self.sets.append((new, state.table(new_nodes)))
        self._check(edges, counts)
        edge_counts = counts.prod(axis=0)
        node = np.repeat(np.arange(nodes), edge_counts)
        begin = np.cumsum(edge_counts) - edge_counts
        offset = np.arange(len(node)) - begin[node]
        rows, first = np.full((game.players, len(node)), -1), np.array(sets.first)
        for seat in reversed(range(game.players)):
            digit, offset = offset % counts[seat, node], offset // counts[seat, node]
            sets_here = set_by_node[seat, node]
            rows[seat] = np.where(sets_here < 0, -1, first[sets_here] + digit)
        next_state, outcome = game.step(state.table(node), self._actions(sets, rows))
        taken = np.where(rows < 0, last[:, node], rows)
        return Level(edge, chance, begin, node, rows, outcome.rewards), next_state, taken

    def _check(self, edges: int, counts: PerPlayer) -> None:
        """Raise TooLarge if the edges and the moves of one more step exceed `limit`."""
        large = edges + counts.prod(axis=0, dtype=np.float64).sum()
        if large > self.limit:
            step, name = len(self.levels) + 1, self.game.name
            raise TooLarge(
                f"{name} has {large:,.0f} joint moves up to step {step}, and a tree holds "
                f"{self.limit:,}: choose fewer than {self.game.players} players, fewer rounds or "
                "amounts"
            )

    def _actions(self, sets: _Sets, rows: PerPlayer) -> PerPlayer:
        """Return the rules' actions of edges; a plan is a whole column, a vote one entry of it."""
        nothing = np.zeros((1, sets.width), np.int64)
        moves = np.concatenate([*sets.moves, nothing])  # what the last row stands for
        return moves[rows, 0] if sets.width == 1 else np.asarray(moves[rows].sum(axis=0).T)

    def _finish(self, sets: _Sets) -> None:
        first = np.array(sets.first)
        seat, previous_rows = np.array(sets.seat), np.array(sets.before)
        obs, moves = np.array(sets.observations), np.concatenate(sets.moves)
        self.rows = InformationSets(seat, previous_rows, obs, first, moves)
        self.count = int(first[-1])
        self.owner = np.repeat(np.arange(len(seat)), np.diff(first))
        depth = np.zeros(len(seat), np.int64)
        for index, row in enumerate(previous_rows.tolist()):  # sets come after those they follow
            depth[index] = 0 if row < 0 else depth[self.owner[row]] + 1
        self.depth = depth
        self.levels = [  # a row that is always played stands last
            level._replace(rows=np.where(level.rows < 0, self.count, level.rows))
            for level in self.levels
        ]

    # -- strategies ------------------------------------------------------------------------------

    def uniform(self) -> Array:
        """Return the strategy that plays all legal moves of a set with equal chances."""
        return 1 / np.diff(self.rows.first)[self.owner]

    def scaled(self, weights: Array) -> Array:
        """Return probabilities from weights of at least 0; where all are 0, uniform."""
        total = np.add.reduceat(weights, self.rows.first[:-1])[self.owner]
        return np.divide(weights, total, out=self.uniform(), where=total > 0)

    def strategy_of(
        self, players: Policy | Sequence[Policy], draws: int = 1, seed: int = 1
    ) -> Array:
        """Return the strategy of players without memory, from `draws` decisions in each set.

        One player for all seats, or one for each. A move that is no row raises BadParameter.
        """
        each = [players] * self.game.players if isinstance(players, Policy) else players
        weights, size = np.zeros(self.count), max(1, ASKED // draws)
        for sets, states in self.sets:
            for part in range(0, len(sets), size):
                batch = np.arange(part, min(part + size, len(sets)))
                sight = Sight(self.game, states.table(np.repeat(batch, draws)))
                seats = np.repeat(self.rows.seat[sets[batch]], draws)
                moves = self._asked(each, sight, seats, seed).reshape(len(batch), draws, -1)
                for set_index, drawn in zip(sets[batch], moves, strict=True):
                    row_span = slice(*self.rows.first[set_index : set_index + 2])
                    same = (self.rows.moves[row_span] == drawn[:, None]).all(axis=2)
                    if not same.any(axis=1).all():
                        odd = drawn[same.any(axis=1).argmin()].tolist()
                        player = self.game.names()[self.rows.seat[set_index]]
                        fault = f"{player} plays {odd} in {self.game.name}, which is none of the"
                        raise BadParameter(f"{fault} {same.shape[1]} moves of the tree there")
                    weights[row_span] = same.sum(axis=0)
        return self.scaled(weights)

    def _asked(self, each: Sequence[Policy], sight: Sight, seats: Array, seed: int) -> Array:
        """Return each table's move of its seat, ``(tables, width of a move)``."""
        tables, width = np.arange(len(seats)), self.rows.moves.shape[1]
        seeds = np.asarray(Noise(tables + seed).of("seat").seed())
        moves = np.zeros((len(seats), width), np.int64)
        for seat in np.unique(seats).tolist():
            mask = np.zeros((self.game.players, len(seats)), np.bool_)
            mask[seat, seat_tables := tables[seats == seat]] = True
            memory = each[seat].start_batch(self.game, mask, mask * seeds)
            decided, _ = at_once(each[seat].decide_batch(sight, mask, memory))
            columns = decided.actions if width > 1 else decided.actions[seat : seat + 1]
            moves[seat_tables] = columns[:, seat_tables].T
        return moves

    def own_reach(self, strategy: Array) -> Array:
        """Return the probability of each set by its seat's own moves alone, ``(sets,)``."""
        reach = np.ones(len(self.depth))
        for depth in range(1, int(self.depth.max(initial=0)) + 1):
            here = np.flatnonzero(self.depth == depth)
            previous_rows = self.rows.before[here]
            reach[here] = reach[self.owner[previous_rows]] * strategy[previous_rows]
        return reach

    # -- what strategies bring ---------------------------------------------------------------------

    def reaches(self, strategy: Array) -> list[tuple[PerPlayer, Array]]:
        """Return the chances of edges by seats' moves, ``(players, edges)``, and by chance."""
        sure = np.append(strategy, 1.0)
        reach, luck = np.ones((self.game.players, 1)), np.ones(1)
        by_level = []
        for level in self.levels:
            entered = np.maximum(level.edge, 0)
            reach, luck = reach[:, entered], luck[entered] * level.chance
            reach, luck = reach[:, level.node] * sure[level.rows], luck[level.node]
            by_level.append((reach, luck))
        return by_level

    def worth(self, strategy: Array, replies: Array | None = None) -> tuple[Array, Array]:
        """Return each seat's mean payoff, and the counterfactual value of each row.

        Seats follow the `replies` (by default the strategy), others the strategy. A row's value,
        ``(rows,)``, is weighted by the probability that chance and others lead to its set.
        """
        sure = np.append(strategy, 1.0)
        mine = sure if replies is None else np.append(replies, 1.0)
        brought, reaches = np.zeros(self.count + 1), self.reaches(strategy)
        later: Array | float = 0.0
        for depth in reversed(range(len(self.levels))):
            level, (reach, luck) = self.levels[depth], reaches[depth]
            edges = level.rewards + later
            values = np.empty((len(edges), len(level.begin)))
            for seat, rows in enumerate(level.rows):
                others = np.arange(len(edges)) != seat
                weight = luck * reach[others].prod(axis=0)
                brought += np.bincount(rows, weight * edges[seat], self.count + 1)
                chances = mine[rows] * sure[level.rows[others]].prod(axis=0)
                values[seat] = np.add.reduceat(chances * edges[seat], level.begin)
            values *= level.chance
            if depth:
                count = len(self.levels[depth - 1].node)
                later = np.stack([np.bincount(level.edge, part, count) for part in values])
        return values.sum(axis=1), brought[:-1]

    def best_response(self, strategy: Array) -> tuple[Array, Array]:
        """Return exact best replies, in sets never reached the first move, and payoffs by seat."""
        replies = self.uniform()
        for depth in range(int(self.depth.max()), -1, -1):
            _, brought = self.worth(strategy, replies)
            here = self.depth[self.owner] == depth
            replies = np.where(here, self._best(brought), replies)
        return replies, self.worth(strategy, replies)[0]

    def _best(self, brought: Array) -> Array:
        """Return the strategy that takes the first of the best rows of each set."""
        top = np.maximum.reduceat(brought, self.rows.first[:-1])[self.owner]
        near = brought >= top - TIED * np.maximum(1, np.abs(top))
        return likeliest(near.astype(np.float64), self.rows.first)

    def gains(self, strategy: Array) -> Array:
        """Return each seat's gain by its best reply; the sum is NashConv."""
        return np.maximum(self.best_response(strategy)[1] - self.worth(strategy)[0], 0)

    def nash_conv(self, strategy: Array) -> float:
        """Return the sum of the seats' gains by best replies: 0 in equilibrium."""
        return float(self.gains(strategy).sum())


# -- chance and moves ------------------------------------------------------------------------------


def deals_of(game: Rulebook, limit: int) -> tuple[dict[str, Array], Array] | None:
    """Return all chance of a whole game, on a last axis, and its probabilities; None if none does.

    A room's ``theory.deals(game, most)`` enumerates it. Raises `TooLarge` beyond `limit`.
    """
    theory: Any = rooms.part(game.name, "theory")
    if hasattr(theory, "deals"):
        deals: tuple[dict[str, Array], Array] | None = theory.deals(game, limit)
        if deals is None:
            raise TooLarge(f"chance may bring too much in {game.name}: choose fewer rounds")
        return deals
    drawn = game.chance(Noise(np.arange(TRIED, dtype=np.uint64)))
    if any((values != values[..., :1]).any() for values in drawn.values()):
        return None
    return {name: values[..., :1] for name, values in drawn.items()}, np.ones(1)


def _after_nature(
    game: Rulebook, nature: Any, state: Any, edge: Array, chance: Array
) -> tuple[Any, Array, Array]:
    """Return the states after every outcome of nature, with their edges and probabilities."""
    if nature is None or not len(edge):
        return state, edge, chance
    parts = [(np.broadcast_to(likely, edge.shape), other) for likely, other in nature(game, state)]
    likely = np.concatenate([part_chances * chance for part_chances, _ in parts])
    edge, possible = np.tile(edge, len(parts)), np.flatnonzero(likely > 0)
    whole = together([other for _, other in parts])
    return whole.table(possible), edge[possible], likely[possible]


def together(states: list[State]) -> Any:
    """Concatenate batches of tables."""
    fields = states[0].arrays()
    joined = {name: [getattr(state, name) for state in states] for name in fields}
    return states[0].replace(**{k: np.concatenate(arrays, axis=-1) for k, arrays in joined.items()})


class _Legal:
    """Legal moves of seats in some states: single amounts where these are few, else shares."""

    def __init__(self, game: Rulebook, state: Any) -> None:
        self.game, self.state = game, state
        self.mask = game.mask(state) if game.picks else None
        self.low, self.high = game.amounts(state)
        self.sharers = game.sharers(state) if game.division is not None else None

    def fewest(self) -> PerPlayer:
        """Return a lower bound of the number of moves, int64 ``(players, nodes)``."""
        if self.mask is not None:
            return np.count_nonzero(self.mask, axis=-1)
        wide = self.high - self.low
        if self.game.grid is not None:
            return np.full(wide.shape, len(self.game.grid))
        few = (wide >= 0) & (wide < MOST_INDEXES) & (self.sharers is None)
        return np.where(few, wide + 1, 1)

    def moves(self, seat: int, nodes: Array, position: int) -> Array:
        """Return the moves of a seat at one of some nodes: ``(moves,)``, or one plan a row."""
        game, node = self.game, int(nodes[position])
        low, high = int(self.low[seat, node]), int(self.high[seat, node])
        if self.sharers is not None:
            if self.sharers[seat, node]:
                return _plans(game, np.flatnonzero(self.sharers[:, node]))
            votes = np.zeros((high - low + 1, game.players), np.int64)
            votes[:, seat] = np.arange(low, high + 1)
            return votes
        if self.mask is not None:
            return game.bounds()[0] + np.flatnonzero(self.mask[seat, node])
        if game.grid is not None:
            return np.array(game.grid)
        declined = [] if game.decline is None else [game.decline]
        if high - low < MOST_INDEXES:
            return np.array([*declined, *range(low, high + 1)])
        seat_codec = codec(game, seat)
        view = Sight(game, self.state.table(node)).view(seat)
        return np.unique([seat_codec.take(view, index) for index in range(seat_codec.space.n)])


def _plans(game: Rulebook, among: Array) -> Array:
    """Return all plans that divide among these seats, ``(plans, players)``."""
    total, bars = game.division or 0, len(among) - 1
    if (count := comb(total + bars, bars)) > MOST_EDGES:
        fault = f"{game.name} has {count:,} plans to divide {total} among {len(among)}, and a tree"
        raise TooLarge(f"{fault} holds {MOST_EDGES:,}: divide less, or among fewer")
    cuts = np.array(list(combinations(range(total + bars), bars)), np.int64).reshape(-1, bars)
    ends = np.full((len(cuts), 1), total + bars)
    shares = np.diff(np.hstack([ends * 0 - 1, cuts, ends]), axis=1) - 1
    plans = np.zeros((len(shares), game.players), np.int64)
    plans[:, among] = shares
    return plans
