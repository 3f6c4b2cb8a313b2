"""The beauty contest: name a number; the closest to a fraction of the average wins."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from llm_games import facts
from llm_games.arrays import all_true, any_true, at
from llm_games.disguise import Surface
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, exact_of, once, param, plain, ratio_of, rounds_shown
from llm_games.games.beauty_contest.surface import SURFACE
from llm_games.questions import MISSING, Integer, Question, Real, Remark, alike
from llm_games.replies import bare, outermost
from llm_games.rounds import Paid, Rounds, Seen
from llm_games.rulebook import LARGEST, Array, Chance, Goal, PerPlayer, PerTable, State

PERSONAS = (None, "agreeable", "disagreeable")  # what a player can be told to be, by its number
_TOLD = "what oneself is told to be: 0 nothing, 1 agreeable, 2 disagreeable"
REVEAL = ("mean", "target", "winning_numbers", "own_result", "all_choices")
_ECON_ARENA: dict[str, Any] = {"players": 9, "domain": "real", "rounds": 1, "prize_rule": "split"}
_ECON_ARENA |= {"reveal": ("all_choices",), "reveal_last": 3}
_ECON_ARENA |= {"reply_key": "answer", "reasks": False}
_SHALL_WE_TALK: dict[str, Any] = {"players": 24, "reveal": (), "reply_key": "number"}
_GUESS = Remark("popular_answer", "the number you expect most others to name", number=True)
_REASON = Remark("reason", "why, in a few sentences", last=True)
_FIRST = (Remark("understanding", "what this game is about, in a few words"), _GUESS, _REASON)
_LATER = (
    Remark("goal", "what you want to reach, in a few words"),
    Remark("previous_answer", "the number that you named in the round before", number=True),
    _REASON,
)
_IN_ROUNDS = {"turns": (0, 1, 1, 1), "order": "shuffled_per_round", "memory": "all"}


@dataclass(frozen=True)
class AnyReal(Real):
    """A decimal number without stated limits; low and high are those of the arrays."""

    def value_schema(self) -> dict[str, Any]:
        return {"type": "number"}

    def legal(self) -> dict[str, Any]:
        return Real(self.key, self.low, self.high, self.decimals, scale=self.scale).schema()

    def wanted(self) -> str:
        return "a number"


def _revealed(name: str, value: Any) -> tuple[str, ...]:
    chosen = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    for item in chosen:
        facts.check_choice(name, item, REVEAL)
    return tuple(item for item in REVEAL if item in chosen)


def _personas(name: str, value: Any) -> Any:
    each = value if isinstance(value, tuple) else (value,)
    for kind in each:
        facts.check_choice(name, kind, ("none", *PERSONAS[1:], *(["mixed"] * (value == kind))))
    return value


def _key(name: str, value: Any) -> Any:
    if not re.fullmatch("[a-z_]{1,40}", str(value)) or value == "explanation":
        raise BadParameter(
            f'{name} must be of small letters and underscores, such as "answer", and not '
            f'"explanation", got {value!r}'
        )
    return value


def _ends(name: str, value: Any) -> tuple[int, int]:
    for end in facts.listed(name, value, 2, "two integers, (low, high)"):
        facts.check_integer(f"each of {name}", end, 1)
    return int(value[0]), int(value[1])


@dataclass(frozen=True)
class BeautyContestState(State):
    """Last round's numbers in units (0: none), mean and target (NaN: none); the largest number.

    `persona` is the place of each seat's in `PERSONAS`.
    """

    numbers: PerPlayer
    legal: PerPlayer
    won: PerPlayer
    mean: PerTable
    target: PerTable
    limit: PerTable
    persona: PerPlayer


@dataclass(frozen=True)
class BeautyContest(Rounds):
    """Guess a fraction of the average.

    Sources: γ-Bench (arXiv 2403.11807), game 1; EconArena, section 3.1; Shall We Talk
    (arXiv 2402.12327), section 3; Ledoux 1981; Nagel 1995.

    Each round everybody names a number from `min` to `max`. The target is `ratio` times the mean
    of all numbers, the own one included; whoever is closest to it wins the prize. Actions are
    the numbers, in units of ``10**-decimals`` where the domain is real. Who wins is decided in
    integers. A number out of range stays in the actions and is treated by `rule_breaker`; a
    missing one never counts.
    """

    name: ClassVar[str] = "beauty_contest"
    title: ClassVar[str] = "Beauty contest"
    source: ClassVar[str] = "γ-Bench, EconArena, Shall We Talk"
    narrows: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("personas",)
    mends: ClassVar[bool] = False
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {
            "number_parse": "truncate",
            "bounds_check": "0_100",
            "tie_rule": "first_number",
            "distance": "float",
        },
        "econ_arena": _ECON_ARENA,
        "econ_arena_authors": _ECON_ARENA | {"rule_breaker": "include", "distance": "float"},
        "econ_arena_L": _ECON_ARENA | {"max_draw": (10, 100)},
        "econ_arena_M": _ECON_ARENA | {"max_draw": (100, 1000)},
        "econ_arena_H": _ECON_ARENA | {"max_draw": (1000, 10_000)},
        "shall_we_talk": _SHALL_WE_TALK
        | {"rounds": 1, "prize_rule": "amplified", "talk": {"turns": 2}},
        "shall_we_talk_authors": _SHALL_WE_TALK
        | {"rounds": 1, "prize_rule": "amplified", "talk": {"turns": 2, "order": "fixed"}}
        | {"tie_rule": "first_number", "bounds_check": "none"},
        "shall_we_talk_rounds": _SHALL_WE_TALK
        | {"rounds": 4, "prize": 100, "prize_rule": "independent", "talk": _IN_ROUNDS},
    }

    min: int | Fraction = param(0, "smallest number one may name", read=exact_of)
    max: int | Fraction = param(100, "largest number one may name, above `min`", read=exact_of)
    domain: str = param("integer", integer="whole numbers", real="up to `decimals` decimals")
    decimals: int = param(6, "decimals of real numbers; finer are rounded half-even", low=0, high=9)
    ratio: Fraction = param(Fraction(2, 3), "factor on the mean", read=partial(ratio_of, longest=0))
    prize: int | Fraction = param(1, "the prize x, more than 0", read=exact_of)
    prize_rule: str = param(
        "each_winner",
        "what each of k winners gets",
        each_winner="x",
        split="x/k",
        exclusive="x if k = 1, else 0",
        independent="x",
        amplified="k*x",
    )
    foul_fee: int | Fraction = param(0, "what breaking a rule costs, at least 0", read=exact_of)
    reveal: tuple[str, ...] = param(REVEAL[:4], f"any of {', '.join(REVEAL)}", read=_revealed)
    reveal_last: str | int = param("all", "past rounds shown, a number or this", read=rounds_shown)
    told_rational: bool = param(
        False, "players hear that all others are perfectly rational", fiction=True
    )
    told_equal: bool = param(
        False, "they hear that all others are as rational and able as they", fiction=True
    )
    personas: str | tuple[str, ...] = param(
        "none",
        "what each is told to be: ``none``, ``agreeable``, ``disagreeable``, one of these for each "
        "player, or ``mixed``: a third of the players each, rounded down, drawn, the rest ``none``",
        read=_personas,
    )
    max_draw: tuple[int, int] | None = param(
        None, "tables draw `max` from the first to below the second", read=_ends, none="fixed"
    )
    reply_key: str = param("chosen_number", "of small letters and underscores", read=_key)
    tie_rule: str = param(
        "all_closest", all_closest="all closest win", first_number="as many as named the first"
    )
    rule_breaker: str = param(
        "exclude", exclude="left out", include="counts but cannot win", void_round="nobody wins"
    )
    number_parse: str = param(
        "strict", strict="whole numbers only", truncate="cut towards zero", stakes="changed"
    )
    bounds_check: str = param(
        "parameters",
        words={"parameters": "`min` to `max`", "0_100": "always 0 to 100", "none": "any number"},
    )
    distance: str = param(
        "exact", exact="in integers", float="in doubles, as the papers' programs", stakes="changed"
    )
    reasks: bool = param(
        True, "a language model is asked again after a broken reply; else never", stakes="changed"
    )
    remarks: str = param(
        "none",
        "what a reply is asked for beside the number; nothing hangs on it",
        none="nothing",
        guess="the number expected of others",
        econ_arena="what the game is about, that number and a reason; in later rounds the goal and "
        "one's last number",
    )

    def check(self) -> None:
        if self.prize <= 0:
            raise BadParameter(f"prize must be more than 0, got {self.prize}")
        facts.check_number("foul_fee", self.foul_fee, 0)
        if isinstance(self.personas, tuple):
            what = f"a word, or {self.players}, one for each player"
            facts.listed("personas", self.personas, self.players, what)
        if self.max_draw is not None:
            low, high = self.max_draw
            if not self.min < low < high or self.bounds_check != "parameters":
                raise BadParameter(
                    f"max_draw must be (low, high) with low < high and low above min ({self.min}), "
                    f'and needs bounds_check="parameters", got {self.max_draw!r} and '
                    f"{self.bounds_check!r}"
                )
            object.__setattr__(self, "max", high - 1)
        if not self.min < self.max:
            raise BadParameter(f"min must be less than max, got {self.min} and {self.max}")
        for name in ("min", "max"):
            if (getattr(self, name) * self.unit) % 1:
                raise BadParameter(
                    f"{name} must be a whole number of units of 1/{self.unit}, got "
                    f'{getattr(self, name)}; use domain="real" or more decimals'
                )

    @property
    def unit(self) -> int:
        """Actions in one: 1, or ``10**decimals`` where the domain is real."""
        return 10**self.decimals if self.domain == "real" else 1

    @property
    def largest(self) -> int:
        """The largest distance to the target, or numerator or denominator of a prize."""
        named = max(abs(Fraction(value)) for value in (self.min, self.max, 100)) * self.unit
        prize = max(Fraction(self.prize).as_integer_ratio())
        return self.players * max(math.ceil(named) * sum(self.ratio.as_integer_ratio()), prize)

    @property
    def limit(self) -> int:
        """The largest absolute action for which distances are exact."""
        return LARGEST // (self.players * sum(self.ratio.as_integer_ratio()))

    def draws(self) -> Sequence[Draw]:
        low, high = self.max_draw or (0, 0)
        limit = Draw("limit", lambda noise: noise.integers(low, high), low, high - 1)
        third = self.players // 3  # the players in random order: agreeable, disagreeable, neither
        kinds = np.repeat([1, 2, 0], [third, third, self.players - 2 * third])
        persona = Draw("persona", lambda noise: kinds[noise.order(self.players)], 0, 2)
        return (limit,) * (self.max_draw is not None) + (persona,) * (self.personas == "mixed")

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> BeautyContestState:
        limit = np.asarray(chance["limit"] * self.unit) if self.max_draw else self.bounds()[1]
        start = {"legal": bool, "won": bool, "mean": np.nan, "target": np.nan}
        persona: Any = chance.get("persona", int)
        if self.personas not in ("none", "mixed"):
            words = ("none", *PERSONAS[1:])
            each = np.array([words.index(word) for word in self.of_each("personas")])
            persona = self.each(each, batch)
        return self.first(BeautyContestState, batch, limit=limit, persona=persona, **start)

    @property
    def seats_differ(self) -> str:
        first = "of different numbers equally close the lowest seat's wins"
        return first if self.tie_rule == "first_number" else ""

    def bounds(self) -> tuple[int, int]:
        if self.bounds_check == "none":
            return -self.limit, self.limit
        low, high = (0, 100) if self.bounds_check == "0_100" else (self.min, self.max)
        return int(low * self.unit), int(high * self.unit)

    @cached_property
    def same_limits(self) -> bool:
        return self.max_draw is None

    def highest_legal(self, state: BeautyContestState) -> PerPlayer:
        return np.zeros(state.numbers.shape, np.int64) + state.limit

    @property
    def masked(self) -> bool:
        return super().masked and not self.same_limits

    def unplayed(self, record: Mapping[str, Array]) -> Array:
        actions = np.asarray(record["actions"])
        counts = actions != MISSING if self.rule_breaker == "include" else record["legal"]
        return ~np.asarray(counts, np.bool_)

    def effective(self, record: Mapping[str, Array]) -> Array:
        numbers = np.clip(record["actions"], -self.limit, self.limit)
        return np.where(self.unplayed(record), MISSING, numbers)

    def pay(self, state: BeautyContestState, actions: PerPlayer, broke: PerPlayer) -> Paid:
        numbers, legal = actions, ~broke
        if any_true(broke):
            numbers = np.where(actions == MISSING, 0, actions.clip(-self.limit, self.limit))
        # Where nothing counts there is no mean, and nobody can win.
        counted = (actions != MISSING) if self.rule_breaker == "include" else legal
        if self.rule_breaker == "void_round":
            counted = legal & legal.all(axis=0)
        count, total = self.sums(numbers, counted)
        won = self.winners(numbers, legal & (count > 0), count, total)
        parts = np.where(count > 0, count * self.unit, np.nan)
        p, q = self.ratio.numerator, self.ratio.denominator
        both = {"legal": legal, "mean": total / parts, "target": p * total / (q * parts)}
        record = {**both, "counted": counted, "winners": won}
        if self.max_draw is not None:
            record["limit"] = state.limit
        return self._payoffs(won, broke), {**both, "numbers": numbers, "won": won}, record

    def sums(self, numbers: PerPlayer, counted: PerPlayer) -> tuple[PerTable, PerTable]:
        if all_true(counted):
            return np.full(counted.shape[1:], len(counted)), numbers.sum(axis=0)
        return counted.sum(axis=0), (numbers * counted).sum(axis=0)

    def winners(
        self, numbers: PerPlayer, legal: PerPlayer, count: PerTable, total: PerTable
    ) -> PerPlayer:
        """Return the winners, bool: the `legal` numbers closest to the target."""
        distances = self.distances(numbers, count, total)
        if not all_true(legal):
            largest = np.inf if self.distance == "float" else np.iinfo(np.int64).max
            distances = np.where(legal, distances, largest)
        won = legal & (distances == distances.min(axis=0))
        if self.tie_rule == "first_number":
            won &= numbers == at(numbers, won.argmax(axis=0))
        return won

    def distances(self, numbers: PerPlayer, count: PerTable, total: PerTable) -> PerPlayer:
        """Return distances to the target; exact ones are int64, times count * denominator."""
        p, q = self.ratio.numerator, self.ratio.denominator
        if self.distance == "float":
            target = total / (self.unit * np.maximum(count, 1)) * float(self.ratio)
            return np.abs(numbers / self.unit - target)
        return np.abs(numbers * (q * count) - p * total)

    def _payoffs(self, won: PerPlayer, broke: PerPlayer) -> PerPlayer:
        (size, parts), count = Fraction(self.prize).as_integer_ratio(), won.sum(axis=0)
        if self.prize_rule == "split":
            parts = parts * np.maximum(count, 1)
        elif self.prize_rule == "exclusive":
            size = (count == 1) * size
        elif self.prize_rule == "amplified":
            size = count * size
        prize = won * (size / parts)  # the prize is a fraction: one division of exact integers
        return prize - broke * float(self.foul_fee) if self.foul_fee else prize

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The entries of `reveal` that a player sees before a choice."""
        return self.reveal if self.reveal_last != 0 else ()

    def terms(self) -> dict[str, Any]:
        # Means and targets are written with the decimals of the numbers themselves, or two.
        places = max(2, self.decimals) if self.domain == "real" else 2
        return super().terms() | {"shown": self.shown, "places": places, "persona": None}

    def teller(self, state: BeautyContestState) -> Callable[[int], dict[str, Any]]:
        tell = super().teller(state)
        if self.personas == "none":
            return tell
        return lambda seat: tell(seat) | {"persona": PERSONAS[state.persona[seat]]}

    def _limits(self, counted: str) -> tuple[float, float]:
        """Return the smallest and largest number shown; 0 stands for none."""
        if self.bounds_check == "none" or counted == "include":
            return -np.inf, np.inf
        low, high = (bound / self.unit for bound in self.bounds())
        return min(low, 0.0), max(high, 0.0)

    def known(self) -> Sequence[Fact]:
        low, high = self._limits("parameters")
        lower, upper = self._limits(self.rule_breaker)
        # 0 * inf is no number.
        first, last = (float(self.ratio) * end if self.ratio else 0.0 for end in (lower, upper))
        largest = self.max_draw or (0, 0)
        limit = lambda s: s.limit // self.unit
        counted, winner = once(lambda s: ~np.isnan(s.mean)), once(lambda s: s.won.any(axis=0))
        mean = lambda s: np.where(counted(s), s.mean, 0.0)
        target = lambda s: np.where(counted(s), s.target, 0.0)
        win = lambda s, end, none: end(np.where(s.won, s.numbers, none), axis=0) * winner(s)
        lowest = lambda s: win(s, np.min, self.limit) / self.unit
        highest = lambda s: win(s, np.max, -self.limit) / self.unit
        won, broke = (lambda s: s.won), (lambda s: (s.round > 0) & ~s.legal)
        legal = once(lambda s: s.legal & (s.round > 0))
        number = lambda s: np.where(legal(s), s.numbers, 0) / self.unit
        average = "mean of the last round; 0 if there is none"
        of = {
            "limit": [Fact("limit", limit, *largest, "largest number one may name", now=True)],
            "counted": [Fact("any_counted", counted, 0, 1, "1 if the last round has a mean")],
            "mean": [Fact("mean", mean, lower, upper, average)],
            "target": [Fact("target", target, first, last, "target of the last round; 0 if none")],
            "winning_numbers": [
                Fact("any_winner", winner, 0, 1, "1 if somebody won the last round"),
                Fact("winning_low", lowest, low, high, "smallest winning number; 0 if none"),
                Fact("winning_high", highest, low, high, "largest winning number; 0 if none"),
            ],
            "own_result": [
                Fact("number", number, low, high, "own number last round; 0 if it broke a rule"),
                Fact("won", won, 0, 1, "1 if it won"),
                Fact("broke", broke, 0, 1, "1 if it broke a rule"),
            ],
            "all_choices": [
                self.seat,
                Fact("number", number, low, high, "seat {}, last round", True, said="numbers"),
                Fact("legal", legal, 0, 1, "1 if seat {} broke no rule", True),
            ],
        }
        of["persona"] = [Fact("persona", lambda s: s.persona, 0, 2, _TOLD, said=facts.NUMBERS_ONLY)]
        begun = ["limit"] * (self.max_draw is not None)
        begun += ["persona"] * (self.personas != "none")
        begun += ["counted"] * bool({"mean", "target"} & set(self.shown))
        return (self.now, *(fact for item in (*begun, *self.shown) for fact in of[item]))

    def in_words(self, last: dict[str, Any]) -> dict[str, Any] | None:
        if not self.shown:
            return None
        counted = last.pop("any_counted", False)
        for name in {"mean", "target"} & last.keys():
            last[name] = plain(last[name]) if counted else None
        if "any_winner" in last:
            ends = {plain(last.pop(f"winning_{end}")) for end in ("low", "high")}
            last["winning_numbers"] = sorted(ends) if last.pop("any_winner") else []
        if "broke" in last:
            last["number"] = None if last.pop("broke") else plain(last["number"])
        if "legal" in last:
            each = zip(self.names(), last.pop("numbers"), last.pop("legal"), strict=True)
            last["all_choices"] = {name: plain(n) if ok else None for name, n, ok in each}
        return last

    @property
    def pot(self) -> float:
        shared = self.prize_rule in ("split", "exclusive")
        return self.rounds * float(self.prize) if shared else super().pot

    @property
    def stake(self) -> tuple[float, float]:
        prizes = self.players if self.prize_rule == "amplified" else 1
        return 0.0 - float(self.foul_fee), prizes * float(self.prize)

    def goal(self, seat: int) -> Goal:
        return Goal(unit="prizes minus fees" if self.foul_fee else "prizes")

    def asks(self, state: BeautyContestState, seat: int) -> Question:
        low, high = self.bounds()[0], int(state.limit)
        key, free = self.reply_key, self.bounds_check == "none"
        spot = bare if key == "chosen_number" else outermost
        if self.domain == "real":
            kind = AnyReal if free else Real
            limits: tuple[Any, ...] = low, high, self.decimals
            return alike(kind, key, *limits, published=spot, remarks=self._remarks(state))
        lower, upper = (None, None) if free else (low, high)
        limits = lower, upper, self.number_parse == "truncate"
        return alike(Integer, key, *limits, published=spot, remarks=self._remarks(state))

    def _remarks(self, state: BeautyContestState) -> tuple[Remark, ...]:
        if self.remarks != "econ_arena":
            return (_GUESS,) if self.remarks == "guess" else ()
        return _LATER if state.round and self.reveal and self.reveal_last != 0 else _FIRST

    def spectacle(self, state: BeautyContestState) -> Seen:
        is_void, caption = np.isnan(state.mean), f"mean {state.mean:.2f}, target {state.target:.2f}"
        legal, broke = state.legal, "broke a rule" if state.round else ""
        numbers = np.where(legal, [f"{n / self.unit:g}" for n in state.numbers], "")
        results = np.where(state.won, "won", np.where(legal, "lost", broke))
        return "" if is_void else caption, {"number": (numbers, ""), "result": (results, "")}
