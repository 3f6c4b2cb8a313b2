"""The rules of a game whose players talk: the game's own, and a step for each speech."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from llm_games.arrays import Array, any_true, at
from llm_games.errors import IllegalAction
from llm_games.facts import Draw, Fact, once
from llm_games.noise import FULL, Noise
from llm_games.questions import Action, Question, within_int64
from llm_games.rulebook import Chance, Outcome, PerPlayer, PerTable, Played, Rulebook, actions_of
from llm_games.talk.hearing import Heard, Hearing
from llm_games.talk.parameters import Talk
from llm_games.talk.turns import TalkState, Turns, Utterance


def _own(name: str) -> Any:
    """Return a method that asks the game inside, which has no state."""

    def method(self: Talking, *arguments: Any) -> Any:
        return getattr(self.game, name)(*arguments)

    return method


def _of_state(name: str) -> Any:
    """Return a method that asks the game inside about its own state."""

    def method(self: Talking, state: TalkState, *arguments: Any) -> Any:
        return getattr(self.game, name)(state.game, *arguments)

    return method


def _attribute(name: str) -> Any:
    """Return a property that is the game's inside."""
    return property(lambda self: getattr(self.game, name))


_SAID = (
    *("name", "title", "source", "turns", "presets", "fewest_players", "edition", "lasting"),
    *("idle", "mends", "personal", "narrows", "picks", "decline", "steps"),
    *("players", "failed_reply"),
)
"""What a game says by its class, or else as a plain attribute."""


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class Talking(Rulebook):
    """A game whose players may talk: all of the game is as it is without, but for who is asked.

    `core` is the game inside, and what a game says of itself is what that one says. Whoever plays,
    judges or scores games of this kind is handed the core (`Rulebook.core`, `Sight.core`,
    `View.core`); what looks through an environment sees who speaks.
    """

    game: Rulebook
    talk: Talk

    def __init__(self, game: Rulebook, talk: Talk) -> None:
        """Let the players of a game talk; BadParameter if it cannot be placed there."""
        talk.check(game)
        held = {"game": game, "talk": talk}
        held |= {name: getattr(game, name) for name in _SAID}
        self.__dict__.update(held)

    def __reduce__(self) -> tuple[Any, ...]:
        return Talking, (self.game, self.talk)

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{f.name}={getattr(self.talk, f.name)!r}"
            for f in dataclasses.fields(Talk)
            if getattr(self.talk, f.name) != f.default
        )
        return f"Talking({self.game!r}, Talk({changed}))"

    def __getattr__(self, name: str) -> Any:
        """Return a parameter of the game inside."""
        if name.startswith("__") or "game" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.game, name)

    bounds, goal, terms, names = map(_own, ("bounds", "goal", "terms", "names"))
    attempts, space, drafted, lasts = map(_own, ("attempts", "space", "drafted", "lasts"))
    alive, positions, speakers, hears = map(_of_state, ("alive", "positions", "speakers", "hears"))
    voices = _of_state("voices")
    highest_legal, fallback, mask = map(_of_state, ("highest_legal", "fallback", "mask"))
    decode, asides = map(_of_state, ("decode", "asides"))
    largest, same_limits, masked = map(_attribute, ("largest", "same_limits", "masked"))
    division, unit, seats_differ = map(_attribute, ("division", "unit", "seats_differ"))
    shown_last, grid, begun = map(_attribute, ("shown_last", "grid", "begun"))

    @property
    def core(self) -> Rulebook:
        return self.game

    @property
    def symbols(self) -> int:
        """How many symbols can be said, silence among them; 0 where talk is in words."""
        return 0 if self.talk.alphabet is None else self.talk.alphabet + 1

    def inside(self, state: TalkState) -> Any:
        return state.game

    def length(self) -> int | None:
        """Return the game's own steps and at most so many speeches."""
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
        own, drawn = given, np.asarray(_ORDER.of(noise.of(_ORDER.name)))
        if isinstance(given, Mapping) and _ORDER.name in given:
            drawn = _ORDER.given(given[_ORDER.name], drawn)
            own = {name: value for name, value in given.items() if name != _ORDER.name}
        return self.game.chance(noise, own) | {_ORDER.name: drawn}

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> TalkState:
        own = {name: value for name, value in chance.items() if name != _ORDER.name}
        game = self.game.begin(own, batch)
        symbols = self.players if self.symbols else 0
        said = np.empty(batch, object)
        said.fill(())
        state = TalkState(
            game.round,
            game.over,
            game.void,
            game,
            turn=np.zeros(batch, np.int64),
            place=np.zeros(batch, np.int64),
            order=np.full((self.players, *batch), -1),
            talked=np.full(batch, -1),
            key=chance[_ORDER.name],
            mute=np.zeros((self.players, *batch), np.bool_),
            finished=self.everybody(game.over),
            symbols=np.zeros((symbols, *batch), np.int64),
            hearers=np.zeros((symbols, symbols, *batch), np.bool_),
            said=said,
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
        return np.where(talking, self._turns.now(state), self.game.asked(state.game))

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
        said = np.full(self.players, self.talk.silence, object if words else np.int64)
        for seat, move in moves.items():
            if words:
                said[seat] = move
            elif isinstance(move, int):
                said[seat] = within_int64(move)
        return said

    def breaks(self, state: TalkState, actions: Array) -> Array:
        """Return whose move is against the rules; no speech is."""
        moves = self._moves(state, actions)
        return self.game.breaks(state.game, moves) & ~self.talking(state)

    def _moves(self, state: TalkState, actions: Array) -> Array:
        """Return the game's own moves, those of tables that talk being its fallback."""
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
        """Let the tables that talk hear a speech, or a turn's, and play a step of the others.

        `actions` are integers ``(players, *batch)``, or objects of which words are texts. What is
        no text, or no symbol, is silence.

        Raises:
            IllegalAction: `actions` are of another shape or kind.
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
        after, outcome = self._spoken(state, actions)
        if talking.all():
            return after, outcome
        moved, played = self._moved(state, self._moves(state, actions))
        for name in ("rewards", "finished", "broke"):
            both = np.where(talking, getattr(outcome, name), getattr(played, name))
            setattr(outcome, name, both)
        record = {**played.record, **outcome.record}
        record["actions"] = np.where(talking, record["actions"], played.record["actions"])
        outcome.record = record
        return moved.merged(after, talking), outcome

    def _moved(self, state: TalkState, moves: Array) -> tuple[TalkState, Outcome]:
        """Play a step of the game."""
        game, outcome = self.game.step(state.game, moves)
        after = state.replace(
            game=game, round=game.round, over=game.over, void=game.void, finished=outcome.finished
        )
        return self._turns.begun(after), outcome

    def _spoken(self, state: TalkState, actions: Array) -> tuple[TalkState, Outcome]:
        """Hear what is said at the tables that talk."""
        now, order = self._turns.now(state), state.order
        together = self.talk.mode == "together"
        speakers = order[: int(now.sum(axis=0).max())] if together else [at(order, state.place)]
        heard = [
            (np.asarray(speaker), self._hearing.hearers(state, speaker)) for speaker in speakers
        ]
        if self.talk.alphabet is None:
            said, changes = self._hearing.words(state, actions, now, heard)
        else:
            said, changes = self._hearing.symbols(state, actions, now, heard)
        none = np.zeros(now.shape)
        outcome = Outcome(none, state.finished, self._record(state, said, heard), none > 0)
        return self._turns.gone_on(state.replace(**changes)), outcome

    def _record(self, state: TalkState, said: Array, heard: Heard) -> dict[str, Any]:
        """Return what is recorded of a speech; of one table, who hears it, too, by speaker."""
        record = {"actions": said, "turn": state.turn}
        if state.round.ndim:
            return {**record, "talking": self.talking(state)}
        hearers = np.full(self.players, None, object)
        hearers[:] = [[] for _ in range(self.players)]
        for speaker, row in heard:
            if said[speaker]:
                hearers[speaker] = np.flatnonzero(row).tolist()
        return {"phase": np.array("talk"), **record, "hearers": hearers}

    # -- what is seen ----------------------------------------------------------------------------

    def known(self) -> Sequence[Fact]:
        facts = [*map(_inside, self.game.facts)]
        alphabet, turns = self.talk.alphabet, self.talk.turns
        if alphabet is None:
            return facts
        most = turns if isinstance(turns, int) else max(turns)
        when = "turn of the talk that goes on, 0 before a move"
        facts.append(Fact("talk_turn", lambda state: state.turn, 0, most, when, now=True))
        last = once(self._hearing.last_heard)
        for symbol in range(alphabet + 1):
            means = f"1: the other seat {{}} last said {symbol} in the talk of this round"
            said = partial(lambda state, symbol: last(state) == symbol, symbol=symbol)
            each = self.players - 1
            facts.append(Fact(f"said_{symbol}_by", said, 0, 1, means, each, now=True, first=1))
        return facts

    def recalled(self) -> Sequence[Fact]:
        return [*map(_inside, self.game.recalled())]

    def messages(self, state: TalkState) -> list[Utterance]:
        """Return what is kept of the talk of one table, see `Hearing.messages`."""
        return self._hearing.messages(state)

    def heard(self, state: TalkState, seat: int) -> list[Utterance]:
        """Return what a seat of one table is shown of the talk, see `Hearing.heard`."""
        return self._hearing.heard(state, seat)

    def teller(self, state: TalkState) -> Callable[[int], dict[str, Any]]:
        """Tell what the game does and, as ``talk``, what goes on and what was heard."""
        tell, names = self.game.teller(state.game), self.names()
        turn = int(state.turn)

        def told(seat: int) -> dict[str, Any]:
            heard = [
                {"round": one.round, "turn": one.turn, "seat": one.seat, "text": one.text}
                | {"name": names[one.seat], "own": one.seat == seat}
                for one in self.heard(state, seat)
            ]
            return tell(seat) | {"talk": {"turn": turn, "heard": heard}}

        return told

    def picture(self, state: TalkState) -> tuple[str, list[str], list[list[str]]]:
        caption, headers, rows = self.game.picture(state.game)
        if state.turn:
            caption = f"{caption}, turn {int(state.turn)} of the talk"
        return caption, headers, rows

    def passed(
        self, before: TalkState, after: TalkState, record: Mapping[str, Array]
    ) -> Iterator[TalkState]:
        for game in self.game.passed(before.game, after.game, record):
            yield after.replace(game=game, round=game.round, over=game.over)

    def image(self, state: TalkState, said: Sequence[tuple[int, str]] = ()) -> Array:
        kept = self.messages(state)
        last = max((one.round for one in kept), default=0)
        heard = [(one.seat, one.text) for one in kept if one.round == last]
        return self.game.image(state.game, [one for one in said or heard if one[1]])  # no silence


_ORDER = Draw("talk_order", lambda noise: noise.key, 0, FULL)
"""What all orders of a game are drawn from."""


def _inside(fact: Fact) -> Fact:
    """Return a fact of the game inside as one of the talk's states."""
    return fact._replace(of=lambda state: fact.of(state.game))
