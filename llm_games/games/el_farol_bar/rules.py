"""The El Farol bar: a night out is fun, unless too many others have the same idea."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from llm_games.disguise import Surface
from llm_games.errors import BadParameter
from llm_games.facts import Fact, exact_of, once, param, ratio_of
from llm_games.games.el_farol_bar.surface import SURFACE
from llm_games.questions import Choice
from llm_games.replies import bare
from llm_games.rounds import LastActions, Paid, Rounds, Seen
from llm_games.rulebook import Goal, PerPlayer, PerTable

STAY, GO = 0, 1
_DECISION = Choice("decision", {"go": GO, "stay": STAY}, published=bare)


@dataclass(frozen=True)
class ElFarolBar(Rounds):
    """El Farol bar. Source: γ-Bench (arXiv 2403.11807), game 2; Arthur 1994; Huberman 1988.

    Each round everybody goes to the bar (1) or stays (0). The bar is good if at most the share
    `ratio` of all players goes. Payoff: `home` for staying, `max` for going to a good bar,
    `min` for going to a crowded one. A missing or illegal decision counts as staying.
    """

    name: ClassVar[str] = "el_farol_bar"
    title: ClassVar[str] = "El Farol bar"
    source: ClassVar[str] = "γ-Bench"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {"capacity_test": "float"},
    }

    ratio: Fraction = param(
        Fraction(3, 5), "largest share in a good bar", read=partial(ratio_of, high=1)
    )
    min: int | Fraction = param(0, "utility of going when it is crowded", read=exact_of)
    home: int | Fraction = param(5, "utility of staying, `min` to `max`", read=exact_of)
    max: int | Fraction = param(10, "utility of going when it is not crowded", read=exact_of)
    mode: str = param("implicit", implicit="see `implicit_report`", explicit="all learn the count")
    implicit_report: str = param(
        "stayers_blind",
        "in implicit mode",
        stayers_blind="only those who went learn how many did, and whether it was worth it",
        no_count="nobody learns how many, everybody whether it was worth it",
    )
    hint: bool = param(
        True, "requests say when going pays, where it does so from an even chance of a good bar on"
    )
    capacity_test: str = param(
        "exact", exact="in integers", float="goers/players in doubles", stakes="changed"
    )

    def check(self) -> None:
        if not self.min <= self.home <= self.max:
            raise BadParameter(
                "utilities must satisfy min <= home <= max, "
                f"got min={self.min}, home={self.home}, max={self.max}"
            )

    @property
    def largest(self) -> int:
        exact = self.capacity_test == "exact"
        return self.players * (max(self.ratio.as_integer_ratio()) if exact else 1)

    def bounds(self) -> tuple[int, int]:
        return STAY, GO

    def good(self, goers: Any) -> Any:
        if self.capacity_test == "float":
            return goers / self.players <= float(self.ratio)
        return goers * self.ratio.denominator <= self.ratio.numerator * self.players

    def utility(self, decisions: PerPlayer, good: PerTable) -> PerPlayer:
        going = np.where(good, float(self.max), float(self.min))
        return np.where(decisions == GO, going, float(self.home))

    def pay(self, state: LastActions, decisions: PerPlayer, broke: PerPlayer) -> Paid:
        goers = decisions.sum(axis=0)
        record = {"goers": goers, "good": self.good(goers)}
        return self.utility(decisions, record["good"]), {"actions": decisions}, record

    def known(self) -> Sequence[Fact]:
        low, high = float(min(self.min, 0)), float(max(self.max, 0))
        explicit, blind = self.mode == "explicit", self.implicit_report == "stayers_blind"
        hears = lambda s, told_all: (s.round > 0) & (told_all | (s.actions == GO))
        count = once(lambda s: hears(s, explicit) & (explicit | blind))
        fun = once(lambda s: hears(s, explicit or not blind))
        goers = once(lambda s: s.actions.sum(axis=0))
        good = once(lambda s: self.good(goers(s)))
        utility = lambda s: (s.round > 0) * self.utility(s.actions, good(s))
        gain, loss = int(self.max > self.home), -int(self.min < self.home)
        better = lambda s: fun(s) * np.where(good(s), gain, loss)
        return (
            self.now,
            Fact("went", lambda s: s.actions, 0, 1, "own decision last round, 1 = went"),
            Fact("utility", utility, low, high, "own utility of the last round"),
            Fact("count_known", count, 0, 1, "1 if this player learned how many went"),
            Fact("goers", lambda s: count(s) * goers(s), 0, self.players,
                 "players who went last round; 0 if not known"),
            Fact("fun_known", fun, 0, 1, "1 if this player learned whether going was more fun"),
            Fact("fun", better, -1, 1,
                 "going was more (1), less (-1) or as much fun; 0 if not known"),
        )  # fmt: skip

    def in_words(self, last: dict[str, Any]) -> dict[str, Any]:
        count, fun = last.pop("count_known"), last.pop("fun_known")
        goers: Any = last["goers"] if count else None
        return last | {
            "went": bool(last["went"]),
            "goers": goers,
            "stayers": self.players - goers if count else None,
            "good": bool(self.good(goers)) if count else None,
            "fun": last["fun"] if fun else None,
        }

    def terms(self) -> dict[str, Any]:
        capacity = sum(bool(self.good(goers)) for goers in range(1, self.players + 1))
        even = self.min < self.max and 2 * self.home == self.min + self.max
        return super().terms() | {"capacity": capacity, "advised": self.hint and even}

    @property
    def stake(self) -> tuple[float, float]:
        pays = [*map(float, (self.min, self.max, self.home))]
        return min(pays), max(pays)

    def asks(self, state: LastActions, seat: int) -> Choice:
        return _DECISION

    def spectacle(self, state: LastActions) -> Seen:
        goers, blank = int(state.actions.sum()), (np.full(self.players, ""), "")
        if not state.round:
            return "", {"decision": blank, "utility": blank}
        good = self.good(goers)
        caption = f"{goers} of {self.players} went, {'good' if good else 'crowded'}"
        decisions = np.where(state.actions == GO, "go", "stay")
        utility = self.utility(state.actions, good)
        return caption, {"decision": (decisions, ""), "utility": (utility, "g")}
