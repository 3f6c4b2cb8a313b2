"""Two runs side by side: what differs when the same episodes are played by other players.

Episodes pair if they have the same label, number, seed and seating, so that both sides met the same
chance (common random numbers) at the same seats; the difference of a pair is then free of much of
the noise. The tests, and how often each gives a false alarm: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.baselines.deviation import conditional
from llm_games.benchmarks.judge import paired
from llm_games.benchmarks.judge.comparison_tables import (
    FAMILIES,
    Comparison,
    Comparisons,
    Difference,
    Family,
)
from llm_games.benchmarks.judge.intervals import ROUNDED
from llm_games.benchmarks.judge.means import FREE
from llm_games.benchmarks.judge.paper import SCORED, Measure, edition_of, measure_of, score_of
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.record.rows import EpisodeRow
from llm_games.errors import LLMGamesError
from llm_games.rulebook import Array, Rulebook

FLIPPED = 6  # fewest pairs whose sign flips can find anything at 5 %
LEVEL = 0.05  # of all tests of a family together
A, B = "AB"  # what the runs are called in words


class NothingShared(LLMGamesError, ValueError):
    """Two runs have no finished episode in common; the message says what would be needed."""


def difference(
    a: Sequence[float] | Array,
    b: Sequence[float] | Array,
    level: float = LEVEL,
    widest: float = math.inf,
) -> Difference:
    """Compare paired values of one game; its interval agrees with a test at `level`.

    Values are at most so far apart as is the `widest` that is possible.

    Raises:
        BadParameter: not equally many on both sides, none, or one that is no number.
    """
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
    is judged at as small a part of the level (Bonferroni).

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
        level = LEVEL / among
        names = A, name
        found = [
            _compare(left.get(label), right.get(label), edition, level, names) for label in labels
        ]
        if not any(game.payoffs for game in found):
            raise NothingShared(_nothing(both, found, name))
        found, families = _families(found, level)
        notes = _prolonged((left, right), names)
        if among > 1:
            notes.append(
                f"{among} runs are compared with A, each at {LEVEL} / {among} (Bonferroni)."
            )
        return Comparisons(found, families, level, notes, name)


def _nothing(both: Sequence[Records], found: Sequence[Comparison], name: str) -> str:
    """Say why nothing pairs, and what would be needed."""
    why = [f"{game.label}: {', '.join(game.alone)}" for game in found]
    some = "; ".join(why[:3]) + ("; …" if len(why) > 3 else "")
    seeds = [run.config.get("seed") for run in both]
    said = f" (A has seed {seeds[0]}, {name} {seeds[1]})" if seeds[0] != seeds[1] else ""
    sat = '; players of other kinds sit alike with order = "fixed" or "shuffled" in both files'
    return (
        f"A and {name} have no finished episode of the same label, number, seed and seating in "
        f"common{said}, so that no difference would be free of chance: {some}. "
        f"Play {name} with the labels, the chance, the seed and the order of A, such as: "
        f"llm-games run FILE --seed {seeds[0]}"
        f"{sat * ('another seating' in some)}"
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
    done = [
        number
        for number, row in sides[0].items()
        if (other := twin(row, sides[1])) and row.status == other.status == "done"
    ]
    places, notes = _places_and_notes(a, b)
    seats = np.array([_changed(*(side[i].seats for side in sides)) for i in done], int)
    shares, more = _shares(first, seats)
    measure = _measure(a, b)
    values = {name: np.full((2, len(done)), np.nan) for name in FAMILIES}
    for i, game in enumerate(filter(None, (a, b))):
        for k, number in enumerate(done):
            episode = RecordedEpisode(game.shelf, sides[i][number])  # read once: not to be kept
            judged = {"scores": score_of(episode, edition)}
            judged["measures"] = measure.of(episode) if measure else None
            judged["payoffs"] = episode.rewards.sum(axis=0)[seats[k]] @ shares[k]
            for name, found in judged.items():
                values[name][i, k] = np.nan if found is None else found
    widest = _widest([game.rules.core for game in (a, b) if game], measure)
    has = {name: ~np.isnan(both).any(axis=0) for name, both in values.items()}
    differ = {
        name: difference(both[0, has[name]], both[1, has[name]], level, widest[name])
        if has[name].any()
        else None
        for name, both in values.items()
    }
    bases: dict[str, dict[int, float]] = {}
    changes: dict[str, dict[int, float]] = {}
    for name, both in values.items():
        numbers, (one, other) = np.array(done, int)[has[name]].tolist(), both[:, has[name]]
        gained = _change(one, other).tolist() if numbers else []
        bases[name] = dict(zip(numbers, one.tolist(), strict=True))
        changes[name] = dict(zip(numbers, gained, strict=True))
    return Comparison(
        label=first.label,
        game=first.name,
        **differ,
        measure=measure,
        seats=places,
        alone=_alone(sides, names),
        notes=notes + more,
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


def _measure(a: RecordedGame | None, b: RecordedGame | None) -> Measure | None:
    """Return what both sides of a game are judged by if they have no score."""
    mine, theirs = (measure_of(game) if game else None for game in (a, b))
    return mine if mine is theirs else None


def _changed(one: Sequence[str], other: Sequence[str]) -> list[int]:
    """Return where somebody else sits; all that both have, if nobody does or they are not as many.

    The sides are players' names.
    """
    pairs = list(zip(one, other, strict=False))
    changed = [i for i, (mine, theirs) in enumerate(pairs) if mine != theirs]
    return changed if changed and len(one) == len(other) else [*range(len(pairs))]


def _places_and_notes(
    left: RecordedGame | None, right: RecordedGame | None
) -> tuple[list[int], list[str]]:
    """Return the places whose payoff is compared, and what else differs."""
    if left is None or right is None:
        return [], []
    notes = [] if left.params == right.params else ["played with different parameters"]
    if left.rules == right.rules and left.full != right.full:
        notes = ["played with different talk"]
    rules = [(game.rows[0].edition or {}).get("rules") for game in (left, right)]
    if rules[0] != rules[1]:
        notes.append(f"played by different editions of the rules ({rules[0]} and {rules[1]})")
    if any(game.planned.get("series") for game in (left, right)):
        notes.append("episodes follow from each other (series); as if independent, p is too small")
    draws = (conditional(game.rules, game.planned.get("given")) for game in (left, right))
    notes += dict.fromkeys(filter(None, draws))
    places = _changed(left.seats, right.seats)
    if len(left.seats) != len(right.seats):
        notes.append("played by different numbers of players")
    elif len(places) < len(left.seats):
        several = "s" * (len(places) > 1)
        notes.append(f"payoffs are of place{several} {', '.join(map(str, places))}")
    return places, notes


def _shares(game: RecordedGame, seats: Array) -> tuple[Array, list[str]]:
    """Return what each of the `seats` ``(episodes, seats)`` counts in its episode, and notes on it.

    Where seats are worth something and not all were had equally often, each seat counts alike: the
    mean is that of the seats' means. Rows add up to 1 on average.
    """
    times = np.bincount(seats.ravel(), minlength=len(game.seats))
    if not game.rules.seats_differ or not seats.size or (times == times[0]).all():
        return np.full(seats.shape, 1 / max(1, seats.shape[-1])), []
    said = f"payoffs: {game.rules.seats_differ}; each seat that was had counts alike"
    if never := np.flatnonzero(times == 0).tolist():
        said += f", and nothing is known of seats {', '.join(map(str, never))}"
    return len(seats) / np.count_nonzero(times) / times[seats], [said]


def twin(episode: EpisodeRow, others: Mapping[int, EpisodeRow]) -> EpisodeRow | None:
    """Return the same episode of the other side, if it has one."""
    other = others.get(episode.number)
    alike = other and (other.seed, other.game.game) == (episode.seed, episode.game.game)
    return other if alike and other and not _moved(episode, other) else None


def _moved(one: EpisodeRow, other: EpisodeRow) -> bool:
    """Return whether players sat elsewhere: whether not the same ones meet as in the lists."""
    if len(one.seating) != len(other.seating) or one.seating == other.seating:
        return False
    met, listed = (
        Counter(zip(mine, theirs, strict=True))
        for mine, theirs in ((one.seats, other.seats), (one.game.seats, other.game.seats))
    )
    return met != listed or one.params != other.params


def _alone(sides: Sequence[Mapping[int, EpisodeRow]], names: Sequence[str]) -> list[str]:
    """Say which episodes have no counterpart, or one that is not done."""
    found = []
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
            some = ", ".join(map(str, alone[:8])) + (", …" if len(alone) > 8 else "")
            found.append(f"episode{'s' if len(alone) > 1 else ''} {some} {why}")
    return found


# -- all games -------------------------------------------------------------------------------------


def _families(
    found: Sequence[Comparison], level: float
) -> tuple[list[Comparison], dict[str, Family]]:
    """Return the games with p-values corrected within each family, and the families."""
    kept, families = list(found), {}
    for name in FAMILIES:
        here = [i for i, game in enumerate(kept) if game.of(name)]
        made = [one for i in here if (one := kept[i].of(name))]
        for i, one, p in zip(here, made, paired.holm([one.p for one in made]), strict=True):
            changed: dict[str, Any] = {name: one._replace(holm=p)}
            kept[i] = replace(kept[i], **changed)
        families[name] = _family(name, [kept[i] for i in here], level)
    return kept, families


def _family(name: str, found: Sequence[Comparison], level: float) -> Family:
    """Work out what holds of all games of a family together."""
    made = [one for game in found if (one := game.of(name))]
    strata = _strata([(game.chance, game.changes[name]) for game in found])
    notes, overall = [], None
    scaled = _strata([(game.chance, _scaled(game.changes[name])) for game in found])
    some = [column for column in scaled if len(column)]
    several = len(made) > 1 and any(one.pairs > 1 for one in made)
    pooled = paired.stratified(some) if some and several else None
    if name == "scores" and len(made) > 1:
        few = [game.label for game, one in zip(found, made, strict=True) if one.pairs < 2]
        if few or min(map(len, strata)) < 2:
            lacks = ", ".join(few) or "games of one chance together"
            notes.append(f"No Overall: it needs 2 pairs of each game, which is not so of: {lacks}.")
        else:
            bases = _strata([(game.chance, game.bases[name]) for game in found])
            overall = _overall(bases, strata, level)
            sure = [game.label for game, one in zip(found, made, strict=True) if _certain(one)]
            if sure and overall.p is not None:
                notes.append(
                    "Overall: it takes differences without spread as certain, which few episodes "
                    f"cannot show: {', '.join(sure)}."
                )
            if len(strata) < len(found):
                notes.append(
                    "Overall: games share chance, so that it rests on their means by episode, of "
                    "those episodes that all of them have."
                )
    tests = sum(one.p is not None for one in made)
    return Family(tests, overall, pooled, notes)


def _certain(found: Difference) -> bool:
    """Return whether all pairs of a game differ by the same, and by something."""
    return found.p is None and found.pairs > 1 and found.mean != 0


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


def _scaled(changes: Mapping[int, float]) -> dict[int, float]:
    """Return differences over their root mean square, which leaves no units."""
    size = float(np.sqrt(np.mean(np.square([*changes.values()])))) if changes else 0.0
    return {number: change / (size or 1) for number, change in changes.items()}


def _overall(bases: Sequence[Array], strata: Sequence[Array], level: float) -> Difference:
    """Return the mean over games of both sides, and the test of its difference.

    `bases` are the values of A, as `strata` are the differences.
    """
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
