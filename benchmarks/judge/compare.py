"""Two runs side by side: what differs when the same episodes are played by other players.

Episodes pair if they have the same label, number, seed and seating: both sides met the same chance
at the same seats. The tests: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.regret import conditional
from llm_games.benchmarks.judge import paired
from llm_games.benchmarks.judge.intervals import ROUNDED, Interval
from llm_games.benchmarks.judge.means import FREE
from llm_games.benchmarks.judge.paper import SCORED, Measure, edition_of, measure_of, score_of
from llm_games.benchmarks.judge.result_table import Label, ResultTable, columns
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.rulebook import Array, Rulebook

FLIPPED = 6  # fewest pairs whose sign flips can find anything at 5 %
LEVEL = 0.05  # of all tests of a family together
A, B = "AB"  # what the runs are called in words


class NothingShared(LLMGamesError, ValueError):
    """Two runs have no finished episode in common; the message says what would be needed."""


FAMILIES = {"scores": ".1f", "measures": ".3f", "payoffs": ".2f"}
"""The families of tests, each corrected for itself, and how its values are shown."""
VALUES = ("pairs", "A", "B", "B − A", "interval")
TESTS = ("p", "Holm", "flips", "d")  # columns of the table: what differs, and how sure that is


class Difference(NamedTuple):
    """B minus A over some pairs: the means of both sides, and the mean of the differences.

    `interval` and `p` are those of a t test, None where there is none: `note` says why. `holm` is p
    corrected for all games of the family; `flip` is by sign flips, from `FLIPPED` pairs on or where
    no pair differs from another; `effect` the mean in standard deviations of differences.
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
        return self._asdict() | {"interval": self.interval and self.interval.plain()}

    def written(self, digits: int) -> list[str]:
        a, b = (f"{np.round(side, digits) + 0.0:.{digits}f}" for side in (self.a, self.b))
        ends = self.interval.ends(digits) if self.interval else "–"
        change = f"{np.round(self.mean, digits) + 0.0:+.{digits}f}"
        tests = (self.p, self.holm, self.flip, self.effect)
        texts = ("–" if value is None else _short(value) for value in tests)
        return [str(self.pairs), a, b, change, ends, *texts]


def _short(value: float) -> str:
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3g}"


@dataclass(frozen=True)
class Comparison:
    """One game of both runs, by its label and its name in the registry.

    `scores`, `measures` and `payoffs` are None where no pair has a value on both sides; payoffs are
    the mean of `seats`, those that somebody else takes in the other run, or all if none is. `alone`
    says why episodes do not pair. `bases` are A's values and `changes` the differences of pairs, by
    family and episode; `chance` is the same for labels that share theirs.
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
        measure = self.measure if family == "measures" else None
        if measure:
            return measure.name, int(measure.form[1:-1])
        return family.removesuffix("s"), int(FAMILIES[family][1:-1])

    def of(self, family: str) -> Difference | None:
        difference: Difference | None = getattr(self, family)
        return difference

    def plain(self) -> dict[str, Any]:
        changes = {name: self.of(name) for name in FAMILIES}
        both = {name: change and change.plain() for name, change in changes.items()}
        measure = self.measure and {"name": self.measure.name, "better": self.measure.better}
        same = {"label": self.label, "game": self.game, "seats": self.seats, "measure": measure}
        return same | both | {"alone": self.alone, "notes": self.notes}


@dataclass(frozen=True)
class Family:
    """All tests of one kind: `tests` games that Holm's correction counts.

    `overall` is of the mean over games, of scores alone, since payoffs have units of their own.
    `stratified` is the p-value of "no game differs" against "all in one direction", by sign flips
    within games, each game scaled; those that share chance count as one.
    """

    tests: int
    overall: Difference | None
    stratified: float | None
    notes: list[str]

    def plain(self) -> dict[str, Any]:
        return vars(self) | {"overall": self.overall and self.overall.plain()}


@dataclass(frozen=True)
class Comparisons:
    """Two runs, A and `name`, by game in A's order and by family; `level` is a family's."""

    games: list[Comparison]
    families: dict[str, Family]
    level: float
    notes: list[str]
    name: str = "B"

    @property
    def change(self) -> str:
        return f"{self.name} − A"

    def significant(self, change: Difference) -> bool | None:
        """Return whether a difference is significant; None: there is no test."""
        p = change.p if change.holm is None else change.holm
        return None if p is None else p <= self.level

    def plain(self) -> dict[str, Any]:
        families = {name: family.plain() for name, family in self.families.items()}
        for name, family in self.families.items():
            families[name]["significant"] = family.overall and self.significant(family.overall)
        rest = {"level": self.level, "notes": self.notes}
        return {"games": [self._plain(game) for game in self.games], "families": families} | rest

    def _plain(self, game: Comparison) -> dict[str, Any]:
        differences = {name: game.of(name) for name in FAMILIES}
        judged = {name: change and self.significant(change) for name, change in differences.items()}
        return game.plain() | {"significant": judged}

    def grid(self, *shown: str) -> ResultTable:
        """A row for each difference, starred if significant; `shown`: columns, by default all."""
        rows: list[list[Any]] = []
        foot: list[list[Any]] = []
        for game in self.games:
            label: Any = Label(game.label, "; ".join([*game.notes, *game.alone]))
            for name in FAMILIES:
                if (change := game.of(name)) is not None:
                    of, digits = game.shown(name)
                    rows.append([label, of, *self._written(change, digits)])
                    label = game.label
            if isinstance(label, Label):
                rows.append([label, "–", "0", *["–"] * (len(VALUES + TESTS) - 1)])
        if overall := self.families["scores"].overall:
            foot.append(["Overall", "score", *self._written(overall, 1)])
        filled = {i for row in rows + foot for i, text in enumerate(row) if text != "–"}
        heads = columns("game, of", ", ".join(VALUES + TESTS), ">")
        wanted = ("game", "of", *(shown or heads))
        indices = [i for i, name in enumerate(heads) if i in filled and name in wanted]
        indices = indices if len(indices) > 2 else []  # of which none stands anywhere
        renamed = {"B": self.name, "B − A": self.change}
        formats = {
            renamed.get(name, name): heads[name] for i, name in enumerate(heads) if i in indices
        }
        rows, foot = ([[row[i] for i in indices] for row in part] for part in (rows, foot))
        note = "" if shown == VALUES else " ".join(self._sentences())
        return ResultTable(formats, rows, foot=foot, strong=[self.change], note=note)

    def _written(self, change: Difference, digits: int) -> list[str]:
        words = change.written(digits)
        words[3] += "*" * bool(self.significant(change))
        return words

    def _sentences(self) -> list[str]:
        sentences = [
            f"{self.change} is the mean over pairs; interval ({100 - 100 * self.level:.3g} %) and "
            "p are by Student's t of the paired differences, n pairs. Holm is p corrected for all "
            "games of a family (scores; measures; payoffs), flips is p by sign flips alone, d in "
            "standard deviations of the differences; * where Holm (of the Overall: p) is at most "
            f"{self.level:.3g}."
        ]
        for name, family in self.families.items():
            if family.stratified is not None:
                tests = f"{family.tests} t test{'s' * (family.tests != 1)}"
                sentences.append(
                    f'{name.capitalize()}, {tests}: "no game differs", against "all in one '
                    f'direction", has p = {_short(family.stratified)} (stratified sign flips).'
                )
            if (whole := family.overall) and whole.interval:
                count = sum(game.of(name) is not None for game in self.games)
                by = f"{whole.interval.method}, n = {whole.pairs}"
                sentences.append(f"Overall, mean over {count} games: {by}.")
            sentences += family.notes
        measures = {g.measure.name: g.measure for g in self.games if g.measures and g.measure}
        sentences += [measure.note for measure in measures.values()]
        noted: dict[str, list[str]] = {}
        for game in self.games:
            notes = [(change.note, name) for name in FAMILIES if (change := game.of(name))]
            for note in dict.fromkeys(note for note, _ in notes if note):
                of = "; ".join(name for other, name in notes if other == note)
                noted.setdefault(note, []).append(f"{game.label} ({of})")
        sentences += [f"{n[0].upper()}{n[1:]}: {', '.join(of)}." for n, of in noted.items()]
        return sentences + self.notes


def difference(
    a: Sequence[float] | Array,
    b: Sequence[float] | Array,
    level: float = LEVEL,
    widest: float = math.inf,
) -> Difference:
    """Compare paired values of one game at a `level`; they are at most `widest` apart."""
    change = _change(a, b)
    n, test, note = len(change), None, "1 pair, no test: 2 or more are needed"
    if n > 1:
        test = paired.paired_t(change, 1 - level, widest)
        note = test.note or test.interval.note
    flat = test is not None and test.p is None
    flip = paired.sign_flip(change) if n >= FLIPPED or flat else None
    return Difference(
        n,
        float(np.mean(a)),
        float(np.mean(b)),
        float(change.mean()),
        test and test.interval,
        test and test.p,
        flip=flip,
        effect=paired.effect_size(change),
        note=note,
    )


def _change(a: Sequence[float] | Array, b: Sequence[float] | Array) -> Array:
    """Return B minus A of paired values, 0 where they are equal but for rounding."""
    change = paired.changes(a, b)
    change[np.abs(change) <= ROUNDED * np.maximum(np.abs(a), np.abs(b))] = 0
    return change


def compare(
    a: str | Path | Records,
    b: str | Path | Records,
    edition: str | None = None,
    name: str = B,
    among: int = 1,
) -> Comparisons:
    """Compare two runs, open or by their files.

    `edition` is of the scores, see `paper.editions`; None: the one the first run asks for. `name`
    is what the second is called; of so many runs (`among`) that are compared with the first, each
    is judged at as small a part of the level (Bonferroni). Raises StoreError: no run that can be
    read; UnknownName: no such edition; NothingShared: no finished episode in common; BadParameter:
    one is a branch, and the other none of the same decision.
    """
    with ExitStack() as opened:
        both = [
            run if isinstance(run, Records) else opened.enter_context(Records.open_readonly(run))
            for run in (a, b)
        ]
        edition = edition or edition_of(both[0].config)
        first_games, second_games = ({g.label: g for g in games(run) if g.rows} for run in both)
        labels = dict.fromkeys([*first_games, *second_games])
        level = LEVEL / among
        names = A, name
        pairs = [(first_games.get(label), second_games.get(label)) for label in labels]
        for pair in pairs:
            _check_points(*pair)
        comparisons = [_compare(*pair, edition, level, names) for pair in pairs]
        if not any(game.payoffs for game in comparisons):
            raise NothingShared(_nothing(both, comparisons, name))
        comparisons, families = _families(comparisons, level)
        notes = _prolonged((first_games, second_games), names)
        if among > 1:
            each = f"{LEVEL} / {among} (Bonferroni)"
            notes.append(f"{among} runs are compared with A, each at {each}.")
        return Comparisons(comparisons, families, level, notes, name)


def _check_points(a: RecordedGame | None, b: RecordedGame | None) -> None:
    """BadParameter: one is a branch, and the other none of the same decision."""
    points = [game.planned.get("branch") or {} for game in (a, b) if game]
    same = [(point.get("rows"), point.get("label"), point.get("step")) for point in points]
    if a is not None and len({*same}) > 1:
        rule = "a branch counts from its decision on, and is compared with branches of that one"
        raise BadParameter(f"{a.label}: {rule}")


def _nothing(both: Sequence[Records], comparisons: Sequence[Comparison], name: str) -> str:
    """Say why nothing pairs, and what would be needed."""
    why = [f"{game.label}: {', '.join(game.alone)}" for game in comparisons]
    reasons = "; ".join(why[:3]) + ("; …" if len(why) > 3 else "")
    seeds = [run.config.get("seed") for run in both]
    seeds_differ = f" (A has seed {seeds[0]}, {name} {seeds[1]})" if seeds[0] != seeds[1] else ""
    sat = '; players of other kinds sit alike with order = "fixed" or "shuffled" in both files'
    return (
        f"A and {name} have no finished episode of the same label, number, seed and seating in "
        f"common{seeds_differ}, so that no difference would be free of chance: {reasons}. "
        f"Play {name} with the labels, the chance, the seed and the order of A, such as: "
        f"llm-games run FILE --seed {seeds[0]}"
        f"{sat * ('another seating' in reasons)}"
    )


# -- one game --------------------------------------------------------------------------------------
def _compare(
    a: RecordedGame | None,
    b: RecordedGame | None,
    edition: str,
    level: float,
    names: tuple[str, str],
) -> Comparison:
    first = a or b
    assert first is not None
    sides = [{row.number: row for row in game.rows} if game else {} for game in (a, b)]
    twins = ((number, row, twin(row, sides[1])) for number, row in sides[0].items())
    done = [n for n, row, other in twins if other and row.status == other.status == "done"]
    places, notes = _places_and_notes(a, b)
    seats = np.array([_changed(*(side[i].seats for side in sides)) for i in done], int)
    shares, share_notes = _shares(first, seats)
    measure, other_measure = (measure_of(game) if game else None for game in (a, b))
    measure = measure if measure is other_measure else None
    values = {name: np.full((2, len(done)), np.nan) for name in FAMILIES}
    for i, game in enumerate(filter(None, (a, b))):
        for k, number in enumerate(done):
            episode = RecordedEpisode(game.shelf, sides[i][number])  # read once: not to be kept
            judged = {"scores": score_of(episode, edition)}
            judged["measures"] = measure.of(episode) if measure else None
            judged["payoffs"] = episode.earned[seats[k]] @ shares[k]
            for name, statistic in judged.items():
                values[name][i, k] = np.nan if statistic is None else statistic
    widest = _widest([game.rules.core for game in (a, b) if game], measure)
    has = {name: ~np.isnan(both).any(axis=0) for name, both in values.items()}
    differ: dict[str, Difference | None] = dict.fromkeys(FAMILIES)
    for name, both in values.items():
        if has[name].any():
            first_values, other_values = both[:, has[name]]
            differ[name] = difference(first_values, other_values, level, widest[name])
    bases: dict[str, dict[int, float]] = {}
    changes: dict[str, dict[int, float]] = {}
    for name, both in values.items():
        numbers, (base, other) = np.array(done, int)[has[name]].tolist(), both[:, has[name]]
        gained = _change(base, other).tolist() if numbers else []
        bases[name] = dict(zip(numbers, base.tolist(), strict=True))
        changes[name] = dict(zip(numbers, gained, strict=True))
    return Comparison(
        label=first.label,
        game=first.name,
        **differ,
        measure=measure,
        seats=places,
        alone=_alone(sides, names),
        notes=notes + share_notes,
        bases=bases,
        changes=changes,
        chance=first.rows[0].seed,
    )


def _widest(rules: Sequence[Rulebook], measure: Measure | None) -> dict[str, float]:
    """Return how far values of both sides can be apart, by family."""
    ends = {
        "scores": [SCORED],
        "measures": [measure.ends(each) if measure else FREE for each in rules],
        "payoffs": [each.payable for each in rules],
    }
    return {n: max(end for _, end in e) - min(end for end, _ in e) for n, e in ends.items() if e}


def _changed(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Where somebody else sits, by name; all that both have if nobody does or numbers differ."""
    pairs = list(zip(first, second, strict=False))
    changed = [i for i, (mine, theirs) in enumerate(pairs) if mine != theirs]
    return changed if changed and len(first) == len(second) else [*range(len(pairs))]


def _places_and_notes(
    first: RecordedGame | None, second: RecordedGame | None
) -> tuple[list[int], list[str]]:
    """Return the places whose payoff is compared, and what else differs."""
    if first is None or second is None:
        return [], []
    notes = [] if first.params == second.params else ["played with different parameters"]
    if first.rules == second.rules and first.full != second.full:
        notes = ["played with different talk"]
    rules = [(game.rows[0].edition or {}).get("rules") for game in (first, second)]
    if rules[0] != rules[1]:
        notes.append(f"played by different editions of the rules ({rules[0]} and {rules[1]})")
    if any(game.planned.get("series") for game in (first, second)):
        notes.append("episodes follow from each other (series); as if independent, p is too small")
    words = [{row.isomorph for row in game.rows} for game in (first, second)]
    if words[0] != words[1]:
        notes.append("told in other words (isomorphs)")
    elif len(words[0]) > 1:
        notes.append("episodes of one isomorph are alike; as if independent, p may be too small")
    draws = (conditional(game.rules, game.planned.get("given")) for game in (first, second))
    notes += dict.fromkeys(filter(None, draws))
    places = _changed(first.seats, second.seats)
    if len(first.seats) != len(second.seats):
        notes.append("played by different numbers of players")
    elif len(places) < len(first.seats):
        several = "s" * (len(places) > 1)
        notes.append(f"payoffs are of place{several} {', '.join(map(str, places))}")
    return places, notes


def _shares(game: RecordedGame, seats: Array) -> tuple[Array, list[str]]:
    """Return what each of the `seats` ``(episodes, seats)`` counts in its episode, and notes on it.

    Where seats are worth something and not all were had equally often, the mean is that of the
    seats' means. Rows add up to 1 on average.
    """
    times = np.bincount(seats.ravel(), minlength=len(game.seats))
    if not game.rules.seats_differ or not seats.size or (times == times[0]).all():
        return np.full(seats.shape, 1 / max(1, seats.shape[-1])), []
    note = f"payoffs: {game.rules.seats_differ}; each seat that was had counts alike"
    if never := np.flatnonzero(times == 0).tolist():
        note += f", and nothing is known of seats {', '.join(map(str, never))}"
    return len(seats) / np.count_nonzero(times) / times[seats], [note]


def twin(episode: EpisodeRow, others: Mapping[int, EpisodeRow]) -> EpisodeRow | None:
    """Return the same episode of the other side, if it has one."""
    other = others.get(episode.number)
    alike = other and (other.seed, other.game.game) == (episode.seed, episode.game.game)
    return other if alike and other and not _moved(episode, other) else None


def _moved(row: EpisodeRow, other: EpisodeRow) -> bool:
    """Return whether players sat elsewhere: whether not the same ones meet as in the lists."""
    if len(row.seating) != len(other.seating) or row.seating == other.seating:
        return False
    meetings, listed = (
        Counter(zip(mine, theirs, strict=True))
        for mine, theirs in ((row.seats, other.seats), (row.game.seats, other.game.seats))
    )
    return meetings != listed or row.params != other.params


def _alone(sides: Sequence[Mapping[int, EpisodeRow]], names: Sequence[str]) -> list[str]:
    """Say which episodes have no counterpart, or one that is not done."""
    lines = []
    for name, mine, other in zip(names, sides, sides[::-1], strict=True):
        numbers: dict[str, list[int]] = {}
        for number, episode in mine.items():
            same = other.get(number)
            if twin(episode, other):
                why = "" if episode.status == "done" else f"{episode.status} in {name}"
            elif same and same.game.game != episode.game.game:
                why = f"of {episode.game.game} in {name}"
            elif same and same.seed == episode.seed and _moved(episode, same):
                why = f"with another seating in {name}"
            else:
                why = f"with another seed in {name}" if same else f"only in {name}"
            numbers.setdefault(why, []).append(number)
        numbers.pop("", None)
        for why, alone in numbers.items():
            listed = ", ".join(map(str, alone[:8])) + (", …" if len(alone) > 8 else "")
            lines.append(f"episode{'s' if len(alone) > 1 else ''} {listed} {why}")
    return lines


# -- all games -------------------------------------------------------------------------------------
def _families(
    comparisons: Sequence[Comparison], level: float
) -> tuple[list[Comparison], dict[str, Family]]:
    """Return the games with p-values corrected within each family, and the families."""
    corrected, families = list(comparisons), {}
    for name in FAMILIES:
        here = [i for i, game in enumerate(corrected) if game.of(name)]
        differences = [change for i in here if (change := corrected[i].of(name))]
        for i, change, p in zip(
            here, differences, paired.holm([change.p for change in differences]), strict=True
        ):
            changed: dict[str, Any] = {name: change._replace(holm=p)}
            corrected[i] = replace(corrected[i], **changed)
        families[name] = _family(name, [corrected[i] for i in here], level)
    return corrected, families


def _family(name: str, comparisons: Sequence[Comparison], level: float) -> Family:
    differences = [change for game in comparisons if (change := game.of(name))]
    strata = _strata([(game.chance, game.changes[name]) for game in comparisons])
    notes, overall = [], None
    scaled = _strata([(game.chance, _scaled(game.changes[name])) for game in comparisons])
    filled = [column for column in scaled if len(column)]
    several = len(differences) > 1 and any(change.pairs > 1 for change in differences)
    pooled = paired.stratified(filled) if filled and several else None
    if name == "scores" and len(differences) > 1:
        pairs = [*zip(comparisons, differences, strict=True)]
        few = [game.label for game, change in pairs if change.pairs < 2]
        if few or min(map(len, strata)) < 2:
            lacks = ", ".join(few) or "games of one chance together"
            notes.append(f"No Overall: it needs 2 pairs of each game, which is not so of: {lacks}.")
        else:
            bases = _strata([(game.chance, game.bases[name]) for game in comparisons])
            overall = _overall(bases, strata, level)
            flat = [pair for pair in pairs if pair[1].p is None and pair[1].pairs > 1]
            sure = [game.label for game, change in flat if change.mean != 0]
            if sure and overall.p is not None:
                notes.append(
                    "Overall: it takes differences without spread as certain, which few episodes "
                    f"cannot show: {', '.join(sure)}."
                )
            if len(strata) < len(comparisons):
                notes.append(
                    "Overall: games share chance, so that it rests on their means by episode, of "
                    "those episodes that all of them have."
                )
    tests = sum(change.p is not None for change in differences)
    return Family(tests, overall, pooled, notes)


def _strata(games: Sequence[tuple[int, Mapping[int, float]]]) -> list[Array]:
    """Return independent columns of differences whose mean over columns is that over games.

    Games of one chance are one column, by their means over episodes that all have.
    """
    alike: dict[int, list[Mapping[int, float]]] = {}
    for chance, changes in games:
        alike.setdefault(chance, []).append(changes)
    strata = []
    for group in alike.values():
        numbers = sorted(set.intersection(*map(set, group)))
        table = np.array([[changes[number] for number in numbers] for changes in group])
        strata.append(table.sum(axis=0) * (len(alike) / len(games)))
    return strata


def _scaled(changes: Mapping[int, float]) -> dict[int, float]:
    """Return differences over their root mean square, which leaves no units."""
    size = float(np.sqrt(np.mean(np.square([*changes.values()])))) if changes else 0.0
    return {number: change / (size or 1) for number, change in changes.items()}


def _overall(bases: Sequence[Array], strata: Sequence[Array], level: float) -> Difference:
    """Test the mean over games of differences `strata`; `bases` are A's values."""
    method = "Welch-Satterthwaite" if len(strata) > 1 else "Student t of means over games"
    test = paired.welch_satterthwaite(strata, 1 - level, method, SCORED[1] - SCORED[0])
    a = float(np.mean([column.mean() for column in bases]))
    n = min(map(len, strata))
    return Difference(n, a, a + test.mean, test.mean, test.interval, test.p, note=test.note)


def _prolonged(sides: Sequence[Mapping[str, RecordedGame]], names: Sequence[str]) -> list[str]:
    """Return a note on each run to which episodes were added after it was complete."""
    notes = []
    for name, side in zip(names, sides, strict=True):
        counts = {count for game in side.values() for count in game.planned.get("prolonged") or ()}
        if counts:
            lengths = ", ".join(map(str, sorted(counts)))
            notes.append(f"{name} was prolonged after {lengths} episodes.")
            notes.append("If results had been seen then, p is too small.")
    return notes
