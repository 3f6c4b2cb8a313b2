"""The parameters of a talk: when it takes place, who speaks, and who hears it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter
from llm_games.facts import check_integer, check_parameters, exact_of, param, rounds_shown
from llm_games.questions import Action, Integer, Question, Speech, alike
from llm_games.rulebook import Rulebook

MOST_SYMBOLS = 1000


def _turns(name: str, value: Any) -> int | tuple[int, ...]:
    for turns in (each := value if isinstance(value, tuple) else (value,)):
        check_integer(f"{name}, or each of them,", turns, 0, 10**6)
    whole = tuple(map(int, each))
    return whole if isinstance(value, tuple) else whole[0]


def _seats(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise BadParameter(f"{name} must be a list of seats, such as [0, 2], got {value!r}")
    for seat in value:
        check_integer(f"each of the {name}", seat, 0)
    if len({*value}) < len(value):
        raise BadParameter(f"{name} must name each seat once, got {list(value)}")
    return tuple(map(int, value))


def _one_of(*words: str) -> Callable[[str, Any], Any]:
    """Return a reader of one of these words, or of a list of seats."""

    def read(name: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return _seats(name, value)
        if value not in words:
            choices = ", ".join(map(repr, words))
            raise BadParameter(f"{name} must be {choices} or a list of seats, got {value!r}")
        return value

    return read


def _audience(name: str, value: Any) -> Any:
    if isinstance(value, str) and value in ("all", "radius", "groups"):
        return value
    rows = value if isinstance(value, tuple) else (value,)
    square = all(isinstance(row, tuple) and len(row) == len(rows) for row in rows)
    if not square or any(entry not in (0, 1) for row in rows for entry in row):
        raise BadParameter(
            f'{name} must be "all", "radius", "groups" or a matrix of 0 and 1 with a row for '
            f"each speaker that says who hears it, got {value!r}"
        )
    return tuple(tuple(map(int, row)) for row in rows)


def _radius(name: str, value: Any) -> Any:
    radius = exact_of(name, value)
    if radius < 0:
        raise BadParameter(f"{name} must be at least 0, got {value!r}")
    return radius


def _groups(name: str, value: Any) -> Any:
    if not isinstance(value, tuple) or not all(isinstance(g, str | int) for g in value):
        raise BadParameter(
            f'{name} must be a label for each player, such as ["a", "a", "b"], got {value!r}'
        )
    return value


@dataclass(frozen=True)
class Talk:
    """The parameters of a talk; a bad one raises BadParameter with its name."""

    turns: int | tuple[int, ...] = param(
        0, "passes before the decision of a round, or one number for each round", read=_turns
    )
    order: str | tuple[int, ...] = param(
        "shuffled",
        "who speaks when: ``shuffled`` anew for each turn, ``shuffled_per_round`` once for all "
        "turns of a round, ``fixed`` by seat, or a list of all seats",
        read=_one_of("shuffled", "shuffled_per_round", "fixed"),
    )
    mode: str = param(
        "one_by_one",
        "whether speakers hear each other within a turn",
        one_by_one="each hears all who spoke before",
        together="all write at the same moment and hear earlier turns only",
    )
    speakers: str | tuple[int, ...] = param(
        "all",
        "who speaks, of those in the game: ``all``, ``deciders`` (who take part in the decision "
        "that follows), or a list of seats",
        read=_one_of("all", "deciders"),
    )
    silent: tuple[int, ...] = param((), "seats that never speak, but hear", read=_seats)
    audience: Any = param(
        "all",
        "who hears a speaker: ``all``, ``radius`` (those near), ``groups`` (those of the same "
        "label), or a matrix with a row for each speaker",
        read=_audience,
    )
    radius: Any = param(5, "how far a speaker is heard, the boundary included", read=_radius)
    groups: tuple[Any, ...] | None = param(
        None, "a label for each player", read=_groups, none="there are none"
    )
    heard_order: str = param(
        "time",
        "in which order is listed what was heard",
        time="as it was said",
        nearest="by the speaker's present distance",
    )
    own: str = param(
        "shown",
        "own messages among those listed",
        words={"shown": "with the others'", "hidden": "left out"},
    )
    memory: int | str = param(
        0, "earlier rounds of talk that stay listed, or ``all``", read=rounds_shown
    )
    words: int | None = param(None, "longest message, in words", low=1, none="no limit")
    numbers: str = param(
        "free",
        "numbers in messages",
        free="as anything else",
        discouraged="speakers are asked to use none; nothing is changed",
    )
    alphabet: int | None = param(
        None,
        "messages are symbols, 1 to this number, and 0 is silence",
        low=1,
        high=MOST_SYMBOLS,
        none="messages are words",
    )
    announce: bool = param(True, "whether the rules tell of turns and of who hears whom")
    reasks: int = param(0, "how often what cannot be read is asked for again", low=0, high=100)

    def __post_init__(self) -> None:
        """Check each parameter by itself."""
        try:
            check_parameters(self)
        except BadParameter as error:
            raise BadParameter(f"talk: {error}") from None

    @property
    def silence(self) -> Action:
        return "" if self.alphabet is None else 0

    @property
    def question(self) -> Question:
        if self.alphabet is None:
            return Speech(most_words=self.words)
        return alike(Integer, "speech", 0, self.alphabet)

    def turns_of(self, rounds: Any) -> Any:
        """Return the number of turns before the decision of rounds, which count from 0."""
        if isinstance(self.turns, int):
            return np.full(np.shape(rounds), self.turns)
        every = np.array([*self.turns, 0])
        return every[np.clip(rounds, 0, len(self.turns))]

    def check(self, game: Rulebook) -> None:
        """Raise BadParameter if this talk does not fit a game."""
        n, text = game.players, f"{game.name} with {game.players} players"
        if game.wordless:
            raise BadParameter(f"talk cannot be placed in {game.name}: {game.wordless}")
        if n < 2:
            raise BadParameter(f'talk needs somebody who hears, got {text}: talk={{"turns": 0}}')
        rounds = getattr(game, "rounds", None)
        if isinstance(self.turns, tuple) and isinstance(rounds, int) and len(self.turns) != rounds:
            raise BadParameter(
                f"talk: turns must be one number, or one for each of {rounds} rounds, got "
                f"{len(self.turns)}"
            )
        self._check_seats(n)
        rule = "radius" if self.audience == "radius" else "nearest"
        needs_positions = rule == "radius" or self.heard_order == "nearest"
        if needs_positions and type(game).positions is Rulebook.positions:
            raise BadParameter(f'talk: "{rule}" needs positions, which {game.name} does not have')
        self._check_audience(n)

    def _check_seats(self, n: int) -> None:
        for name in ("speakers", "silent", "order"):
            seats = getattr(self, name)
            if isinstance(seats, tuple) and max(seats, default=0) >= n:
                raise BadParameter(f"talk: {name} must be seats 0 to {n - 1}, got {max(seats)}")
        if isinstance(self.order, tuple) and len(self.order) != n:
            raise BadParameter(f"talk: order must name all {n} seats, got {list(self.order)}")

    def _check_audience(self, n: int) -> None:
        if self.groups is not None and self.audience != "groups":
            raise BadParameter(
                'talk: groups are for audience = "groups": say so, or leave them out'
            )
        if self.audience == "groups" and len(self.groups or ()) != n:
            got = "none" if self.groups is None else len(self.groups)
            raise BadParameter(f"talk: groups must be {n} labels, one for each player, got {got}")
        if isinstance(self.audience, tuple) and len(self.audience) != n:
            raise BadParameter(
                f"talk: audience must have {n} rows of {n}, one for each player, got "
                f"{len(self.audience)}"
            )
        speaks = self.may_speak(n)
        if not speaks.any():
            raise BadParameter("talk: speakers and silent leave nobody who speaks")
        matrix = self.reach(n)
        if matrix is not None and not matrix[speaks].any():
            raise BadParameter("talk: audience names nobody who would hear a speaker")

    def may_speak(self, players: int) -> Array:
        seats = np.arange(players)
        named = np.isin(seats, self.speakers) if isinstance(self.speakers, tuple) else True
        return named & ~np.isin(seats, self.silent)

    def reach(self, players: int) -> Array | None:
        """Return who hears whom, bool ``(speakers, listeners)``; None if distances decide."""
        if self.audience == "radius":
            return None
        if self.audience == "groups":
            assert self.groups is not None, "checked before"
            codes = [self.groups.index(label) for label in self.groups]
            matrix = np.equal.outer(codes, codes)
        elif self.audience == "all":
            matrix = np.ones((players, players), np.bool_)
        else:
            matrix = np.array(self.audience, np.bool_)
        return matrix & ~np.eye(players, dtype=np.bool_)
