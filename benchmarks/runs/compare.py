"""Two runs side by side: what differs when the same episodes are played by other players.

Episodes pair if they have the same label, number, seed and seating, so that both sides met the same
chance (common random numbers) at the same seats; the difference of a pair is then free of much of
the noise. The tests, and how often each gives a false alarm: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.grid import Grid, Label, columns
from llm_games.benchmarks.runs.paper import edition_of, score
from llm_games.benchmarks.runs.reader import Game, RecordedEpisode, games
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import EpisodeRow
from llm_games.benchmarks.runs.seating import uneven
from llm_games.benchmarks.stats import comparing
from llm_games.benchmarks.stats.intervals import Interval
from llm_games.errors import LLMGamesError
from llm_games.rulebook import Array

FLIPPED = 6  # fewest pairs whose sign flips can find anything at 5 %
ROUNDED = 1e-12  # of the values: what differs by less is equal, but for rounding
LEVEL = 0.05  # of all tests of a family together
SIDES = "AB"
FAMILIES = {"scores": 1, "payoffs": 2}
"""The families of tests, each corrected for itself: with how many digits its values are shown."""
VALUES = ("pairs", "A", "B", "B − A", "95 % interval")
TESTS = ("p", "Holm", "flips", "d", "e-value")
"""Columns of the table: what differs, and how sure that is."""


class NothingShared(LLMGamesError, ValueError):
    """Two runs have no finished episode in common; the message says what would be needed."""


class Difference(NamedTuple):
    """B minus A over some pairs: the means of both sides, and the mean of the differences.

    `interval` and `p` are those of a t test, None where there is none: `note` says why. `holm` is p
    corrected for all games of the family; `flip` the p-value of sign flips, from `FLIPPED` pairs on
    or where no pair differs from another; `effect` the mean in standard deviations of differences;
    `e` the e-value, which holds however often one looks (20 is what p = .05 is for one look).
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
    e: float | None = None
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict() | {"interval": self.interval and self.interval._asdict()}

    def written(self, digits: int) -> list[str]:
        """Return it as words of a table, without its note."""
        a, b = (f"{np.round(side, digits) + 0.0:.{digits}f}" for side in (self.a, self.b))
        ends = self.interval.ends(digits) if self.interval else "–"
        change = f"{np.round(self.mean, digits) + 0.0:+.{digits}f}"
        tests = (self.p, self.holm, self.flip, self.effect, self.e)
        return [
            str(self.pairs),
            a,
            b,
            change,
            ends,
            *("–" if x is None else _short(x) for x in tests),
        ]


def _short(value: float) -> str:
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3g}"


@dataclass(frozen=True)
class Comparison:
    """One game of both runs: its name in them (`label`) and in the registry, and what differs.

    `scores` is None where no pair has one on both sides, `payoffs` without pairs. The latter is the
    mean of `seats`, those places that somebody else takes in the other run, or all if none is.
    `alone` says why episodes do not pair, with their numbers, `notes` what else is to be known.
    `changes` are the differences of pairs by family and episode, `chance` is the same for labels
    that share theirs.
    """

    label: str
    game: str
    scores: Difference | None
    payoffs: Difference | None
    seats: list[int]
    alone: list[str]
    notes: list[str]
    changes: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)
    chance: int = 0

    def of(self, family: str) -> Difference | None:
        """Return the difference of a family."""
        found: Difference | None = getattr(self, family)
        return found

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        both = {name: found and found.plain() for name in FAMILIES for found in [self.of(name)]}
        same = {"label": self.label, "game": self.game, "seats": self.seats}
        return same | both | {"alone": self.alone, "notes": self.notes}


@dataclass(frozen=True)
class Family:
    """All tests of one kind: `tests` games that Holm's correction counts.

    `overall` is of the mean over games, of scores alone, since payoffs have units of their own; its
    p and interval are of Welch and Satterthwaite's t, or where games share chance of the means over
    games. `stratified` is the p-value of "no game differs" against "all in one direction", by sign
    flips within games, each game scaled.
    """

    tests: int
    overall: Difference | None
    stratified: float | None
    notes: list[str]

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self) | {"overall": self.overall and self.overall.plain()}


@dataclass(frozen=True)
class Comparisons:
    """Two runs compared: game by game in the order of the first, and by families of tests.

    A difference is called significant at `level`: `LEVEL`, or what each of several planned `looks`
    is judged by; `notes` say what is to be known of it.
    """

    games: list[Comparison]
    families: dict[str, Family]
    looks: list[int]
    level: float
    notes: list[str]

    def significant(self, found: Difference) -> bool | None:
        """Return whether a difference is; None: there is no test, or this is no planned look."""
        p = found.p if found.holm is None else found.holm
        if p is None or (self.looks and found.pairs not in self.looks):
            return None
        return p <= self.level

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        families = {name: family.plain() for name, family in self.families.items()}
        for name, family in self.families.items():
            families[name]["significant"] = family.overall and self.significant(family.overall)
        rest = {"looks": self.looks, "level": self.level, "notes": self.notes}
        return {"games": [self._plain(game) for game in self.games], "families": families} | rest

    def _plain(self, game: Comparison) -> dict[str, Any]:
        found = {name: game.of(name) for name in FAMILIES}
        judged = {name: one and self.significant(one) for name, one in found.items()}
        return game.plain() | {"significant": judged}

    def grid(self, *shown: str) -> Grid:
        """Return a row for each difference, its B − A starred if it is significant.

        `shown` are the columns, those in which something stands; by default all. A note is below
        the tests.
        """
        rows: list[list[Any]] = []
        foot: list[list[Any]] = []
        for game in self.games:
            label: Any = Label(game.label, "; ".join([*game.notes, *game.alone]))
            for name, of in zip(FAMILIES, ("score", "payoff"), strict=True):
                if (found := game.of(name)) is not None:
                    rows.append([label, of, *self._written(found, FAMILIES[name])])
                    label = game.label
            if isinstance(label, Label):
                rows.append([label, "–", "0", *["–"] * (len(VALUES + TESTS) - 1)])
        if overall := self.families["scores"].overall:
            foot.append(["Overall", "score", *self._written(overall, 1)])
        some = {i for row in rows + foot for i, text in enumerate(row) if text != "–"}
        heads = columns("game, of", ", ".join(VALUES + TESTS), ">")
        kept = {
            k: v
            for i, (k, v) in enumerate(heads.items())
            if i in some and (i < 2 or k in (shown or heads))
        }
        at = [i for i, name in enumerate(heads) if name in kept]
        cut = [[[row[i] for i in at] for row in part] for part in (rows, foot)]
        note = "" if shown == VALUES else " ".join(self._said())
        return Grid(kept, cut[0], foot=cut[1], strong=["B − A"], note=note)

    def _written(self, found: Difference, digits: int) -> list[str]:
        words = found.written(digits)
        words[3] += "*" * bool(self.significant(found))
        return words

    def _said(self) -> list[str]:
        """Return what is to be known of all of it, in sentences."""
        said = [
            "B − A is the mean over pairs, p by Student's t of their differences; Holm is p "
            "corrected for all games of a family (scores; payoffs), flips is p by sign flips "
            f"alone, d in standard deviations of differences; * is below {self.level:.3g}."
        ]
        for name, family in self.families.items():
            if family.stratified is not None:
                tests = f"{family.tests} t test{'s' * (family.tests != 1)}"
                said.append(
                    f"{name.capitalize()}, {tests}: that no game differs, or all in "
                    f"one direction, has p = {_short(family.stratified)} (stratified sign flips)."
                )
            said += family.notes
        noted: dict[str, list[str]] = {}
        for game in self.games:
            for name in FAMILIES:
                if (found := game.of(name)) and found.note:
                    noted.setdefault(found.note, []).append(f"{game.label} ({name})")
        said += [f"{note[0].upper()}{note[1:]}: {', '.join(of)}." for note, of in noted.items()]
        return said + self.notes


def difference(a: Sequence[float] | Array, b: Sequence[float] | Array) -> Difference:
    """Compare paired values of one game.

    Raises:
        BadParameter: not equally many on both sides, none, or one that is no number.
    """
    change = comparing.changes(a, b)
    change[np.abs(change) <= ROUNDED * np.maximum(np.abs(a), np.abs(b))] = 0
    n, test, note = len(change), None, "1 pair, no test: 2 or more are needed"
    if n > 1:
        test = comparing.paired_t(change)
        note = test.note
    flat = test is not None and test.p is None
    flip = comparing.sign_flip(change) if n >= FLIPPED or flat else None
    return Difference(
        n,
        float(np.mean(a)),
        float(np.mean(b)),
        float(change.mean()),
        test and test.interval,
        test and test.p,
        flip=flip,
        effect=comparing.effect_size(change),
        e=comparing.e_value(change),
        note=note,
    )


def compare(
    a: str | Path | Records, b: str | Path | Records, edition: str | None = None
) -> Comparisons:
    """Compare two runs, open or by their files.

    `edition` is of the scores, see `paper.editions`; None: the one the first run asks for.

    Raises:
        StoreError: a file is not a run that can be read.
        UnknownName: there is no such edition.
        NothingShared: they have no finished episode in common.
    """
    with ExitStack() as opened:
        both = [
            run if isinstance(run, Records) else opened.enter_context(Records.open_readonly(run))
            for run in (a, b)
        ]
        edition = edition or edition_of(both[0].config)
        left, right = ({game.label: game for game in games(run) if game.rows} for run in both)
        labels = dict.fromkeys([*left, *right])
        found = [_compare(left.get(label), right.get(label), edition) for label in labels]
        if not any(game.payoffs for game in found):
            raise NothingShared(_nothing(both, found))
        found, families = _families(found)
        looks = sorted({look for run in both for look in run.config.get("looks") or ()})
        level = comparing.look_level(looks, LEVEL) if looks else LEVEL
        notes = [*_unplanned(found, looks), *_prolonged((left, right), looks)]
        return Comparisons(found, families, looks, level, notes)


def _nothing(both: Sequence[Records], found: Sequence[Comparison]) -> str:
    """Say why nothing pairs, and what would be needed."""
    why = [f"{game.label}: {', '.join(game.alone)}" for game in found]
    some = "; ".join(why[:3]) + ("; …" if len(why) > 3 else "")
    seeds = [run.config.get("seed") for run in both]
    said = f" (A has seed {seeds[0]}, B {seeds[1]})" if seeds[0] != seeds[1] else ""
    return (
        "A and B have no finished episode of the same label, number, seed and seating in common"
        f"{said}, so that no difference would be free of chance: {some}. Play B with the labels, "
        "the seed and the order of A, such as: llm-games run FILE --seed SEED"
    )


# -- one game --------------------------------------------------------------------------------------


def _compare(a: Game | None, b: Game | None, edition: str) -> Comparison:
    first = a or b
    assert first is not None
    sides = [{row.number: row for row in game.rows} if game else {} for game in (a, b)]
    done = [
        number
        for number, row in sides[0].items()
        if (twin := _twin(row, sides[1])) and row.status == twin.status == "done"
    ]
    seats, notes = _seats_and_notes(a, b)
    shares, more = _shares(first, [sides[0][number] for number in done], seats)
    scores, payoffs = np.full((2, len(done)), np.nan), np.empty((2, len(done)))
    for i, game in enumerate(filter(None, (a, b))):
        for k, number in enumerate(done):
            episode = RecordedEpisode(game.shelf, sides[i][number])  # read once: not to be kept
            found = score(episode.rules, episode.records, edition)
            scores[i, k] = np.nan if found is None else found
            payoffs[i, k] = episode.payoffs[seats] @ shares[k]
    values = {"scores": scores, "payoffs": payoffs}
    has = {name: ~np.isnan(both).any(axis=0) for name, both in values.items()}
    changes = {
        name: {
            number: float(both[1, k] - both[0, k]) for k, number in enumerate(done) if has[name][k]
        }
        for name, both in values.items()
    }
    return Comparison(
        label=first.label,
        game=first.name,
        scores=difference(*scores[:, has["scores"]]) if has["scores"].any() else None,
        payoffs=difference(*payoffs) if done else None,
        seats=seats,
        alone=_alone(sides),
        notes=notes + more,
        changes=changes,
        chance=first.rows[0].seed,
    )


def _seats_and_notes(left: Game | None, right: Game | None) -> tuple[list[int], list[str]]:
    """Return the places whose payoff is compared, and what else differs."""
    if left is None or right is None:
        return [], []
    notes = [] if left.params == right.params else ["played with different parameters"]
    rules = [(game.rows[0].edition or {}).get("rules") for game in (left, right)]
    if rules[0] != rules[1]:
        notes.append(f"played by different editions of the rules ({rules[0]} and {rules[1]})")
    if len(left.seats) != len(right.seats):
        shared = range(min(len(left.seats), len(right.seats)))
        return [*shared], [*notes, "played by different numbers of players"]
    pairs = list(zip(left.seats, right.seats, strict=True))
    changed = [seat for seat, (mine, other) in enumerate(pairs) if mine != other]
    if 0 < len(changed) < len(pairs):
        several = "s" * (len(changed) > 1)
        notes.append(f"payoffs are of place{several} {', '.join(map(str, changed))}")
    return changed or list(range(len(pairs))), notes


def _shares(game: Game, rows: Sequence[EpisodeRow], places: Sequence[int]) -> tuple[Array, list]:
    """Return what each place counts in each episode, ``(episodes, places)``, and notes on it.

    Where seats are worth something and the places have not had each equally often, each seat counts
    alike: the mean is that of the seats' means. Rows add up to 1 on average.
    """
    even = np.full((len(rows), len(places)), 1 / max(1, len(places)))
    why = uneven(game.rules, [place in places for place in range(len(game.seats))], _sat(rows))
    if not why or not places:
        return even, []
    at = np.array([[row.seating.index(place) for place in places] for row in rows])
    times = np.bincount(at.ravel(), minlength=len(game.seats))
    visited, never = np.flatnonzero(times), np.flatnonzero(times == 0).tolist()
    said = [f"payoffs: {game.rules.seats_differ}; each seat that was had counts alike"]
    if never:
        said = [f"{said[0]}, and nothing is known of seats {', '.join(map(str, never))}"]
    return len(rows) / len(visited) / times[at], said


def _sat(rows: Sequence[EpisodeRow]) -> list[list[int]]:
    return [row.seating for row in rows]


def _twin(episode: EpisodeRow, others: Mapping[int, EpisodeRow]) -> EpisodeRow | None:
    """Return the same episode of the other side, if it has one."""
    other = others.get(episode.number)
    alike = other and (other.seed, other.game.game) == (episode.seed, episode.game.game)
    return other if alike and other and not _moved(episode, other) else None


def _moved(one: EpisodeRow, other: EpisodeRow) -> bool:
    """Return whether the same places sat elsewhere."""
    return len(one.seating) == len(other.seating) and one.seating != other.seating


def _alone(sides: Sequence[Mapping[int, EpisodeRow]]) -> list[str]:
    """Say which episodes have no counterpart, or one that is not done."""
    found = []
    for name, mine, other in zip(SIDES, sides, sides[::-1], strict=True):
        numbers: dict[str, list[int]] = {}
        for number, episode in mine.items():
            twin = other.get(number)
            if _twin(episode, other):
                why = "" if episode.status == "done" else f"{episode.status} in {name}"
            elif twin and twin.seed == episode.seed and _moved(episode, twin):
                why = f"with another seating in {name}"
            else:
                why = f"with another seed in {name}" if twin else f"only in {name}"
            numbers.setdefault(why, []).append(number)
        numbers.pop("", None)
        for why, alone in numbers.items():
            some = ", ".join(map(str, alone[:8])) + (", …" if len(alone) > 8 else "")
            found.append(f"episode{'s' if len(alone) > 1 else ''} {some} {why}")
    return found


# -- all games -------------------------------------------------------------------------------------


def _families(found: Sequence[Comparison]) -> tuple[list[Comparison], dict[str, Family]]:
    """Return the games with p-values corrected within each family, and the families."""
    kept, families = list(found), {}
    for name in FAMILIES:
        here = [i for i, game in enumerate(kept) if game.of(name)]
        made = [one for i in here if (one := kept[i].of(name))]
        for i, one, p in zip(here, made, comparing.holm([one.p for one in made]), strict=True):
            changed: dict[str, Any] = {name: one._replace(holm=p)}
            kept[i] = replace(kept[i], **changed)
        families[name] = _family(name, [kept[i] for i in here])
    return kept, families


def _family(name: str, found: Sequence[Comparison]) -> Family:
    """Work out what holds of all games of a family together."""
    made = [one for game in found if (one := game.of(name))]
    strata = _strata([(game.chance, game.changes[name]) for game in found])
    notes, overall = [], None
    some = [column for column in strata if len(column)]
    pooled = comparing.stratified(some) if len(some) > 1 else None
    if name == "scores" and len(made) > 1:
        few = [game.label for game, one in zip(found, made, strict=True) if one.pairs < 2]
        if few or min(map(len, strata)) < 2:
            lacks = ", ".join(few) or "games of one chance together"
            notes.append(f"No Overall: it needs 2 pairs of each game, which is not so of: {lacks}.")
        else:
            overall = _overall(made, strata)
            if len(strata) < len(found):
                notes.append(
                    "Overall: games share chance, so that it rests on their means by episode."
                )
    tests = sum(one.p is not None for one in made)
    return Family(tests, overall, pooled, notes)


def _strata(found: Sequence[tuple[int, Mapping[int, float]]]) -> list[Array]:
    """Return independent columns whose mean over columns is that over games.

    A column has the differences of a game. Games of the same chance are one, by the means over them
    of those episodes that all of them have, which counts as often as it has games.
    """
    alike: dict[int, list[Mapping[int, float]]] = {}
    for chance, changes in found:
        alike.setdefault(chance, []).append(changes)
    strata = []
    for group in alike.values():
        numbers = sorted(set.intersection(*map(set, group)))
        table = np.array([[changes[number] for number in numbers] for changes in group])
        strata.append(table.sum(axis=0) * (len(alike) / len(found)))
    return strata


def _overall(made: Sequence[Difference], strata: Sequence[Array]) -> Difference:
    """Return the mean over games of both sides, and the test of its difference."""
    method = "Welch-Satterthwaite" if len(strata) > 1 else "Student t of means over games"
    test = comparing.welch_satterthwaite(strata, method=method)
    a, b = (float(np.mean([getattr(one, side) for one in made])) for side in "ab")
    n, equal = min(map(len, strata)), len(set(map(len, strata))) == 1
    e = comparing.e_value(np.mean(strata, axis=0)) if equal else None
    return Difference(n, a, b, test.mean, test.interval, test.p, e=e, note=test.note)


def _unplanned(found: Sequence[Comparison], looks: Sequence[int]) -> list[str]:
    """Say which numbers of pairs are no planned look."""
    here = {one.pairs for game in found for name in FAMILIES if (one := game.of(name))}
    odd = sorted(here - set(looks))
    if not looks or not odd:
        return []
    return [
        f"Looks are planned at {', '.join(map(str, looks))} episodes: with "
        f"{', '.join(map(str, odd))} pairs nothing is judged, but by the e-value."
    ]


def _prolonged(sides: Sequence[Mapping[str, Game]], looks: Sequence[int]) -> list[str]:
    """Say which run had episodes added to it after it was complete."""
    said = []
    for name, side in zip(SIDES, sides, strict=True):
        times = {many for game in side.values() for many in game.planned.get("prolonged") or ()}
        if times:
            after = ", ".join(map(str, sorted(times)))
            how = "as was planned" if times <= set(looks) else "without a look planned there"
            said.append(f"{name} was prolonged after {after} episodes, {how}.")
            if not times <= set(looks):
                said.append("If results had been seen then, p is too small; the e-value holds.")
    return said
