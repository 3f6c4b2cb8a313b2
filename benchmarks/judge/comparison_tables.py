"""What a comparison of two runs has found: as values, and as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.paper import Measure
from llm_games.benchmarks.judge.result_table import Label, ResultTable, columns

FAMILIES = {"scores": ".1f", "measures": ".3f", "payoffs": ".2f"}
"""The families of tests, each corrected for itself, and how its values are shown."""
VALUES = ("pairs", "A", "B", "B − A", "interval")
TESTS = ("p", "Holm", "flips", "d")
"""Columns of the table: what differs, and how sure that is."""


class Difference(NamedTuple):
    """B minus A over some pairs: the means of both sides, and the mean of the differences.

    `interval` and `p` are those of a t test, None where there is none: `note` says why. `holm` is p
    corrected for all games of the family; `flip` the p-value of sign flips, from `FLIPPED` pairs on
    or where no pair differs from another; `effect` the mean in standard deviations of differences.
    """

    pairs: int
    a: float
    b: float
    mean: float
    interval: Interval | None = None
    p: float | None = None
    holm: float | None = None
    flip: float | None = None
    effect: float | None = None
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict() | {"interval": self.interval and self.interval.plain()}

    def written(self, digits: int) -> list[str]:
        """Return it as words of a table, without its note."""
        a, b = (f"{np.round(side, digits) + 0.0:.{digits}f}" for side in (self.a, self.b))
        ends = self.interval.ends(digits) if self.interval else "–"
        change = f"{np.round(self.mean, digits) + 0.0:+.{digits}f}"
        tests = (self.p, self.holm, self.flip, self.effect)
        said = ("–" if value is None else _short(value) for value in tests)
        return [str(self.pairs), a, b, change, ends, *said]


def _short(value: float) -> str:
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3g}"


@dataclass(frozen=True)
class Comparison:
    """One game of both runs: its name in them (`label`) and in the registry, and what differs.

    `scores` is None where no pair has one on both sides, `measures`, of what its paper's `measure`
    gives, where no pair has such a value, `payoffs` without pairs. The last is the mean of `seats`,
    those places that somebody else takes in the other run, or all if none is.
    `alone` says why episodes do not pair, with their numbers, `notes` what else is to be known.
    `bases` are A's values and `changes` the differences of pairs, by family and episode; `chance`
    is the same for labels that share theirs.
    """

    label: str
    game: str
    scores: Difference | None
    measures: Difference | None
    payoffs: Difference | None
    seats: list[int]
    alone: list[str]
    notes: list[str]
    bases: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)
    changes: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)
    chance: int = 0
    measure: Measure | None = None

    def shown(self, family: str) -> tuple[str, int]:
        """Return what a family's values are called in this game, and with how many digits."""
        own = self.measure if family == "measures" else None
        name, form = (own.name, own.form) if own else (family.removesuffix("s"), FAMILIES[family])
        return name, int(form[1:-1])

    def of(self, family: str) -> Difference | None:
        """Return the difference of a family."""
        found: Difference | None = getattr(self, family)
        return found

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        both = {name: found and found.plain() for name in FAMILIES for found in [self.of(name)]}
        measure = self.measure and {"name": self.measure.name, "better": self.measure.better}
        same = {"label": self.label, "game": self.game, "seats": self.seats, "measure": measure}
        return same | both | {"alone": self.alone, "notes": self.notes}


@dataclass(frozen=True)
class Family:
    """All tests of one kind: `tests` games that Holm's correction counts.

    `overall` is of the mean over games, of scores alone, since payoffs have units of their own; its
    p and interval are of Welch and Satterthwaite's t, or where games share chance of the means over
    games. `stratified` is the p-value of "no game differs" against "all in one direction", by sign
    flips within games, each game scaled; those that share chance count as one.
    """

    tests: int
    overall: Difference | None
    stratified: float | None
    notes: list[str]

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return vars(self) | {"overall": self.overall and self.overall.plain()}


@dataclass(frozen=True)
class Comparisons:
    """Two runs compared: game by game in the order of the first, and by families of tests.

    The first is called A, the other one by its `name`. A difference is called significant at
    `level`, to which intervals agree: that of all tests of a family together. `notes` say what is
    to be known of it.
    """

    games: list[Comparison]
    families: dict[str, Family]
    level: float
    notes: list[str]
    name: str = "B"

    @property
    def change(self) -> str:
        """What a difference is called."""
        return f"{self.name} − A"

    def significant(self, found: Difference) -> bool | None:
        """Return whether a difference is significant; None: there is no test."""
        p = found.p if found.holm is None else found.holm
        return None if p is None else p <= self.level

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        families = {name: family.plain() for name, family in self.families.items()}
        for name, family in self.families.items():
            families[name]["significant"] = family.overall and self.significant(family.overall)
        rest = {"level": self.level, "notes": self.notes}
        return {"games": [self._plain(game) for game in self.games], "families": families} | rest

    def _plain(self, game: Comparison) -> dict[str, Any]:
        found = {name: game.of(name) for name in FAMILIES}
        judged = {name: one and self.significant(one) for name, one in found.items()}
        return game.plain() | {"significant": judged}

    def grid(self, *shown: str) -> ResultTable:
        """Return a row for each difference, its B − A starred if it is significant.

        `shown` are the columns, those in which something stands; by default all. A note is below
        the tests.
        """
        rows: list[list[Any]] = []
        foot: list[list[Any]] = []
        for game in self.games:
            label: Any = Label(game.label, "; ".join([*game.notes, *game.alone]))
            for name in FAMILIES:
                if (found := game.of(name)) is not None:
                    of, digits = game.shown(name)
                    rows.append([label, of, *self._written(found, digits)])
                    label = game.label
            if isinstance(label, Label):
                rows.append([label, "–", "0", *["–"] * (len(VALUES + TESTS) - 1)])
        if overall := self.families["scores"].overall:
            foot.append(["Overall", "score", *self._written(overall, 1)])
        some = {i for row in rows + foot for i, text in enumerate(row) if text != "–"}
        heads = columns("game, of", ", ".join(VALUES + TESTS), ">")
        wanted = ("game", "of", *(shown or heads))
        at = [i for i, name in enumerate(heads) if i in some and name in wanted]
        at = at if len(at) > 2 else []  # of which none stands anywhere
        own = {"B": self.name, "B − A": self.change}
        kept = {
            own.get(name, name): form for i, (name, form) in enumerate(heads.items()) if i in at
        }
        rows, foot = ([[row[i] for i in at] for row in part] for part in (rows, foot))
        note = "" if shown == VALUES else " ".join(self._said())
        return ResultTable(kept, rows, foot=foot, strong=[self.change], note=note)

    def _written(self, found: Difference, digits: int) -> list[str]:
        words = found.written(digits)
        words[3] += "*" * bool(self.significant(found))
        return words

    def _said(self) -> list[str]:
        """Return what is to be known of all of it, in sentences."""
        said = [
            f"{self.change} is the mean over pairs; interval ({100 - 100 * self.level:.3g} %) and "
            "p are by Student's t of the paired differences, n pairs. Holm is p corrected for all "
            "games of a family (scores; measures; payoffs), flips is p by sign flips alone, d in "
            "standard deviations of the differences; * where Holm (of the Overall: p) is at most "
            f"{self.level:.3g}."
        ]
        for name, family in self.families.items():
            if family.stratified is not None:
                tests = f"{family.tests} t test{'s' * (family.tests != 1)}"
                said.append(
                    f'{name.capitalize()}, {tests}: "no game differs", against "all in one '
                    f'direction", has p = {_short(family.stratified)} (stratified sign flips).'
                )
            if (whole := family.overall) and whole.interval:
                many = sum(game.of(name) is not None for game in self.games)
                by = f"{whole.interval.method}, n = {whole.pairs}"
                said.append(f"Overall, mean over {many} games: {by}.")
            said += family.notes
        measures = {g.measure.name: g.measure for g in self.games if g.measures and g.measure}
        said += [measure.note for measure in measures.values()]
        noted: dict[str, list[str]] = {}
        for game in self.games:
            found = [(one.note, name) for name in FAMILIES if (one := game.of(name))]
            for note in dict.fromkeys(note for note, _ in found if note):
                of = "; ".join(name for said_, name in found if said_ == note)
                noted.setdefault(note, []).append(f"{game.label} ({of})")
        said += [f"{note[0].upper()}{note[1:]}: {', '.join(of)}." for note, of in noted.items()]
        return said + self.notes
