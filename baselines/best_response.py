"""The best response to given opponents: exact by value iteration where that can be, else bounds.

What a learner cannot know of its table is a *world*: which player each opponent is, where they are
mixtures. All that it has seen and done leaves a belief over worlds and states. Value iteration goes
over these beliefs, from the last step back, so that its policy is the best of all, also of those
that remember everything and pay for finding out. Opponents follow rules; one that draws is met in
all its moves, as likely as they are.

Where opponents do not mind what the seat did before, which is tried, beliefs are over worlds alone;
else over worlds and states. Where chance is drawn in the game, or opponents follow no rule, there
are bounds: the best policy that is found, valued in fresh games, and one that knows all that others
do before it moves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.cache import Arrays, remember
from llm_games.baselines.deviation import has, replies
from llm_games.baselines.players import make_player, reading
from llm_games.baselines.rules import Rule, RulePolicy, legal
from llm_games.baselines.skill import ENDLESS, play_batch
from llm_games.baselines.tree import TooLarge, deals_of, together
from llm_games.errors import BadParameter
from llm_games.noise import GOLD, Noise, mix
from llm_games.rulebook import PerPlayer, Rulebook
from llm_games.tables import Tables
from llm_games.version import __version__
from llm_games.view import Sight
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.mixture import Mixture
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.tabular import Rows, parameters_of, table_of

METHOD = 1  # of this file, for what is kept on disk
MOST = 60_000_000
"""Moves of all beliefs of one step together, up to which value iteration is done."""
AT_ONCE = 400_000  # tables that are stepped at once
ACTIONS = 2001  # legal moves up to which all are tried
STRATA = 1024
"""Parts of its chance in which each move of an opponent that draws is looked up."""
KINDS = 64  # different moves of an opponent that draws
SETS = 200_000
"""Information sets of a reply's table; what is least likely is left out."""
TRIED = 64  # tables in which it is tried whether opponents mind what the seat did
ROUGH = 1e-9
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
    solve = _Iteration(game, seat, others, moves).solved
    known = all(reading(rule.name) == "kind" for rule in others.rules)  # and not by its own code
    found = remember(f"best-response-{name[:32]}", solve) if known else solve()
    rows = Rows(*(found[part] for part in Rows._fields))
    policy = table_of(game, rows, np.ones(len(rows.seat)), name=f"best response, seat {seat}")
    kept = "worlds" if found["forgets"] else "worlds and states"
    how = f"exact: value iteration over {int(found['beliefs'])} beliefs about {kept}"
    value = float(found["value"])
    return Reply(policy, value, 0.0, value, True, how)


def _deals(game: Rulebook, most: int) -> tuple[dict[str, Array], Array]:
    """Return what chance may bring, see `deals_of`; `NoRule` where no room says it."""
    found = deals_of(game, most)
    if found is None:
        raise NoRule(f"{game.name} draws by chance what its theory does not go through")
    return found


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


# -- opponents that follow rules -------------------------------------------------------------------


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


# -- value iteration -------------------------------------------------------------------------------


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


class _Iteration:
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
