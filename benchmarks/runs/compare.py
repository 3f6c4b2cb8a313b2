"""Two runs side by side: what differs when the same episodes are played by other players.

Episodes pair if they have the same label, number and seed, so that both sides met the same chance
(common random numbers); the difference of a pair is then free of much of the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.paper import edition_of, score
from llm_games.benchmarks.runs.reader import Episode, Game, games
from llm_games.benchmarks.runs.records import EpisodeRow, Records
from llm_games.benchmarks.runs.stats import shown
from llm_games.errors import BadParameter

SEED = 2024
"""Of all draws, so that a comparison or report is the same each time it is made."""
DRAWS = 10_000
EXACT = 12
"""Up to so many pairs the permutation test goes through all signs."""


class Difference(NamedTuple):
    """B minus A over some pairs.

    Attributes:
        pairs: how many there are.
        a, b: the means of both sides.
        mean: of the differences.
        low, high: ends of the bootstrap 95 % interval of that mean; None for a single pair.
        p: two-sided sign-flip permutation p-value, against a difference that is symmetric
            around 0. It cannot be smaller than ``2 / 2**pairs``.
    """

    pairs: int
    a: float
    b: float
    mean: float
    low: float | None
    high: float | None
    p: float

    def written(self, digits: int, missing: str = "-") -> list[str]:
        """Return pairs, both means, the difference, its interval and p as words of a table."""
        ends = f"{shown(self.low, digits)} to {shown(self.high, digits)}"
        means = [shown(mean, digits) for mean in (self.a, self.b)]
        change = f"{np.round(self.mean, digits):+.{digits}f}"
        interval = missing if self.low is None else ends
        return [str(self.pairs), *means, change, interval, f"{self.p:.3g}"]


@dataclass(frozen=True)
class Comparison:
    """One game of both runs.

    Attributes:
        label, game: its name in the runs and in the registry.
        score: of the episodes' scores; None where no pair has one on both sides.
        payoff: of the mean payoff of the seats that somebody else takes in the other run (of all
            seats if none is); None without pairs.
        seats: these seats.
        alone: why episodes do not pair, with their numbers.
        notes: what else differs between both sides.
    """

    label: str
    game: str
    score: Difference | None
    payoff: Difference | None
    seats: list[int]
    alone: list[str]
    notes: list[str]

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        both = {"score": self.score, "payoff": self.payoff}
        return asdict(self) | {key: found and found._asdict() for key, found in both.items()}


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Compare paired values.

    Raises:
        BadParameter: not equally many on both sides, or none.
    """
    if len(a) != len(b) or not len(a):
        raise BadParameter(f"pairs need a value on both sides, got {len(a)} and {len(b)}")
    change = np.subtract(b, a, dtype=np.float64)
    low = high = None
    if len(change) > 1:
        rng = np.random.default_rng(SEED)
        drawn = change[rng.integers(len(change), size=(DRAWS, len(change)))].mean(axis=1)
        low, high = map(float, np.quantile(drawn, [0.025, 0.975]))
    sides = float(np.mean(a)), float(np.mean(b))
    return Difference(len(change), *sides, float(change.mean()), low, high, sign_flip(change))


def sign_flip(change: Sequence[float] | np.ndarray[Any, Any]) -> float:
    """Return the two-sided p-value of differences whose signs could as well be the other way.

    All signs up to `EXACT` pairs, then `DRAWS` seeded draws with the observed one among them.
    """
    change = np.asarray(change, np.float64)
    if len(change) <= EXACT:
        signs = np.array(list(product((1, -1), repeat=len(change))))
    else:
        signs = np.random.default_rng(SEED).choice((1, -1), size=(DRAWS, len(change)))
        signs[0] = 1
    sums = np.abs(signs @ change)
    # Equal up to rounding counts as equal: other signs add up in another order.
    return float(np.mean(sums >= np.abs(change.sum()) - 1e-9 * np.abs(change).sum()))


def compare(
    a: str | Path | Records, b: str | Path | Records, edition: str | None = None
) -> list[Comparison]:
    """Compare two runs game by game, in the order of the first.

    Args:
        a: file of a run, or the open run.
        b: the other.
        edition: of the scores, see `paper.editions`; None: the one the first run asks for.

    Raises:
        StoreError: a file is not a run that can be read.
        UnknownName: there is no such edition.
    """
    if not isinstance(a, Records):
        with Records.open_readonly(a) as opened:
            return compare(opened, b, edition)
    if not isinstance(b, Records):
        with Records.open_readonly(b) as opened:
            return compare(a, opened, edition)
    edition = edition or edition_of(a.config)
    left, right = ({game.label: game for game in games(run) if game.rows} for run in (a, b))
    return [
        _compare(left.get(label), right.get(label), edition)
        for label in dict.fromkeys([*left, *right])
    ]


def _compare(a: Game | None, b: Game | None, edition: str) -> Comparison:
    first = a or b
    assert first is not None
    sides = [
        {(row.number, row.seed, row.game.game): row for row in game.rows} if game else {}
        for game in (a, b)
    ]
    paired = [key for key in sides[0] if key in sides[1]]
    done = [key for key in paired if all(side[key].status == "done" for side in sides)]
    seats, notes = _seats_and_notes(a, b)
    values = [
        [_values(Episode(game.file, side[key]), seats, edition) for key in done]
        for game, side in zip((a, b), sides, strict=True)
        if game
    ]
    scored = [(x, y) for (x, _), (y, _) in zip(*values, strict=True) if None not in (x, y)]
    return Comparison(
        label=first.label,
        game=first.name,
        score=difference(*zip(*scored, strict=True)) if scored else None,
        payoff=difference(*([p for _, p in side] for side in values)) if done else None,
        seats=seats,
        alone=_alone(sides),
        notes=notes,
    )


def _values(episode: Episode, seats: list[int], edition: str) -> tuple[float | None, float]:
    """Return an episode's score and the mean payoff of who has these seats by configuration."""
    value = score(episode.rules, episode.records, edition)
    return value, float(episode.payoffs[seats].mean())


def _seats_and_notes(left: Game | None, right: Game | None) -> tuple[list[int], list[str]]:
    """Return the seats whose payoff is compared, and what else differs."""
    if left is None or right is None:
        return [], []
    notes = [] if left.params == right.params else ["played with different parameters"]
    if len(left.seats) != len(right.seats):
        shared = range(min(len(left.seats), len(right.seats)))
        return [*shared], [*notes, "played by different numbers of players"]
    pairs = list(zip(left.seats, right.seats, strict=True))
    changed = [seat for seat, (mine, other) in enumerate(pairs) if mine != other]
    return changed or list(range(len(pairs))), notes


def _alone(sides: Sequence[Mapping[tuple[int, int, str], EpisodeRow]]) -> list[str]:
    """Say which episodes have no counterpart, or one that is not done."""
    found = []
    for name, mine, other in (("A", sides[0], sides[1]), ("B", sides[1], sides[0])):
        numbers: dict[str, list[int]] = {}
        for key, episode in mine.items():
            if key in other:
                if episode.status != "done":
                    numbers.setdefault(f"{episode.status} in {name}", []).append(episode.number)
                continue
            again = any(episode.number == twin.number for twin in other.values())
            why = f"with another seed in {name}" if again else f"only in {name}"
            numbers.setdefault(why, []).append(episode.number)
        found += [f"{_listed(numbers[why])} {why}" for why in numbers]
    return found


def _listed(numbers: list[int]) -> str:
    some = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
    return f"episode{'s' if len(numbers) > 1 else ''} {some}"
