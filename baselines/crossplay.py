"""Cross-play: every player with each, seats rotated, the same chance at all tables, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.batch_play import TOGETHER, play_batch
from llm_games.baselines.metagame import MOST, MetaGame, lineups
from llm_games.baselines.seat_rotation import rotated
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.wrappers.policy import Policy

CHANCE = "cross-play"
"""Name of the chance that all line-ups meet; by it a game of a run is known as one."""
ALL, ONE = "all", "one"  # line-ups: all that there are, or one player among those of another kind
MANY = 1000  # line-ups beyond which only `ONE` of a kind is set among others, unless asked for


def chosen(players: int, seats: int, which: str | None = None) -> tuple[str, Array]:
    """Return the line-ups of `which`, int64 ``(lineups, players)``; BadParameter if too many."""
    if which not in (None, ALL, ONE):
        raise BadParameter(f'line-ups are "{ALL}" or "{ONE}", got {which!r}')
    if which is None:
        which = ALL if seats == 2 or _number(players, seats) <= MANY else ONE
    if which == ALL:
        return ALL, lineups(players, seats)
    kinds = np.eye(players, dtype=np.int64)
    rows = (kinds[:, None] + (seats - 1) * kinds).reshape(-1, players)
    return ONE, np.unique(rows, axis=0)[::-1]


def which_of(counts: Array) -> str | None:
    """Return which line-ups these counts are; None if some of them are missing."""
    players, seats = counts.shape[1], int(counts[0].sum())
    for which in (ALL, ONE):
        if which == ONE or _number(players, seats) == len(counts):
            wanted = chosen(players, seats, which)[1].tolist()
            if sorted(wanted) == sorted(counts.tolist()):
                return which
    return None


def _number(players: int, seats: int) -> int:
    """Return the number of line-ups; above `MOST` counting stops."""
    count = 1
    for seat in range(1, seats + 1):
        count = count * (players + seat - 1) // seat
        if count > MOST:
            break
    return count


@dataclass(frozen=True, eq=False)
class Cross:
    """Payoffs of cross-play.

    `counts` are the line-ups, int64 ``(lineups, players)``; `earned` the payoffs of their `places`,
    float64 ``(lineups, places, episodes)``, NaN where the episode is void. An episode has the same
    chance in all line-ups. `which` as in `chosen`.
    """

    names: tuple[str, ...]
    which: str | None
    counts: Array
    earned: Array
    payable: tuple[float, float] = (-np.inf, np.inf)  # as in the rules

    @property
    def seats(self) -> int:
        return int(self.counts[0].sum())

    @property
    def episodes(self) -> int:
        return int(self.earned.shape[2])

    @cached_property
    def void(self) -> int:
        return int(np.isnan(self.earned).any(axis=1).sum())

    @cached_property
    def paid(self) -> Array:
        """Mean payoff of a player's places, ``(lineups, players, episodes)``; NaN where none."""
        means = np.full((*self.counts.shape, self.episodes), np.nan)
        for row, counts in enumerate(self.counts):
            players = np.flatnonzero(counts)
            first = np.concatenate([[0], counts[players].cumsum()[:-1]])
            sums = np.add.reduceat(self.earned[row], first, axis=0)
            means[row, players] = sums / counts[players][:, None]
        return means

    @cached_property
    def ahead(self) -> Array:
        """Tables of an episode at which one player was ahead of another, ``(episodes, a, b)``.

        Of several places at a table count the share of pairs that it won, ties half; no void ones.
        """
        count = len(self.names)
        wins = np.zeros((self.episodes, count, count))
        for counts, earned in zip(self.counts, self.earned, strict=True):
            players, sits = np.flatnonzero(counts), places(counts)
            share = (sits[:, None] == players) / counts[players]  # (places, players there)
            first, other = earned.T[:, :, None], earned.T[:, None, :]
            won = np.where(np.isnan(first + other), 0.0, (first > other) + 0.5 * (first == other))
            wins[:, players[:, None], players] += share.T @ won @ share
        wins[:, range(count), range(count)] = 0
        return wins

    @cached_property
    def payoffs(self) -> Array:
        """Payoffs of the meta-game by episode, ``(line-ups of the meta-game, players, episodes)``.

        A void episode counts as its line-up's mean; BadParameter if all are. Where `which` is
        `ONE`, it has two players: one is the only one of its kind, the other stands for all others.
        """
        there = np.isfinite(self.paid)
        lost = (self.counts > 0) & ~there.any(axis=2)
        if lost.any():
            row = int(np.argwhere(lost)[0][0])
            void = f"all episodes of {lineup(self.names, self.counts[row])} are void"
            way = "give a larger max_steps, or leave a player out"
            raise BadParameter(f"{void}, so that nothing is known of them: {way}")
        mean = np.where(there, self.paid, 0).sum(axis=2) / np.maximum(there.sum(axis=2), 1)
        payoffs = np.where(there, self.paid, mean[..., None])
        payoffs[self.counts == 0] = np.nan
        order = {tuple(row): index for index, row in enumerate(self.counts.tolist())}
        count, kinds = len(self.names), np.eye(len(self.names), dtype=np.int64)
        if self.which == ALL:
            return payoffs[[order[tuple(row)] for row in lineups(count, self.seats).tolist()]]
        pairs = lineups(count, 2)
        pair_payoffs = np.full((len(pairs), count, self.episodes), np.nan)
        for index, (first, other) in enumerate(np.repeat(np.arange(count), row) for row in pairs):
            for player, opponent in ((first, other), (other, first)):
                row = order[tuple((kinds[player] + (self.seats - 1) * kinds[opponent]).tolist())]
                pair_payoffs[index, player] = payoffs[row, player]
        return pair_payoffs

    def meta(self, weights: Array | None = None) -> MetaGame:
        """Return the meta-game of mean payoffs; `weights` ``(episodes,)`` weigh the episodes."""
        count = self.episodes
        share = np.full(count, 1 / count) if weights is None else weights / weights.sum()
        return MetaGame(self.names, self.seats if self.which == ALL else 2, self.payoffs @ share)

    def against(self, mixture: Array) -> Array:
        """Return earnings by episode among others drawn from a mixture, ``(players, episodes)``."""
        return np.einsum("li,lie->ie", self.meta().chances(mixture), np.nan_to_num(self.payoffs))


def lineup(names: Sequence[str], counts: Array) -> str:
    """Return a line-up in words, such as ``2 × rational, random``."""
    pairs = zip(names, counts.tolist(), strict=True)
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in pairs if count)


def places(counts: Array) -> Array:
    """Return the player of each place of a line-up, int64 ``(places,)``, in order of players."""
    return np.repeat(np.arange(len(counts)), counts)


def seating(counts: Array, episodes: int) -> Array:
    """Return the place that sits in each seat in each episode, int64 ``(seats, episodes)``."""
    rows = np.array(rotated(places(counts).tolist()))
    return np.asarray(rows[np.arange(episodes) % len(rows)].T)


def crossplay(
    rules: Rulebook,
    players: Sequence[str | Policy],
    seeds: Sequence[int],
    which: str | None = None,
    max_steps: int | None = None,
    workers: int = 1,
) -> Cross:
    """Play an episode of each seed in each line-up of some players, see `payoffs`.

    Raises:
        BadParameter: a player asks a model (`llm-games run` plays these, and keeps their
            answers), cannot play the game, or is there twice; or there are too many line-ups.
    """
    names = tuple(player if isinstance(player, str) else player.name for player in players)
    if len(set(names)) != len(names) or len(names) < 2:
        raise BadParameter(f"cross-play has two players or more, each once, got {', '.join(names)}")
    which, counts = chosen(len(names), rules.players, which)
    earned = payoffs(rules, players, counts, seeds, max_steps, workers)
    return Cross(names, which, counts, earned, rules.core.payable)


def payoffs(
    rules: Rulebook,
    players: Sequence[str | Policy],
    counts: Array,
    seeds: Sequence[int],
    max_steps: int | None = None,
    workers: int = 1,
) -> Array:
    """Return payoffs of the line-ups' `places`, ``(lineups, places, seeds)``, up to `max_steps`.

    So many `workers`, processes, play the same batches. BadParameter: players have no names there.
    """
    if workers > 1 and not all(isinstance(player, str) for player in players):
        raise BadParameter(f"{workers} processes play players by their names alone: give those")
    totals = np.empty((len(counts), rules.players, len(seeds)))
    parts = [*_parts(len(counts), len(seeds))]
    play = partial(_played, rules, players, max_steps)
    tables = ((counts[rows], [seeds[column] for column in of]) for rows, of in parts)
    sits = (
        np.stack([seating(row, len(seeds))[:, of] for row in counts[rows]], axis=1)
        for rows, of in parts
    )
    with _mapping(min(workers, len(parts))) as each:
        for (rows, columns), earned in zip(parts, each(play, tables, sits), strict=True):
            totals[np.ix_(rows, range(rules.players), columns)] = earned
    return totals


@contextmanager
def _mapping(workers: int) -> Iterator[Callable[..., Any]]:
    """Yield `map`, or one over so many processes."""
    if workers < 2:
        yield map
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield pool.map


def _played(
    rules: Rulebook,
    players: Sequence[str | Policy],
    max_steps: int | None,
    tables: tuple[Array, list[int]],
    seat_of_place: Array,
) -> Array:
    """Payoffs by line-up, place and seed of a batch: of line-ups and seeds."""
    counts, seeds = tables
    players_of_places = np.stack([places(row) for row in counts], axis=1)
    flat = np.take_along_axis(players_of_places[..., None], seat_of_place, axis=0)
    flat = flat.reshape(rules.players, -1)
    total = np.zeros(flat.shape)
    for _, outcome in play_batch(rules, players, flat, seeds * len(counts), max_steps=max_steps):
        total += outcome.rewards
    earned = np.empty(seat_of_place.shape)
    np.put_along_axis(earned, seat_of_place, total.reshape(seat_of_place.shape), axis=0)
    return earned.swapaxes(0, 1)


def _parts(count: int, episodes: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the line-ups and episodes of each batch, at most `TOGETHER` tables."""
    size = max(1, TOGETHER // episodes)
    for first in range(0, count, size):
        rows = list(range(first, min(first + size, count)))
        for start in range(0, episodes, TOGETHER):
            yield rows, list(range(start, min(start + TOGETHER, episodes)))
