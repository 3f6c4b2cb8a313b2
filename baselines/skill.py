"""Measures of skill: what a seat gave away against the field that it met, and what all lost.

Ex-post regret values each move in hindsight, so that it measures luck as well as skill. These
measures ask of whole episodes what a fixed rule would have earned in the seat's place, others and
chance as recorded (`counterfactual`): the paired difference to a reply that was named before, and
the gap to the best of several. A game's room says what it knows by convention, in ``theory.py``:

* ``replies(game)``: names of rule players that are candidate replies, such as ``fixed:0``, and
  first of them the solver's;
* ``welfare(game, record)``: a `Welfare` of one step or of a stack of them;
* ``field(game, states, moves)``: in a game of turns, what others do once a seat has left the
  recorded path, see `counterfactual`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games import rooms
from llm_games.arrays import Array
from llm_games.baselines.players import make_player
from llm_games.baselines.rules import RulePolicy
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.rulebook import PerPlayer, PerTable, Rulebook
from llm_games.view import Sight, View

LEVEL = 0.95
TOGETHER = 4096  # tables that are played at once
Field = Callable[[Any], PerPlayer]
"""What all seats would do in a state that was not recorded, ``(players, tables)``."""


class NoReplay(LLMGamesError):
    """A game's recorded moves do not say what others would have done after another move."""


# -- measures on plain arrays ----------------------------------------------------------------------


class BestReplyGap(NamedTuple):
    """What a seat would have gained by the best of some fixed replies, mean per episode.

    `gap` is the plug-in estimate, biased up, and `crossed` the cross-fitted one, biased down.
    From `low` to `high` is an interval of the level `LEVEL`; both are None for one episode.
    `best` is the place of the reply that the `gap` belongs to, None if none beats the own play.
    """

    gap: float
    crossed: float | None
    low: float | None
    high: float | None
    best: int | None
    n: int
    note: str = ""


def best_reply_gap(gains: Array) -> BestReplyGap:
    """Return the gap from what each reply gains over the own play, ``(episodes, replies)``.

    The own play is a reply as well, of gain 0, so that no gap is negative. The upper end is the
    largest of the replies' upper ends, valid without correction as the best reply is one of them;
    the lower end is that of the cross-fitted gap: every second episode's best reply is valued on
    the others, and the other way round. (Best replies of all episodes but one would be chosen with
    nearly the same data each time: of 21 equal replies in 20 episodes, one in five then seems to
    gain; by halves, one in twenty.)

    Raises:
        BadParameter: there is no episode or no reply, or a gain is not finite.
    """
    gains = np.asarray(gains, np.float64)
    if gains.ndim != 2 or not gains.size or not np.isfinite(gains).all():
        raise BadParameter(
            "gains must be finite numbers of shape (episodes, replies), at least one of each, "
            f"got shape {gains.shape}"
        )
    n, means = len(gains), gains.mean(axis=0)
    best = int(means.argmax())
    gap = max(float(means[best]), 0.0)
    found = BestReplyGap(gap, None, None, None, best if gap > 0 else None, n)
    if n < 2:
        return found
    from scipy.special import stdtrit

    wide = stdtrit(n - 1, (1 + LEVEL) / 2) / np.sqrt(n)
    crossed = np.zeros(n)
    for half, other in ((slice(0, n, 2), slice(1, n, 2)), (slice(1, n, 2), slice(0, n, 2))):
        elsewhere = gains[other].mean(axis=0)
        if elsewhere.max() > 0:  # else the own play is best there
            crossed[half] = gains[half, elsewhere.argmax()]
    low = max(0.0, float(crossed.mean() - wide * crossed.std(ddof=1)))
    high = max(low, float((means + wide * gains.std(axis=0, ddof=1)).max()))
    note = "no spread" if np.ptp(gains[:, best]) == 0 else ""
    return found._replace(crossed=float(crossed.mean()), low=low, high=high, note=note)


def exploitability(regret: PerPlayer) -> Array:
    """Return NashConv by player: the mean over the first axis of regrets ``(players, ...)``."""
    return np.asarray(np.asarray(regret, np.float64).mean(axis=0))


class Welfare(NamedTuple):
    """Sums of all payoffs of a step (or more): played, the lowest and the highest there can be.

    `equilibrium` is that of the worst equilibrium known; None where none is.
    """

    played: Array
    worst: Array
    best: Array
    equilibrium: Array | None = None


def efficiency(welfare: Welfare) -> Array:
    """Return the share of what can be won, from the worst (0) to the best (1); NaN if all equal."""
    played, worst, best = (np.asarray(x, np.float64) for x in welfare[:3])
    room = best - worst
    return np.divide(played - worst, room, out=np.full(room.shape, np.nan), where=room > 0)


def price_of_anarchy(welfare: Welfare) -> float | None:
    """Return the best welfare over that of the worst equilibrium; None where it means nothing.

    That is where no equilibrium is known, or one of the two is not above 0.
    """
    if welfare.equilibrium is None:
        return None
    best, worst = (float(np.sum(x)) for x in (welfare.best, welfare.equilibrium))
    return best / worst if best > 0 and worst > 0 else None


# -- recorded episodes, played again with other moves of one seat ----------------------------------


def candidates(game: Rulebook) -> list[str]:
    """Return the replies that the game's room names, the solver's first; [] if it names none."""
    found = getattr(rooms.part(game.name, "theory"), "replies", None)
    return [] if found is None else list(found(game))


def can_replay(game: Rulebook) -> bool:
    """Return whether `counterfactual` can play the game."""
    return not game.turns or hasattr(rooms.part(game.name, "theory"), "field")


def counterfactual(
    game: Rulebook,
    seeds: Sequence[int],
    moves: Sequence[Any],
    seats: Sequence[int],
    replies: Sequence[str],
    given: Mapping[str, Any] | None = None,
) -> tuple[Array, Array]:
    """Play recorded episodes again with a rule player in one seat, all others as recorded.

    Chance is the same, and so is that of the seat: a rule player replays itself exactly. Others'
    moves that the deviation has made illegal are moved to the nearest legal one, and whoever was
    out in the record but is not now does what the rules declare for a missing move.
    In a game of turns the room's ``theory.field(game, states, moves)`` gives, from the recorded
    states and moves, a `Field` of what others do once the seat has done something else.

    Args:
        game: the rules of all these episodes.
        seeds: theirs.
        moves: of each episode the recorded ``actions``, ``(steps, players)``.
        seats: in each the seat that is played by somebody else.
        replies: names of rule players.
        given: chance that was given.

    Returns:
        The seat's recorded payoff, float64 ``(episodes,)``, and those of the replies,
        ``(replies, episodes)``.

    Raises:
        NoReplay: it is a game of turns whose room does not say what others would do.
        BadParameter: a reply is no rule player of the game.
    """
    if not can_replay(game):
        raise NoReplay(
            f"what others would do after another move in {game.name} is not recorded; its regret "
            "in hindsight (llm_games.baselines.deviation) is by decision"
        )
    rules = [_rule(game, name) for name in replies]
    own, paid = np.empty(len(seeds)), np.empty((len(replies), len(seeds)))
    size = max(1, TOGETHER // max(1, len(replies)))
    order = np.argsort(seats, kind="stable")
    for some in (order[at : at + size] for at in range(0, len(order), size)):
        tape = _Tape.of(
            game,
            np.array([seeds[i] for i in some], np.uint64),
            [np.asarray(moves[i], np.int64) for i in some],
            np.array([seats[i] for i in some]),
            given,
        )
        own[some] = tape.paid
        if replies:
            paid[:, some] = tape.again(rules)
    return own, paid


def _rule(game: Rulebook, name: str) -> RulePolicy:
    policy = make_player(name, game)
    if not isinstance(policy, RulePolicy):
        raise BadParameter(f"a reply must be a player that follows a rule, got {name!r}")
    return policy


class _Tape(NamedTuple):
    """Recorded episodes of one game, ascending by seat; `moves` are ``(steps, players, tables)``.

    `states` are those before each step, `broke` which moves broke a rule, `stop` the steps after
    which a table ends that the rules did not end, and `paid` what the seat got.
    """

    game: Rulebook
    seeds: Array
    seats: Array
    chance: Mapping[str, Array]
    moves: Array
    states: list[Any]
    broke: Array
    stop: Array
    paid: Array

    @classmethod
    def of(cls, game: Rulebook, seeds: Array, moves: list[Array], seats: Array, given: Any) -> Any:
        """Play the recorded moves."""
        lengths = np.array([len(taken) for taken in moves])
        steps, tables = int(lengths.max()), len(seeds)
        taken = np.full((steps, game.players, tables), MISSING, np.int64)
        for table, recorded in enumerate(moves):
            taken[: len(recorded), :, table] = recorded
        chance = game.chance(Noise(seeds), given)
        state, states, paid = game.begin(chance, (tables,)), [], np.zeros(tables)
        broke, over = np.zeros(taken.shape, bool), np.zeros(tables, bool)
        for step in range(steps):
            states.append(state)
            state, outcome = game.step(state, taken[step])
            broke[step] = outcome.broke
            paid += outcome.rewards[seats, np.arange(tables)] * (step < lengths)
            over |= state.over & (step < lengths)
        stop = np.where(over, np.iinfo(np.int64).max, lengths)
        return cls(game, seeds, seats, chance, taken, states, broke, stop, paid)

    def again(self, rules: Sequence[RulePolicy]) -> Array:
        """Return what the seat gets by each rule, ``(rules, tables)``."""
        game, tables, many = self.game, len(self.seeds), len(rules)
        columns, seats = np.arange(many * tables), np.tile(self.seats, many)
        chance = {name: np.tile(drawn, many) for name, drawn in self.chance.items()}
        state, paid = game.begin(chance, (many * tables,)), np.zeros(many * tables)
        stop, same = np.tile(self.stop, many), np.ones(many * tables, bool)
        players = self._players(rules)
        field = self._field()
        for step in range(self._longest()):
            ending = state.over | (step >= stop)
            if ending.all():
                break
            actions, recorded = self._others(state, step, many, same, field)
            sight = Sight(game, state)
            for place, (seat, where, policy, memory) in enumerate(players):
                decided, memory = policy.act(_part(sight, seat, where), memory)
                actions[seat, where] = decided.action
                players[place] = (seat, where, policy, memory)
            asked = game.asked(state)[seats, columns]
            same &= ~asked | (actions[seats, columns] == recorded[seats, columns])
            state, outcome = game.step(state, actions)
            paid += np.where(ending, 0.0, outcome.rewards[seats, columns])
        return paid.reshape(many, tables)

    def _longest(self) -> int:
        """Return a number of steps after which every table has ended."""
        longest = self.game.length()
        return len(self.moves) if longest is None else max(longest, len(self.moves))

    def _players(self, rules: Sequence[RulePolicy]) -> list[tuple[int, slice, RulePolicy, Any]]:
        """Return who plays where: a seat, tables one after another, a rule and its memory."""
        found, tables = [], len(self.seeds)
        kinds, firsts = np.unique(self.seats, return_index=True)
        for number, policy in enumerate(rules):
            for seat, low, high in zip(kinds, firsts, [*firsts[1:], tables], strict=True):
                noise = Noise(self.seeds[low:high]).of("seat", int(seat))
                memory = policy.start(self.game, int(seat), noise.seed())
                where = slice(number * tables + low, number * tables + high)
                found.append((int(seat), where, policy, memory))
        return found

    def _field(self) -> Field | None:
        if not self.game.turns:
            return None
        theory = rooms.part(self.game.name, "theory")
        found: Field = theory.field(self.game, self.states, self.moves)  # type: ignore[union-attr]
        return found

    def _others(
        self, state: Any, step: int, many: int, same: PerTable, field: Field | None
    ) -> tuple[PerPlayer, PerPlayer]:
        """Return what all do if they act as in the record, and what is recorded."""
        game, late = self.game, step >= len(self.moves)
        shape = game.players, len(self.seeds)
        taken = np.full(shape, MISSING, np.int64) if late else self.moves[step]
        bad = np.zeros(shape, bool) if late else self.broke[step]
        taken, bad = np.tile(taken, many), np.tile(bad, many)
        if field is not None:
            return np.where(same, taken, field(state)), taken
        anew = game.breaks(state, taken) & ~bad
        return np.where(anew, np.clip(taken, *game.legal(state)), taken), taken


def _part(sight: Sight, seat: int, where: slice) -> View:
    """Return a seat's view of some of the tables, what is worked out for all taken from there."""
    view = View(Sight(sight.game, sight.state.table(where)), seat)
    low, high = (limit[seat, where] for limit in sight.legal)
    view.__dict__.update(numbers=sight.numbers[seat, where], low=low, high=high)
    return view
