"""The beauty contest: name a number; the closest to a fraction of the average wins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.questions import MISSING, Integer, Question, Real
from llm_games.replies import bare, outermost
from llm_games.rulebook import (
    LARGEST_DISCRETE,
    Array,
    Column,
    Outcome,
    Rulebook,
    State,
    check_choice,
    check_integer,
    exact_of,
    fresh,
    ratio_of,
    side_by_side,
)

REVEAL = ("mean", "target", "winning_numbers", "own_result", "all_choices")
PRIZE_RULES = ("each_winner", "split", "exclusive", "independent", "amplified")
_ECON_ARENA: dict[str, Any] = {
    "players": 9,
    "domain": "real",
    "rounds": 1,
    "prize_rule": "split",
    "reveal": ("all_choices",),
    "reveal_last": 3,
    "reply_key": "answer",
    "reasks": False,
}


@dataclass(frozen=True)
class AnyReal(Real):
    """A decimal number without stated limits; low and high are where the arrays end."""

    def value_schema(self) -> dict[str, Any]:
        return {"type": "number"}

    def legal(self) -> dict[str, Any]:
        return Real(self.key, self.low, self.high, self.decimals).schema()

    def wanted(self) -> str:
        return "a number"


@dataclass(frozen=True)
class BeautyContestState(State):
    """What a table looks like between rounds. Zeros and False before the first.

    Attributes:
        numbers: last round's, int64 ``(players, *batch)``, in units of ``10**-decimals`` where
            the domain is real; 0 where there was none.
        legal: numbers that broke no rule, bool ``(players, *batch)``.
        counted: numbers that entered the mean, bool ``(players, *batch)``.
        won: winners, bool ``(players, *batch)``.
        limit: the largest legal number, int64 ``(*batch)``, in the same units.
    """

    numbers: Array
    legal: Array
    counted: Array
    won: Array
    limit: Array


@dataclass(frozen=True)
class BeautyContest(Rulebook):
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
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "econ_arena": _ECON_ARENA,
        "econ_arena_L": _ECON_ARENA | {"max_draw": (10, 100)},
        "econ_arena_M": _ECON_ARENA | {"max_draw": (100, 1000)},
        "econ_arena_H": _ECON_ARENA | {"max_draw": (1000, 10_000)},
        "shall_we_talk": {
            "players": 24,
            "rounds": 1,
            "prize_rule": "amplified",
            "reveal": (),
            "reply_key": "number",
        },
        "shall_we_talk_rounds": {
            "players": 24,
            "rounds": 4,
            "prize": 100,
            "prize_rule": "independent",
            "reveal": (),
            "reply_key": "number",
        },
    }

    min: int | Fraction = 0
    """smallest number one may name"""
    max: int | Fraction = 100
    """largest number one may name, more than `min`"""
    domain: str = "integer"
    """``integer``: whole numbers; ``real``: up to `decimals` decimals"""
    decimals: int = 6
    """decimals kept where the domain is real, 0 to 9; finer replies are rounded half-even"""
    ratio: Fraction = Fraction(2, 3)
    """exact factor on the mean, at least 0"""
    rounds: int = 20
    """rounds of a run, known to the players, at least 1"""
    prize: int | Fraction = 1
    """the prize x, more than 0"""
    prize_rule: str = "each_winner"
    """what each of k winners gets: ``each_winner`` and ``independent`` x, ``split`` x/k,
    ``exclusive`` x if k = 1 else 0, ``amplified`` k*x"""
    foul_fee: int | Fraction = 0
    """what a player pays who breaks a rule, at least 0"""
    reveal: tuple[str, ...] = ("mean", "target", "winning_numbers", "own_result")
    """what is told after a round: any of these and ``all_choices`` (with the seats' names, the
    own one included)"""
    reveal_last: str | int = "all"
    """how many past rounds are shown before a choice: ``all`` or a number, 0 for none. An
    observation tells of the last one alone; the dialogue with a language model keeps the others"""
    told_rational: bool = False
    """players are told that all others are perfectly rational"""
    told_equal: bool = False
    """players are told that all others are as rational and able as they are"""
    max_draw: tuple[int, int] | None = None
    """where the largest number is drawn anew for each table, in place of `max`: a whole number
    from the first up to, but not including, the second; it stays the same in all rounds"""
    reply_key: str = "chosen_number"
    """the key of the number in a reply: small letters and underscores"""
    tie_rule: str = "all_closest"
    """``all_closest``: all at the smallest distance win; ``first_number``: of two numbers
    equally close, the one named by the first of these seats"""
    rule_breaker: str = "exclude"
    """``exclude``: left out; ``include``: a number out of range enters the mean but cannot
    win; ``void_round``: nobody wins a round in which somebody broke a rule"""
    number_parse: str = "strict"
    """domain integer, ``strict``: whole numbers only; ``truncate``: cut towards zero"""
    bounds_check: str = "parameters"
    """``parameters``: `min` to `max`; ``0_100``: always 0 to 100; ``none``: any number"""
    distance: str = "exact"
    """``exact``: in integers; ``float``: in doubles, as the papers' programs do"""
    reasks: bool = True
    """a language model is asked again after a broken reply, as often as its settings say; False:
    never"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("domain", self.domain, ("integer", "real"))
        check_integer("decimals", self.decimals, 0, 9)
        check_integer("rounds", self.rounds, 1)
        object.__setattr__(self, "ratio", ratio_of("ratio", self.ratio, longest=0))
        for name in ("min", "max", "prize", "foul_fee"):
            object.__setattr__(self, name, exact_of(name, getattr(self, name)))
        if self.prize <= 0:
            raise BadParameter(f"prize must be more than 0, got {self.prize}")
        if self.foul_fee < 0:
            raise BadParameter(f"foul_fee must be at least 0, got {self.foul_fee}")
        if self.reveal_last != "all":
            check_integer('reveal_last must be "all", or it', self.reveal_last, 0)
        check_choice("prize_rule", self.prize_rule, PRIZE_RULES)
        check_choice("told_rational", self.told_rational, (False, True))
        check_choice("tie_rule", self.tie_rule, ("all_closest", "first_number"))
        check_choice("rule_breaker", self.rule_breaker, ("exclude", "include", "void_round"))
        check_choice("number_parse", self.number_parse, ("strict", "truncate"))
        check_choice("bounds_check", self.bounds_check, ("parameters", "0_100", "none"))
        check_choice("distance", self.distance, ("exact", "float"))
        check_choice("told_equal", self.told_equal, (False, True))
        check_choice("reasks", self.reasks, (False, True))
        if not re.fullmatch("[a-z_]{1,40}", str(self.reply_key)) or self.reply_key == "explanation":
            raise BadParameter(
                'reply_key must be of small letters and underscores, such as "answer", and not '
                f'"explanation", got {self.reply_key!r}'
            )
        self._check_reveal()
        self._check_draw()
        self._check_range()

    def _check_reveal(self) -> None:
        chosen = [self.reveal] if isinstance(self.reveal, str) else list(self.reveal)
        for item in chosen:
            check_choice("reveal", item, REVEAL)
        object.__setattr__(self, "reveal", tuple(item for item in REVEAL if item in chosen))

    def _check_draw(self) -> None:
        if self.max_draw is None:
            return
        ends = tuple(self.max_draw) if isinstance(self.max_draw, (list, tuple)) else ()
        for end in ends if len(ends) == 2 else (None,):
            check_integer("max_draw must be two integers, and each", end, 1)
        if ends[0] >= ends[1] or self.bounds_check != "parameters":
            raise BadParameter(
                'max_draw must be (low, high) with low < high, and needs bounds_check="parameters"'
                f", got {self.max_draw!r} and {self.bounds_check!r}"
            )
        if not self.min < ends[0]:
            raise BadParameter(f"max_draw must be above min ({self.min}), got {self.max_draw!r}")
        object.__setattr__(self, "max_draw", ends)
        object.__setattr__(self, "max", int(ends[1]) - 1)

    def _check_range(self) -> None:
        if not self.min < self.max:
            raise BadParameter(f"min must be less than max, got {self.min} and {self.max}")
        for name in ("min", "max"):
            if (getattr(self, name) * self.unit) % 1:
                raise BadParameter(
                    f"{name} must be a whole number of units of 1/{self.unit}, got "
                    f'{getattr(self, name)}; use domain="real" or more decimals'
                )
        largest = max(abs(Fraction(value)) for value in (self.min, self.max, 100)) * self.unit
        if largest > self.limit:
            raise BadParameter(
                f"numbers up to {float(largest / self.unit):g} with {self.players} players and "
                f"ratio {self.ratio} are too large for exact integers (at most "
                f"{self.limit / self.unit:g}); lower max, decimals or the terms of the ratio"
            )

    @property
    def unit(self) -> int:
        """Actions in one: 1, or ``10**decimals`` where the domain is real."""
        return 10**self.decimals if self.domain == "real" else 1

    @property
    def limit(self) -> int:
        """The largest size of an action; beyond it products would not fit into 63 bits."""
        return (2**62 - 1) // (max(self.ratio.numerator, self.ratio.denominator) * self.players)

    def bounds(self) -> tuple[int, int]:
        if self.bounds_check == "none":
            return -self.limit, self.limit
        low, high = (0, 100) if self.bounds_check == "0_100" else (self.min, self.max)
        return int(low * self.unit), int(high * self.unit)

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether the legal numbers, up to the table's largest, are shown as a mask."""
        low, high = self.bounds()
        return self.max_draw is not None and self.unit == 1 and high - low < LARGEST_DISCRETE

    def legal(self, state: BeautyContestState) -> tuple[Array, Array]:
        low, high = super().legal(state)
        return low, high if self.max_draw is None else np.broadcast_to(state.limit, high.shape)

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> BeautyContestState:
        nothing = np.zeros((self.players, *batch), np.bool_)
        return BeautyContestState(
            **fresh(batch),
            numbers=np.zeros((self.players, *batch), np.int64),
            legal=nothing,
            counted=nothing,
            won=nothing,
            limit=self._limit(rng, batch),
        )

    def _limit(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        if self.max_draw is None:
            return np.full(batch, self.bounds()[1], np.int64)
        return np.asarray(rng.integers(*self.max_draw, batch) * self.unit)

    def asked(self, state: BeautyContestState) -> Array:
        return self.alive(state)

    def mend(self, state: BeautyContestState, actions: Array, broke: Array) -> Array:
        """Keep numbers out of range: `rule_breaker` says in `play` what becomes of them."""
        return actions.astype(np.int64, copy=False)

    def play(
        self, state: BeautyContestState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[BeautyContestState, Outcome]:
        numbers, legal = actions, ~broke
        if broke.any():
            numbers = np.where(actions == MISSING, 0, actions.clip(-self.limit, self.limit))
        # Where nothing counts there is no mean, and nobody can win.
        counted = (actions != MISSING) if self.rule_breaker == "include" else legal
        if self.rule_breaker == "void_round":
            counted = legal & ~broke.any(axis=0)
        after = BeautyContestState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            numbers=numbers,
            legal=legal,
            counted=counted,
            won=self.winners(numbers, legal & (counted.any(axis=0)), counted),
            limit=state.limit,
        )
        mean, target = self.mean_and_target(after)
        record = {
            "actions": actions,
            "legal": legal,
            "counted": counted,
            "winners": after.won,
            "mean": mean,
            "target": target,
        }
        if self.max_draw is not None:
            record["limit"] = state.limit
        finished = self.everybody(after.over)
        return after, Outcome(self._payoffs(after.won, broke), finished, record)

    def winners(self, numbers: Array, legal: Array, counted: Array) -> Array:
        """Return who wins, bool ``(players, *batch)``: of `legal`, the closest to the target.

        Args:
            numbers: as actions, int64 ``(players, *batch)``.
            legal: who can win.
            counted: whose numbers enter the mean.
        """
        distances = self.distances(numbers, counted)
        largest = np.inf if self.distance == "float" else np.iinfo(np.int64).max
        if not legal.all():
            distances = np.where(legal, distances, largest)
        won = legal & (distances == distances.min(axis=0))
        if self.tie_rule == "first_number":
            first = won.argmax(axis=0)
            winning = np.take_along_axis(numbers, first[np.newaxis], axis=0)
            won &= numbers == winning
        return won

    def distances(self, numbers: Array, counted: Array) -> Array:
        """Return the distances to the target, ``(players, *batch)``.

        Exact: multiplied by the counted numbers and the ratio's denominator, int64.
        """
        p, q = self.ratio.numerator, self.ratio.denominator
        count, total = counted.sum(axis=0), (numbers * counted).sum(axis=0)
        if self.distance == "float":
            target = total / (self.unit * np.maximum(count, 1)) * float(self.ratio)
            return np.abs(numbers / self.unit - target)
        distances = numbers * (q * count)
        distances -= p * total
        return np.abs(distances, out=distances)

    def _payoffs(self, won: Array, broke: Array) -> Array:
        # The prize is a fraction: one division of exact integers.
        size, parts = Fraction(self.prize).as_integer_ratio()
        count = won.sum(axis=0)
        if self.prize_rule == "split":
            prize = size / (parts * np.maximum(count, 1))
        elif self.prize_rule == "exclusive":
            prize = (count == 1) * size / parts
        elif self.prize_rule == "amplified":
            prize = count * size / parts
        else:
            prize = np.full(count.shape, size / parts)
        payoffs = won * prize
        if self.foul_fee:
            payoffs -= broke * float(self.foul_fee)
        return payoffs

    def mean_and_target(self, state: BeautyContestState) -> tuple[Array, Array]:
        """Return mean and target of the last round, float64 ``(*batch)``; NaN if none."""
        p, q = self.ratio.numerator, self.ratio.denominator
        count = state.counted.sum(axis=0)
        total = (state.numbers * state.counted).sum(axis=0)
        parts = np.where(count > 0, count * self.unit, np.nan)
        return total / parts, p * total / (q * parts)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """What of `REVEAL` a player sees before a choice."""
        return self.reveal if self.reveal_last != 0 else ()

    @property
    def shown_last(self) -> str | int:
        return self.reveal_last

    def attempts(self, own: int) -> int:
        return own if self.reasks else 1

    def _limits(self, counted: str) -> tuple[float, float]:
        """Return the smallest and largest number shown, 0 (for none) among them."""
        if self.bounds_check == "none" or counted == "include":
            return -np.inf, np.inf
        low, high = (bound / self.unit for bound in self.bounds())
        return min(low, 0.0), max(high, 0.0)

    def columns(self) -> tuple[Column, ...]:
        low, high = self._limits("parameters")
        least, most = self._limits(self.rule_breaker)
        # 0 * inf is no number.
        first, last = (float(self.ratio) * end if self.ratio else 0.0 for end in (least, most))
        seats = range(self.players)
        groups = {
            "mean": [Column("mean", least, most, "mean of the last round; 0 if there is none")],
            "target": [Column("target", first, last, "target of the last round; 0 if none")],
            "winning_numbers": [
                Column("any_winner", 0, 1, "1 if somebody won the last round"),
                Column("winning_low", low, high, "smallest winning number; 0 if none"),
                Column("winning_high", low, high, "largest winning number; 0 if none"),
            ],
            "own_result": [
                Column("number", low, high, "own number last round; 0 if it broke a rule"),
                Column("won", 0, 1, "1 if it won"),
                Column("broke", 0, 1, "1 if it broke a rule"),
            ],
            "all_choices": [
                Column("seat", 0, self.players - 1, "own seat"),
                *(Column(f"number_{i}", low, high, f"seat {i}, last round") for i in seats),
                *(Column(f"legal_{i}", 0, 1, f"1 if seat {i} broke no rule") for i in seats),
            ],
        }
        columns = [Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end")]
        if self.max_draw is not None:
            columns.append(Column("limit", *self.max_draw, "largest number one may name"))
        if {"mean", "target"} & set(self.shown):
            columns.append(Column("any_counted", 0, 1, "1 if the last round has a mean"))
        return (*columns, *(column for item in self.shown for column in groups[item]))

    def observe(self, state: BeautyContestState) -> Array:
        shape = state.numbers.shape
        legal = state.legal & (state.round > 0)
        numbers = np.where(legal, state.numbers, 0) / self.unit
        mean, target = (np.nan_to_num(value) for value in self.mean_and_target(state))
        low, high = self._winning(state)
        groups: dict[str, list[Any]] = {
            "mean": [mean],
            "target": [target],
            "winning_numbers": [state.won.any(axis=0), low, high],
            "own_result": [numbers, state.won, (state.round > 0) & ~state.legal],
            "all_choices": [np.indices(shape)[0], *numbers, *legal],
        }
        columns: list[Array] = [state.round + 1]
        if self.max_draw is not None:
            columns.append(state.limit / self.unit)
        if {"mean", "target"} & set(self.shown):
            columns.append(np.asarray(state.counted.any(axis=0)))
        columns += [column for item in self.shown for column in groups[item]]
        return side_by_side(shape, columns)

    def _winning(self, state: BeautyContestState) -> tuple[Array, Array]:
        """Return the smallest and largest winning number, ``(*batch)``; 0 if nobody won."""
        ends = np.iinfo(np.int64)
        any_winner = state.won.any(axis=0)
        low = np.where(state.won, state.numbers, ends.max).min(axis=0)
        high = np.where(state.won, state.numbers, ends.min).max(axis=0)
        return np.where(any_winner, low, 0) / self.unit, np.where(any_winner, high, 0) / self.unit

    def told(self, state: BeautyContestState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = self._last(state, player) if done and self.shown else None
        known = {"round": min(done + 1, self.rounds), "last": last}
        return known if self.max_draw is None else known | {"limit": int(state.limit) // self.unit}

    def _last(self, state: BeautyContestState, player: int) -> dict[str, Any]:
        mean, target = (_plain(float(value)) for value in self.mean_and_target(state))
        numbers = [
            _plain(number / self.unit) if legal else None
            for number, legal in zip(state.numbers.tolist(), state.legal, strict=True)
        ]
        winning = {n for n, won in zip(numbers, state.won, strict=True) if won and n is not None}
        known: dict[str, dict[str, Any]] = {
            "mean": {"mean": mean},
            "target": {"target": target},
            "winning_numbers": {"winning_numbers": sorted(winning)},
            "own_result": {"number": numbers[player], "won": bool(state.won[player])},
            "all_choices": {"all_choices": dict(zip(self.names(), numbers, strict=True))},
        }
        last: dict[str, Any] = {"round": int(state.round)}
        for item in self.shown:
            last |= known[item]
        return last

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"shown": self.shown}

    def question(self, state: BeautyContestState, player: int) -> Question | None:
        if state.over:
            return None
        low, high = self.bounds()[0], int(state.limit)
        key, free = self.reply_key, self.bounds_check == "none"
        spot = bare if key == "chosen_number" else outermost
        if self.domain == "real":
            kind = AnyReal if free else Real
            return kind(key, low, high, self.decimals, published=spot)
        truncate = self.number_parse == "truncate"
        least, most = (None, None) if free else (low, high)
        return Integer(key, least, most, truncate, published=spot)

    def picture(self, state: BeautyContestState) -> tuple[str, list[str], list[list[str]]]:
        headers = ["seat", "number", "result"]
        caption = f"{self.title}: round {int(state.round)} of {self.rounds}"
        if not state.round:
            return caption, headers, [[name, "", ""] for name in self.names()]
        mean, target = self.mean_and_target(state)
        if not np.isnan(mean):
            caption += f", mean {mean:.2f}, target {target:.2f}"
        rows = [
            [
                name,
                f"{number / self.unit:g}" if legal else "",
                "won" if won else "lost" if legal else "broke a rule",
            ]
            for name, number, legal, won in zip(
                self.names(), state.numbers, state.legal, state.won, strict=True
            )
        ]
        return caption, headers, rows


def _plain(value: float) -> float | None:
    """Return a double as it is told: whole numbers as integers, NaN as None."""
    if np.isnan(value):
        return None
    return int(value) if value == int(value) else value
