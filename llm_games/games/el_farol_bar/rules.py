"""The El Farol bar: a night out is fun, unless too many others have the same idea."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer, exact_of, ratio_of
from llm_games.questions import Choice, Question
from llm_games.replies import bare
from llm_games.rulebook import Array, Outcome, Rulebook, State, fresh, side_by_side

STAY, GO = 0, 1


@dataclass(frozen=True)
class ElFarolBarState(State):
    """What a table looks like between rounds.

    Attributes:
        decisions: last round's, int64 ``(players, *batch)``, 1 = went; zeros before the first.
    """

    decisions: Array


@dataclass(frozen=True)
class ElFarolBar(Rulebook):
    """El Farol bar. Source: γ-Bench (arXiv 2403.11807), game 2; Arthur 1994; Huberman 1988.

    Each round everybody goes to the bar (1) or stays (0). The bar is good if at most the share
    `ratio` of all players goes. Payoff: `home` for staying, `max` for going to a good bar,
    `min` for going to a crowded one. A missing or illegal decision counts as staying.
    """

    name: ClassVar[str] = "el_farol_bar"
    title: ClassVar[str] = "El Farol bar"
    source: ClassVar[str] = "γ-Bench"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    rounds: int = 20
    """rounds of a run, known to the players, at least 1"""
    ratio: Fraction = Fraction(3, 5)
    """exact largest share of players with which the bar is still good, 0 to 1"""
    min: int | Fraction = 0
    """utility of going when it is crowded"""
    home: int | Fraction = 5
    """utility of staying, `min` to `max`; a dilemma only if strictly between"""
    max: int | Fraction = 10
    """utility of going when it is not crowded"""
    mode: str = "implicit"
    """``explicit``: everybody learns how many went; ``implicit``: see `implicit_report`"""
    implicit_report: str = "stayers_blind"
    """in implicit mode, ``stayers_blind``: only those who went learn how many did and whether it
    was worth it; ``no_count``: nobody learns how many, everybody whether it was worth it"""
    capacity_test: str = "exact"
    """``exact``: in integers; ``float``: the double goers/players against the double of `ratio`"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        object.__setattr__(self, "ratio", ratio_of("ratio", self.ratio, 0, 1))
        for name in ("min", "home", "max"):
            object.__setattr__(self, name, exact_of(name, getattr(self, name)))
        if not self.min <= self.home <= self.max:
            raise BadParameter(
                "utilities must satisfy min <= home <= max, "
                f"got min={self.min}, home={self.home}, max={self.max}"
            )
        check_choice("mode", self.mode, ("implicit", "explicit"))
        check_choice("implicit_report", self.implicit_report, ("stayers_blind", "no_count"))
        check_choice("capacity_test", self.capacity_test, ("exact", "float"))

    def bounds(self) -> tuple[int, int]:
        return STAY, GO

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> ElFarolBarState:
        return ElFarolBarState(
            **fresh(batch),
            decisions=np.zeros((self.players, *batch), np.int64),
        )

    def asked(self, state: ElFarolBarState) -> Array:
        return self.alive(state)

    def good(self, goers: Any) -> Any:
        """Return whether the bar is good with so many goers, elementwise."""
        if self.capacity_test == "float":
            return np.asarray(goers) / self.players <= float(self.ratio)
        return goers * self.ratio.denominator <= self.ratio.numerator * self.players

    def utility(self, decisions: Array) -> Array:
        """Return everybody's utility of a round, float64 ``(players, *batch)``."""
        going = np.where(self.good(decisions.sum(axis=0)), float(self.max), float(self.min))
        return np.where(decisions == GO, going, float(self.home))

    def play(
        self, state: ElFarolBarState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[ElFarolBarState, Outcome]:
        goers = actions.sum(axis=0)
        after = ElFarolBarState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            decisions=actions,
        )
        record = {"actions": actions, "goers": goers, "good": self.good(goers)}
        finished = self.everybody(after.over)
        return after, Outcome(self.utility(actions), finished, record)

    def _knows(self, decisions: Array) -> tuple[Array, Array]:
        """Return who learns the number of goers, and who learns whether going was better."""
        everybody = np.ones(decisions.shape, np.bool_)
        if self.mode == "explicit":
            return everybody, everybody
        if self.implicit_report == "no_count":
            return ~everybody, everybody
        return decisions == GO, decisions == GO

    def _better(self, goers: Any) -> Array:
        """Return 1 where going was more fun than staying, -1 where less, 0 where the same."""
        more, less = int(self.max > self.home), -int(self.min < self.home)
        return np.where(self.good(goers), more, less)

    def columns(self) -> tuple[Column, ...]:
        low, high = float(min(self.min, 0)), float(max(self.max, 0))
        return (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("went", 0, 1, "own decision last round, 1 = went"),
            Column("utility", low, high, "own utility of the last round"),
            Column("count_known", 0, 1, "1 if this player learned how many went"),
            Column("goers", 0, self.players, "players who went last round; 0 if not known"),
            Column("fun_known", 0, 1, "1 if this player learned whether going was more fun"),
            Column("fun", -1, 1, "going was more (1), less (-1) or as much fun; 0 if not known"),
        )

    def observe(self, state: ElFarolBarState) -> Array:
        decisions = state.decisions
        shape, goers = decisions.shape, decisions.sum(axis=0)
        begun = state.round > 0
        count, fun = self._knows(decisions)
        columns = [
            state.round + 1,
            decisions,
            begun * self.utility(decisions),
            begun & count,
            (begun & count) * goers,
            begun & fun,
            (begun & fun) * self._better(goers),
        ]
        return side_by_side(shape, columns)

    def told(self, state: ElFarolBarState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = None
        if done:
            goers = int(state.decisions.sum())
            count, fun = (bool(known[player]) for known in self._knows(state.decisions))
            last = {
                "round": done,
                "went": bool(state.decisions[player] == GO),
                "utility": float(self.utility(state.decisions)[player]),
                "goers": goers if count else None,
                "stayers": self.players - goers if count else None,
                "good": bool(self.good(goers)) if count else None,
                "fun": int(self._better(goers)) if fun else None,
            }
        return {"round": min(done + 1, self.rounds), "last": last}

    def terms(self) -> dict[str, Any]:
        capacity = sum(bool(self.good(goers)) for goers in range(1, self.players + 1))
        return super().terms() | {"capacity": capacity}

    def question(self, state: ElFarolBarState, player: int) -> Question | None:
        return None if state.over else Choice("decision", {"go": GO, "stay": STAY}, published=bare)

    def picture(self, state: ElFarolBarState) -> tuple[str, list[str], list[list[str]]]:
        headers = ["seat", "decision", "utility"]
        caption = f"{self.title}: round {int(state.round)} of {self.rounds}"
        if not state.round:
            return caption, headers, [[name, "", ""] for name in self.names()]
        goers = int(state.decisions.sum())
        caption += f", {goers} of {self.players} went, {'good' if self.good(goers) else 'crowded'}"
        rows = [
            [name, "go" if decision == GO else "stay", f"{utility:g}"]
            for name, decision, utility in zip(
                self.names(), state.decisions, self.utility(state.decisions), strict=True
            )
        ]
        return caption, headers, rows
