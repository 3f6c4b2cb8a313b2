"""Two runs side by side: what differs when the same episodes are played by other players.

Episodes pair if they have the same label, number and seed, so that both sides met the same chance
(common random numbers); the difference of a pair is then free of much of the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.paper import edition_of, score
from llm_games.benchmarks.runs.reader import Game, RecordedEpisode, games
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import EpisodeRow
from llm_games.benchmarks.runs.stats import DRAWS, blocks, interval, shown
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

SEED = 2024  # of all draws, so that a comparison or report is the same each time it is made
EXACT = 12  # up to so many pairs the permutation test goes through all signs


class Difference(NamedTuple):
    """B minus A over some pairs: the means of both sides, and the mean of the differences.

    `low` and `high` are the ends of its bootstrap 95 % interval, None for a single pair; `p` is the
    two-sided sign-flip permutation p-value, against a difference that is symmetric around 0. It
    cannot be smaller than ``2 / 2**pairs``.
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
        a, b, low, high = (shown(x, digits) for x in (self.a, self.b, self.low, self.high))
        change = f"{np.round(self.mean, digits):+.{digits}f}"
        interval = missing if self.low is None else f"{low} to {high}"
        return [str(self.pairs), a, b, change, interval, f"{self.p:.3g}"]


@dataclass(frozen=True)
class Comparison:
    """One game of both runs: its name in them (`label`) and in the registry, and what differs.

    `score` is None where no pair has one on both sides, `payoff` without pairs. `payoff` is the
    mean of `seats`, those that somebody else takes in the other run, or all if none is. `alone`
    says why episodes do not pair, with their numbers, `notes` what else differs.
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


def difference(a: Sequence[float] | Array, b: Sequence[float] | Array) -> Difference:
    """Compare paired values; a `BadParameter` says that they are not equally many, or none."""
    if len(a) != len(b) or not len(a):
        raise BadParameter(f"pairs need a value on both sides, got {len(a)} and {len(b)}")
    change = np.subtract(b, a, dtype=np.float64)
    low, high = interval([change], np.random.default_rng(SEED)) or (None, None)
    means = float(np.mean(a)), float(np.mean(b)), float(change.mean())
    return Difference(len(change), *means, low, high, sign_flip(change))


def sign_flip(change: Sequence[float] | Array) -> float:
    """Return the two-sided p-value of differences whose signs could as well be the other way.

    All signs up to `EXACT` pairs, then `DRAWS` seeded draws with the observed one among them.
    """
    change = np.asarray(change, np.float64)
    if len(change) <= EXACT:
        sums = np.array(list(product((1, -1), repeat=len(change)))) @ change
    else:
        rng, sums = np.random.default_rng(SEED), np.empty(DRAWS)
        for some in blocks(len(change)):
            sums[some] = rng.choice((1, -1), size=(len(some), len(change))) @ change
        sums[0] = change.sum()
    sums = np.abs(sums)
    # Equal up to rounding counts as equal: other signs add up in another order.
    return float(np.mean(sums >= np.abs(change.sum()) - 1e-9 * np.abs(change).sum()))


def compare(
    a: str | Path | Records, b: str | Path | Records, edition: str | None = None
) -> list[Comparison]:
    """Compare two runs, open or by their files, game by game in the order of the first.

    `edition` is of the scores, see `paper.editions`; None: the one the first run asks for.

    Raises:
        StoreError: a file is not a run that can be read.
        UnknownName: there is no such edition.
    """
    with ExitStack() as opened:
        both = [
            run if isinstance(run, Records) else opened.enter_context(Records.open_readonly(run))
            for run in (a, b)
        ]
        edition = edition or edition_of(both[0].config)
        left, right = ({game.label: game for game in games(run) if game.rows} for run in both)
        labels = dict.fromkeys([*left, *right])
        return [_compare(left.get(label), right.get(label), edition) for label in labels]


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
    scores, payoffs = np.full((2, len(done)), np.nan), np.empty((2, len(done)))
    for i, game in enumerate(filter(None, (a, b))):
        for k, number in enumerate(done):
            episode = RecordedEpisode(game.shelf, sides[i][number])  # read once: not to be kept
            found = score(episode.rules, episode.records, edition)
            scores[i, k] = np.nan if found is None else found
            payoffs[i, k] = episode.payoffs[seats].mean()
    scored = scores[:, ~np.isnan(scores).any(axis=0)]
    return Comparison(
        label=first.label,
        game=first.name,
        score=difference(*scored) if scored.size else None,
        payoff=difference(*payoffs) if done else None,
        seats=seats,
        alone=_alone(sides),
        notes=notes,
    )


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


def _twin(episode: EpisodeRow, others: Mapping[int, EpisodeRow]) -> EpisodeRow | None:
    """Return the same episode of the other side, if it has one."""
    other = others.get(episode.number)
    alike = other and (other.seed, other.game.game) == (episode.seed, episode.game.game)
    return other if alike else None


def _alone(sides: Sequence[Mapping[int, EpisodeRow]]) -> list[str]:
    """Say which episodes have no counterpart, or one that is not done."""
    found = []
    for name, mine, other in (("A", sides[0], sides[1]), ("B", sides[1], sides[0])):
        numbers: dict[str, list[int]] = {}
        for number, episode in mine.items():
            why = f"with another seed in {name}" if number in other else f"only in {name}"
            if _twin(episode, other):
                why = "" if episode.status == "done" else f"{episode.status} in {name}"
            numbers.setdefault(why, []).append(number)
        numbers.pop("", None)
        for why, alone in numbers.items():
            some = ", ".join(map(str, alone[:8])) + (", …" if len(alone) > 8 else "")
            found.append(f"episode{'s' if len(alone) > 1 else ''} {some} {why}")
    return found
