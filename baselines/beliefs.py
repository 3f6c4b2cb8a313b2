"""Value iteration over what a seat may believe of its table, from the last step back.

A belief is over worlds, where opponents do not mind what the seat did before, which is tried; else
over worlds and states. See `llm_games.baselines.best_response`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.cache import Arrays
from llm_games.baselines.opponents import AT_ONCE, MOST, NoRule, Others
from llm_games.baselines.tree import TooLarge, deals_of, together
from llm_games.noise import GOLD, Noise, mix
from llm_games.rulebook import PerPlayer, Rulebook
from llm_games.wrappers.tabular import Rows

SETS = 200_000
"""Information sets of a reply's table; what is least likely is left out."""
TRIED = 64  # tables in which it is tried whether opponents mind what the seat did
ROUGH = 1e-9


class _Step(NamedTuple):
    """One step from each belief: what each move pays, and where it leads.

    `pays` is ``(beliefs, moves)``, minus infinity where a move is not legal. An edge leads from a
    belief by a move, once something is seen (a row of `rows`), to a belief of the next step with
    some chance.
    """

    pays: Array
    belief: Array
    move: Array
    seen: Array
    after: Array
    chance: Array
    rows: Array


class _Beliefs(NamedTuple):
    """Beliefs at a step, each over some situations, in order of beliefs; and what these are."""

    step: int
    belief: Array
    situation: Array
    weight: Array
    many: int
    state: Any
    world: Array


class _Fold(NamedTuple):
    """Worlds of which nothing differs any more from a step on, as one situation.

    `place` is the situation of each world, `state` and `world` are of one of its worlds.
    """

    place: Array
    state: Any
    world: Array


class Iteration:
    """Value iteration over the beliefs of one seat."""

    def __init__(self, game: Rulebook, seat: int, others: Others, moves: Array) -> None:
        self.game, self.seat, self.others, self.moves = game, seat, others, moves
        self.sets = SETS // (game.length() or 1)

    def solved(self) -> Arrays:
        """Return the value of the game, and a table of the policy, see `Rows`."""
        begun, beliefs = self._begun()
        steps = [begun]
        while beliefs.many and not beliefs.state.over.all():
            step, beliefs = self._stepped(beliefs)
            steps.append(step)
        value: Array = np.zeros(beliefs.many)
        chosen = []
        for step in reversed(steps):
            later = np.bincount(
                step.belief * step.pays.shape[1] + step.move,
                step.chance * value[step.after],
                step.pays.size,
            )
            worth = step.pays + later.reshape(step.pays.shape)
            value = worth.max(axis=1)
            close = worth >= (value - ROUGH * np.maximum(1, np.abs(value)))[:, None]
            chosen.append(close.argmax(axis=1))
        about = {
            "value": value[0],
            "beliefs": sum(len(step.pays) for step in steps[1:]),
            "forgets": self.forgets,
        }
        rows = self._table(steps, chosen[::-1])
        return {**rows._asdict(), **{name: np.asarray(own) for name, own in about.items()}}

    def _begun(self) -> tuple[_Step, _Beliefs]:
        """Return how the game leads to the first beliefs, and these.

        Raises:
            NoRule: what chance may bring is not known.
            TooLarge: it is too much.
        """
        game, kinds = self.game, len(self.others.worlds)
        chance, likely = _deals(game, MOST // (10 * kinds))
        many = len(likely)
        self.others.repeat(many)
        dealt = {name: np.tile(values, kinds) for name, values in chance.items()}
        first = game.begin(dealt, (kinds * many,))
        world, weight = np.arange(kinds * many), self.others.chances * np.tile(likely, kinds)
        self.chances = weight / weight.sum()
        self.forgets = self._tried(first)
        self.folds = self._folded(first) if self.forgets else []
        seen = np.asarray(game.observe(first, np.array([self.seat])))[0]
        _, one, look = np.unique(_hashed([seen.T]), return_index=True, return_inverse=True)
        at, state, which = self.folds[0] if self.forgets else (world, first, world)
        edges, found = _grouped(world * 0, look, at, self.chances)
        place, look, chances, after = edges
        step = _Step(np.zeros((1, 1)), place, place, look, after, chances, seen[one])
        return step, _Beliefs(0, *found, state, which)

    def _tried(self, first: Any) -> bool:
        """Return whether nothing that the seat did before matters, as far as is seen.

        Two tables of the same world are played, where the seat does the same now and did another
        thing before: others do the same, and what is seen and paid now is the same.
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
            after = [self._played(state, same, others) for state in pair]
            if not _alike(*((*own[1:], own[0].over) for own in after)):
                return False
            pair = [
                self._played(state, own, others)[0] for state, own in zip(pair, apart, strict=True)
            ]
        return True

    def _played(self, state: Any, own: Array, others: Array) -> tuple[Any, Array, Array]:
        """Return the states after these moves, what the seat is paid, and what it then sees."""
        actions = np.empty((self.game.players, len(own)), np.int64)
        actions[self.others.seats] = others
        actions[self.seat] = own
        after, outcome = self.game.step(state, actions)
        seen = np.asarray(self.game.observe(after, np.array([self.seat])))[0]
        return after, outcome.rewards[self.seat], seen

    # -- one step ----------------------------------------------------------------------------------

    def _met(self, state: Any, world: Array) -> tuple[PerPlayer, Array, Array]:
        """Return the others' joint moves and their chances, see `Others.moves`, and what is met.

        That is bool ``(tables, moves, joint)``: moves of the seat that are legal, and others' that
        are made.
        """
        actions, joint = self.others.moves(state, world)
        low, high = (limit[self.seat] for limit in self.game.legal(state))
        may = (self.moves >= low[:, None]) & (self.moves <= high[:, None])
        if may.size * joint.shape[1] > 4 * MOST:
            raise TooLarge(f"{self.game.name} has too many moves in a step")
        return actions, joint, may[:, :, None] & (joint > 0)[:, None]

    def _cells(self, state: Any, actions: PerPlayer, met: Array) -> Iterator[Any]:
        """Play what is met, some at once: yield which, and what `_played` returns of it."""
        cells = np.flatnonzero(met.ravel())
        for first in range(0, len(cells), AT_ONCE):
            some = cells[first : first + AT_ONCE]
            place, move, way = np.unravel_index(some, met.shape)
            others = actions[:, place, way]
            yield some, place, self._played(state.table(place), self.moves[move], others)

    def _folded(self, first: Any) -> list[_Fold]:
        """Return at each step which worlds are alike from there on, where nothing else matters."""
        world, state, marks, states = np.arange(len(self.chances)), first, [], []
        while not state.over.all():
            actions, joint, met = self._met(state, world)
            mark = _hashed([joint.T])
            for some, place, (after, paid, seen) in self._cells(state, actions, met):
                look = np.where(after.over, np.uint64(0), _hashed([seen.T]))
                cell = _hashed([paid, look, some % met[0].size])
                np.add.at(mark, place, cell)
            marks.append(mark)
            states.append(state)
            one = met.reshape(len(met), -1).argmax(axis=1)
            move, way = one // met.shape[2], one % met.shape[2]
            state = self._played(state, self.moves[move], actions[:, world, way])[0]
        folds, later = [], np.zeros(len(world), np.uint64)
        for mark, state in zip(reversed(marks), reversed(states), strict=True):
            later = mix(mark ^ mix(later + np.uint64(GOLD)))
            _, one, place = np.unique(later, return_index=True, return_inverse=True)
            folds.append(_Fold(place, state.table(one), one))
        end = np.zeros(1, np.int64)
        return [*reversed(folds), _Fold(world * 0, state.table(end).replace(), end)]

    def _stepped(self, now: _Beliefs) -> tuple[_Step, _Beliefs]:
        """Return a step from all beliefs, and the beliefs that it leads to."""
        actions, joint, met = self._met(now.state, now.world)
        moves, ways = met.shape[1:]
        pairs = int(met.sum(axis=(1, 2))[now.situation].sum())
        if max(pairs, len(now.situation) * moves * ways // 4) > MOST:
            raise TooLarge(f"{self.game.name} has {pairs} moves of beliefs in one step")
        paid, seen, after, rows, state, world = self._outcomes(now, actions, met)
        # Each belief's situations, with all moves that are made in them.
        own = np.flatnonzero(met[now.situation].ravel())
        row, rest = own // (moves * ways), own % (moves * ways)
        flat = now.situation[row] * (moves * ways) + rest
        weight = now.weight[row] * joint[now.situation[row], rest % ways]
        place = now.belief[row] * moves + rest // ways
        pays = np.bincount(place, weight * paid[flat], now.many * moves)
        reached = np.bincount(place, minlength=now.many * moves) > 0
        pays = np.where(reached, pays, -np.inf).reshape(now.many, moves)
        on = after[flat] >= 0
        edges, found = _grouped(place[on], seen[flat][on], after[flat][on], weight[on])
        place, look, chance, belief = edges
        step = _Step(pays, place // moves, place % moves, look, belief, chance, rows)
        return step, _Beliefs(now.step + 1, *found, state, world)

    def _outcomes(
        self, now: _Beliefs, actions: PerPlayer, met: Array
    ) -> tuple[Array, Array, Array, Array, Any, Array]:
        """Play all moves in all situations.

        Returned are, by situation, move and way (of one axis), what is paid, what is seen (a row)
        and the situation after, -1 if the game is over; then the rows that are seen, and the states
        and worlds of situations after.
        """
        paid, after_at = np.zeros(met.size), np.full(met.size, -1)
        look, rows = np.zeros(met.size, np.uint64), dict[int, Array]()
        key, known, parts = look.copy(), np.zeros(0, np.uint64), []
        for some, place, (after, own, seen) in self._cells(now.state, actions, met):
            paid[some], look[some] = own, _hashed([seen.T])
            fresh, at = np.unique(look[some], return_index=True)
            rows |= {k: seen[i] for k, i in zip(fresh.tolist(), at.tolist(), strict=True)}
            world = now.world[place]
            if self.forgets:
                later = self.folds[now.step + 1].place[world]
                after_at[some] = np.where(after.over, -1, later)
                continue
            key[some] = _hashed([*after.arrays().values(), world])
            after_at[some] = np.where(after.over, -1, 0)
            fresh, at = np.unique(key[some], return_index=True)
            new = at[~np.isin(fresh, known)]
            parts.append((after.table(new), world[new]))
            known = np.concatenate([known, key[some][new]])
        names = np.array(sorted(rows), np.uint64)
        shown = np.array([rows[name] for name in names.tolist()], np.float32)
        seen_at = np.searchsorted(names, look).astype(np.int64)
        if self.forgets:
            _, state, world = self.folds[now.step + 1]
            return paid, seen_at, after_at, shown, state, world
        state = together([own for own, _ in parts])
        order = np.argsort(known)
        on = after_at >= 0
        after_at[on] = order[np.searchsorted(known[order], key[on])]
        world = np.concatenate([own for _, own in parts])
        return paid, seen_at, after_at, shown, state, world

    # -- the policy --------------------------------------------------------------------------------

    def _table(self, steps: list[_Step], chosen: list[Array]) -> Rows:
        """Return the policy as a table of what is seen when it is followed."""
        found, count, seen = [], 0, np.zeros((1, 0), np.float32)
        belief, before, likely = np.zeros(1, np.int64), np.full(1, -1), np.ones(1)
        for place, (step, choice) in enumerate(zip(steps, chosen, strict=True)):
            own, moves = choice[belief], step.pays.shape[1]
            number = np.full(1, -1)
            if place:
                found.append((before, seen, self.moves[own]))
                number = count + np.arange(len(belief))
                count += len(belief)
            order = np.lexsort((step.move, step.belief))
            edges = step.belief[order] * moves + step.move[order]
            begin = np.searchsorted(edges, belief * moves + own)
            many = np.searchsorted(edges, belief * moves + own, "right") - begin
            taken = order[np.repeat(begin - np.cumsum(many) + many, many) + np.arange(many.sum())]
            likely = np.repeat(likely, many) * step.chance[taken]
            kept = np.sort(np.argsort(-likely, kind="stable")[: self.sets])
            before, likely = np.repeat(number, many)[kept], likely[kept]
            belief, seen = step.after[taken][kept], step.rows[step.seen[taken]][kept]
        parts = [np.concatenate(part) for part in zip(*found, strict=True)]
        seats, ends = np.full(count, self.seat), np.arange(count + 1)
        return Rows(seats, parts[0], parts[1], ends, parts[2][:, None])


def _alike(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    return all(map(np.array_equal, ours, theirs))


def _hashed(parts: Sequence[Array]) -> Array:
    """Return a number for each table from arrays whose last axis is the tables', uint64."""
    count = np.shape(parts[0])[-1]
    found = np.full(count, GOLD, np.uint64)
    for part in parts:
        values = np.asarray(part)
        if values.dtype.kind == "f":
            values = (values.astype(np.float64) + 0.0).view(np.uint64)  # no -0
        else:
            values = values.astype(np.int64).view(np.uint64)
        for row in values.reshape(-1, count):
            found = mix(found ^ mix(row + np.uint64(GOLD)))
    return found


def _grouped(
    place: Array, seen: Array, after: Array, weight: Array
) -> tuple[tuple[Array, Array, Array, Array], tuple[Array, Array, Array, int]]:
    """Put together what leads to the same belief.

    Of what is done at a `place` (belief and move) and leads to a situation, return edges (place,
    seen, chance, belief after), and the beliefs after: which, over which situations, how likely.
    """
    if not len(place):
        none = np.zeros(0, np.int64)
        return (none, none, np.zeros(0), none), (none, none, np.zeros(0), 0)
    order = np.lexsort((after, seen, place))
    place, seen, after, weight = (part[order] for part in (place, seen, after, weight))
    edge = np.append(True, (np.diff(place) != 0) | (np.diff(seen) != 0))
    new = edge | np.append(True, np.diff(after) != 0)
    of_edge, of_new = np.cumsum(edge) - 1, np.cumsum(new) - 1
    mass = np.bincount(of_edge, weight)
    edge_of, situation = of_edge[new], after[new]
    likely = np.bincount(of_new, weight) / mass[edge_of]
    # A belief is known by what it holds.
    part = mix(_hashed([situation[None], np.rint(likely * 1e10)[None]]))
    key = np.zeros(len(mass), np.uint64)
    np.add.at(key, edge_of, part)
    _, first, belief = np.unique(key, return_index=True, return_inverse=True)
    rank = np.full(len(mass), -1)
    rank[first] = np.arange(len(first))
    kept = np.flatnonzero(rank[edge_of] >= 0)
    kept = kept[np.argsort(rank[edge_of[kept]], kind="stable")]
    found = rank[edge_of[kept]], situation[kept], likely[kept], len(first)
    return (place[edge], seen[edge], mass, belief), found


def _deals(game: Rulebook, most: int) -> tuple[dict[str, Array], Array]:
    """Return what chance may bring, see `deals_of`; `NoRule` where no room says it."""
    found = deals_of(game, most)
    if found is None:
        raise NoRule(f"{game.name} draws by chance what its theory does not go through")
    return found
