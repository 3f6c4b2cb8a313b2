"""The rules of a game whose players talk: the game's own, and a step for each speech."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from llm_games.arrays import Array, any_true, at, tall
from llm_games.errors import BadParameter, IllegalAction
from llm_games.facts import Draw, Fact, once
from llm_games.noise import FULL, Noise
from llm_games.questions import Action, Question, within_int64
from llm_games.rulebook import Chance, Outcome, PerPlayer, PerTable, Played, Rulebook, actions_of
from llm_games.talk.hearing import Heard, Hearing
from llm_games.talk.parameters import Talk
from llm_games.talk.turns import TalkState, Turns, Utterance


def _delegate(name: str) -> Any:
    """Return a method that calls the game inside."""

    def method(self: Talking, *arguments: Any) -> Any:
        return getattr(self.game, name)(*arguments)

    return method


def _of_state(name: str) -> Any:
    """Return a method that calls the game inside with its own part of the state."""

    def method(self: Talking, state: TalkState, *arguments: Any) -> Any:
        return getattr(self.game, name)(state.game, *arguments)

    return method


def _attribute(name: str) -> Any:
    return property(lambda self: getattr(self.game, name))


_COPIED = (
    *("name", "title", "source", "turns", "presets", "fewest_players", "edition", "lasting"),
    *("idle", "mends", "personal", "narrows", "picks", "decline", "steps"),
    *("players", "failed_reply", "shared_goal"),
)
"""What a game says by its class, or else as a plain attribute."""


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class Talking(Rulebook):
    """A game whose players may talk; apart from the speeches it is the game inside, its `core`.

    Whoever plays, judges or scores it is handed the core; an environment shows the speeches as
    well.
    """

    game: Rulebook
    talk: Talk

    def __init__(self, game: Rulebook, talk: Talk) -> None:
        """Let the players of a game talk; BadParameter if it cannot be placed there."""
        talk.check(game)
        attributes = {"game": game, "talk": talk}
        attributes |= {name: getattr(game, name) for name in _COPIED}
        self.__dict__.update(attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Talking, (self.game, self.talk)

    def __repr__(self) -> str:
        pairs = ((f, getattr(self.talk, f.name)) for f in dataclasses.fields(Talk))
        changed = ", ".join(f"{f.name}={value!r}" for f, value in pairs if value != f.default)
        return f"Talking({self.game!r}, Talk({changed}))"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "game" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.game, name)

    bounds, goal, terms, names = map(_delegate, ("bounds", "goal", "terms", "names"))
    names_in_words = _delegate("names_in_words")
    attempts, space, drafted, lasts = map(_delegate, ("attempts", "space", "drafted", "lasts"))
    alive, positions, speakers, hears = map(_of_state, ("alive", "positions", "speakers", "hears"))
    voices = _of_state("voices")
    highest_legal, fallback, mask = map(_of_state, ("highest_legal", "fallback", "mask"))
    decode, asides = map(_of_state, ("decode", "asides"))
    largest, same_limits, masked = map(_attribute, ("largest", "same_limits", "masked"))
    division, unit, seats_differ = map(_attribute, ("division", "unit", "seats_differ"))
    shown_last, grid, begun = map(_attribute, ("shown_last", "grid", "begun"))
    surface, disguise = map(_attribute, ("surface", "disguise"))

    @property
    def core(self) -> Rulebook:
        return self.game

    @property
    def symbols(self) -> int:
        return 0 if self.talk.alphabet is None else self.talk.alphabet + 1

    def inside(self, state: TalkState) -> Any:
        return state.game

    def length(self) -> int | None:
        steps, rounds = self.game.length(), self.game.lasts()
        if steps is None:
            return None
        rounds = steps if rounds is None else rounds
        turns = int(self.talk.turns_of(np.arange(self.game.begun, rounds)).sum())
        return steps + turns * (1 if self.talk.mode == "together" else self.players)

    @cached_property
    def _turns(self) -> Turns:
        return Turns(self.game, self.talk)

    @cached_property
    def _hearing(self) -> Hearing:
        return Hearing(self.game, self.talk)

    # -- chance and the beginning ----------------------------------------------------------------

    def draws(self) -> Sequence[Draw]:
        return (*self.game.draws(), _ORDER)

    def chance(self, noise: Noise, given: Mapping[str, Any] | None = None) -> dict[str, Array]:
        rest, drawn = given, np.asarray(_ORDER.of(noise.of(_ORDER.name)))
        if isinstance(given, Mapping) and _ORDER.name in given:
            fixed = given[_ORDER.name]
            rows = np.ndim(fixed) > drawn.ndim
            drawn = self._orders(fixed, drawn.shape) if rows else _ORDER.filled(fixed, drawn)
            rest = self.core_chance(given)
        return self.game.chance(noise, rest) | {_ORDER.name: drawn}

    def core_chance(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return {name: value for name, value in (given or {}).items() if name != _ORDER.name} or None

    def _orders(self, rows: Any, batch: tuple[int, ...]) -> Array:
        """Return given orders of speakers ``(rounds, turns, players, *batch)``, all seats in each.

        The first round follows the last. BadParameter: they are none, or orders are not drawn.
        """
        seats = np.arange(self.players)
        try:
            orders = np.asarray(rows)
            if orders.ndim == 3:  # of one table, for all
                column = orders.reshape(*orders.shape, *(1,) * len(batch))
                orders = np.broadcast_to(column, (*orders.shape, *batch))
            if (np.sort(orders, axis=2) != tall(seats, orders.shape[3:])).any() or not orders.size:
                raise ValueError
        except ValueError:
            raise BadParameter(
                f"chance 'talk_order' must be, for each round and each turn, all seats 0 to "
                f"{self.players - 1} in the order in which they speak, got {rows!r:.80}"
            ) from None
        if not str(self.talk.order).startswith("shuffled"):
            raise BadParameter("chance 'talk_order' goes with order shuffled: no other is drawn")
        return orders.astype(np.int64)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> TalkState:
        rest = {name: value for name, value in chance.items() if name != _ORDER.name}
        game = self.game.begin(rest, batch)
        symbols = self.players if self.symbols else 0
        messages = np.empty(batch, object)
        messages.fill(())
        state = TalkState(
            game.round,
            game.over,
            game.void,
            game,
            turn=np.zeros(batch, np.int64),
            position=np.zeros(batch, np.int64),
            order=np.full((self.players, *batch), -1),
            talked=np.full(batch, -1),
            key=chance[_ORDER.name],
            mute=np.zeros((self.players, *batch), np.bool_),
            finished=self.everybody(game.over),
            symbols=np.zeros((symbols, *batch), np.int64),
            hearers=np.zeros((symbols, symbols, *batch), np.bool_),
            said=messages,
        )
        return self._turns.begun(state)

    def hush(self, state: TalkState, mute: PerPlayer) -> TalkState:
        mute = state.mute | mute
        changed: PerTable = np.any(mute & ~state.mute, axis=0)
        if not any_true(changed):
            return state
        talked = np.where(changed, -1, state.talked)
        anew = state.replace(mute=mute, turn=state.turn * ~changed, talked=talked)
        return state.merged(self._turns.begun(anew), changed)

    # -- who talks when --------------------------------------------------------------------------

    def talking(self, state: TalkState) -> PerTable:
        return state.turn > 0

    def asked(self, state: TalkState) -> Array:
        talking = self.talking(state)
        if not any_true(talking):
            return self.game.asked(state.game)
        return np.where(talking, self._turns.speakers_now(state), self.game.asked(state.game))

    def asks(self, state: TalkState, seat: int) -> Question:
        return self.talk.question if state.turn else self.game.asks(state.game, seat)

    def sharers(self, state: TalkState) -> Array:
        return self.game.sharers(state.game) & ~self.talking(state)

    def legal(self, state: TalkState) -> tuple[Array, Array]:
        talking, (low, high) = self.talking(state), self.game.legal(state.game)
        return np.where(talking, 0, low), np.where(talking, self.talk.alphabet or 0, high)

    def amounts(self, state: TalkState) -> tuple[Array, Array]:
        talking, (low, high) = self.talking(state), self.game.amounts(state.game)
        return np.where(talking, 0, low), np.where(talking, self.talk.alphabet or 0, high)

    # -- a step ----------------------------------------------------------------------------------

    def assemble(self, state: TalkState, moves: Mapping[int, Action]) -> Array:
        """Put single seats' speeches or moves together, words as an array of objects."""
        if not state.turn:
            return self.game.assemble(state.game, moves)
        words = self.talk.alphabet is None
        speeches = np.full(self.players, self.talk.silence, object if words else np.int64)
        for seat, move in moves.items():
            if words:
                speeches[seat] = move
            elif isinstance(move, int):
                speeches[seat] = within_int64(move)
        return speeches

    def breaks(self, state: TalkState, actions: Array) -> Array:
        """Return the seats whose move is against the rules; a speech never is."""
        moves = self._moves(state, actions)
        return self.game.breaks(state.game, moves) & ~self.talking(state)

    def _moves(self, state: TalkState, actions: Array) -> Array:
        """Return the game's moves, its fallback at tables that talk."""
        talking = self.talking(state)
        if actions.dtype.kind == "O":
            numbers = np.zeros(actions.shape, np.int64)
            moves = np.broadcast_to(~talking, actions.shape)
            numbers[moves] = actions_of(actions[moves].tolist())
            actions = numbers
        return np.where(talking, self.game.fallback(state.game), actions)

    def play(self, state: TalkState, actions: Array, broke: Array) -> Played:
        raise NotImplementedError("talk and moves are told apart in `step`")

    def step(self, state: TalkState, actions: Array) -> tuple[TalkState, Outcome]:
        """Resolve a speech, or a turn of speeches, at tables that talk, and a step at the others.

        `actions` are integers ``(players, *batch)``, or objects with texts; what is no text, or no
        symbol, is silence. Raises IllegalAction for another shape or kind.
        """
        actions, talking = np.asarray(actions), self.talking(state)
        shape, words = (self.players, *state.round.shape), self.talk.alphabet is None
        if actions.shape != shape or actions.dtype.kind not in ("iuO" if words else "iu"):
            kind = "integers, or texts of those who speak," if words else "integers"
            raise IllegalAction(
                f"{self.name}: actions must be {kind} of shape {shape} (players first), got "
                f"{actions.dtype} of shape {actions.shape}"
            )
        if not any_true(talking):
            moves = actions_of(actions.tolist()) if actions.dtype.kind == "O" else actions
            return self._moved(state, moves)
        next_state, outcome = self._spoken(state, actions)
        if talking.all():
            return next_state, outcome
        moved_state, move_outcome = self._moved(state, self._moves(state, actions))
        for name in ("rewards", "finished", "broke"):
            both = np.where(talking, getattr(outcome, name), getattr(move_outcome, name))
            setattr(outcome, name, both)
        record = {**move_outcome.record, **outcome.record}
        record["actions"] = np.where(talking, record["actions"], move_outcome.record["actions"])
        outcome.record = record
        return moved_state.merged(next_state, talking), outcome

    def _moved(self, state: TalkState, moves: Array) -> tuple[TalkState, Outcome]:
        game, outcome = self.game.step(state.game, moves)
        next_state = state.replace(
            game=game, round=game.round, over=game.over, void=game.void, finished=outcome.finished
        )
        return self._turns.begun(next_state), outcome

    def _spoken(self, state: TalkState, actions: Array) -> tuple[TalkState, Outcome]:
        speaking, order = self._turns.speakers_now(state), state.order
        together = self.talk.mode == "together"
        count, hearing = int(speaking.sum(axis=0).max()), self._hearing
        speakers = order[:count] if together else [at(order, state.position)]
        audiences = [(np.asarray(seat), hearing.hearers(state, seat)) for seat in speakers]
        resolve = hearing.words if self.talk.alphabet is None else hearing.symbols
        speeches, changes = resolve(state, actions, speaking, audiences)
        none = np.zeros(speaking.shape)
        outcome = Outcome(none, state.finished, self._record(state, speeches, audiences), none > 0)
        return self._turns.gone_on(state.replace(**changes)), outcome

    def _record(self, state: TalkState, speeches: Array, audiences: Heard) -> dict[str, Any]:
        """Return the record of speeches; at one table also the hearers of each speaker."""
        record = {"actions": speeches, "turn": state.turn}
        if state.round.ndim:
            return {**record, "talking": self.talking(state)}
        hearers = np.full(self.players, None, object)
        hearers[:] = [[] for _ in range(self.players)]
        for speaker, audience in audiences:
            if speeches[speaker]:
                hearers[speaker] = np.flatnonzero(audience).tolist()
        return {"phase": np.array("talk"), **record, "hearers": hearers}

    # -- what is seen ----------------------------------------------------------------------------

    def known(self) -> Sequence[Fact]:
        facts = [*map(_inside, self.game.facts)]
        alphabet, turns = self.talk.alphabet, self.talk.turns
        if alphabet is None:
            return facts
        last_turn = turns if isinstance(turns, int) else max(turns)
        when = "turn of the talk that goes on, 0 before a move"
        facts.append(Fact("talk_turn", lambda state: state.turn, 0, last_turn, when, now=True))
        last = once(self._hearing.last_heard)
        for symbol in range(alphabet + 1):
            means = f"1: the other seat {{}} last said {symbol} in the talk of this round"
            is_last = partial(lambda state, symbol: last(state) == symbol, symbol=symbol)
            each = self.players - 1
            facts.append(Fact(f"said_{symbol}_by", is_last, 0, 1, means, each, now=True, first=1))
        return facts

    def recalled(self) -> Sequence[Fact]:
        return [*map(_inside, self.game.recalled())]

    def messages(self, state: TalkState) -> list[Utterance]:
        return self._hearing.messages(state)

    def heard(self, state: TalkState, seat: int) -> list[Utterance]:
        return self._hearing.heard(state, seat)

    def teller(self, state: TalkState) -> Callable[[int], dict[str, Any]]:
        """Tell what the game tells and, as ``talk``, the turn and the messages heard."""
        tell, names = self.game.teller(state.game), self.names_in_words()
        turn = int(state.turn)

        def told(seat: int) -> dict[str, Any]:
            messages = [
                {"round": line.round, "turn": line.turn, "seat": line.seat, "text": line.text}
                | {"name": names[line.seat], "own": line.seat == seat}
                for line in self.heard(state, seat)
            ]
            return tell(seat) | {"talk": {"turn": turn, "heard": messages}}

        return told

    def picture(self, state: TalkState) -> tuple[str, list[str], list[list[str]]]:
        caption, headers, rows = self.game.picture(state.game)
        if state.turn:
            caption = f"{caption}, turn {int(state.turn)} of the talk"
        return caption, headers, rows

    def passed(
        self, previous_state: TalkState, next_state: TalkState, record: Mapping[str, Array]
    ) -> Iterator[TalkState]:
        for game in self.game.passed(previous_state.game, next_state.game, record):
            yield next_state.replace(game=game, round=game.round, over=game.over)

    def image(self, state: TalkState, messages: Sequence[tuple[int, str]] = ()) -> Array:
        stored = self.messages(state)
        last = max((message.round for message in stored), default=0)
        shown = [(message.seat, message.text) for message in stored if message.round == last]
        return self.game.image(
            state.game, [pair for pair in messages or shown if pair[1]]
        )  # no silence


_ORDER = Draw("talk_order", lambda noise: noise.key, 0, FULL)
"""What all orders of a game are drawn from."""


def _inside(fact: Fact) -> Fact:
    """Return a fact of the game inside as one of the talk's states."""
    return fact._replace(of=lambda state: fact.of(state.game))
