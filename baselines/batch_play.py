"""Measures of skill: what a seat lost against the field that it played.

Regret in hindsight values moves after the fact, luck as well as skill. Here whole episodes are
replayed with a fixed rule in the seat, chance and others as recorded (`counterfactual`): the paired
difference to a reply named in advance, and the gap to the best of several (`best_reply_gap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.arrays import Array
from llm_games.baselines.players import fixed, make_player
from llm_games.baselines.rules import RulePolicy
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.rulebook import Outcome, PerPlayer, PerTable, Rulebook
from llm_games.table_batch import Tables
from llm_games.view import Sight, View
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy

LEVEL = 0.95
FEW = 3  # up to so many episodes an interval rests on their shape
TOGETHER = 4096  # tables that are played at once
ENDLESS = 10_000  # steps after which a game that rule players never end is left
LONGEST = 2000  # steps in turns after which one that they would end is refused
Field = Callable[[Any], PerPlayer]  #: what all would do in a new state, ``(players, tables)``


class NoReplay(LLMGamesError):
    """Recorded moves do not determine others' later moves, or the replay lasts too long."""


class TooManyTurns(BadParameter):
    """Rule players take more turns than are played, `LONGEST`."""


# -- the gap to the best of some replies -----------------------------------------------------------


class BestReplyGap(NamedTuple):
    """Gain of the best of some fixed replies over a seat's play, mean per episode.

    `gap` is the plug-in estimate, biased up, `crossed` the cross-fitted one, biased down; `low` to
    `high` is an interval of level `LEVEL`; these three are None for one episode. `best` is the
    index of the reply with that `gap`, None if none beats the seat's play.
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

    The own play is a reply of gain 0, so that no gap is negative. The upper end is the largest of
    the replies' upper ends, valid without correction; the lower end is that of the cross-fitted
    gap: every second episode's best reply is valued on the others, and the other way round. (Chosen
    in all episodes but one, of 21 equal replies in 20 episodes one in five seems to gain; by
    halves, one in twenty.)

    Raises:
        BadParameter: there is no episode or no reply, or a gain is not finite.
    """
    gains = np.asarray(gains, np.float64)
    if gains.ndim != 2 or not gains.size or not np.isfinite(gains).all():
        fault = "gains must be finite numbers of shape (episodes, replies), at least one of each,"
        raise BadParameter(f"{fault} got shape {gains.shape}")
    n, means = len(gains), gains.mean(axis=0)
    best = int(means.argmax())
    gap = max(float(means[best]), 0.0)
    estimate = BestReplyGap(gap, None, None, None, best if gap > 0 else None, n)
    if n < 2:
        return estimate
    from scipy.special import stdtrit

    half_width = stdtrit(n - 1, (1 + LEVEL) / 2) / np.sqrt(n)
    crossed = np.zeros(n)
    for half, other in ((slice(0, n, 2), slice(1, n, 2)), (slice(1, n, 2), slice(0, n, 2))):
        elsewhere = gains[other].mean(axis=0)
        if elsewhere.max() > 0:  # else the own play is best there
            crossed[half] = gains[half, elsewhere.argmax()]
    low = max(0.0, float(crossed.mean() - half_width * crossed.std(ddof=1)))
    high = max(low, float((means + half_width * gains.std(axis=0, ddof=1)).max()))
    note = "rests on near-normal runs" if n <= FEW else ""
    if np.ptp(gains[:, best]) <= 1e-9 * np.abs(gains[:, best]).max():
        note = f"no spread in {n} runs"
    return estimate._replace(crossed=float(crossed.mean()), low=low, high=high, note=note)


# -- tables of rule players ------------------------------------------------------------------------


class BatchEpisodes(NamedTuple):
    """Episodes of rule players, all tables at once.

    `records` are the steps' ``Outcome.record``, tables last; a table ended after `lengths` steps.
    """

    payoffs: PerPlayer
    records: list[Mapping[str, Array]]
    lengths: PerTable

    def records_of(self, table: int) -> list[dict[str, Any]]:
        """Return a table's records step by step, as lists, the form of a file."""
        return [
            {name: np.asarray(value)[..., table].tolist() for name, value in record.items()}
            for record in self.records[: self.lengths[table]]
        ]


def rule_player(game: Rulebook, name: str) -> RulePolicy:
    """Return a player that follows a rule; `BadParameter` if it is none, or not of this game."""
    policy = make_player(name, game)
    if not isinstance(policy, RulePolicy):
        raise BadParameter(f"this needs a player that follows a rule, got {name!r}")
    return policy


def play_rules(
    game: Rulebook,
    names: Sequence[str | Policy],
    seeds: Sequence[int],
    given: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
) -> BatchEpisodes:
    """Play an episode of each seed with players that ask no model, as `llm_games.play` does.

    Raises:
        BadParameter: one cannot play the game, or asks a model, or there is not one for each seat.
        TooManyTurns: they take more than `LONGEST` turns.
    """
    if len(names) != game.players:
        raise BadParameter(f"{game.players} seats need as many players, got {len(names)}")
    players = list(dict.fromkeys(names))
    sits = np.tile([[players.index(name)] for name in names], len(seeds))
    payoffs, lengths = np.zeros(sits.shape), np.zeros(len(seeds), np.int64)
    records: list[Mapping[str, Array]] = []
    for over, outcome in play_batch(game, players, sits, seeds, given, max_steps):
        lengths += ~over
        payoffs += outcome.rewards
        records.append(outcome.record)
    return BatchEpisodes(payoffs, records, lengths)


def play_batch(
    game: Rulebook,
    names: Sequence[str | Policy],
    sits: Array,
    seeds: Sequence[int],
    given: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
    models: bool = False,
) -> Iterator[tuple[PerTable, Outcome]]:
    """Play an episode of each seed as `play_rules` does, step by step; with `models` also of those.

    `sits`, integers ``(players, tables)``, is the index of the player in each seat. Yield which
    tables were over before the step, ``(tables,)``, and the step's outcome.
    """
    policies = [make_player(name, game) for name in names]
    waiting = [name for name, policy in zip(names, policies, strict=True) if policy.waits]
    if waiting and not models:
        raise BadParameter(f"this needs players that ask no model, got {waiting[0]!r}")
    tables = Tables(game, len(seeds))
    seats = BatchSeats(tables, policies, sits)
    tables.reset([int(seed) for seed in seeds], given=given)
    seats.start(np.ones(len(seeds), np.bool_))
    for step in range(max_steps or game.length() or ENDLESS):
        over = tables.state.over
        if over.all():
            return
        if step == LONGEST and game.turns and game.length():
            player_names = ", ".join(dict.fromkeys(policy.name for policy in policies))
            raise TooManyTurns(f"{player_names} take more than {LONGEST} turns")
        outcome = tables.step(seats.ask_now(tables.ready().turn))
        seats.hear(~over)
        yield over, outcome


def _decided(policy: RulePolicy, memory: Any, view: View, asked: Array) -> tuple[Array, Any]:
    """Return a seat's moves at some tables, and its memory; only where it is `asked` it decides."""
    decided, next_memory = policy.act(view, memory)
    if view.game.turns:
        next_memory = next_memory._replace(decided=memory.decided + asked.astype(np.int64))
    return np.asarray(decided.action), next_memory


# -- recorded episodes, played again with other moves of one seat ----------------------------------


def can_replay(game: Rulebook) -> bool:
    return not game.turns or hasattr(rooms.part(game.name, "theory"), "field")


def counterfactual(
    game: Rulebook,
    seeds: Sequence[int],
    moves: Sequence[Any],
    seats: Sequence[int],
    replies: Sequence[str],
    fixed_chance: Mapping[str, Any] | None = None,
) -> tuple[Array, Array]:
    """Play recorded episodes again with a rule player in one seat, all others as recorded.

    Chance is the same, and so is that of the seat: a rule player replays itself exactly. Others'
    moves that have become illegal are moved to the nearest legal one; whoever was out but is not
    now makes the lowest. In a game of turns the room's ``theory.field(game, states, moves)`` gives
    a `Field` of what others do once the seat has done something else.

    Args:
        game: the rules of all these episodes.
        seeds: theirs.
        moves: of each episode the recorded ``actions``, ``(steps, players)``.
        seats: in each the seat that is played by somebody else.
        replies: names of rule players.
        fixed_chance: chance that was given.

    Returns:
        The seat's recorded payoff, ``(episodes,)``, and the replies', ``(replies, episodes)``.

    Raises:
        NoReplay: it is a game of turns whose room does not say what others would do, or a reply
            makes it last more than `LONGEST` steps.
        BadParameter: a reply is no rule player of the game.
    """
    game = game.core
    if not can_replay(game):
        raise NoReplay(
            f"what others would do after another move in {game.name} is not recorded; its regret "
            "in hindsight (llm_games.baselines.regret) is by decision"
        )
    rules = [rule_player(game, name) for name in replies]
    recorded_payoffs, reply_payoffs = np.empty(len(seeds)), np.empty((len(replies), len(seeds)))
    size = max(1, TOGETHER // max(1, len(replies)))
    order = np.argsort(seats, kind="stable")
    for batch in (order[start : start + size] for start in range(0, len(order), size)):
        batch_seeds = np.array([seeds[i] for i in batch], np.uint64)
        taken = [np.asarray(moves[i], np.int64) for i in batch]
        batch_seats = np.array([seats[i] for i in batch])
        tape = _Tape.of(game, batch_seeds, taken, batch_seats, fixed_chance)
        recorded_payoffs[batch] = tape.payoffs
        if rules:
            reply_payoffs[:, batch] = tape.again(rules)
    return recorded_payoffs, reply_payoffs


class _Tape(NamedTuple):
    """Recorded episodes of one game, ascending by seat; `moves` are ``(steps, players, tables)``.

    `states` precede steps, `broke` marks moves that broke a rule, `stop` is the number of steps
    after which a table was stopped, `payoffs` are the seat's.
    """

    game: Rulebook
    seeds: Array
    seats: Array
    chance: Mapping[str, Array]
    moves: Array
    states: list[Any]
    broke: Array
    stop: Array
    payoffs: Array

    @classmethod
    def of(
        cls, game: Rulebook, seeds: Array, moves: list[Array], seats: Array, fixed_chance: Any
    ) -> Any:
        lengths = np.array([len(taken) for taken in moves])
        steps, tables = int(lengths.max()), len(seeds)
        taken = np.full((steps, game.players, tables), MISSING, np.int64)
        for table, recorded in enumerate(moves):
            taken[: len(recorded), :, table] = recorded
        chance = game.chance(Noise(seeds), fixed_chance)
        state, states, payoffs = game.begin(chance, (tables,)), [], np.zeros(tables)
        broke, over = np.zeros(taken.shape, bool), np.zeros(tables, bool)
        for step in range(steps):
            states.append(state)
            state, outcome = game.step(state, taken[step])
            broke[step] = outcome.broke
            payoffs += outcome.rewards[seats, np.arange(tables)] * (step < lengths)
            over |= state.over & (step < lengths)
        stop = np.where(over, np.iinfo(np.int64).max, lengths)
        return cls(
            game=game,
            seeds=seeds,
            seats=seats,
            chance=chance,
            moves=taken,
            states=states,
            broke=broke,
            stop=stop,
            payoffs=payoffs,
        )

    def again(self, policies: Sequence[RulePolicy]) -> Array:
        """Return the seat's payoff under each rule, ``(rules, tables)``."""
        game, tables, count = self.game, len(self.seeds), len(policies)
        columns, seats = np.arange(count * tables), np.tile(self.seats, count)
        chance = {name: np.tile(drawn, count) for name, drawn in self.chance.items()}
        state, payoffs = game.begin(chance, (count * tables,)), np.zeros(count * tables)
        stop, same = np.tile(self.stop, count), np.ones(count * tables, bool)
        constant, players = self._players(policies)
        theory: Any = rooms.part(game.name, "theory") if game.turns else None
        field: Field | None = theory and theory.field(game, self.states, self.moves)
        for step in range(max(len(self.moves), game.length() or 0)):
            ending = state.over | (step >= stop)
            if ending.all():
                break
            if step >= max(len(self.moves), LONGEST):
                raise NoReplay(f"another move makes {game.name} last more than {LONGEST} steps")
            actions, recorded = self._others(state, step, count, same, field)
            sight = Sight(game, state)
            low, high = (limit[seats, columns] for limit in sight.legal)
            asked, moves = game.asked(state)[seats, columns], np.clip(constant, low, high)
            for index, (seat, span, policy, memory) in enumerate(players):
                if not asked[span].any():
                    continue
                view = _part(sight, seat, span)
                moves[span], memory = _decided(policy, memory, view, asked[span])
                players[index] = (seat, span, policy, memory)
            actions[seats, columns] = moves
            same &= ~asked | (moves == recorded[seats, columns])
            state, outcome = game.step(state, actions)
            payoffs += np.where(ending, 0.0, outcome.rewards[seats, columns])
        return payoffs.reshape(count, tables)

    def _players(self, policies: Sequence[RulePolicy]) -> tuple[Array, list[Any]]:
        """Return moves of constant players, others by seat with tables, policy and memory."""
        tables, players = len(self.seeds), []
        constant = np.zeros(len(policies) * tables, np.int64)
        kinds, firsts = np.unique(self.seats, return_index=True)
        for number, policy in enumerate(policies):
            rule, first = policy.rule_in(self.game), number * tables
            if isinstance(rule, partial) and rule.func is fixed:
                constant[first : first + tables] = rule.args[0]
                continue
            for seat, low, high in zip(kinds, firsts, [*firsts[1:], tables], strict=True):
                noise = Noise(self.seeds[low:high]).of("seat", int(seat))
                memory = policy.start(self.game, int(seat), noise.seed())
                players.append((int(seat), slice(first + low, first + high), policy, memory))
        return constant, players

    def _others(
        self, state: Any, step: int, count: int, same: PerTable, field: Field | None
    ) -> tuple[PerPlayer, PerPlayer]:
        """Return all seats' moves if they act as recorded, and the recorded moves."""
        game, late = self.game, step >= len(self.moves)
        shape = game.players, len(self.seeds)
        taken = np.full(shape, MISSING, np.int64) if late else self.moves[step]
        bad = np.zeros(shape, bool) if late else self.broke[step]
        taken, bad = np.tile(taken, count), np.tile(bad, count)
        if field is not None:
            return np.where(same, taken, field(state)), taken
        newly_illegal = game.breaks(state, taken) & ~bad
        return np.where(newly_illegal, np.clip(taken, *game.legal(state)), taken), taken


def _part(sight: Sight, seat: int, span: slice) -> View:
    """Return a seat's view of a span of tables, sliced from the views' cached arrays."""
    view = View(Sight(sight.game, sight.state.table(span)), seat)
    low, high = (limit[seat, span] for limit in sight.legal)
    view.__dict__.update(numbers=sight.numbers[seat, span], low=low, high=high)
    return view
