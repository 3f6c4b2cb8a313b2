"""Any game in which all choose at once among a few actions, with a table of payoffs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import lcm
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import at, tall
from llm_games.disguise import Surface
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, param
from llm_games.games.matrix_game.game_presets import PRESETS
from llm_games.games.matrix_game.matrix_facts import all_facts
from llm_games.games.matrix_game.matrix_readings import (
    MEANINGLESS,
    called_of,
    labels_of,
    noise_of,
)
from llm_games.games.matrix_game.matrix_words import label, scene, shown, tell
from llm_games.games.matrix_game.payoff_reading import (
    PRISONERS_DILEMMA,
    Payoffs,
    ordinal_game,
    rows_by_count,
    table_of,
)
from llm_games.games.matrix_game.surface import SURFACE
from llm_games.questions import Choice
from llm_games.rounds import OpenRounds, OpenState, Paid, Seen
from llm_games.rulebook import Array, Chance, Goal, PerPlayer

FEW, MANY = 6, 1000  # players that are told one by one, and those of games by count


@dataclass(frozen=True)
class MatrixState(OpenState):
    """The last round's actions as played, and what was seen of all rounds.

    What was `seen` in it, `before` and `earlier` is ``(observers, players, *batch)``, `counts` have
    a further axis of actions; observers are one where all see the same. `earned` counts in units.
    """

    actions: PerPlayer
    seen: Array
    before: Array
    earlier: Array
    counts: Array
    slipped: PerPlayer
    earned: PerPlayer
    slip: Array
    shift: Array
    words: Array
    order: Array


@dataclass(frozen=True)
class MatrixGame(OpenRounds):
    """Matrix game. Source: von Neumann & Morgenstern 1944; Rapoport & Guyer 1966.

    Each round all choose an action, and a table says what each is paid. A missing or illegal action
    counts as the first of those whose worst payoff is best.
    """

    name: ClassVar[str] = "matrix_game"
    title: ClassVar[str] = "Matrix game"
    source: ClassVar[str] = "von Neumann & Morgenstern 1944"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    state_type: ClassVar[type[MatrixState]] = MatrixState
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    players: int = param(2, "number of players, as the payoffs have it", low=2, high=MANY)
    payoffs: Any = param(
        None,
        "table nested by each seat's action, with one payoff a seat; or of the first of two alike",
        none="the prisoner's dilemma 3 0; 5 1, if nothing else is given",
    )
    by_count: Any = param(
        None, "payoffs of two actions, by how many others play the first", none="no such table"
    )
    ordinal: Any = param(None, "one of the 144 ordinal games, 1 to 144", none="none of these")
    labels: Any = param("letters", "what actions are called: ``letters``, ``drawn``, or words")
    order: str = param(
        "fixed",
        "order of actions as shown",
        fixed="as given",
        reversed="last first",
        drawn="by seat",
    )
    noise: Fraction = param(Fraction(0), "how often a move, or its sight, slips", read=noise_of)
    noise_kind: str = param(
        "execution", "what slips", execution="moves", observation="sight; all is paid at the end"
    )
    reveal: str = param(
        "actions", "told after a round", actions="all", payoff="the own payoff", nothing="nothing"
    )
    history: int = param(1, "past rounds that the game tells again", low=0, high=2)
    called: Any = param(None, "name under which it is told", read=called_of, none="none")

    def check(self) -> None:
        super().check()
        tables = ("payoffs", "by_count", "ordinal")
        named = [name for name in tables if getattr(self, name) is not None]
        if len(named) > 1:
            raise BadParameter(f"give one of {', '.join(tables)} alone, got {' and '.join(named)}")
        if self.players > FEW and self.by_count is None:
            raise BadParameter(
                f"players must be at most {FEW}, or {MANY} with by_count, got {self.players}"
            )
        if self.sees_wrong and self.reveal == "payoff":
            raise BadParameter("reveal must not be payoff where sight slips: it tells actions")
        if self.sees_wrong and self.players > FEW:
            raise BadParameter(f"players must be at most {FEW} where sight slips: {self.players}")
        self.given_labels  # noqa: B018  # checks payoffs and labels

    # -- what is paid ------------------------------------------------------------------------------

    @cached_property
    def given(self) -> Payoffs:
        if self.by_count is not None:
            return rows_by_count("by_count", self.by_count, self.players)
        if self.ordinal is not None:
            if self.players != 2:
                raise BadParameter(f"ordinal games are for 2 players, got players={self.players}")
            return ordinal_game("ordinal", self.ordinal)
        table = PRISONERS_DILEMMA if self.payoffs is None else self.payoffs
        return table_of("payoffs", table, self.players)

    @property
    def largest(self) -> int:
        return self.rounds * max(map(abs, self.given.numbers), default=0)

    @cached_property
    def actions(self) -> tuple[int, ...]:
        return self.given.actions

    def paid(self, actions: PerPlayer) -> PerPlayer:
        return self.given.paid(actions) / self.given.unit

    @cached_property
    def span(self) -> tuple[float, float]:
        return min(self.given.numbers) / self.given.unit, max(self.given.numbers) / self.given.unit

    @property
    def stake(self) -> tuple[float, float]:
        return self.payable if self.sees_wrong else self.span

    @property
    def payable(self) -> tuple[float, float]:
        low, high = self.span
        return self.rounds * min(low, 0.0), self.rounds * max(high, 0.0)

    @property
    def seats_differ(self) -> str:
        return "" if self.given.alike else "because their payoffs differ"

    # -- chance --------------------------------------------------------------------------------

    @property
    def sees_wrong(self) -> bool:
        return self.noise > 0 and self.noise_kind == "observation"

    @property
    def slips(self) -> bool:
        return self.noise > 0 and self.noise_kind == "execution"

    def draws(self) -> Sequence[Draw]:
        draws, longest = list(super().draws()), max(self.actions)
        if self.noise:
            shape = (self.rounds, *(self.players,) * (2 if self.sees_wrong else 1))
            sides, turns = self.noise.denominator, lcm(*(count - 1 for count in self.actions))
            for name, count in (("slip", sides), ("shift", turns)):
                numbers = lambda noise, count=count: noise.integers(0, count, shape)
                draws.append(Draw(name, numbers, 0, count - 1))
        if self.labels == "drawn":
            words = len(MEANINGLESS)
            draws.append(
                Draw("words", lambda noise: noise.sample(words, longest), 0, words - 1, True)
            )
        if self.order == "drawn":
            drawn = lambda noise: noise.order(longest, (self.players,))
            draws.append(Draw("order", drawn, 0, longest - 1, True))
        return draws

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> MatrixState:
        n, longest, zeros = self.players, max(self.actions), partial(np.zeros, dtype=np.int64)
        observers = (n if self.sees_wrong else 1) * self.tells_each
        none = {name: zeros((0, *batch)) for name in ("slip", "shift", "words", "order")}
        counts = zeros((observers, n, longest, *batch))
        rounds = dict.fromkeys(("seen", "before", "earlier"), zeros((observers, n, *batch)))
        more = rounds | {"counts": counts, "slipped": bool}
        return self.first(MatrixState, batch, **(none | more | dict(chance)))

    def _turned(self, state: MatrixState, actions: Array, counts: Array) -> tuple[Array, Array]:
        """Return actions with the round's slips, and where there was one."""
        now = np.minimum(state.round, self.rounds - 1)
        slip = at(state.slip, now) < self.noise.numerator
        shifted = (actions + 1 + at(state.shift, now) % (counts - 1)) % counts
        return np.where(slip, shifted, actions), slip

    # -- a round -------------------------------------------------------------------------------

    def bounds(self) -> tuple[int, int]:
        return 0, max(self.actions) - 1

    @cached_property
    def same_limits(self) -> bool:
        return len(set(self.actions)) == 1

    @property
    def masked(self) -> bool:
        return not self.same_limits

    def highest_legal(self, state: MatrixState) -> PerPlayer:
        return self.each(np.array(self.actions) - 1, state.round.shape)

    def fallback(self, state: MatrixState) -> PerPlayer:
        return self.each(self.given.safe, state.round.shape)

    def pay(self, state: MatrixState, meant: PerPlayer, broke: PerPlayer) -> Paid:
        counts = tall(np.array(self.actions), state.round.shape)
        played, slipped = meant, state.slipped
        if self.slips:
            played, slipped = self._turned(state, meant, counts)
        units = self.given.paid(played)
        record = {"played": played, "payoffs": units / self.given.unit}
        changes = {"actions": played, "slipped": slipped}
        if self.tells_each:
            changes |= self._looked(state, played, counts)
        if not self.sees_wrong:
            return record["payoffs"], changes, record
        over, earned = self.ended(state, state.round + 1), state.earned + units
        return np.where(over, earned, 0) / self.given.unit, changes | {"earned": earned}, record

    def _looked(self, state: MatrixState, played: PerPlayer, counts: Array) -> dict[str, Array]:
        """Return what is seen after a round: of others perhaps what they did not play."""
        seen = played[None]
        if self.sees_wrong:
            wrong, _ = self._turned(state, seen, counts[None])
            own = np.eye(self.players, dtype=bool).reshape(*(self.players,) * 2, *counts.shape[1:])
            seen = np.where(own, seen, wrong)
        kinds = np.arange(max(self.actions)).reshape(-1, *counts.shape[1:])
        past = {"seen": seen, "before": state.seen, "earlier": state.before}
        return past | {"counts": state.counts + (seen[:, :, None] == kinds)}

    # -- what is told --------------------------------------------------------------------------

    @property
    def tells_each(self) -> bool:
        return self.reveal == "actions" and self.players <= FEW

    @cached_property
    def _told(self) -> tuple[str, ...]:
        """The facts that are told again, by name; rule players also remember the others."""
        if self.reveal == "nothing" or not self.history:
            return ()
        first = "seen" if self.tells_each else "first" if self.reveal == "actions" else ""
        return ("action", "payoff", "slipped", first, *["before"] * (self.history == 2))

    def known(self) -> Sequence[Fact]:
        return self.now, *(fact for name, fact in all_facts(self).items() if name in self._told)

    def recalled(self) -> Sequence[Fact]:
        return [fact for name, fact in all_facts(self).items() if name not in self._told]

    @cached_property
    def given_labels(self) -> tuple[tuple[str, ...], ...] | None:
        return labels_of("labels", self.labels, self.actions)

    @property
    def settled(self) -> bool:
        """Labels and order are known before a game."""
        return "drawn" not in (self.labels, self.order)

    def terms(self) -> dict[str, Any]:
        seats = range(self.players) if self.settled else ()
        scenes = [scene(self, None, seat) for seat in seats]
        more = {"scenes": scenes, "settled": self.settled, "others": self.players - 1}
        return super().terms() | more

    def teller(self, state: MatrixState) -> Callable[[int], dict[str, Any]]:
        return partial(tell, self, state)

    def asks(self, state: MatrixState, seat: int) -> Choice:
        words = label(self, state, seat)
        return Choice("action", {words[a]: a for a in shown(self, state, seat, seat)})

    def spectacle(self, state: MatrixState) -> Seen:
        if not state.round:
            blank = np.full(self.players, "")
            return "", {"action": (blank, ""), "payoff": (blank, "")}
        words = [label(self, state, i)[a] for i, a in enumerate(state.actions.tolist())]
        paid = self.paid(state.actions)
        return self.called or "", {"action": (np.array(words), ""), "payoff": (paid, "g")}
