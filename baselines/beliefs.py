"""Value iteration over a seat's beliefs about its table, backward from the last step.

If opponents ignore what the seat did before (tested in `TRIED` tables), a belief is over worlds;
else, and where seats move in turn, it is over worlds and states. What is seen between two own moves
is met at the next one, as a player meets it. An end left to chance is no world of its own: what
follows a round counts as often as another round does. See `llm_games.baselines.best_response`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.disk_arrays import Arrays
from llm_games.baselines.move_chances import AT_ONCE, MOST, NoRule, Others
from llm_games.baselines.tree import TooLarge, deals_of, together
from llm_games.noise import GOLD, Noise, mix
from llm_games.rulebook import PerPlayer, Rulebook
from llm_games.wrappers.tabular_player import InformationSets

SETS = 200_000  # information sets of a reply's table; what is least likely is left out
TRIED = 64  # tables that test whether opponents react to the seat's earlier moves
ROUGH = 1e-9


class _BeliefStep(NamedTuple):
    """One step from each belief: payoffs of its moves and the beliefs that follow.

    `pays` is ``(beliefs, moves)``, minus infinity where illegal. The others are of edges: from a
    `belief`, by a `move`, after an `observation` (an index of `rows`), to a `next_belief`. In some
    beliefs the seat `asked` nothing: it has one move there, which plays nothing.
    """

    asked: Array
    pays: Array
    belief: Array
    move: Array
    observation: Array
    next_belief: Array
    chance: Array
    rows: Array


class _TableBeliefs(NamedTuple):
    """Beliefs of one step as weights over situations, in order of beliefs, and the situations."""

    step: int
    belief: Array
    situation: Array
    weight: Array
    size: int
    state: Any
    world: Array


class _Fold(NamedTuple):
    """Worlds that no longer differ from one step on, put together as situations.

    `situations` has the situation of each world; `state` and `world` belong to one of its worlds.
    """

    situations: Array
    state: Any
    world: Array


class Iteration:
    """Value iteration over the beliefs of one seat."""

    def __init__(self, game: Rulebook, seat: int, others: Others, moves: Array) -> None:
        self.game, self.seat, self.others, self.moves = game, seat, others, moves
        self.continuation: Fraction = getattr(game, "continuation", Fraction(1))
        self.sets = SETS // (game.length() or 1)

    def solved(self) -> Arrays:
        """Return the value of the game and the policy's table, whose fields are those of `Rows`."""
        begun, beliefs = self._first_step()
        steps = [begun]
        while beliefs.size and not beliefs.state.over.all():
            step, beliefs = self._next_step(beliefs)
            steps.append(step)
        value: Array = np.zeros(beliefs.size)
        chosen = []
        for step in reversed(steps):
            cells, later = step.belief * step.pays.shape[1] + step.move, value[step.next_belief]
            later = np.bincount(cells, step.chance * later, step.pays.size)
            worth = step.pays + later.reshape(step.pays.shape)
            value = worth.max(axis=1)
            close = worth >= (value - ROUGH * np.maximum(1, np.abs(value)))[:, None]
            chosen.append(close.argmax(axis=1))
        count = sum(len(step.pays) for step in steps[1:])
        about = {"value": value[0], "beliefs": count, "forgets": self.forgets}
        rows = self._table(steps, chosen[::-1])
        return {**rows._asdict(), **{name: np.asarray(number) for name, number in about.items()}}

    def _first_step(self) -> tuple[_BeliefStep, _TableBeliefs]:
        """Return the step from the start to the first beliefs, and these; `NoRule`, `TooLarge`."""
        game, kinds = self.game, len(self.others.worlds)
        chance, likely = self._deals(MOST // (10 * kinds))
        deals = len(likely)
        self.others.repeat(deals)
        dealt = {name: np.tile(values, kinds) for name, values in chance.items()}
        first = game.begin(dealt, (kinds * deals,))
        world, weight = np.arange(kinds * deals), self.others.chances * np.tile(likely, kinds)
        self.chances = weight / weight.sum()
        self.forgets = not game.turns and self._forgets_actions(first)
        self.folds = self._fold_worlds(first) if self.forgets else []
        observations, hashes = self._looks(first)
        _, firsts, look = np.unique(hashes, return_index=True, return_inverse=True)
        situation, state, which = self.folds[0] if self.forgets else (world, first, world)
        edges, parts = _merge_beliefs(world * 0, look, situation, self.chances)
        origin, look, chances, next_belief = edges
        step = _BeliefStep(
            asked=np.zeros(1, np.bool_),
            pays=np.zeros((1, 1)),
            belief=origin,
            move=origin,
            observation=look,
            next_belief=next_belief,
            chance=chances,
            rows=observations[firsts],
        )
        return step, _TableBeliefs(0, *parts, state, which)

    def _deals(self, limit: int) -> tuple[dict[str, Array], Array]:
        """Return what chance may bring, as `deals_of` does, in games that go on to their caps."""
        game: Any = self.game
        closed = replace(game, continuation=Fraction(1)) if self.continuation < 1 else game
        enumerated = deals_of(closed, limit)
        if enumerated is None:
            raise NoRule(f"{game.name} draws by chance what its theory does not go through")
        chance, likely = enumerated
        ends = {draw.name: draw.high for draw in game.draws() if draw.name not in chance}
        return chance | {name: np.full(likely.shape, cap) for name, cap in ends.items()}, likely

    def _looks(self, state: Any) -> tuple[Array, Array]:
        """Return what the seat observes, and its hashes: 0 where the seat is not asked."""
        observations = np.asarray(self.game.observe(state, np.array([self.seat])))[0]
        asked = self.game.asked(state)[self.seat]
        return observations, np.where(asked, _table_hashes([observations.T]), np.uint64(0))

    def _forgets_actions(self, first: Any) -> bool:
        """Test whether the seat's earlier moves matter to nothing later.

        Two tables of a world, where it moved differently before and alike now, must be the same.
        """
        game, noise = self.game, Noise(7)
        count = max(TRIED, len(self.moves))
        world = noise.of("world").choice(self.chances, (count,))
        pair = [first.table(world), first.table(world)]
        for step in range(game.length() or 0):
            chance = noise.of(step)
            joints = [self.others.moves(state, world) for state in pair]
            limits = [[limit[self.seat] for limit in game.legal(state)] for state in pair]
            if not _alike(*joints) or not _alike(*limits):
                return False
            actions, likely = joints[0]
            others = actions[:, np.arange(count), chance.of("joint").choice(likely, (count,))]
            orders = [chance.of("own", i).order(count) % len(self.moves) for i in range(3)]
            same, *apart = (self.moves[order] for order in orders)  # each move is met in each
            plays = [self._played(state, same, others) for state in pair]
            if not _alike(*((*play[1:], play[0].over) for play in plays)):
                return False
            pairs = zip(pair, apart, strict=True)
            pair = [self._played(state, moves, others)[0] for state, moves in pairs]
        return True

    def _played(self, state: Any, moves: Array, others: Array) -> tuple[Any, Array, Array, Array]:
        """Return the states after these moves, the seat's payoffs in them, and its `_looks`."""
        actions = np.empty((self.game.players, len(moves)), np.int64)
        actions[self.others.seats] = others
        actions[self.seat] = moves
        next_state, outcome = self.game.step(state, actions)
        return next_state, outcome.rewards[self.seat], *self._looks(next_state)

    def _goes_on(self, state: Any, next_state: Any) -> Array:
        """Return how likely a game goes on from each state: a round later, as likely as told."""
        return np.where(next_state.round > state.round, float(self.continuation), 1.0)

    # -- one step ----------------------------------------------------------------------------------

    def _possible_moves(self, state: Any, world: Array) -> tuple[PerPlayer, Array, Array]:
        """Return the others' joint moves and their chances, see `Others.moves`, and a mask.

        That is bool ``(tables, moves, joint)``: pairs of a legal move and one that others may make.
        """
        actions, joint = self.others.moves(state, world)
        may, asked = self._may(state), self.game.asked(state)[self.seat]
        may = np.where(asked[:, None], may, self.moves == self.moves[0])
        if may.size * joint.shape[1] > 4 * MOST:
            raise TooLarge(f"{self.game.name} has too many moves in a step")
        return actions, joint, may[:, :, None] & (joint > 0)[:, None]

    def _may(self, state: Any) -> Array:
        """Return which moves are legal for the seat where it is asked, ``(tables, moves)``."""
        if self.game.picks:
            low = self.game.bounds()[0]
            return self.game.mask(state, np.array([self.seat]))[0][:, self.moves - low]
        low, high = (limit[self.seat] for limit in self.game.legal(state))
        return (self.moves >= low[:, None]) & (self.moves <= high[:, None])

    def _cells(self, state: Any, actions: PerPlayer, possible: Array) -> Iterator[Any]:
        """Play the pairs of a mask; yield flat indices, tables, and results of `_played`."""
        cells = np.flatnonzero(possible.ravel())
        for first in range(0, len(cells), AT_ONCE):
            chosen = cells[first : first + AT_ONCE]
            tables, move, way = np.unravel_index(chosen, possible.shape)
            others = actions[:, tables, way]
            yield chosen, tables, self._played(state.table(tables), self.moves[move], others)

    def _fold_worlds(self, first: Any) -> list[_Fold]:
        """Return for each step the worlds that are alike from there on; only where `forgets`."""
        world, state, marks, states = np.arange(len(self.chances)), first, [], []
        while not state.over.all():
            actions, joint, possible = self._possible_moves(state, world)
            mark = _table_hashes([joint.T])
            for chosen, tables, played in self._cells(state, actions, possible):
                next_state, payoffs, _, look = played
                look = np.where(next_state.over, np.uint64(0), look)
                cell = _table_hashes([payoffs, look, chosen % possible[0].size])
                np.add.at(mark, tables, cell)
            marks.append(mark)
            states.append(state)
            first_pair = possible.reshape(len(possible), -1).argmax(axis=1)
            move, way = first_pair // possible.shape[2], first_pair % possible.shape[2]
            state = self._played(state, self.moves[move], actions[:, world, way])[0]
        folds, later = [], np.zeros(len(world), np.uint64)
        for mark, state in zip(reversed(marks), reversed(states), strict=True):
            later = mix(mark ^ mix(later + np.uint64(GOLD)))
            _, firsts, situations = np.unique(later, return_index=True, return_inverse=True)
            folds.append(_Fold(situations, state.table(firsts), firsts))
        end = np.zeros(1, np.int64)
        return [*reversed(folds), _Fold(world * 0, state.table(end).replace(), end)]

    def _next_step(self, beliefs: _TableBeliefs) -> tuple[_BeliefStep, _TableBeliefs]:
        actions, joint, possible = self._possible_moves(beliefs.state, beliefs.world)
        moves, ways = possible.shape[1:]
        pairs = int(possible.sum(axis=(1, 2))[beliefs.situation].sum())
        if max(pairs, len(beliefs.situation) * moves * ways // 4) > MOST:
            raise TooLarge(f"{self.game.name} has {pairs} moves of beliefs in one step")
        outcomes = self._outcomes(beliefs, actions, possible)
        payoffs, goes_on, observation, next_situation, rows, state, world = outcomes
        # Each belief's situations, with all moves that are made in them.
        pairs_of_beliefs = np.flatnonzero(possible[beliefs.situation].ravel())
        row, rest = pairs_of_beliefs // (moves * ways), pairs_of_beliefs % (moves * ways)
        flat = beliefs.situation[row] * (moves * ways) + rest
        weight = beliefs.weight[row] * joint[beliefs.situation[row], rest % ways]
        origin = beliefs.belief[row] * moves + rest // ways
        pays = np.bincount(origin, weight * payoffs[flat], beliefs.size * moves)
        reached = np.bincount(origin, minlength=beliefs.size * moves) > 0
        pays = np.where(reached, pays, -np.inf).reshape(beliefs.size, moves)
        ways_on = origin, observation[flat], next_situation[flat], weight * goes_on[flat]
        unfinished = next_situation[flat] >= 0
        edges, parts = _merge_beliefs(*(part[unfinished] for part in ways_on))
        origin, look, chance, belief = edges
        asked = np.zeros(beliefs.size, np.bool_)
        asked[beliefs.belief] = self.game.asked(beliefs.state)[self.seat][beliefs.situation]
        step = _BeliefStep(
            asked=asked,
            pays=pays,
            belief=origin // moves,
            move=origin % moves,
            observation=look,
            next_belief=belief,
            chance=chance,
            rows=rows,
        )
        return step, _TableBeliefs(beliefs.step + 1, *parts, state, world)

    def _outcomes(
        self, beliefs: _TableBeliefs, actions: PerPlayer, possible: Array
    ) -> tuple[Array, Array, Array, Array, Array, Any, Array]:
        """Play all possible moves in all situations.

        Return, by situation, move and way (in one axis): payoff, chance to go on, index of the
        observed row, and next situation, -1 if the game is over; then the rows, and the next states
        and worlds.
        """
        payoffs, next_situation = np.zeros(possible.size), np.full(possible.size, -1)
        goes_on = np.ones(possible.size)
        look, rows = np.zeros(possible.size, np.uint64), dict[int, Array]()
        key, known_keys, parts = look.copy(), np.zeros(0, np.uint64), []
        for chosen, tables, played in self._cells(beliefs.state, actions, possible):
            next_state, payoffs[chosen], observations, look[chosen] = played
            goes_on[chosen] = self._goes_on(beliefs.state.table(tables), next_state)
            fresh, firsts = np.unique(look[chosen], return_index=True)
            rows |= dict(zip(fresh.tolist(), observations[firsts], strict=True))
            world = beliefs.world[tables]
            if self.forgets:
                later = self.folds[beliefs.step + 1].situations[world]
                next_situation[chosen] = np.where(next_state.over, -1, later)
                continue
            key[chosen] = _table_hashes([*next_state.arrays().values(), world])
            next_situation[chosen] = np.where(next_state.over, -1, 0)
            fresh, firsts = np.unique(key[chosen], return_index=True)
            new = firsts[~np.isin(fresh, known_keys)]
            parts.append((next_state.table(new), world[new]))
            known_keys = np.concatenate([known_keys, key[chosen][new]])
        hashes = np.array(sorted(rows), np.uint64)
        shown = np.array([rows[key] for key in hashes.tolist()], np.float32)
        observation_index = np.searchsorted(hashes, look).astype(np.int64)
        if self.forgets:
            _, state, world = self.folds[beliefs.step + 1]
            return payoffs, goes_on, observation_index, next_situation, shown, state, world
        state = together([part_state for part_state, _ in parts])
        order = np.argsort(known_keys)
        unfinished = next_situation >= 0
        next_situation[unfinished] = order[np.searchsorted(known_keys[order], key[unfinished])]
        world = np.concatenate([part_world for _, part_world in parts])
        return payoffs, goes_on, observation_index, next_situation, shown, state, world

    # -- the policy --------------------------------------------------------------------------------

    def _table(self, steps: list[_BeliefStep], chosen: list[Array]) -> InformationSets:
        """Return the policy as a table of the observations that following it can bring."""
        step_rows, count, observations = [], 0, np.zeros((1, 0), np.float32)
        belief, previous_rows, likely = np.zeros(1, np.int64), np.full(1, -1), np.ones(1)
        for step, choice in zip(steps, chosen, strict=True):
            chosen_moves, moves = choice[belief], step.pays.shape[1]
            asked = step.asked[belief]
            if asked.any():
                moves_made = self.moves[chosen_moves[asked]]
                step_rows.append((previous_rows[asked], observations[asked], moves_made))
            number = np.where(asked, count + np.cumsum(asked) - 1, previous_rows)
            count += int(asked.sum())
            order = np.lexsort((step.move, step.belief))
            edges = step.belief[order] * moves + step.move[order]
            begin = np.searchsorted(edges, belief * moves + chosen_moves)
            edge_counts = np.searchsorted(edges, belief * moves + chosen_moves, "right") - begin
            offsets = np.repeat(begin - np.cumsum(edge_counts) + edge_counts, edge_counts)
            taken = order[offsets + np.arange(edge_counts.sum())]
            likely = np.repeat(likely, edge_counts) * step.chance[taken]
            likeliest = np.sort(np.argsort(-likely, kind="stable")[: self.sets])
            previous_rows, likely = np.repeat(number, edge_counts)[likeliest], likely[likeliest]
            taken = taken[likeliest]
            belief, observations = step.next_belief[taken], step.rows[step.observation[taken]]
        parts = [np.concatenate(part) for part in zip(*step_rows, strict=True)]
        seats, ends = np.full(count, self.seat), np.arange(count + 1)
        return InformationSets(seats, parts[0], parts[1], ends, parts[2][:, None])


def _alike(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    return all(map(np.array_equal, ours, theirs))


def _table_hashes(parts: Sequence[Array]) -> Array:
    """Return a hash of each table, uint64, from arrays whose last axis is the tables'."""
    count = np.shape(parts[0])[-1]
    hashes = np.full(count, GOLD, np.uint64)
    for part in parts:
        values = np.asarray(part)
        if values.dtype.kind == "f":
            values = (values.astype(np.float64) + 0.0).view(np.uint64)  # no -0
        else:
            values = values.astype(np.int64).view(np.uint64)
        for row in values.reshape(-1, count):
            hashes = mix(hashes ^ mix(row + np.uint64(GOLD)))
    return hashes


def _merge_beliefs(
    origin: Array, observation: Array, next_situation: Array, weight: Array
) -> tuple[tuple[Array, Array, Array, Array], tuple[Array, Array, Array, int]]:
    """Merge the ways that lead to the same belief.

    An entry goes from an `origin` (belief and move) to a situation after an observation. Return
    edges (origin, observation, chance, next belief) and beliefs (belief, situation, weight, count).
    """
    if not len(origin):
        none = np.zeros(0, np.int64)
        return (none, none, np.zeros(0), none), (none, none, np.zeros(0), 0)
    order = np.lexsort((next_situation, observation, origin))
    parts = origin, observation, next_situation, weight
    origin, observation, next_situation, weight = (part[order] for part in parts)
    edge = np.append(True, (np.diff(origin) != 0) | (np.diff(observation) != 0))
    new = edge | np.append(True, np.diff(next_situation) != 0)
    of_edge, of_new = np.cumsum(edge) - 1, np.cumsum(new) - 1
    mass = np.bincount(of_edge, weight)
    edge_of, situation = of_edge[new], next_situation[new]
    likely = np.bincount(of_new, weight) / mass[edge_of]
    # Beliefs with the same weights over situations are the same belief.
    part = mix(_table_hashes([situation[None], np.rint(likely * 1e10)[None]]))
    key = np.zeros(len(mass), np.uint64)
    np.add.at(key, edge_of, part)
    _, first, belief = np.unique(key, return_index=True, return_inverse=True)
    rank = np.full(len(mass), -1)
    rank[first] = np.arange(len(first))
    members = np.flatnonzero(rank[edge_of] >= 0)
    members = members[np.argsort(rank[edge_of[members]], kind="stable")]
    beliefs = rank[edge_of[members]], situation[members], likely[members], len(first)
    return (origin[edge], observation[edge], mass, belief), beliefs
