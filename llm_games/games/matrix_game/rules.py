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
from llm_games.exact_payoffs import ExactPayoffs
from llm_games.facts import Draw, Fact, param, share_below_1
from llm_games.games.matrix_game.matrix_payoffs import PRESETS, payoffs_from
from llm_games.games.matrix_game.matrix_words import MEANINGLESS, TableWords, called_of, labels_of
from llm_games.games.matrix_game.surface import SURFACE
from llm_games.questions import Choice
from llm_games.rounds import OpenRounds, OpenState, Paid, Seen
from llm_games.rulebook import Array, Chance, Goal, PerPlayer

MOST_NAMED, MOST_PLAYERS = 6, 1000  # players told of one by one; players of games by count


@dataclass(frozen=True)
class MatrixState(OpenState):
    """The last round's actions as played, and what was seen of all rounds.

    The sight of one, two and three rounds ago is ``(observers, players, *batch)``, `counts` have a
    further axis of actions; observers are one where all see the same. `earned` counts in units.
    """

    actions: PerPlayer
    sight_1: Array
    sight_2: Array
    sight_3: Array
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
    kept_by_presets: ClassVar[tuple[str, ...]] = "payoffs", "by_count", "continuation"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    players: int = param(2, "number of players, as the payoffs have it", low=2, high=MOST_PLAYERS)
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
    noise: Fraction = param(
        Fraction(0), "how often a move, or its sight, slips", read=share_below_1
    )
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
        if self.players > MOST_NAMED and self.by_count is None:
            raise BadParameter(
                f"players must be at most {MOST_NAMED}, or {MOST_PLAYERS} with by_count, got "
                f"{self.players}"
            )
        if self.sees_wrong and self.reveal == "payoff":
            raise BadParameter(
                "reveal must not be payoff where sight slips, as it tells actions: choose actions "
                "or nothing"
            )
        if self.sees_wrong and self.players > MOST_NAMED:
            limit = f"players must be at most {MOST_NAMED} where sight slips"
            raise BadParameter(f"{limit}, got {self.players}: choose fewer, or let moves slip")
        lists = set(self.settled_labels or ())
        if self.by_count is not None and len(lists) > 1:
            raise BadParameter(f"labels must be the same for all with by_count, got {self.labels}")

    # -- what is paid ------------------------------------------------------------------------------

    @cached_property
    def table(self) -> ExactPayoffs:
        return payoffs_from(self.players, self.payoffs, self.by_count, self.ordinal)

    @property
    def largest(self) -> int:
        return self.rounds * int(abs(self.table.numbers).max())

    @cached_property
    def actions(self) -> tuple[int, ...]:
        return self.table.actions

    @property
    def stake(self) -> tuple[float, float]:
        low, high = self.table.ends
        if self.sees_wrong:  # all rounds are paid at once
            return self.rounds * min(low, 0.0), self.rounds * max(high, 0.0)
        return low, high

    @property
    def payable(self) -> tuple[float, float]:
        return self.stake if self.sees_wrong else super().payable

    @property
    def seats_differ(self) -> str:
        return "" if self.table.alike else "because their payoffs differ"

    # -- chance ------------------------------------------------------------------------------------

    sees_wrong = property(lambda self: self.noise > 0 and self.noise_kind == "observation")
    slips = property(lambda self: self.noise > 0 and self.noise_kind == "execution")

    def draws(self) -> Sequence[Draw]:
        draws, longest = list(super().draws()), max(self.actions)
        if self.noise:
            shape = (self.rounds, *(self.players,) * (2 if self.sees_wrong else 1))
            turns = lcm(*(count - 1 for count in self.actions))
            for name, count in (("slip", self.noise.denominator), ("shift", turns)):
                numbers = lambda noise, count=count: noise.integers(0, count, shape)
                draws.append(Draw(name, numbers, 0, count - 1))
        if self.labels == "drawn":
            sample = lambda noise: noise.sample(len(MEANINGLESS), longest)
            draws.append(Draw("words", sample, 0, len(MEANINGLESS) - 1, True))
        if self.order == "drawn":
            order = lambda noise: noise.order(longest, (self.players,))
            draws.append(Draw("order", order, 0, longest - 1, True))
        return draws

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> MatrixState:
        seats = (self.players if self.sees_wrong else 1) * self.tells_each, self.players
        zeros = partial(np.zeros, dtype=np.int64)
        start = dict.fromkeys(("slip", "shift", "words", "order"), zeros((0, *batch)))
        start |= dict.fromkeys(("sight_1", "sight_2", "sight_3"), zeros((*seats, *batch)))
        start |= {"counts": zeros((*seats, max(self.actions), *batch)), **chance}
        return self.first(MatrixState, batch, slipped=bool, **start)

    def _with_slips(self, state: MatrixState, actions: Array, counts: Array) -> tuple[Array, Array]:
        """Return actions with the round's slips, and where there was one."""
        index = np.minimum(state.round, self.rounds - 1)
        slip = at(state.slip, index) < self.noise.numerator
        shifted = (actions + 1 + at(state.shift, index) % (counts - 1)) % counts
        return np.where(slip, shifted, actions), slip

    # -- a round -----------------------------------------------------------------------------------

    def bounds(self) -> tuple[int, int]:
        return 0, max(self.actions) - 1

    @cached_property
    def same_limits(self) -> bool:
        return len(set(self.actions)) == 1

    picks = property(lambda self: not self.same_limits)

    def highest_legal(self, state: MatrixState) -> PerPlayer:
        return self.each(np.array(self.actions) - 1, state.round.shape)

    def fallback(self, state: MatrixState) -> PerPlayer:
        return self.each(self.table.safe, state.round.shape)

    def pay(self, state: MatrixState, meant: PerPlayer, broke: PerPlayer) -> Paid:
        counts = tall(np.array(self.actions), state.round.shape)
        played, slipped = meant, state.slipped
        if self.slips:
            played, slipped = self._with_slips(state, meant, counts)
        units = self.table.of(played)
        record = {"played": played, "payoffs": units / self.table.unit}
        changes = {"actions": played, "slipped": slipped}
        if self.tells_each:
            sight = played[None]
            if self.sees_wrong:
                wrong, _ = self._with_slips(state, sight, counts[None])
                itself = np.eye(self.players, dtype=bool).reshape(-1, *counts.shape)
                sight = np.where(itself, sight, wrong)
            kinds = np.arange(max(self.actions)).reshape(-1, *counts.shape[1:])
            changes |= {"sight_1": sight, "sight_2": state.sight_1, "sight_3": state.sight_2}
            changes["counts"] = state.counts + (sight[:, :, None] == kinds)
        if not self.sees_wrong:
            return record["payoffs"], changes, record
        over, earned = self.ended(state, state.round + 1), state.earned + units
        return np.where(over, earned, 0) / self.table.unit, changes | {"earned": earned}, record

    # -- what is told ------------------------------------------------------------------------------

    tells_each = property(lambda self: self.reveal == "actions" and self.players <= MOST_NAMED)

    @cached_property
    def _past(self) -> tuple[list[Fact], list[Fact]]:
        """What is told again of past rounds, and what else rule players remember."""
        high, seats = self.bounds()[1], range(self.players)
        actions = lambda s: s.sight_1[0] if self.tells_each else s.actions
        if self.sees_wrong and self.tells_each:
            actions = lambda s: np.stack([s.sight_1[seat, seat] for seat in seats])
        facts = [Fact("action", actions, 0, high, "own action of the last round, from 0")]
        if not self.sees_wrong:
            payoff = lambda s: self.table.paid(s.actions) * (s.round > 0)
            low, top = min(self.stake[0], 0.0), max(self.stake[1], 0.0)
            facts.append(Fact("payoff", payoff, low, top, "own payoff of the last round"))
        if self.slips:
            slipped = lambda s: s.slipped
            facts.append(Fact("slipped", slipped, 0, 1, "1 if it was not what one meant"))
        if self.reveal == "actions" and not self.tells_each:
            first = lambda s: (s.actions == 0).sum(axis=0) * (s.round > 0)
            facts.append(Fact("first", first, 0, self.players, "players of action 0 in it"))
        if self.tells_each:
            of_each = lambda sight: np.swapaxes(sight, 0, 1) if self.sees_wrong else sight[0]
            for ago, name in enumerate(("seen", "before", "earlier"), 1):
                sight = lambda s, ago=ago: of_each(getattr(s, f"sight_{ago}"))
                meaning = f"action of seat {{}} as seen, {ago} rounds ago"
                facts.append(Fact(name, sight, 0, high, meaning, True))
            for seat in seats:
                counts = lambda s, seat=seat: of_each(s.counts[:, seat])
                meaning = f"times that seat {seat} was seen to play action {{}}"
                facts.append(Fact(f"count_{seat}", counts, 0, self.rounds, meaning, high + 1))
        names = ("action", "payoff", "slipped", "first", "seen", "before")[: 4 + self.history]
        names = names if self.history and self.reveal != "nothing" else ()
        return [f for f in facts if f.name in names], [f for f in facts if f.name not in names]

    def known(self) -> Sequence[Fact]:
        return self.now, *self._past[0]

    def recalled(self) -> Sequence[Fact]:
        return self._past[1] if self.reveal != "nothing" else ()

    @cached_property
    def settled_labels(self) -> tuple[tuple[str, ...], ...] | None:
        return labels_of("labels", self.labels, self.actions)

    @property
    def settled(self) -> bool:
        """Labels and order are known before a game."""
        return "drawn" not in (self.labels, self.order)

    def terms(self) -> dict[str, Any]:
        seats = range(self.players) if self.settled else ()
        scenes = [TableWords(self).scene(seat) for seat in seats]
        terms = {"scenes": scenes, "settled": self.settled, "others": self.players - 1}
        return super().terms() | terms

    def teller(self, state: MatrixState) -> Callable[[int], dict[str, Any]]:
        facts = {fact.name: fact.of(state) for fact in self.facts}
        return partial(TableWords(self, state).tell, facts)

    def asks(self, state: MatrixState, seat: int) -> Choice:
        words = TableWords(self, state)
        labels = words.labels(seat)
        return Choice("action", {labels[k]: k for k in words.menu(seat, seat)})

    def spectacle(self, state: MatrixState) -> Seen:
        if not state.round:
            blank = np.full(self.players, ""), ""
            return "", {"action": blank, "payoff": blank}
        words = TableWords(self, state)
        labels = [words.labels(i)[action] for i, action in enumerate(state.actions.tolist())]
        payoffs = self.table.paid(state.actions)
        return self.called or "", {"action": (np.array(labels), ""), "payoff": (payoffs, "g")}
